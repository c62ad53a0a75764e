//! Changes of a partition after a position: the last version of each document, or every version and removal.
//!
//! Both are read in LSN order, and a page ends only where a transaction ends. A reader continues after the LSN that a
//! page has reached. Reading keeps no state: a document that is written again moves to the end of the log, where a reader
//! that continues finds its new version, and a removed document is not found any more. So a page may be read from
//! another view than the one before it.

use crate::history::HistoryEntry;
use crate::lineage::LineageChunk;
use crate::log::LogPosition;
use crate::view::{LOG_ROWS_MAX, PartitionView};
use bytes::Bytes;
use kv::KeyRange;
use model::{ChangeFeedFault, DocumentNumber, Fault, Lsn};
use plan::StoredDocument;
use std::collections::VecDeque;

/// Entries of the log after which a page ends, even if it has no documents: most may belong to other keys, or to other
/// partitions that were split from the same one.
pub(crate) const ENTRIES_MAX: usize = 1024;
/// Documents that are fetched at once. What does not fit into the page is fetched again for the next one.
const FETCH_MAX: usize = 16;

/// The changes that a page is read from.
#[derive(Clone, Debug)]
pub struct ChangeScan {
    /// The changes up to this transaction were read.
    pub after: Lsn,
    /// The keys of the documents.
    pub keys: KeyRange,
    /// The logical key ([`crate::keyspace::logical_key`]), if these are the keys of one logical partition.
    pub logical: Option<Bytes>,
    /// Changes after which the page ends.
    pub items_max: usize,
    /// Bytes of documents after which the page ends.
    pub bytes_max: usize,
}

/// Changes of whole transactions, in LSN order.
#[derive(Debug)]
pub struct ChangePage<C> {
    /// The changes.
    pub changes: Vec<C>,
    /// Bytes of their documents.
    pub bytes: usize,
    /// The changes up to this transaction were read.
    pub reached: Lsn,
    /// Whether these were all changes.
    pub is_end: bool,
    /// Entries that were read, of documents with any keys and of siblings.
    pub entries: usize,
}

impl<C> ChangePage<C> {
    pub(crate) fn after(lsn: Lsn) -> ChangePage<C> {
        ChangePage { changes: Vec::new(), bytes: 0, reached: lsn, is_end: false, entries: 0 }
    }

    /// All changes of a transaction were read.
    pub(crate) fn pass(&mut self, lsn: Lsn) {
        self.reached = lsn;
        #[cfg(feature = "planted-faults")]
        if lsn.0.is_multiple_of(8) {
            use crate::planted::{PlantedFault, is_planted};
            if is_planted(PlantedFault::ChangesAreMissed) {
                self.changes.pop();
            }
            if is_planted(PlantedFault::ChangesAreRepeated) {
                self.reached = Lsn(lsn.0 - 1);
            }
        }
    }

    pub(crate) fn is_full(&self, scan: &ChangeScan) -> bool {
        self.changes.len() >= scan.items_max || self.bytes >= scan.bytes_max
    }

    /// Ends the page at the end of the log. All later changes have a higher LSN than the view.
    pub(crate) fn ended(mut self, view: Lsn) -> ChangePage<C> {
        self.reached = self.reached.max(view);
        self.is_end = true;
        self
    }
}

/// The transactions after an LSN that are earlier than a time.
enum Earlier {
    /// The first one is not.
    Nothing,
    /// At least those up to this LSN.
    Until(Lsn),
    /// Those up to this LSN.
    Exactly(Lsn),
}

/// The log entries of one transaction that wrote versions.
struct Written {
    lsn: Lsn,
    numbers: Vec<DocumentNumber>,
}

impl PartitionView {
    /// Reads the last versions of the documents that were written after a position. Removed and expired documents are
    /// not among them.
    pub async fn changes(&self, scan: &ChangeScan) -> Result<ChangePage<StoredDocument>, Fault> {
        self.check_reached(scan.after)?;
        if let Some(page) = self.changes_of_key(scan).await? {
            return Ok(page);
        }
        let mut page = ChangePage::after(scan.after);
        let mut log = Entries::after(scan.after);
        // One entry more than the page needs shows whether the last transaction is complete.
        let rows_max = scan.items_max.saturating_add(1).max(FETCH_MAX);
        loop {
            let fetched_max = FETCH_MAX.min(scan.items_max.saturating_sub(page.changes.len())).max(1);
            let mut written: Vec<Written> = Vec::new();
            let mut numbers = Vec::new();
            let mut is_end = false;
            while numbers.len() < fetched_max && !log.is_enough() {
                let from = numbers.len();
                let lsn = match log.next(|first| self.log_chunk(first, rows_max)).await? {
                    Step::Transaction(lsn, entries) => {
                        let entries = entries.iter().map(|(_, entry)| entry);
                        let live = entries.filter(|entry| !entry.is_removal()).map(|entry| entry.number);
                        numbers.extend(live);
                        lsn
                    }
                    Step::OfSiblings(lsn) => lsn,
                    Step::End => {
                        is_end = true;
                        break;
                    }
                };
                written.push(Written { lsn, numbers: numbers[from..].to_vec() });
            }
            page.entries = log.scanned;
            let mut found = self.by_numbers(&numbers, &scan.keys).await?.into_iter().peekable();
            for transaction in written {
                for number in transaction.numbers {
                    let Some(stored) = found.next_if(|stored| stored.number == number) else { continue };
                    // Entries of replaced versions can be kept for consumers of the log.
                    if stored.lsn == transaction.lsn {
                        page.bytes += stored.document.bytes().len();
                        page.changes.push(stored);
                    }
                }
                page.pass(transaction.lsn);
                if page.is_full(scan) {
                    return Ok(page);
                }
            }
            if is_end {
                return Ok(page.ended(self.lsn));
            }
            if log.is_enough() {
                return Ok(page);
            }
        }
    }

    /// Reads every version and removal after a position. Fails if the history does not have all of them.
    pub async fn versions(
        &self,
        scan: &ChangeScan,
    ) -> Result<ChangePage<(LogPosition, HistoryEntry)>, Fault> {
        self.check_reached(scan.after)?;
        if LogPosition::start_of(scan.after.next()) < self.history_from {
            return Err(ChangeFeedFault::NotRetained.into());
        }
        let mut page = ChangePage::after(scan.after);
        let mut history = Entries::after(scan.after);
        while !page.is_full(scan) && !history.is_enough() {
            let lsn = match history.next(|first| self.history_chunk(first)).await? {
                Step::Transaction(lsn, entries) => {
                    for (at, entry) in entries.into_iter().filter(|(_, entry)| scan.keys.contains(&entry.key))
                    {
                        page.bytes += entry.document_bytes();
                        page.changes.push((at, entry));
                    }
                    lsn
                }
                Step::OfSiblings(lsn) => lsn,
                Step::End => return Ok(page.ended(self.lsn)),
            };
            page.entries = history.scanned;
            page.pass(lsn);
        }
        Ok(page)
    }

    /// The LSN after which the changes since a second are. Times ascend with LSNs unless the partition was written under
    /// a wrong clock; then earlier changes may be after it too.
    pub async fn lsn_before(&self, second: u64) -> Result<Lsn, Fault> {
        if second <= self.set_back.highest.seconds() {
            return Ok(Lsn(0));
        }
        // The LSN searched is in this interval.
        let (mut low, mut high) = (self.set_back.after, self.lsn);
        while low < high {
            let middle = Lsn(low.0 + (high.0 - low.0) / 2);
            match self.earlier_after(middle, second).await? {
                Earlier::Nothing => high = middle,
                Earlier::Until(lsn) => low = lsn,
                Earlier::Exactly(lsn) => return Ok(lsn),
            }
        }
        Ok(low)
    }

    /// Reads a bounded number of entries after `lsn` and looks which of them are earlier than `second`.
    async fn earlier_after(&self, lsn: Lsn, second: u64) -> Result<Earlier, Fault> {
        let mut log = Entries::after(lsn);
        let mut last = None;
        while last.is_none() || !log.is_enough() {
            match log.next(|first| self.log_chunk(first, LOG_ROWS_MAX)).await? {
                Step::Transaction(_, entries)
                    if entries.iter().any(|(_, entry)| entry.time.seconds() >= second) =>
                {
                    return Ok(last.map_or(Earlier::Nothing, Earlier::Exactly));
                }
                Step::Transaction(passed, _) => last = Some(passed),
                Step::OfSiblings(passed) if passed > lsn => last = Some(passed),
                Step::OfSiblings(_) => {}
                Step::End => return Ok(last.map_or(Earlier::Nothing, |_| Earlier::Exactly(self.lsn))),
            }
        }
        Ok(last.map_or(Earlier::Nothing, Earlier::Until))
    }

    /// Refuses a position that this partition has not reached: it belongs to another one.
    fn check_reached(&self, lsn: Lsn) -> Result<(), ChangeFeedFault> {
        if lsn > self.lsn { Err(ChangeFeedFault::Ahead) } else { Ok(()) }
    }
}

impl HistoryEntry {
    /// Bytes of the documents of the entry.
    pub fn document_bytes(&self) -> usize {
        let versions = [&self.current, &self.previous].into_iter().flatten();
        versions.map(|stored| stored.document.bytes().len()).sum()
    }
}

/// Entries of a log, read in chunks and returned by transaction.
struct Entries<E> {
    read: VecDeque<(LogPosition, E)>,
    /// Where the next chunk starts; `None` if everything was read.
    next: Option<LogPosition>,
    /// Rows that were read, of siblings too.
    scanned: usize,
}

/// What comes next in a log.
enum Step<E> {
    /// A transaction with the positions of its entries.
    Transaction(Lsn, Vec<(LogPosition, E)>),
    /// Up to this LSN there were only entries of siblings.
    OfSiblings(Lsn),
    End,
}

impl<E> Entries<E> {
    fn after(lsn: Lsn) -> Entries<E> {
        Entries { read: VecDeque::new(), next: Some(LogPosition::start_of(lsn.next())), scanned: 0 }
    }

    /// Whether a page should end, since enough entries were read and returned.
    fn is_enough(&self) -> bool {
        self.scanned >= ENTRIES_MAX && self.read.is_empty()
    }

    /// Reads on, by at least a transaction or a chunk.
    async fn next<R>(&mut self, read: impl Fn(LogPosition) -> R) -> Result<Step<E>, Fault>
    where
        R: Future<Output = Result<LineageChunk<E>, Fault>>,
    {
        let mut entries: Vec<(LogPosition, E)> = Vec::new();
        loop {
            if self.read.is_empty() {
                let Some(first) = self.next else { break };
                let chunk = read(first).await?;
                self.scanned += chunk.scanned;
                let reached = chunk.reached;
                self.next = reached.map(LogPosition::next);
                self.read = chunk.positioned();
                if let (Some(reached), true) = (reached, self.read.is_empty()) {
                    match entries.first() {
                        // The transaction of that LSN may have more entries.
                        None => return Ok(Step::OfSiblings(Lsn(reached.lsn.0.saturating_sub(1)))),
                        Some((at, _)) if at.lsn < reached.lsn => break,
                        Some(_) => continue,
                    }
                }
            }
            let lsn = entries.first().or(self.read.front()).map(|(at, _)| at.lsn);
            while let Some(entry) = self.read.pop_front_if(|(at, _)| Some(at.lsn) == lsn) {
                entries.push(entry);
            }
            if !self.read.is_empty() {
                break;
            }
        }
        Ok(match entries.first() {
            Some((at, _)) => Step::Transaction(at.lsn, entries),
            None => Step::End,
        })
    }
}
