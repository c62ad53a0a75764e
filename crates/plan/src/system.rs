//! The properties that the server adds to a document, as queries and conditions see them.
//!
//! Stored documents lack them; an API writes them by itself when it gives a whole document out, in the same order and
//! with the same values.

use crate::StoredDocument;
use model::{ContainerNumber, DatabaseNumber, Rid};
use value::{Document, DocumentError, Value};

/// Their names, in the order in which they stand behind the document's own members.
pub const ADDED_PROPERTIES: [&str; 5] = ["_rid", "_self", "_etag", "_attachments", "_ts"];

/// Where the documents are that get system properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemProperties {
    /// The database.
    pub database: DatabaseNumber,
    /// The container.
    pub container: ContainerNumber,
}

impl SystemProperties {
    /// The document with its system properties.
    pub fn extend(&self, stored: &StoredDocument) -> Result<Document, DocumentError> {
        let rid = Rid::Document(self.database, self.container, stored.number).to_string();
        let owner = Rid::Container(self.database, self.container);
        let link = format!("dbs/{}/colls/{owner}/docs/{rid}/", Rid::Database(self.database));
        let ts = i64::try_from(stored.ts()).unwrap_or(i64::MAX);
        let values = [
            Value::String(rid),
            Value::String(link),
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
        let system = SystemProperties { database: DatabaseNumber(1), container: ContainerNumber(2) };
        let extended = system.extend(&stored).unwrap();
        let names: Vec<_> = extended.root().members().map(|(name, _)| name.to_owned()).collect();
        assert_eq!(names, ["id", "_rid", "_self", "_etag", "_attachments", "_ts"]);
        let text = |name: &str| extended.root().member(name).unwrap().as_str().unwrap().to_owned();
        assert_eq!(text("_etag"), etag.to_string());
        let link = format!("dbs/{}/colls/", Rid::Database(DatabaseNumber(1)));
        assert!(
            text("_self").starts_with(&link) && text("_self").ends_with(&format!("/docs/{}/", text("_rid")))
        );
        assert_eq!(extended.root().member("_ts").unwrap().as_i64(), Some(17));
    }
}
