//! The hash of a key code: groups and distinct results of whole queries come in the order of these.
//!
//! An order that no access path and no number of partitions can change, and that has no favourites: a page of groups
//! is the first so many hashes behind the last one given.

use sha2::{Digest, Sha256};

/// The first half of the SHA-256 of a key code. Two codes with one hash are not to be found.
pub type KeyHash = [u8; 16];

/// The hash of a key code.
pub fn hash_of(code: &[u8]) -> KeyHash {
    let digest = Sha256::digest(code);
    let mut hash = KeyHash::default();
    hash.copy_from_slice(&digest[..16]);
    hash
}
