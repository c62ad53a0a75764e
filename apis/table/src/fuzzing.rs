//! Entry points for fuzzing: filters, batches and entities. Not part of the public API.

use crate::account::AccountStyle;
use crate::edm::TIMESTAMP;
use crate::filter::{exact_keys, lower, parse};
use crate::wire::entity::{
    EntityFrame, EntityKeys, EntityRow, MetadataLevel, Select, read_entity, write_entity,
};
use crate::wire::multipart::{BATCH_OPERATIONS_MAX, Batch, read_batch};
use bytes::Bytes;
use model::Ticks;
use value::Document;

/// Parses and lowers a filter, and evaluates it on an entity.
pub fn filter(text: &str, entity: &[u8]) {
    let filter = match parse(text) {
        Ok(filter) => filter,
        Err(fault) => return assert!(!fault.to_string().is_empty(), "a fault has a text"),
    };
    assert_eq!(filter.is_none(), text.trim().is_empty(), "only an empty text is no filter");
    let lowered = lower(filter.as_ref());
    let shown = lowered.query.to_string();
    assert!(shown.contains("order by"), "a page is in the order of the keys");
    let Some(filter) = filter else { return };
    assert!(!lowered.needs_check || text.contains(TIMESTAMP), "only the time is checked again");
    let document = Document::from_json(entity).ok();
    if let Some(document) = document {
        let matches = filter.matches(document.root(), Ticks(7));
        assert_eq!(matches, filter.matches(document.root(), Ticks(7)));
    }
    if let Some((partition_key, row_key)) = exact_keys(&filter) {
        assert!(text.replace("''", "'").contains(partition_key) && text.replace("''", "'").contains(row_key));
    }
}

/// Reads a batch.
pub fn batch(content_type: &str, body: &[u8]) {
    match read_batch(content_type, &Bytes::copy_from_slice(body)) {
        Ok(Batch::Changeset(requests)) => {
            assert!((1..=BATCH_OPERATIONS_MAX).contains(&requests.len()), "a changeset has operations");
            let bytes: usize = requests.iter().map(|request| request.body.len()).sum();
            assert!(bytes <= body.len(), "bodies are parts of the batch");
        }
        Ok(Batch::Retrieval(request)) => assert_eq!(request.method, http::Method::GET),
        Err(fault) => assert!(!fault.to_string().is_empty(), "a fault has a text"),
    }
}

/// Reads an entity: what is accepted comes back as it was.
pub fn entity(body: &[u8]) {
    let Ok(entity) = read_entity(body, EntityKeys::InBody, AccountStyle::Storage.limits()) else {
        return;
    };
    assert!(entity.document.validate().is_ok(), "a new document is whole");
    assert!(plan::Item::new(entity.document.clone()).is_ok(), "an entity is an item");
    let select = Select::default();
    for level in [MetadataLevel::Minimal, MetadataLevel::Full] {
        let frame = EntityFrame { level, base: "https://host", account: "a", table: "t", select: &select };
        let row = EntityRow { document: entity.document.root(), timestamp: Ticks(0), etag: "W/\"x\"" };
        let mut text = Vec::new();
        write_entity(&frame, &row, &mut text);
        let again = read_entity(&text, EntityKeys::InBody, AccountStyle::Storage.limits())
            .expect("our own text is an entity");
        assert_eq!(again, entity, "text and entity are one");
    }
}
