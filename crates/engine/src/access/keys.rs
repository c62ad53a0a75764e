//! Account keys: what signs a request, and whether one of them signed it.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// An account key, ready to check signatures. Its bytes are never shown.
#[derive(Clone)]
pub struct AccountKey(Hmac<Sha256>);

impl AccountKey {
    /// Takes the key's bytes (the decoded base64 text).
    pub fn new(bytes: &[u8]) -> AccountKey {
        AccountKey(Hmac::new_from_slice(bytes).expect("HMAC takes keys of any length"))
    }

    /// Whether this key signed `payload`; takes the same time whatever the signature.
    pub(super) fn signed(&self, payload: &[u8], signature: &[u8]) -> bool {
        let mut mac = self.0.clone();
        mac.update(payload);
        mac.verify_slice(signature).is_ok()
    }

    /// Tells this key from others without saying anything about it.
    pub(super) fn fingerprint(&self) -> [u8; 32] {
        let mut mac = self.0.clone();
        mac.update(b"the account key that resource tokens depend on");
        mac.finalize().into_bytes().into()
    }

    #[cfg(test)]
    pub(super) fn sign(&self, payload: &[u8]) -> Vec<u8> {
        let mut mac = self.0.clone();
        mac.update(payload);
        mac.finalize().into_bytes().to_vec()
    }
}

impl std::fmt::Debug for AccountKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("AccountKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_never_shown() {
        assert_eq!(format!("{:?}", AccountKey::new(b"secret")), "AccountKey(…)");
    }
}
