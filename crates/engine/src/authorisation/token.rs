//! Resource tokens: a permission, its version and an expiry time, authenticated, for a client that has no key.
//!
//! ```text
//! text = base64url(version:1 ‖ mac:32 ‖ permission:4 ‖ change:8 ‖ expires:8), without padding
//! mac  = HMAC-SHA256(token key, version ‖ permission ‖ change ‖ expires)
//! ```
//!
//! The rights are not in the token but in the permission, and the token is valid only while the permission has the
//! version that the token names. So replacing or deleting a permission revokes its tokens, and checking a token parses
//! only numbers.

use super::AccountKey;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use model::ResourceNumber;
use sha2::Sha256;

const VERSION: u8 = 1;
const MAC_BYTES: usize = 32;
const CLAIM_BYTES: usize = 20;
const TOKEN_BYTES: usize = 1 + MAC_BYTES + CLAIM_BYTES;

/// The content of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TokenClaim {
    pub(crate) permission: ResourceNumber,
    /// The change of the catalog that wrote it.
    pub(crate) change: u64,
    /// The second since 1970 from which on it is expired.
    pub(crate) expires: u64,
}

/// The secret that authenticates tokens.
#[derive(Clone)]
pub(crate) struct TokenKey(Hmac<Sha256>);

impl TokenKey {
    /// A key that belongs to this store and to the read-write keys among these: a change of any of them revokes all
    /// tokens. Read-only keys do not contribute.
    pub(crate) fn derive(secret: &[u8; 32], keys: &[AccountKey]) -> TokenKey {
        let mut derivation = keyed(secret);
        for key in keys.iter().filter(|key| !key.name().is_read_only()) {
            derivation.update(&key.token_fingerprint());
        }
        TokenKey(keyed(&derivation.finalize().into_bytes().into()))
    }

    /// Makes the text of a token.
    pub(crate) fn seal(&self, permission: ResourceNumber, change: u64, expires: u64) -> String {
        let claim = encode(&TokenClaim { permission, change, expires });
        let mac = self.mac(&claim).finalize().into_bytes();
        let mut token = Vec::with_capacity(TOKEN_BYTES);
        token.push(VERSION);
        token.extend_from_slice(&mac);
        token.extend_from_slice(&claim);
        BASE64_URL_SAFE_NO_PAD.encode(token)
    }

    /// The content of `text`, if this key sealed it. The comparison takes constant time for any text.
    pub(crate) fn open(&self, text: &str) -> Option<TokenClaim> {
        let mut token = [0; TOKEN_BYTES + 2];
        let length = BASE64_URL_SAFE_NO_PAD.decode_slice(text, &mut token).ok()?;
        let (version, rest) = token[..length].split_first()?;
        let (mac, claim) = rest.split_first_chunk::<MAC_BYTES>()?;
        let claim: &[u8; CLAIM_BYTES] = claim.try_into().ok()?;
        if *version != VERSION {
            return None;
        }
        self.mac(claim).verify_slice(mac).ok()?;
        decode(claim)
    }

    fn mac(&self, claim: &[u8; CLAIM_BYTES]) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        mac.update(&[VERSION]);
        mac.update(claim);
        mac
    }
}

/// HMAC pads a key to its block size with zeros; doing it here leaves no length that could be invalid.
fn keyed(secret: &[u8; 32]) -> Hmac<Sha256> {
    let mut block = [0; 64];
    block[..secret.len()].copy_from_slice(secret);
    Hmac::new(&block.into())
}

fn encode(claim: &TokenClaim) -> [u8; CLAIM_BYTES] {
    let mut bytes = [0; CLAIM_BYTES];
    bytes[..4].copy_from_slice(&claim.permission.0.to_be_bytes());
    bytes[4..12].copy_from_slice(&claim.change.to_be_bytes());
    bytes[12..].copy_from_slice(&claim.expires.to_be_bytes());
    bytes
}

fn decode(bytes: &[u8; CLAIM_BYTES]) -> Option<TokenClaim> {
    let (permission, rest) = bytes.split_first_chunk::<4>()?;
    let (change, expires) = rest.split_first_chunk::<8>()?;
    Some(TokenClaim {
        permission: ResourceNumber(u32::from_be_bytes(*permission)),
        change: u64::from_be_bytes(*change),
        expires: u64::from_be_bytes(expires.try_into().ok()?),
    })
}

impl std::fmt::Debug for TokenKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("TokenKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authorisation::KeyName;

    fn key(account_key: &[u8]) -> TokenKey {
        TokenKey::derive(&[7; 32], &[AccountKey::new(account_key), AccountKey::new(b"second")])
    }

    #[test]
    fn a_token_says_what_was_sealed() {
        let text = key(b"first").seal(ResourceNumber(3), 17, 1_700_000_000);
        let claim = TokenClaim { permission: ResourceNumber(3), change: 17, expires: 1_700_000_000 };
        assert_eq!(key(b"first").open(&text), Some(claim));
        assert_eq!(format!("{:?}", key(b"first")), "TokenKey(…)");
    }

    #[test]
    fn another_account_key_or_store_ends_it() {
        let text = key(b"first").seal(ResourceNumber(3), 17, 1);
        assert_eq!(key(b"rotated").open(&text), None);
        let store = TokenKey::derive(&[8; 32], &[AccountKey::new(b"first"), AccountKey::new(b"second")]);
        assert_eq!(store.open(&text), None);
        assert_eq!(TokenKey::derive(&[7; 32], &[AccountKey::new(b"first")]).open(&text), None);
        let reader = AccountKey::named(KeyName::PrimaryReadOnly, b"reader");
        let keys = [AccountKey::new(b"first"), reader, AccountKey::new(b"second")];
        assert!(TokenKey::derive(&[7; 32], &keys).open(&text).is_some());
    }

    #[test]
    fn every_changed_bit_and_every_length_is_noticed() {
        let text = key(b"first").seal(ResourceNumber(3), 17, 1);
        let token = BASE64_URL_SAFE_NO_PAD.decode(&text).unwrap();
        for bit in 0..token.len() * 8 {
            let mut forged = token.clone();
            forged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(key(b"first").open(&BASE64_URL_SAFE_NO_PAD.encode(forged)), None, "bit {bit}");
        }
        for length in 0..text.len() {
            assert_eq!(key(b"first").open(&text[..length]), None, "length {length}");
        }
        for foreign in ["", "é", "AAAA", &"A".repeat(1000), &format!("{text}A"), &format!("{text}AA")] {
            assert_eq!(key(b"first").open(foreign), None, "{foreign}");
        }
    }
}
