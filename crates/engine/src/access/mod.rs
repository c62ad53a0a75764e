//! Who may do what: credentials become principals, and principals get the passes that the façade asks for.
//!
//! Every question goes through [`Access::authorise`], which denies unless a right says otherwise. A pass can only be
//! made here, so code that skipped the check does not compile. Knows no header or URL: a door builds the text that
//! was signed and hands it in.

mod action;
mod keys;

pub use action::{Action, Place, Reach};
pub use keys::AccountKey;

use crate::catalog::Container;
use model::AccessFault;

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
        _action: Action,
        _place: Place<'_>,
    ) -> Result<(), AccessFault> {
        match principal.rights {
            Rights::Account => Ok(()),
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
