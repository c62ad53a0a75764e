//! The changes of one logical partition with few documents, found by the index instead of in the log.
//!
//! The log of a partition has the changes of all keys. A reader of one key would read all of it for a few documents.

use crate::changes::{ChangePage, ChangeScan, ENTRIES_MAX};
use crate::index::{Lookup, is_damage};
use crate::view::PartitionView;
use model::{DocumentNumber, Fault, Lsn};
use plan::StoredDocument;

/// Documents of a key up to which the index is used: all of them are read for every page.
pub(crate) const KEY_DOCUMENTS_MAX: u64 = 1024;
/// The index is used if there are this many transactions after the position for each document of the key.
const TRANSACTIONS_PER_DOCUMENT: u64 = 4;
/// Documents that are read together to find out when they were written.
const READ_TOGETHER: usize = 16;

impl PartitionView {
    /// Reads a page of the last versions of a logical partition. Returns `None` if reading the log is better.
    pub(crate) async fn changes_of_key(
        &self,
        scan: &ChangeScan,
    ) -> Result<Option<ChangePage<StoredDocument>>, Fault> {
        let (Some(logical), Some(index)) = (&scan.logical, &self.index) else { return Ok(None) };
        let transactions = self.lsn.0.saturating_sub(scan.after.0);
        if transactions <= ENTRIES_MAX as u64 {
            return Ok(None);
        }
        let documents = match index.documents(&Lookup::Logical(logical.clone())).await {
            Err(fault) if is_damage(&fault) => return Ok(None),
            documents => documents?,
        };
        if documents.count() > KEY_DOCUMENTS_MAX.min(transactions / TRANSACTIONS_PER_DOCUMENT) {
            return Ok(None);
        }
        let numbers: Vec<DocumentNumber> = documents.iter().collect();
        let mut written = Vec::new();
        for some in numbers.chunks(READ_TOGETHER) {
            let found = self.by_numbers(some, &scan.keys).await?;
            let later = found.iter().filter(|stored| stored.lsn > scan.after);
            // Stamps ascend with the changes of a transaction.
            written.extend(later.map(|stored| (stored.lsn, stored.etag.stamp, stored.number)));
            tokio::task::yield_now().await;
        }
        written.sort_unstable();
        let mut page = ChangePage::after(scan.after);
        page.entries = numbers.len();
        for transaction in written.chunk_by(|one, next| one.0 == next.0) {
            let lsn = transaction.first().map_or(Lsn(0), |(lsn, ..)| *lsn);
            let numbers: Vec<DocumentNumber> = transaction.iter().map(|(.., number)| *number).collect();
            for stored in self.by_numbers(&numbers, &scan.keys).await? {
                page.bytes += stored.document.bytes().len();
                page.changes.push(stored);
            }
            page.pass(lsn);
            if page.is_full(scan) {
                return Ok(Some(page));
            }
        }
        Ok(Some(page.ended(self.lsn)))
    }
}
