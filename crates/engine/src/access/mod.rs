//! Who may do what: credentials become principals, and principals get the passes that the façade asks for.
//!
//! Every question goes through [`Access::authorise`], which denies unless a right says otherwise. A pass can only be
//! made here, so code that skipped the check does not compile. Knows no header or URL: a door builds the text that
//! was signed and hands it in.

mod action;
mod bearer;
mod keys;
mod roles;

pub use action::{Action, Place, Reach};
pub use bearer::{Identity, IdentityOptions};
pub use keys::{AccountKey, KeyFingerprint, KeyName, KeyUse};
pub use roles::{Assignee, RoleAssignment, RoleDefinition, RoleTable};

use crate::catalog::Container;
use arc_swap::{ArcSwap, ArcSwapOption};
use keys::KeyRing;
use model::{AccessFault, BearerFault};
use roles::RoleRights;
use std::sync::Arc;

/// A caller whose credential was good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    rights: Rights,
}

/// What a credential allows. One kind of credential, one variant.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Rights {
    /// A read-write key: everything.
    Account,
    /// A read-only key: all reading but that of permissions, which carry tokens.
    AccountRead,
    /// A token of an identity provider: what the holder's roles allow.
    Roles(Arc<RoleRights>),
}

impl Principal {
    fn with_roles(rights: RoleRights) -> Principal {
        Principal { rights: Rights::Roles(Arc::new(rights)) }
    }
}

/// Leave to read the catalog: databases, containers, offers, ranges.
#[derive(Debug)]
pub struct CatalogPass(());

/// Leave to change the catalog.
#[derive(Debug)]
pub struct AdminPass(());

/// Leave to read documents of one container.
#[derive(Debug)]
pub struct ReadPass<'a> {
    pub(crate) container: &'a Container,
}

/// Leave to change documents of one container.
#[derive(Debug)]
pub struct WritePass<'a> {
    pub(crate) container: &'a Container,
}

/// Checks credentials and hands out passes.
#[derive(Debug)]
pub struct Access {
    keys: ArcSwap<KeyRing>,
    identity: ArcSwapOption<Identity>,
}

impl Access {
    /// Access by these keys.
    pub fn new(keys: Vec<AccountKey>) -> Access {
        Access { keys: ArcSwap::from_pointee(KeyRing::new(keys)), identity: ArcSwapOption::empty() }
    }

    /// Replaces all keys at once. Requests that are judged already go on.
    pub fn replace_keys(&self, keys: Vec<AccountKey>) {
        let ring = KeyRing::new(keys);
        ring.remember(&self.keys.load().uses());
        self.keys.store(Arc::new(ring));
    }

    /// Takes tokens of another identity provider from now on, or of none.
    pub fn replace_identity(&self, identity: Option<Identity>) {
        self.identity.store(identity.map(Arc::new));
    }

    /// When each key was last used.
    pub fn key_uses(&self) -> Vec<KeyUse> {
        self.keys.load().uses()
    }

    /// Takes over what was known of the keys' use before.
    pub fn remember_key_uses(&self, uses: &[KeyUse]) {
        self.keys.load().remember(uses);
    }

    /// Whose key signed `payload`, if any of the account's did.
    pub fn verify_signature(&self, payload: &[u8], signature: &[u8], now_seconds: u64) -> Option<Principal> {
        let signer = self.keys.load().signer(payload, signature, now_seconds)?;
        let rights = if signer.is_read_only() { Rights::AccountRead } else { Rights::Account };
        Some(Principal { rights })
    }

    /// Who holds a token of the identity provider.
    pub fn verify_bearer(&self, token: &str, now_seconds: u64) -> Result<Principal, AccessFault> {
        let identity = self.identity.load();
        let identity = identity.as_ref().ok_or(BearerFault::Disabled)?;
        Ok(identity.verify(token, now_seconds)?)
    }

    /// The one decision: whether `principal` may do `action` at `place`.
    pub fn authorise(
        &self,
        principal: &Principal,
        action: Action,
        place: Place<'_>,
    ) -> Result<(), AccessFault> {
        match &principal.rights {
            Rights::Account => Ok(()),
            Rights::Roles(roles) => roles.authorise(action, place),
            Rights::AccountRead if action.is_read() && action != Action::ReadPermissions => Ok(()),
            Rights::AccountRead => Err(AccessFault::NotPermitted { needed: action.words() }),
        }
    }

    /// Leave to read the catalog at `place`.
    pub fn read_catalog(
        &self,
        principal: &Principal,
        action: Action,
        place: Place<'_>,
    ) -> Result<CatalogPass, AccessFault> {
        self.authorise(principal, action, place).map(|()| CatalogPass(()))
    }

    /// Leave to change the catalog at `place`.
    pub fn change_catalog(
        &self,
        principal: &Principal,
        action: Action,
        place: Place<'_>,
    ) -> Result<AdminPass, AccessFault> {
        self.authorise(principal, action, place).map(|()| AdminPass(()))
    }

    /// Leave to read documents of `container`.
    pub fn read<'a>(
        &self,
        principal: &Principal,
        action: Action,
        container: &'a Container,
        reach: Reach<'_>,
    ) -> Result<ReadPass<'a>, AccessFault> {
        self.authorise(principal, action, Place::Container(container, reach)).map(|()| ReadPass { container })
    }

    /// Leave to do all of `actions` to documents of `container`.
    pub fn write<'a>(
        &self,
        principal: &Principal,
        actions: &[Action],
        container: &'a Container,
        reach: Reach<'_>,
    ) -> Result<WritePass<'a>, AccessFault> {
        for action in actions {
            self.authorise(principal, *action, Place::Container(container, reach))?;
        }
        Ok(WritePass { container })
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
        let access =
            Access::new(vec![AccountKey::new(b"one"), AccountKey::named(KeyName::PrimaryReadOnly, b"two")]);
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
    fn a_replaced_key_is_no_key() {
        let access = Access::new(vec![AccountKey::new(b"one")]);
        assert!(access.verify_signature(b"payload", &sign(b"one"), 1).is_some());
        access.replace_keys(vec![AccountKey::new(b"two")]);
        assert!(access.verify_signature(b"payload", &sign(b"one"), 1).is_none());
        assert!(access.verify_signature(b"payload", &sign(b"two"), 1).is_some());
        access.replace_keys(Vec::new());
        assert!(access.verify_signature(b"payload", &sign(b"two"), 1).is_none());
    }
}
