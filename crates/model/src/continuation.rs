//! Continuations: resume positions that are sent to the client and accepted only if they come back unaltered.
//!
//! ```text
//! text     = base64url(version ‖ mac ‖ position), without padding
//! mac      = first 16 bytes of HMAC-SHA256(key, version ‖ length of context ‖ context ‖ position)
//! ```
//!
//! The context is not sent. It identifies the request (container, kind of request), so that a position is only valid
//! for the request that produced it. The key belongs to the store, so positions survive a change of account keys. The
//! position itself is opaque here.

use crate::{ContinuationFault, RequestFault};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt;

const VERSION: u8 = 1;
const MAC_BYTES: usize = 16;
/// Longest text that is parsed. Those of queries are below 1 KB. Those of feeds contain the key of a document: up to three
/// components of 2 KB and an id of 1 KB, which escapes can double, in Base64.
const TEXT_MAX: usize = 20 * 1024;

/// The secret with which continuations are authenticated.
#[derive(Clone)]
pub struct ContinuationKey([u8; 32]);

impl ContinuationKey {
    /// Creates the key from the store's secret.
    pub fn new(secret: [u8; 32]) -> ContinuationKey {
        ContinuationKey(secret)
    }

    /// Encodes a position as text. The text contains only letters, digits, `-` and `_`.
    pub fn seal(&self, context: &[u8], position: &[u8]) -> String {
        let mac = self.mac(context, position).finalize().into_bytes();
        let mut sealed = Vec::with_capacity(1 + MAC_BYTES + position.len());
        sealed.push(VERSION);
        sealed.extend_from_slice(&mac[..MAC_BYTES]);
        sealed.extend_from_slice(position);
        BASE64_URL_SAFE_NO_PAD.encode(sealed)
    }

    /// Decodes the position in `text`, if this key sealed it for this context.
    pub fn open(&self, context: &[u8], text: &str) -> Result<Vec<u8>, RequestFault> {
        let bad = RequestFault::BadContinuation;
        if text.len() > TEXT_MAX {
            return Err(bad(ContinuationFault::TooLong));
        }
        let sealed = BASE64_URL_SAFE_NO_PAD.decode(text).map_err(|_| bad(ContinuationFault::Alphabet))?;
        let (version, rest) = sealed.split_first().ok_or(bad(ContinuationFault::Empty))?;
        if *version != VERSION {
            return Err(bad(ContinuationFault::Version));
        }
        let (mac, position) = rest.split_at_checked(MAC_BYTES).ok_or(bad(ContinuationFault::CutShort))?;
        self.mac(context, position)
            .verify_truncated_left(mac)
            .map_err(|_| bad(ContinuationFault::Foreign))?;
        Ok(position.to_vec())
    }

    fn mac(&self, context: &[u8], position: &[u8]) -> Hmac<Sha256> {
        // HMAC pads a key with zeros to its block size; padding it here means that no key length can be invalid.
        let mut block = [0; 64];
        block[..self.0.len()].copy_from_slice(&self.0);
        let mut mac = Hmac::<Sha256>::new(&block.into());
        mac.update(&[VERSION]);
        // With the length in front, no byte can move from the context to the position.
        mac.update(&(context.len() as u64).to_le_bytes());
        mac.update(context);
        mac.update(position);
        mac
    }
}

impl fmt::Debug for ContinuationKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ContinuationKey(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> ContinuationKey {
        ContinuationKey::new([7; 32])
    }

    #[test]
    fn a_position_comes_back_as_it_was() {
        for position in [&b""[..], b"\0\xFF", &[3; 700]] {
            let text = key().seal(b"container 1, feed", position);
            assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'));
            assert_eq!(key().open(b"container 1, feed", &text).unwrap(), position);
        }
    }

    #[test]
    fn another_context_or_key_does_not_open_it() {
        let text = key().seal(b"ab", b"c");
        assert!(key().open(b"a", &text).is_err());
        assert!(key().open(b"abc", &text).is_err());
        assert!(key().open(b"", &text).is_err());
        assert!(ContinuationKey::new([8; 32]).open(b"ab", &text).is_err());
    }

    #[test]
    fn every_changed_bit_is_noticed() {
        let sealed = BASE64_URL_SAFE_NO_PAD.decode(key().seal(b"context", b"position")).unwrap();
        for bit in 0..sealed.len() * 8 {
            let mut forged = sealed.clone();
            forged[bit / 8] ^= 1 << (bit % 8);
            assert!(key().open(b"context", &BASE64_URL_SAFE_NO_PAD.encode(forged)).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn truncated_foreign_and_oversized_texts_are_refused() {
        let text = key().seal(b"context", b"position");
        for length in 0..text.len() {
            assert!(key().open(b"context", &text[..length]).is_err(), "length {length}");
        }
        for foreign in ["{\"token\":\"+RID:abc\"}", "null", "é", "AA==", &"A".repeat(TEXT_MAX + 1)] {
            let fault = key().open(b"context", foreign).unwrap_err();
            assert!(matches!(fault, RequestFault::BadContinuation(_)));
        }
    }

    #[test]
    fn the_secret_is_not_shown() {
        assert_eq!(format!("{:?}", key()), "ContinuationKey(secret)");
    }
}
