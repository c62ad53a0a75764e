//! Who may do what: account keys, principals, and the passes that the façade asks for.
//!
//! A pass can only be made here, so code that skipped the check does not compile. Knows no header or URL: a door
//! builds the text that was signed and hands it in.

use crate::catalog::Container;
use hmac::{Hmac, KeyInit, Mac};
use model::AccessFault;
use sha2::Sha256;

/// A caller whose credential was good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Principal {
    rights: Rights,
}

/// What a credential allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rights {
    /// Everything.
    ReadWrite,
}

/// Leave to read the catalog: databases, containers, offers, ranges.
#[derive(Debug)]
pub struct CatalogPass(());

/// Leave to change the catalog.
#[derive(Debug)]
pub struct AdminPass(());

/// Leave to read the documents of one container.
#[derive(Debug)]
pub struct ReadPass<'a> {
    pub(crate) container: &'a Container,
}

/// Leave to change the documents of one container.
#[derive(Debug)]
pub struct WritePass<'a> {
    pub(crate) container: &'a Container,
}

/// An account key, ready to check signatures. Its bytes are never shown.
#[derive(Clone)]
pub struct AccountKey(Hmac<Sha256>);

impl AccountKey {
    /// Takes the key's bytes (the decoded base64 text).
    pub fn new(bytes: &[u8]) -> AccountKey {
        AccountKey(Hmac::new_from_slice(bytes).expect("HMAC takes keys of any length"))
    }
}

impl std::fmt::Debug for AccountKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("AccountKey(…)")
    }
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
            let mut mac = key.0.clone();
            mac.update(payload);
            matched |= mac.verify_slice(signature).is_ok();
        }
        matched.then_some(Principal { rights: Rights::ReadWrite })
    }

    /// Leave to read the catalog.
    pub fn read_catalog(&self, principal: &Principal) -> Result<CatalogPass, AccessFault> {
        match principal.rights {
            Rights::ReadWrite => Ok(CatalogPass(())),
        }
    }

    /// Leave to change the catalog.
    pub fn change_catalog(&self, principal: &Principal) -> Result<AdminPass, AccessFault> {
        match principal.rights {
            Rights::ReadWrite => Ok(AdminPass(())),
        }
    }

    /// Leave to read the documents of `container`.
    pub fn read<'a>(
        &self,
        principal: &Principal,
        container: &'a Container,
    ) -> Result<ReadPass<'a>, AccessFault> {
        match principal.rights {
            Rights::ReadWrite => Ok(ReadPass { container }),
        }
    }

    /// Leave to change the documents of `container`.
    pub fn write<'a>(
        &self,
        principal: &Principal,
        container: &'a Container,
    ) -> Result<WritePass<'a>, AccessFault> {
        match principal.rights {
            Rights::ReadWrite => Ok(WritePass { container }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_account_key_signs_and_no_other() {
        let access = Access::new(vec![AccountKey::new(b"one"), AccountKey::new(b"two")]);
        let sign = |key: &[u8]| {
            let mut mac = AccountKey::new(key).0;
            mac.update(b"payload");
            mac.finalize().into_bytes().to_vec()
        };
        assert!(access.verify_signature(b"payload", &sign(b"one")).is_some());
        assert!(access.verify_signature(b"payload", &sign(b"two")).is_some());
        assert!(access.verify_signature(b"payload", &sign(b"three")).is_none());
        assert!(access.verify_signature(b"other", &sign(b"one")).is_none());
        assert!(access.verify_signature(b"payload", &[]).is_none());
    }

    #[test]
    fn a_key_is_never_shown() {
        assert_eq!(format!("{:?}", AccountKey::new(b"secret")), "AccountKey(…)");
    }
}
