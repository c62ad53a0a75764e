//! The hash of a key code, which defines the order of groups and distinct results.
//!
//! No access path and no number of partitions changes this order, and it is uniform: a page of groups is the first N
//! hashes after the last one returned.

use sha2::{Digest, Sha256};

/// The first half of the SHA-256 of a key code. Collisions are practically impossible.
pub type KeyHash = [u8; 16];

/// The hash of a key code.
pub fn hash_of(code: &[u8]) -> KeyHash {
    let digest = Sha256::digest(code);
    let mut hash = KeyHash::default();
    hash.copy_from_slice(&digest[..16]);
    hash
}
