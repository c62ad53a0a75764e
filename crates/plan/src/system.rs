//! The properties that the server adds to a document, as queries and conditions see them.
//!
//! Stored documents do not contain them. An API that returns a whole document writes them itself, in the same order and
//! with the same values.

use crate::StoredDocument;
use model::{ContainerNumber, DatabaseNumber, Rid};
use value::{Document, DocumentError, Value};

/// Their names, in the order in which they follow the document's own members.
pub const ADDED_PROPERTIES: [&str; 5] = ["_rid", "_self", "_etag", "_attachments", "_ts"];

/// Writes the `_self` link of the document with this RID; the form of links belongs to the API.
pub type DocumentLink = fn(Rid) -> String;

/// What is needed to add system properties to the documents of a container.
#[derive(Clone, Copy, Debug)]
pub struct SystemProperties {
    /// The database.
    pub database: DatabaseNumber,
    /// The container.
    pub container: ContainerNumber,
    /// How links of its documents are written.
    pub link: DocumentLink,
}

impl SystemProperties {
    /// The document with its system properties.
    pub fn extend(&self, stored: &StoredDocument) -> Result<Document, DocumentError> {
        let rid = Rid::Document(self.database, self.container, stored.number);
        let ts = i64::try_from(stored.ts()).unwrap_or(i64::MAX);
        let values = [
            Value::String(rid.to_string()),
            Value::String((self.link)(rid)),
            Value::String(stored.etag.to_string()),
            Value::from("attachments/"),
            Value::Int64(ts),
        ];
        let members: [_; 5] = std::array::from_fn(|index| (ADDED_PROPERTIES[index], values[index].as_ref()));
        stored.document.extended(&members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{DocumentNumber, Etag, Lsn, PartitionOrdinal, Ticks};

    #[test]
    fn a_document_is_extended_as_it_is_written() {
        let etag = Etag { ordinal: PartitionOrdinal(0), stamp: 5 };
        let stored = StoredDocument {
            number: DocumentNumber::new(PartitionOrdinal(0), 1).unwrap(),
            etag,
            lsn: Lsn(5),
            time: Ticks::from_seconds(17),
            document: Document::from_json(br#"{"id":"a"}"#).unwrap(),
        };
        let link = |rid: Rid| format!("link of {rid}");
        let system = SystemProperties { database: DatabaseNumber(1), container: ContainerNumber(2), link };
        let extended = system.extend(&stored).unwrap();
        let names: Vec<_> = extended.root().members().map(|(name, _)| name.to_owned()).collect();
        assert_eq!(names, ["id", "_rid", "_self", "_etag", "_attachments", "_ts"]);
        let text = |name: &str| extended.root().member(name).unwrap().as_str().unwrap().to_owned();
        assert_eq!(text("_etag"), etag.to_string());
        assert_eq!(text("_self"), format!("link of {}", text("_rid")));
        assert_eq!(extended.root().member("_ts").unwrap().as_i64(), Some(17));
    }
}
