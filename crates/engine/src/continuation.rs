//! Continuations of feeds and queries: a position, with the scope of the request that reached it.
//!
//! ```text
//! content  = origin · position
//! origin   = 0 · length:1 · lower bound · length:1 · upper bound   an interval of hashes
//!          | 1 · digest of the key:16 · length:1 · hash            a complete partition key
//!          | 2 · digest of the bounds:16                           an interval with long bounds
//! ```
//!
//! The content is sealed with a context that is not sent: kind of request, container and, for a query, its order. The
//! scope is not part of the context, because clients name the same documents in several ways: without a scope, by the
//! id of a range, by an interval of hashes or by a partition key. The rest of a request is what its scope contains after
//! the position. So a continuation continues in the documents that its origin and the scope of the new request have in
//! common, and is refused if there are none. It returns neither a document that the first request would not have
//! returned nor one that was returned before.

use crate::catalog::Container;
use crate::feed::{Scope, bounds};
use model::{
    ContinuationFault, ContinuationKey, EffectiveKey, EffectiveRange, Encoder, Fault, PartitionKey,
    RequestFault,
};
use sha2::{Digest, Sha256};

/// Longest bound of an interval that is kept.
const BOUND_BYTES_MAX: usize = 128;
/// Longest hash of a partition key that is kept. Only keys with longer hashes can share their hash with another key.
const HASH_BYTES_MAX: usize = 96;
const DIGEST_BYTES: usize = 16;

/// Where a feed or a query continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Continuation {
    /// The sealed position: letters, digits, `-` and `_`.
    pub text: String,
    /// The hashes of the scope in which it continues.
    pub hashes: EffectiveRange,
}

/// What continuations are bound to, apart from their content.
pub(crate) fn context(kind: &str, container: &Container) -> Vec<u8> {
    format!("{kind} {} ", container.number().0).into_bytes()
}

/// Seals a position that a request with this scope has reached.
pub(crate) fn seal(
    key: &ContinuationKey,
    context: &[u8],
    container: &Container,
    scope: &Scope,
    position: &[u8],
) -> Result<Continuation, Fault> {
    let (hashes, _) = bounds(container, scope)?;
    let mut content = Vec::new();
    Origin::of(container, scope, &hashes).encode(&mut content);
    content.extend_from_slice(position);
    Ok(Continuation { text: key.seal(context, &content), hashes })
}

/// Appends the encoding of a scope.
pub(crate) fn encode_scope(container: &Container, scope: &Scope, out: &mut Vec<u8>) -> Result<(), Fault> {
    let (hashes, _) = bounds(container, scope)?;
    Origin::of(container, scope, &hashes).encode(out);
    Ok(())
}

/// An opened continuation.
pub(crate) struct Opened {
    origin: Origin,
    pub(crate) position: Vec<u8>,
}

/// Opens a continuation that was sealed for this context.
pub(crate) fn open(key: &ContinuationKey, context: &[u8], text: &str) -> Result<Opened, RequestFault> {
    let content = key.open(context, text)?;
    let (origin, position) =
        Origin::read(&content).ok_or(RequestFault::BadContinuation(ContinuationFault::Form))?;
    Ok(Opened { origin, position: position.to_vec() })
}

impl Opened {
    /// The part of `scope` in which the continuation continues.
    pub(crate) fn scope(&self, container: &Container, scope: Scope) -> Result<Scope, Fault> {
        let outside = || RequestFault::BadContinuation(ContinuationFault::OutsideScope).into();
        let (hashes, _) = bounds(container, &scope)?;
        let narrowed = match (&self.origin, complete_key(container, &scope)) {
            (Origin::Key { digest, .. }, Some(key)) => (*digest == digest_of_key(key)).then_some(scope),
            (Origin::Key { hash: None, .. }, None) => None,
            (Origin::Key { hash: Some(hash), .. }, None) => hashes
                .contains(hash)
                .then(|| Scope::Hashes(EffectiveRange::point(hash.clone()).intersect(&hashes))),
            (Origin::Hashes(origin), Some(_)) => origin.contains(&hashes.min).then_some(scope),
            (Origin::Hashes(origin), None) => {
                let common = origin.intersect(&hashes);
                match common == hashes {
                    true => Some(scope),
                    false => (!common.is_empty()).then_some(Scope::Hashes(common)),
                }
            }
            (Origin::LongHashes(digest), _) => (*digest == digest_of_range(&hashes)).then_some(scope),
        };
        narrowed.ok_or_else(outside)
    }
}

impl Opened {
    /// Whether all documents of the request that reached the position are in the partitions of `scope`.
    pub(crate) fn is_within_partitions_of(
        &self,
        container: &Container,
        scope: &Scope,
    ) -> Result<bool, Fault> {
        let Origin::Hashes(origin) = &self.origin else {
            return Ok(true); // The same scope, or one logical partition.
        };
        let (hashes, _) = bounds(container, scope)?;
        let map = container.map.load();
        let owner_count = |hashes| map.owners(hashes).count();
        Ok(owner_count(origin) == owner_count(&hashes))
    }
}

/// The key of a scope that is one logical partition.
fn complete_key<'s>(container: &Container, scope: &'s Scope) -> Option<&'s PartitionKey> {
    match scope {
        Scope::Key(key) => container.definition().partition_key.is_complete(key).then_some(key),
        Scope::Container | Scope::Range(..) | Scope::Hashes(_) => None,
    }
}

/// The scope of the request that reached a position.
#[derive(Debug, PartialEq)]
enum Origin {
    Hashes(EffectiveRange),
    /// `hash` is `None` if another key can have the same.
    Key {
        digest: [u8; DIGEST_BYTES],
        hash: Option<EffectiveKey>,
    },
    LongHashes([u8; DIGEST_BYTES]),
}

impl Origin {
    fn of(container: &Container, scope: &Scope, hashes: &EffectiveRange) -> Origin {
        if let Some(key) = complete_key(container, scope) {
            let hash = Some(&hashes.min).filter(|hash| hash.as_bytes().len() <= HASH_BYTES_MAX);
            return Origin::Key { digest: digest_of_key(key), hash: hash.cloned() };
        }
        let is_short = |bound: &EffectiveKey| bound.as_bytes().len() <= BOUND_BYTES_MAX;
        match is_short(&hashes.min) && is_short(&hashes.max) {
            true => Origin::Hashes(hashes.clone()),
            false => Origin::LongHashes(digest_of_range(hashes)),
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Origin::Hashes(range) => {
                out.push(0);
                push_hash(range.min.as_bytes(), out);
                push_hash(range.max.as_bytes(), out);
            }
            Origin::Key { digest, hash } => {
                out.push(1);
                out.extend_from_slice(digest);
                push_hash(hash.as_ref().map_or(&[], EffectiveKey::as_bytes), out);
            }
            Origin::LongHashes(digest) => {
                out.push(2);
                out.extend_from_slice(digest);
            }
        }
    }

    /// The origin, and what follows it.
    fn read(bytes: &[u8]) -> Option<(Origin, &[u8])> {
        let (kind, bytes) = bytes.split_first()?;
        match kind {
            0 => {
                let (min, bytes) = read_hash(bytes)?;
                let (max, bytes) = read_hash(bytes)?;
                Some((Origin::Hashes(EffectiveRange { min, max }), bytes))
            }
            1 => {
                let (digest, bytes) = bytes.split_first_chunk()?;
                let (hash, bytes) = read_hash(bytes)?;
                let hash = Some(hash).filter(|hash| *hash != EffectiveKey::MIN);
                Some((Origin::Key { digest: *digest, hash }, bytes))
            }
            2 => {
                let (digest, bytes) = bytes.split_first_chunk()?;
                Some((Origin::LongHashes(*digest), bytes))
            }
            _ => None,
        }
    }
}

/// Length and bytes; all hashes that are written have at most [`BOUND_BYTES_MAX`] bytes.
fn push_hash(hash: &[u8], out: &mut Vec<u8>) {
    out.push(u8::try_from(hash.len()).unwrap_or(u8::MAX));
    out.extend_from_slice(hash);
}

fn read_hash(bytes: &[u8]) -> Option<(EffectiveKey, &[u8])> {
    let (length, bytes) = bytes.split_first()?;
    let (hash, rest) = bytes.split_at_checked(usize::from(*length))?;
    Some((EffectiveKey::from_bytes(hash), rest))
}

fn digest_of_key(key: &PartitionKey) -> [u8; DIGEST_BYTES] {
    let mut code = Vec::new();
    key.encode_key(&mut code);
    shortened(&Sha256::digest(code).into())
}

fn digest_of_range(range: &EffectiveRange) -> [u8; DIGEST_BYTES] {
    let mut out = Encoder::default();
    out.bytes(range.min.as_bytes());
    out.bytes(range.max.as_bytes());
    shortened(&Sha256::digest(out.finish()).into())
}

fn shortened(digest: &[u8; 32]) -> [u8; DIGEST_BYTES] {
    let mut short = [0; DIGEST_BYTES];
    short.copy_from_slice(&digest[..DIGEST_BYTES]);
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_read_back_and_what_follows_it_is_kept() {
        let hash = |length: usize| EffectiveKey::from_bytes(&vec![3; length]);
        for origin in [
            Origin::Hashes(EffectiveRange::full()),
            Origin::Hashes(EffectiveRange { min: hash(16), max: hash(BOUND_BYTES_MAX) }),
            Origin::Key { digest: [7; DIGEST_BYTES], hash: Some(hash(16)) },
            Origin::Key { digest: [7; DIGEST_BYTES], hash: None },
            Origin::LongHashes([9; DIGEST_BYTES]),
        ] {
            let mut bytes = Vec::new();
            origin.encode(&mut bytes);
            for length in 0..bytes.len() {
                assert!(Origin::read(&bytes[..length]).is_none(), "{origin:?} of {length} bytes");
            }
            bytes.extend_from_slice(b"rest");
            assert_eq!(Origin::read(&bytes), Some((origin, &b"rest"[..])));
        }
        assert!(Origin::read(&[3, 0, 0]).is_none());
    }
}
