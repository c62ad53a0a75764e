//! Authorisation: credentials become principals, and principals obtain the passes that the façade requires.
//!
//! Every check goes through [`Access::authorise`], which denies by default. A pass can only be made here and contains
//! the resource it is for, so code that skips the check or uses another address does not compile (`forbidden.rs` has
//! the proof). An API builds the text that was signed and passes it in.

mod action;
mod bearer;
mod delegation;
mod forbidden;
mod grant;
mod keys;
mod pass;
mod roles;
mod token;

pub(crate) use action::Sought;
pub use action::{Action, Reach, Resource};
pub use bearer::{Identity, IdentityOptions};
pub use delegation::{CatalogRights, Delegation, KeyBound, KeyInterval};
pub use grant::Grant;
pub(crate) use grant::{GrantScope, ItemReference};
pub use keys::{AccountKey, KeyFingerprint, KeyName, KeyUse};
pub(crate) use pass::check_parent;
pub use pass::{
    Account, AdminPass, BatchPass, CatalogPass, ChangeFeedPass, DocumentPass, DocumentsPass, ExecutePass,
    FeedPass, Guarded, LogicalPartitionPass, Permissions, QueryPass, Scripts, TransactionPass, Users,
    WritePass,
};
pub(crate) use pass::{RequestClass, TransactionRights};
pub use roles::{Assignee, RoleAssignment, RoleDefinition, RoleTable};

use crate::catalog::{Container, NamedScript, Permission};
use crate::documents::{DocumentAddress, Keyed};
use crate::engine::Engine;
use crate::feed::Scope;
use arc_swap::{ArcSwap, ArcSwapOption};
use foldhash::fast::FixedState;
use keys::KeyRing;
use model::{AccessFault, BearerFault, Fault, PartitionKey, Priority, ReadQuorum, ResourceNumber, TokenLife};
use plan::DocumentOperation;
use roles::RoleRights;
use std::hash::BuildHasher as _;
use std::sync::Arc;
use token::TokenKey;

/// A caller with a valid credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    rights: Rights,
    /// Of its present request.
    class: RequestClass,
}

/// What a credential allows. One variant per kind of credential.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Rights {
    /// A read-write key: everything.
    Account,
    /// A resource token: the rights of its permission.
    Permission(Arc<Permission>),
    /// A read-only key: all reads except those of permissions, which contain tokens.
    AccountRead,
    /// A token of an identity provider: the rights of the holder's roles.
    Roles(Arc<RoleRights>),
    /// A delegation, signed with a key of these rights: what both allow.
    Delegated(Arc<Delegation>, KeyRights),
}

/// The rights of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyRights {
    All,
    Read,
}

/// The caller that work is attributed to: limits per caller are counted by this.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Caller {
    /// All holders of a read-write key.
    Account,
    /// All holders of a read-only key.
    AccountRead,
    /// All holders of a token of this permission.
    Permission(ResourceNumber),
    /// A principal of the identity provider.
    Holder(String),
    /// All holders of delegations for one container, or for the database.
    Delegates(Option<String>),
}

impl Principal {
    fn new(rights: Rights) -> Principal {
        Principal { rights, class: RequestClass::default() }
    }

    pub(crate) fn class(&self) -> RequestClass {
        self.class
    }

    /// This caller with a request of another priority.
    pub fn with_priority(self, priority: Priority) -> Principal {
        Principal { class: RequestClass { priority, ..self.class }, ..self }
    }

    /// This caller with a request whose reads ask this number of replicas.
    pub fn with_read_quorum(self, read_quorum: ReadQuorum) -> Principal {
        Principal { class: RequestClass { read_quorum, ..self.class }, ..self }
    }

    /// The caller that work for this principal is attributed to.
    pub(crate) fn caller(&self) -> Caller {
        match &self.rights {
            Rights::Account => Caller::Account,
            Rights::AccountRead => Caller::AccountRead,
            Rights::Permission(permission) => Caller::Permission(permission.number()),
            Rights::Roles(roles) => Caller::Holder(roles.principal().to_owned()),
            Rights::Delegated(delegation, _) => Caller::Delegates(delegation.container.clone()),
        }
    }

    /// The holder of a delegation that this principal, the holder of an account key, has signed. A delegation by any
    /// other principal allows nothing.
    pub fn delegate(&self, delegation: Delegation) -> Result<Principal, AccessFault> {
        let key = match &self.rights {
            Rights::Account => KeyRights::All,
            Rights::AccountRead => KeyRights::Read,
            Rights::Permission(_) | Rights::Roles(_) | Rights::Delegated(..) => {
                return Err(AccessFault::NotPermitted { needed: "delegating rights" });
            }
        };
        Ok(Principal { rights: Rights::Delegated(Arc::new(delegation), key), class: self.class })
    }

    fn with_roles(rights: RoleRights) -> Principal {
        Principal::new(Rights::Roles(Arc::new(rights)))
    }

    /// A hash of the caller of this principal.
    pub(crate) fn caller_hash(&self) -> u64 {
        FixedState::default().hash_one(self.caller())
    }
}

/// Verifies credentials and gives passes.
#[derive(Debug)]
pub struct Access {
    keys: ArcSwap<KeyRing>,
    identity: ArcSwapOption<Identity>,
    /// The store's part of the key that authenticates resource tokens; the account keys are the other part.
    token_secret: [u8; 32],
    token_key: ArcSwap<TokenKey>,
}

impl Access {
    /// Access by these keys. Resource tokens are authenticated with the secret and the keys together.
    pub fn new(keys: Vec<AccountKey>, token_secret: [u8; 32]) -> Access {
        let token_key = TokenKey::derive(&token_secret, &keys);
        Access {
            keys: ArcSwap::from_pointee(KeyRing::new(keys)),
            identity: ArcSwapOption::empty(),
            token_secret,
            token_key: ArcSwap::from_pointee(token_key),
        }
    }

    /// Replaces all keys at once. Requests that are authorised already continue; resource tokens are revoked if a
    /// read-write key changes.
    pub fn replace_keys(&self, keys: Vec<AccountKey>) {
        self.token_key.store(Arc::new(TokenKey::derive(&self.token_secret, &keys)));
        let ring = KeyRing::new(keys);
        ring.remember(&self.keys.load().uses());
        self.keys.store(Arc::new(ring));
    }

    /// Accepts tokens of another identity provider from now on, or of none.
    pub fn replace_identity(&self, identity: Option<Identity>) {
        self.identity.store(identity.map(Arc::new));
    }

    /// When each key was last used.
    pub fn key_uses(&self) -> Vec<KeyUse> {
        self.keys.load().uses()
    }

    /// Takes over known times of the keys' use.
    pub fn remember_key_uses(&self, uses: &[KeyUse]) {
        self.keys.load().remember(uses);
    }

    /// The principal whose key signed `payload`, if one of the account's keys did.
    pub fn verify_signature(&self, payload: &[u8], signature: &[u8], now_seconds: u64) -> Option<Principal> {
        let signer = self.keys.load().signer(payload, signature, now_seconds)?;
        let rights = if signer.is_read_only() { Rights::AccountRead } else { Rights::Account };
        Some(Principal::new(rights))
    }

    /// The principal whose key signed `payload`, if that is `key`: one that an API accepts besides the account's keys,
    /// such as the published key of an emulator.
    pub fn verify_other_key(&self, key: &AccountKey, payload: &[u8], signature: &[u8]) -> Option<Principal> {
        let rights = if key.name().is_read_only() { Rights::AccountRead } else { Rights::Account };
        key.signed(payload, signature).then(|| Principal::new(rights))
    }

    /// The principal that holds `key`, if it is one of the account's. The given key signs a text which the account's
    /// keys verify, so the comparison takes constant time.
    pub fn verify_key(&self, key: &[u8], now_seconds: u64) -> Option<Principal> {
        const TEXT: &[u8] = b"proof of an account key";
        self.verify_signature(TEXT, &AccountKey::new(key).sign(TEXT), now_seconds)
    }

    /// The holder of a token of the identity provider.
    pub fn verify_bearer(&self, token: &str, now_seconds: u64) -> Result<Principal, AccessFault> {
        let identity = self.identity.load();
        let identity = identity.as_ref().ok_or(BearerFault::Disabled)?;
        Ok(identity.verify(token, now_seconds)?)
    }

    /// The only decision: whether `principal` may perform `action` on `resource`.
    pub fn authorise(
        &self,
        principal: &Principal,
        action: Action,
        resource: Resource<'_>,
    ) -> Result<(), AccessFault> {
        match &principal.rights {
            Rights::Account => Ok(()),
            Rights::Roles(roles) => roles.authorise(action, resource),
            Rights::AccountRead if action.is_read() && action != Action::ReadPermissions => Ok(()),
            Rights::Permission(permission) if permission.definition().allows(action, resource) => Ok(()),
            Rights::Delegated(delegation, key)
                if key.allows(action) && delegation.allows(action, resource) =>
            {
                Ok(())
            }
            Rights::AccountRead | Rights::Permission(_) | Rights::Delegated(..) => {
                Err(AccessFault::NotPermitted { needed: action.describe() })
            }
        }
    }

    /// Refuses a caller who may perform `action` on no part of `container`, or nowhere at all if none is named: before
    /// a request is completely read, its exact resource is not known.
    pub fn check_action(
        &self,
        principal: &Principal,
        action: Action,
        container: Option<&Container>,
    ) -> Result<(), AccessFault> {
        let allowed = match &principal.rights {
            Rights::Account => true,
            // A role covers whole containers.
            Rights::Roles(roles) => match container {
                Some(container) => {
                    return roles.authorise(action, Resource::Container(container, Reach::Whole));
                }
                None => true,
            },
            Rights::AccountRead => action.is_read() && action != Action::ReadPermissions,
            Rights::Permission(permission) => permission.definition().allows_somewhere(action),
            Rights::Delegated(delegation, key) => key.allows(action) && delegation.allows_somewhere(action),
        };
        if allowed { Ok(()) } else { Err(AccessFault::NotPermitted { needed: action.describe() }) }
    }

    /// The result of a search, if `principal` may know whether the resource exists. For a caller with narrow rights an
    /// absent resource looks like one that is not granted: called before anything else about it is revealed.
    pub(crate) fn reveal<T>(
        &self,
        principal: &Principal,
        action: Action,
        sought: Sought<'_>,
        found: Result<T, Fault>,
        as_resource: impl FnOnce(&T) -> Resource<'_>,
    ) -> Result<T, Fault> {
        let resource = found.as_ref().ok().map(as_resource);
        match &principal.rights {
            Rights::Account | Rights::AccountRead => {}
            Rights::Roles(roles) => roles.reveal(action, sought, resource)?,
            Rights::Delegated(delegation, key) => {
                if !(key.allows(action) && delegation.may_seek(sought) && delegation.allows_somewhere(action))
                {
                    return Err(AccessFault::NotPermitted { needed: action.describe() }.into());
                }
            }
            Rights::Permission(permission) => {
                if !resource.is_some_and(|resource| permission.definition().is_in(resource)) {
                    return Err(AccessFault::NotPermitted { needed: action.describe() }.into());
                }
            }
        }
        found
    }

    /// Permission to read a resource of the catalog.
    pub fn read_catalog<R: Guarded>(
        &self,
        principal: &Principal,
        resource: R,
    ) -> Result<CatalogPass<R>, AccessFault> {
        self.authorise(principal, R::READ, resource.as_resource())?;
        Ok(CatalogPass::new(resource))
    }

    /// Permission to change a resource of the catalog.
    pub fn change_catalog<R: Guarded>(
        &self,
        principal: &Principal,
        resource: R,
    ) -> Result<AdminPass<R>, AccessFault> {
        self.authorise(principal, R::CHANGE, resource.as_resource())?;
        Ok(AdminPass::new(resource))
    }

    /// Permission to execute a stored procedure.
    pub fn execute<'a>(
        &self,
        principal: &'a Principal,
        script: NamedScript<'a>,
    ) -> Result<ExecutePass<'a>, AccessFault> {
        self.authorise(principal, Action::ExecuteProcedure, script.as_resource())?;
        Ok(ExecutePass { script, principal })
    }

    /// Permission to read one document of `container`.
    pub fn read_document<'a>(
        &self,
        principal: &Principal,
        container: &'a Container,
        address: DocumentAddress,
    ) -> Result<DocumentPass<'a>, AccessFault> {
        self.authorise(principal, Action::ReadDocument, Resource::Container(container, address.reach()))?;
        Ok(DocumentPass { container, address, class: principal.class })
    }

    /// Permission to read one document of `container`, whose row is `row`.
    pub fn read_row<'a>(
        &self,
        principal: &Principal,
        container: &'a Container,
        address: DocumentAddress,
        row: &str,
    ) -> Result<DocumentPass<'a>, AccessFault> {
        let resource = Resource::Container(container, Reach::Row { key: &address.key, row });
        self.authorise(principal, Action::ReadDocument, resource)?;
        Ok(DocumentPass { container, address, class: principal.class })
    }

    /// Permission to perform an operation on the document whose row is `row`.
    pub fn write_row<'a>(
        &self,
        principal: &'a Principal,
        keyed: Keyed<'a>,
        row: &str,
    ) -> Result<WritePass<'a>, AccessFault> {
        let resource = Resource::Container(keyed.container(), Reach::Row { key: keyed.key(), row });
        self.authorise(principal, keyed.action(), resource)?;
        Ok(WritePass { keyed, principal })
    }

    /// Permission to perform operations on documents of `key`, each given with the row of its document; an empty list
    /// is refused.
    pub fn batch_of_rows<'a>(
        &self,
        principal: &Principal,
        container: &'a Container,
        key: PartitionKey,
        operations: Vec<(DocumentOperation, &str)>,
    ) -> Result<BatchPass<'a>, AccessFault> {
        if operations.is_empty() {
            return Err(AccessFault::NotPermitted { needed: "an operation" });
        }
        for (operation, row) in &operations {
            let resource = Resource::Container(container, Reach::Row { key: &key, row });
            self.authorise(principal, Action::of_step(operation), resource)?;
        }
        let operations = operations.into_iter().map(|(operation, _)| operation).collect();
        Ok(BatchPass { container, key, operations, priority: principal.class.priority })
    }

    /// Permission to read some documents of `container`, each of which the caller may read.
    pub fn read_documents<'a>(
        &self,
        principal: &Principal,
        container: &'a Container,
        addresses: Vec<DocumentAddress>,
    ) -> Result<DocumentsPass<'a>, AccessFault> {
        for address in &addresses {
            self.authorise(principal, Action::ReadDocument, Resource::Container(container, address.reach()))?;
        }
        Ok(DocumentsPass { container, addresses, class: principal.class })
    }

    /// Permission to list the documents of a scope.
    pub fn list_documents<'a>(
        &self,
        principal: &Principal,
        container: &'a Container,
        scope: Scope,
    ) -> Result<FeedPass<'a>, AccessFault> {
        self.authorise(principal, Action::ListDocuments, Resource::Container(container, scope.reach()))?;
        Ok(FeedPass { container, scope, class: principal.class })
    }

    /// Permission to read the changes of the documents of a scope.
    pub fn read_changes<'a>(
        &self,
        principal: &'a Principal,
        container: &'a Container,
        scope: Scope,
    ) -> Result<ChangeFeedPass<'a>, AccessFault> {
        self.authorise(principal, Action::ReadChangeFeed, Resource::Container(container, scope.reach()))?;
        Ok(ChangeFeedPass { container, principal, scope })
    }

    /// Permission to query the documents of a scope.
    pub fn query_documents<'a>(
        &self,
        principal: &'a Principal,
        container: &'a Container,
        scope: Scope,
    ) -> Result<QueryPass<'a>, AccessFault> {
        let resource = Resource::Container(container, scope.reach());
        let within = match &principal.rights {
            Rights::Delegated(delegation, _)
                if delegation.keys.is_some()
                    && delegation.allows_restricted(Action::QueryDocuments, resource) =>
            {
                Some(Arc::clone(delegation))
            }
            Rights::Account
            | Rights::Permission(_)
            | Rights::AccountRead
            | Rights::Roles(_)
            | Rights::Delegated(..) => {
                self.authorise(principal, Action::QueryDocuments, resource)?;
                None
            }
        };
        Ok(QueryPass { container, principal, scope, within })
    }

    /// Permission to perform an operation. A caller with rights to one document may perform it on that one.
    pub fn write<'a>(
        &self,
        principal: &'a Principal,
        keyed: Keyed<'a>,
    ) -> Result<WritePass<'a>, AccessFault> {
        self.authorise(principal, keyed.action(), Resource::Container(keyed.container(), keyed.reach()))?;
        Ok(WritePass { keyed, principal })
    }

    /// Permission to perform an operation among others in one request, for callers who may perform it on every document
    /// of the partition key.
    pub fn write_in_bulk<'a>(
        &self,
        principal: &'a Principal,
        keyed: Keyed<'a>,
    ) -> Result<WritePass<'a>, AccessFault> {
        let resource = Resource::Container(keyed.container(), Reach::LogicalPartition(keyed.key()));
        self.authorise(principal, keyed.action(), resource)?;
        Ok(WritePass { keyed, principal })
    }

    /// Permission to perform all operations on documents of `key`; an empty list is refused.
    pub fn batch<'a>(
        &self,
        principal: &Principal,
        container: &'a Container,
        key: PartitionKey,
        operations: Vec<DocumentOperation>,
    ) -> Result<BatchPass<'a>, AccessFault> {
        if operations.is_empty() {
            return Err(AccessFault::NotPermitted { needed: "an operation" });
        }
        let resource = Resource::Container(container, Reach::LogicalPartition(&key));
        for operation in &operations {
            self.authorise(principal, Action::of_step(operation), resource)?;
        }
        Ok(BatchPass { container, key, operations, priority: principal.class.priority })
    }

    /// Permission to begin a transaction on documents of `key`. Each of its operations is authorised by itself.
    pub fn transact<'a>(
        &self,
        principal: &'a Principal,
        container: &'a Container,
        key: PartitionKey,
    ) -> TransactionPass<'a> {
        TransactionPass { container, key, principal, rights: TransactionRights::Caller }
    }

    /// Permission to delete all documents of `key`.
    pub fn delete_logical_partition<'a>(
        &self,
        principal: &Principal,
        container: &'a Container,
        key: PartitionKey,
    ) -> Result<LogicalPartitionPass<'a>, AccessFault> {
        let resource = Resource::Container(container, Reach::LogicalPartition(&key));
        self.authorise(principal, Action::DeleteDocument, resource)?;
        Ok(LogicalPartitionPass { container, key, priority: principal.class.priority })
    }
}

impl KeyRights {
    fn allows(self, action: Action) -> bool {
        match self {
            KeyRights::All => true,
            KeyRights::Read => action.is_read() && action != Action::ReadPermissions,
        }
    }
}

impl Engine {
    /// A token with which its holder can use `permission` for a limited time.
    pub fn permission_token(
        &self,
        pass: &CatalogPass<Permissions<'_>>,
        permission: &Permission,
        life: TokenLife,
    ) -> Result<String, Fault> {
        pass.check_permission(permission)?;
        let expires = self.ambient.now_seconds().saturating_add(life.seconds());
        Ok(self.access.token_key.load().seal(permission.number(), permission.stamp().change, expires))
    }

    /// The holder of the resource token `text`.
    pub fn verify_token(&self, text: &str) -> Result<Principal, AccessFault> {
        let claim = self.access.token_key.load().open(text).ok_or(AccessFault::TokenInvalid)?;
        let now = self.ambient.now_seconds();
        if now >= claim.expires {
            return Err(AccessFault::TokenExpired { seconds_ago: now - claim.expires });
        }
        let permission = self.catalog.permission(claim.permission);
        let permission = permission.filter(|permission| permission.stamp().change == claim.change);
        let permission = permission.ok_or(AccessFault::TokenEnded)?;
        Ok(Principal::new(Rights::Permission(permission)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sign(key: &[u8]) -> Vec<u8> {
        AccountKey::new(key).sign(b"payload")
    }

    #[test]
    fn any_account_key_signs_and_no_other() {
        let access = Access::new(
            vec![AccountKey::new(b"one"), AccountKey::named(KeyName::PrimaryReadOnly, b"two")],
            [1; 32],
        );
        let rights = |payload, signature: &[u8]| {
            access.verify_signature(payload, signature, 1).map(|principal| principal.rights)
        };
        assert_eq!(rights(b"payload", &sign(b"one")), Some(Rights::Account));
        assert_eq!(rights(b"payload", &sign(b"two")), Some(Rights::AccountRead));
        assert_eq!(rights(b"payload", &sign(b"three")), None);
        assert_eq!(rights(b"other", &sign(b"one")), None);
        assert_eq!(rights(b"payload", &[]), None);
    }

    #[test]
    fn whoever_holds_a_key_has_its_rights() {
        let access = Access::new(
            vec![AccountKey::new(b"one"), AccountKey::named(KeyName::PrimaryReadOnly, b"two")],
            [1; 32],
        );
        let rights = |key: &[u8]| access.verify_key(key, 1).map(|principal| principal.rights);
        assert_eq!(rights(b"one"), Some(Rights::Account));
        assert_eq!(rights(b"two"), Some(Rights::AccountRead));
        assert!(rights(b"three").is_none() && rights(b"").is_none());
    }

    #[test]
    fn a_replaced_key_is_no_key() {
        let access = Access::new(vec![AccountKey::new(b"one")], [1; 32]);
        assert!(access.verify_signature(b"payload", &sign(b"one"), 1).is_some());
        access.replace_keys(vec![AccountKey::new(b"two")]);
        assert!(access.verify_signature(b"payload", &sign(b"one"), 1).is_none());
        assert!(access.verify_signature(b"payload", &sign(b"two"), 1).is_some());
        access.replace_keys(Vec::new());
        assert!(access.verify_signature(b"payload", &sign(b"two"), 1).is_none());
    }
}
