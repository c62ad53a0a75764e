//! Rows of the change feed: items with their LSN, or versions with metadata.

use super::json;
use super::resources::ItemWriter;
use engine::{Container, HistoryEntry, HistoryKind};
use model::{Lsn, PartitionKeyDefinition};
use plan::StoredDocument;

/// Writes the rows of a page.
pub(crate) struct ChangeWriter<'a> {
    items: ItemWriter<'a>,
    key: &'a PartitionKeyDefinition,
    body: Vec<u8>,
    count: usize,
}

/// The operation of a row.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OperationType {
    Create,
    Replace,
    Delete,
}

impl OperationType {
    fn name(self) -> &'static str {
        match self {
            OperationType::Create => "create",
            OperationType::Replace => "replace",
            OperationType::Delete => "delete",
        }
    }
}

impl ChangeWriter<'_> {
    /// A writer for changes of `container`. Begins the body.
    pub(crate) fn new(container: &Container) -> ChangeWriter<'_> {
        let mut body = Vec::new();
        body.extend_from_slice(b"{\"_rid\":\"");
        body.extend_from_slice(container.rid().text().as_bytes());
        body.extend_from_slice(b"\",\"Documents\":[");
        let items = ItemWriter::new(container);
        ChangeWriter { items, key: &container.definition().partition_key, body, count: 0 }
    }

    /// Appends the last version of an item.
    pub(crate) fn push_latest(&mut self, stored: &StoredDocument) {
        self.begin_row();
        self.items.push_with_lsn(stored, &mut self.body);
    }

    /// Appends the last version of an item in the form of [`ChangeWriter::push_change`]. Whether it was created or
    /// replaced is not known.
    pub(crate) fn push_latest_with_metadata(&mut self, stored: &StoredDocument) {
        self.begin_row();
        self.body.extend_from_slice(b"{\"current\":");
        self.items.push_with_lsn(stored, &mut self.body);
        self.body.extend_from_slice(b",\"metadata\":{");
        push_position(stored.lsn, stored.ts(), &mut self.body);
        self.body.extend_from_slice(b"}}");
    }

    /// Appends a change. A change of the id is a delete of the old id and a create of the new one: a reader that copies
    /// the container by id has to delete the old copy.
    pub(crate) fn push_change(&mut self, lsn: Lsn, entry: &HistoryEntry) {
        let (current, previous) = (entry.current.as_ref(), entry.previous.as_ref());
        match &entry.kind {
            HistoryKind::Create => self.push_row(OperationType::Create, lsn, entry, current, None),
            HistoryKind::Replace => self.push_row(OperationType::Replace, lsn, entry, current, previous),
            HistoryKind::Rename { .. } => {
                self.push_row(OperationType::Delete, lsn, entry, None, previous);
                self.push_row(OperationType::Create, lsn, entry, current, None);
            }
            HistoryKind::Delete | HistoryKind::Expire => {
                self.push_row(OperationType::Delete, lsn, entry, None, previous);
            }
        }
    }

    /// The body so far, and the number of rows.
    pub(crate) fn finish(self) -> (Vec<u8>, usize) {
        (self.body, self.count)
    }

    fn begin_row(&mut self) {
        if self.count > 0 {
            self.body.push(b',');
        }
        self.count += 1;
    }

    fn push_row(
        &mut self,
        operation: OperationType,
        lsn: Lsn,
        entry: &HistoryEntry,
        current: Option<&StoredDocument>,
        previous: Option<&StoredDocument>,
    ) {
        self.begin_row();
        self.body.push(b'{');
        for (name, version) in [("\"current\":", current), ("\"previous\":", previous)] {
            if let Some(version) = version {
                self.body.extend_from_slice(name.as_bytes());
                self.items.push_with_lsn(version, &mut self.body);
                self.body.push(b',');
            }
        }
        let body = &mut self.body;
        body.extend_from_slice(b"\"metadata\":{\"operationType\":\"");
        body.extend_from_slice(operation.name().as_bytes());
        body.extend_from_slice(b"\",");
        push_position(lsn, entry.time.seconds(), body);
        if let Some(previous) = previous {
            body.extend_from_slice(b",\"previousImageLSN\":");
            json::push_integer(previous.lsn.0, body);
        }
        if operation == OperationType::Delete {
            self.push_identity(entry.kind == HistoryKind::Expire, previous);
        }
        self.body.extend_from_slice(b"}}");
    }

    /// What identifies a deleted item.
    fn push_identity(&mut self, is_expired: bool, deleted: Option<&StoredDocument>) {
        let body = &mut self.body;
        body.extend_from_slice(b",\"timeToLiveExpired\":");
        body.extend_from_slice(if is_expired { b"true" } else { b"false" });
        let Some(deleted) = deleted else { return };
        if let Some(id) = deleted.document.root().member("id") {
            body.extend_from_slice(b",\"id\":");
            id.write_json(body);
        }
        body.extend_from_slice(b",\"partitionKey\":{");
        let mut is_first = true;
        for (path, text) in self.key.paths().iter().zip(self.key.path_texts()) {
            let Some(value) = deleted.document.get(path) else { continue };
            if !std::mem::take(&mut is_first) {
                body.push(b',');
            }
            json::push_string(text.trim_start_matches('/'), body);
            body.push(b':');
            value.write_json(body);
        }
        body.push(b'}');
    }
}

/// LSN and second of a change, as members of its metadata.
fn push_position(lsn: Lsn, second: u64, body: &mut Vec<u8>) {
    body.extend_from_slice(b"\"lsn\":");
    json::push_integer(lsn.0, body);
    body.extend_from_slice(b",\"crts\":");
    json::push_integer(second, body);
}
