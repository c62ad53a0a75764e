//! Unique keys: the row under which a document holds a combination of values.

use crate::keyspace;
use bytes::Bytes;
use model::UniqueKeyPolicy;
use model::limits::UNIQUE_KEYS_MAX;
use sha2::{Digest, Sha256};
use value::{Document, Value};

/// Maximum length of the part of a unique key after the logical prefix: constraint and code.
pub(crate) const UNIQUE_CODE_BYTES_MAX: usize = 1 + CODE_BYTES_MAX;

/// Longer codes are replaced by their digest, because the length of keys is limited and that of values is not.
const CODE_BYTES_MAX: usize = 512;
/// First byte of a digest. No value code starts with it.
const DIGEST_TAG: u8 = 0xFF;

// The number of a constraint is one byte of its rows, and no two constraints may have the same.
const _: () = assert!(UNIQUE_KEYS_MAX <= u8::MAX as usize);

/// The unique rows of `document`, one per constraint of the policy. A missing value counts as null.
pub(crate) fn rows(policy: &UniqueKeyPolicy, logical_prefix: &[u8], document: &Document) -> Vec<Bytes> {
    let row = |(constraint, key): (u8, &model::UniqueKey)| {
        let mut code = Vec::new();
        for path in &key.paths {
            match document.get(path) {
                Some(value) => value::encode_key(value, &mut code),
                None => value::encode_key_value(&Value::Null, &mut code),
            }
        }
        if code.len() > CODE_BYTES_MAX {
            let digest = Sha256::digest(&code);
            code.clear();
            code.push(DIGEST_TAG);
            code.extend_from_slice(&digest);
        }
        keyspace::unique_key(logical_prefix, constraint, &code)
    };
    (0..=u8::MAX).zip(&policy.keys).map(row).collect()
}
