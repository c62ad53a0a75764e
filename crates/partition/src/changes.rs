//! Changes of a partition after a position: the last version of each document, or every version and removal.
//!
//! Both are read in LSN order, and a page ends only where a transaction ends. A reader continues after the LSN that a
//! page has reached. Reading keeps no state: a document that is written again moves to the end of the log, where a reader
//! that continues finds its new version, and a removed document is not found any more. So a page may be read from
//! another view than the one before it.

use crate::history::HistoryEntry;
use crate::log::{LogEntry, LogPosition};
use crate::view::PartitionView;
use kv::KeyRange;
use model::{ChangeFeedFault, DocumentNumber, Fault, Lsn};
use plan::StoredDocument;
use std::collections::VecDeque;

/// Entries of the log after which a page ends, even if it has no documents: most may belong to other keys.
const ENTRIES_MAX: usize = 1024;
/// Documents that are fetched at once. What does not fit into the page is fetched again for the next one.
const FETCH_MAX: usize = 16;

/// The changes that a page is read from.
#[derive(Clone, Debug)]
pub struct ChangeScan {
    /// The changes up to this transaction were read.
    pub after: Lsn,
    /// The keys of the documents.
    pub keys: KeyRange,
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
    /// Entries that were read, of documents with any keys.
    pub entries: usize,
}

impl<C> ChangePage<C> {
    fn after(lsn: Lsn) -> ChangePage<C> {
        ChangePage { changes: Vec::new(), bytes: 0, reached: lsn, is_end: false, entries: 0 }
    }

    /// All changes of a transaction were read.
    fn pass(&mut self, lsn: Lsn) {
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

    fn is_full(&self, scan: &ChangeScan) -> bool {
        self.changes.len() >= scan.items_max || self.bytes >= scan.bytes_max
    }

    /// Ends the page at the end of the log. All later changes have a higher LSN than the view.
    fn ended(mut self, view: Lsn) -> ChangePage<C> {
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
        let mut page = ChangePage::after(scan.after);
        let mut log = Entries::after(scan.after);
        // One entry more than the page needs shows whether the last transaction is complete.
        let rows_max = scan.items_max.saturating_add(1).max(FETCH_MAX);
        loop {
            let fetched_max = FETCH_MAX.min(scan.items_max.saturating_sub(page.changes.len())).max(1);
            let mut written: Vec<Written> = Vec::new();
            let mut numbers = Vec::new();
            while numbers.len() < fetched_max && page.entries < ENTRIES_MAX {
                let read = |first| self.log_of(first, rows_max);
                let Some((lsn, entries)) = log.transaction(read).await? else { break };
                page.entries += entries.len();
                let live = entries.iter().filter(|entry| !entry.is_removal()).map(|entry| entry.number);
                let from = numbers.len();
                numbers.extend(live);
                written.push(Written { lsn, numbers: numbers[from..].to_vec() });
            }
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
            if log.is_end {
                return Ok(page.ended(self.lsn));
            }
            if page.entries >= ENTRIES_MAX {
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
        while !page.is_full(scan) && page.entries < ENTRIES_MAX {
            let Some((lsn, entries)) = history.positioned(|first| self.history(first)).await? else {
                return Ok(page.ended(self.lsn));
            };
            page.entries += entries.len();
            for (at, entry) in entries.into_iter().filter(|(_, entry)| scan.keys.contains(&entry.key)) {
                page.bytes += entry.document_bytes();
                page.changes.push((at, entry));
            }
            page.pass(lsn);
        }
        Ok(page)
    }

    /// The LSN after which the changes since a second are. Times ascend with LSNs unless the partition was written under
    /// a wrong clock; then a part of the earlier changes may be after it too.
    pub async fn lsn_before(&self, second: u64) -> Result<Lsn, Fault> {
        // The LSN searched is in this interval.
        let (mut low, mut high) = (Lsn(0), self.lsn);
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
        let mut count = 0;
        while count < ENTRIES_MAX {
            let Some((lsn, entries)) = log.transaction(|first| self.log(first)).await? else {
                return Ok(last.map_or(Earlier::Nothing, |_| Earlier::Exactly(self.lsn)));
            };
            if entries.iter().any(|entry: &LogEntry| entry.time.seconds() >= second) {
                return Ok(last.map_or(Earlier::Nothing, Earlier::Exactly));
            }
            count += entries.len();
            last = Some(lsn);
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
    next: LogPosition,
    /// Whether everything was read.
    is_end: bool,
}

impl<E> Entries<E> {
    fn after(lsn: Lsn) -> Entries<E> {
        Entries { read: VecDeque::new(), next: LogPosition::start_of(lsn.next()), is_end: false }
    }

    /// The next transaction; `None` at the end.
    async fn transaction<R>(
        &mut self,
        read: impl Fn(LogPosition) -> R,
    ) -> Result<Option<(Lsn, Vec<E>)>, Fault>
    where
        R: Future<Output = Result<Vec<(LogPosition, E)>, Fault>>,
    {
        let transaction = self.positioned(read).await?;
        Ok(transaction.map(|(lsn, entries)| (lsn, entries.into_iter().map(|(_, entry)| entry).collect())))
    }

    /// The next transaction, with the positions of its entries.
    async fn positioned<R>(
        &mut self,
        read: impl Fn(LogPosition) -> R,
    ) -> Result<Option<(Lsn, Vec<(LogPosition, E)>)>, Fault>
    where
        R: Future<Output = Result<Vec<(LogPosition, E)>, Fault>>,
    {
        let mut entries: Vec<(LogPosition, E)> = Vec::new();
        loop {
            if self.read.is_empty() {
                self.read = read(self.next).await?.into();
                let Some((last, _)) = self.read.back() else {
                    self.is_end = true;
                    break;
                };
                self.next = LogPosition { position: last.position.saturating_add(1), ..*last };
            }
            let lsn = entries.first().or(self.read.front()).map(|(at, _)| at.lsn);
            while let Some(entry) = self.read.pop_front_if(|(at, _)| Some(at.lsn) == lsn) {
                entries.push(entry);
            }
            if !self.read.is_empty() {
                break;
            }
        }
        Ok(entries.first().map(|(at, _)| at.lsn).map(|lsn| (lsn, entries)))
    }
}
