//! Who may do what: credentials become principals, and principals get the passes that the façade asks for.
//!
//! Every question goes through [`Access::authorise`], which denies unless a right says otherwise. A pass can only be
//! made here, so code that skipped the check does not compile. Knows no header or URL: a door builds the text that
//! was signed and hands it in.

mod action;
mod grant;
mod keys;
mod token;

pub use action::{Action, Place, Reach};
pub use grant::Grant;
pub(crate) use grant::{GrantScope, Named};
pub use keys::AccountKey;
pub(crate) use token::TokenKey;

use crate::catalog::{Container, Permission};
use crate::engine::Engine;
use model::{AccessFault, Fault};
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
    /// A resource token: what its permission grants.
    Permission(Arc<Permission>),
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
    keys: Vec<AccountKey>,
}

impl Access {
    /// Access by these read-write keys.
    pub fn new(keys: Vec<AccountKey>) -> Access {
        Access { keys }
    }

    /// Whether one of the account's keys signed `payload`. All keys are tried, each in constant time.
    pub fn verify_signature(&self, payload: &[u8], signature: &[u8]) -> Option<Principal> {
        let mut matched = false;
        for key in &self.keys {
            matched |= key.signed(payload, signature);
        }
        matched.then_some(Principal { rights: Rights::Account })
    }

    /// The one decision: whether `principal` may do `action` at `place`.
    pub fn authorise(
        &self,
        principal: &Principal,
        action: Action,
        place: Place<'_>,
    ) -> Result<(), AccessFault> {
        let allowed = match &principal.rights {
            Rights::Account => true,
            Rights::Permission(permission) => permission.definition().allows(action, place),
        };
        allowed.then_some(()).ok_or(AccessFault::NotPermitted { needed: action.words() })
    }

    /// What was found, if `principal` may know that it exists. To a caller with narrow rights what is absent looks
    /// like what is out of reach.
    pub fn reveal<T>(
        &self,
        principal: &Principal,
        found: Result<T, Fault>,
        place: impl FnOnce(&T) -> Place<'_>,
    ) -> Result<T, Fault> {
        let seen = match (&principal.rights, &found) {
            (Rights::Account, _) => true,
            (Rights::Permission(permission), Ok(found)) => permission.definition().is_in(place(found)),
            (Rights::Permission(_), Err(_)) => false,
        };
        if seen { found } else { Err(AccessFault::NotPermitted { needed: "access to this resource" }.into()) }
    }

    /// The key that seals resource tokens: of the store's secret and the account's read-write keys.
    pub(crate) fn token_key(&self, secret: &[u8; 32]) -> TokenKey {
        TokenKey::derive(secret, &self.keys)
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

impl Engine {
    /// Who holds the resource token `text`.
    pub fn verify_token(&self, text: &str) -> Result<Principal, AccessFault> {
        let claim = self.token_key.open(text).ok_or(AccessFault::TokenInvalid)?;
        let now = self.ambient.now_seconds();
        if now >= claim.expires {
            return Err(AccessFault::TokenExpired { seconds_ago: now - claim.expires });
        }
        let permission = self.catalog.permission(claim.permission);
        let permission = permission.filter(|permission| permission.stamp().change == claim.change);
        let permission = permission.ok_or(AccessFault::TokenEnded)?;
        Ok(Principal { rights: Rights::Permission(permission) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_account_key_signs_and_no_other() {
        let access = Access::new(vec![AccountKey::new(b"one"), AccountKey::new(b"two")]);
        let sign = |key: &[u8]| AccountKey::new(key).sign(b"payload");
        assert!(access.verify_signature(b"payload", &sign(b"one")).is_some());
        assert!(access.verify_signature(b"payload", &sign(b"two")).is_some());
        assert!(access.verify_signature(b"payload", &sign(b"three")).is_none());
        assert!(access.verify_signature(b"other", &sign(b"one")).is_none());
        assert!(access.verify_signature(b"payload", &[]).is_none());
    }
}
