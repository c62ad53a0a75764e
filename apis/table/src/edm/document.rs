//! Entities as documents: `id`, `PartitionKey`, `RowKey`, then the properties in the order in which they were given.
//!
//! `id` is the RowKey wherever a RowKey can be an id, so that the NoSQL API addresses an entity by its two keys:
//!
//! | RowKey | id |
//! |---|---|
//! | 1 to 1023 bytes that do not begin with `~` | the same |
//! | empty | `~` |
//! | begins with `~`, at most 1022 bytes | `~` and the RowKey |
//! | longer | `~sha256-` and the SHA-256 of the RowKey in hexadecimal digits |
//!
//! Different RowKeys have different ids: no longer text could tell all of the long ones apart within 1023 bytes.

use super::names::property_name;
use model::limits::ID_BYTES_MAX;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use value::{Decoded, Document, DocumentError, ValueRef};

/// The property that selects the partition.
pub const PARTITION_KEY: &str = "PartitionKey";
/// The property that is unique in a partition.
pub const ROW_KEY: &str = "RowKey";
/// The time of the last change; not stored in the document.
pub const TIMESTAMP: &str = "Timestamp";

/// Most properties of an entity besides PartitionKey, RowKey and Timestamp.
pub const PROPERTIES_MAX: usize = 252;
/// Largest entity in an account of Storage, by [`entity_bytes`].
pub const ENTITY_BYTES_MAX: usize = 1024 * 1024;
/// Largest entity in an account of Cosmos DB, by [`entity_bytes`].
pub const ENTITY_BYTES_MAX_COSMOS: usize = 2 * 1024 * 1024;

/// Begins ids that are not the RowKey itself.
const ESCAPE: &str = "~";
const HASHED: &str = "~sha256-";

/// The id of the document of an entity.
pub fn document_id(row_key: &str) -> Cow<'_, str> {
    let is_escaped = row_key.is_empty() || row_key.starts_with(ESCAPE);
    if row_key.len() + usize::from(is_escaped) > ID_BYTES_MAX {
        let digest: [u8; 32] = Sha256::digest(row_key.as_bytes()).into();
        let digits = digest.iter().map(|byte| format!("{byte:02x}"));
        return std::iter::once(HASHED.to_owned()).chain(digits).collect();
    }
    if is_escaped { format!("{ESCAPE}{row_key}").into() } else { row_key.into() }
}

/// Whether a member is a property of the entity, not a key and not a use of the document's own.
pub fn is_property(member: &str) -> bool {
    member != PARTITION_KEY && member != ROW_KEY && property_name(member).is_some()
}

/// The number of properties besides the keys.
pub fn properties_count(document: &Document) -> usize {
    document.root().members().filter(|(name, value)| is_property(name) && !value.is_null()).count()
}

/// The size of an entity as the service counts it: names and texts in UTF-16, other values by their type.
pub fn entity_bytes(document: &Document) -> usize {
    let keys = [PARTITION_KEY, ROW_KEY].map(|name| document.root().member(name).map_or(0, value_bytes));
    let properties = document.root().members().filter(|(name, _)| is_property(name));
    let properties = properties.map(|(name, value)| 8 + 2 * utf16_len(name) + value_bytes(value));
    4 + keys.iter().sum::<usize>() + properties.sum::<usize>()
}

fn value_bytes(value: ValueRef<'_>) -> usize {
    match value.decode() {
        Decoded::Null => 0,
        Decoded::Bool(_) => 1,
        Decoded::Int32(_) => 4,
        Decoded::Int64(_) | Decoded::Double(_) | Decoded::Date(_) | Decoded::Ticks(_) => 8,
        Decoded::Decimal(_) | Decoded::Guid(_) => 16,
        Decoded::ObjectId(_) => 12,
        Decoded::String(text) => 4 + 2 * utf16_len(text),
        Decoded::Binary { bytes, .. } => 4 + bytes.len(),
        Decoded::Array(_) | Decoded::Object(_) => value.extent(),
    }
}

/// The length of a text in UTF-16 units.
pub(crate) fn utf16_len(text: &str) -> usize {
    // Each byte but those that continue a character begins one; characters of four bytes take two units.
    text.bytes().filter(|byte| byte & 0xc0 != 0x80).count()
        + text.bytes().filter(|byte| *byte >= 0xf0).count()
}

/// An entity exceeds a limit after a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntityTooLarge {
    /// More properties than [`PROPERTIES_MAX`].
    Properties {
        /// Their number.
        count: usize,
    },
    /// More bytes than allowed.
    Bytes {
        /// The size by [`entity_bytes`].
        bytes: usize,
    },
}

/// The stored entity with the properties of `update`: existing names keep their place, new ones are appended.
pub fn merged(stored: &Document, update: &Document, bytes_max: usize) -> Result<Document, EntityTooLarge> {
    let changes: Vec<_> = update.root().members().collect();
    let merged = stored.extended(&changes).map_err(|error| match error {
        DocumentError::NotAnObject { .. } | DocumentError::TooDeep | DocumentError::TooLarge => {
            EntityTooLarge::Bytes { bytes: stored.bytes().len().saturating_add(update.bytes().len()) }
        }
    })?;
    check_size(&merged, bytes_max)?;
    Ok(merged)
}

/// Checks the limits of a whole entity.
pub(crate) fn check_size(document: &Document, bytes_max: usize) -> Result<(), EntityTooLarge> {
    let count = properties_count(document);
    if count > PROPERTIES_MAX {
        return Err(EntityTooLarge::Properties { count });
    }
    let bytes = entity_bytes(document);
    if bytes > bytes_max { Err(EntityTooLarge::Bytes { bytes }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ids_are_row_keys_where_they_can_be() {
        assert_eq!(document_id("r1"), "r1");
        assert_eq!(document_id(""), "~");
        assert_eq!(document_id("~"), "~~");
        assert_eq!(document_id("~sha256-"), "~~sha256-");
        let longest = "x".repeat(ID_BYTES_MAX);
        assert_eq!(document_id(&longest), longest);
        let longer = "x".repeat(ID_BYTES_MAX + 1);
        assert!(document_id(&longer).starts_with("~sha256-"));
        assert_eq!(document_id(&longer).len(), HASHED.len() + 64);
        assert!(document_id(&format!("~{}", "x".repeat(ID_BYTES_MAX - 2))).starts_with("~~"));
        assert!(document_id(&format!("~{}", "x".repeat(ID_BYTES_MAX - 1))).starts_with("~sha256-"));
    }

    proptest! {
        #[test]
        fn different_row_keys_have_different_ids(one in "[~a-c]{0,3}|~{1020,1025}|x{1020,1025}", other in "[~a-c]{0,3}|~{1020,1025}|x{1020,1025}") {
            prop_assert_eq!(document_id(&one) == document_id(&other), one == other);
            let id = document_id(&one);
            prop_assert!(!id.is_empty() && id.len() <= ID_BYTES_MAX);
        }

        #[test]
        fn lengths_are_those_of_utf_16(text in any::<String>()) {
            prop_assert_eq!(utf16_len(&text), text.encode_utf16().count());
        }
    }

    #[test]
    fn a_merge_keeps_places_and_checks_the_whole() {
        let stored =
            Document::from_json(br#"{"id":"r","PartitionKey":"p","RowKey":"r","a":1,"b":2}"#).unwrap();
        let update =
            Document::from_json(br#"{"id":"r","PartitionKey":"p","RowKey":"r","c":3,"a":"x"}"#).unwrap();
        let result = merged(&stored, &update, ENTITY_BYTES_MAX).unwrap();
        assert_eq!(
            format!("{result:?}"),
            r#"{"id":"r","PartitionKey":"p","RowKey":"r","a":"x","b":2,"c":3}"#
        );
        assert_eq!(properties_count(&result), 3);
        // 4, two keys of one letter, a text of one letter and two integers with names of one letter.
        let bytes = 4 + 2 * 6 + (8 + 2 + 6) + 2 * (8 + 2 + 8);
        assert_eq!(entity_bytes(&result), bytes);
        assert!(merged(&stored, &update, bytes).is_ok());
        assert_eq!(merged(&stored, &update, bytes - 1).unwrap_err(), EntityTooLarge::Bytes { bytes });
        let many = |from: usize, to: usize| {
            let members: Vec<String> = (from..to).map(|index| format!(r#""n{index}":1"#)).collect();
            Document::from_json(format!("{{{}}}", members.join(",")).as_bytes()).unwrap()
        };
        assert!(merged(&many(0, 200), &many(100, 252), ENTITY_BYTES_MAX).is_ok());
        let fault = merged(&many(0, 200), &many(100, 253), ENTITY_BYTES_MAX).unwrap_err();
        assert_eq!(fault, EntityTooLarge::Properties { count: 253 });
    }
}
