//! The change feed: what was written to a container, a range or a logical partition after a position, page by page.
//!
//! Order: LSN within a partition. A page ends only where a transaction ends, so a transaction larger than a page makes a
//! larger one. A position is an LSN per partition. It is kept by the client and contains no state of the server, so it
//! stays valid through restarts, and for the partitions into which one is split.

use crate::authorisation::{ChangeFeedPass, Principal};
use crate::catalog::Container;
use crate::engine::Engine;
use crate::feed::{PAGE_BYTES_STOP, Scope, bounds};
use crate::isolation::Size;
use crate::router::{Attempts, Routed};
use crate::slot::PartitionSlot;
use bytes::Bytes;
use eval::Meter;
use kv::KeyRange;
use model::policy::ChangeFeedPolicy;
use model::{ChangeFeedFault, Charge, Fault, Lsn, PartitionOrdinal, ReadQuorum, SessionToken, Work};
use partition::keyspace;
use partition::{ChangeScan, HistoryEntry, LogPosition, PhysicalPartition};
use plan::StoredDocument;
use std::sync::Arc;

/// Changes that are read without interruption. A longer page can move to other threads in between.
const CHANGES_AT_ONCE: usize = 64;

/// A start time may be this far ahead of the clock, because the clocks of clients differ; it then means now.
const AHEAD_SECONDS_MAX: u64 = 15 * 60;

/// Which changes are returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeMode {
    /// The last version of each document; documents that were deleted or have expired are not returned.
    LatestVersion,
    /// All versions and removals, for as long as the container keeps them.
    AllVersions,
}

/// Where a reader starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeStart {
    /// With the first change.
    Beginning,
    /// With the next change.
    Now,
    /// With the changes since this second.
    Since(u64),
    /// After the changes that it has read.
    After(ChangePosition),
}

/// How far a reader has read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangePosition {
    /// The LSN in partitions that are not named and do not descend from one that is.
    pub base: Lsn,
    /// The LSN in named partitions and in those into which they are split.
    pub named: Vec<(PartitionOrdinal, Lsn)>,
    /// The partition that is read first, so that all take turns.
    pub first: Option<PartitionOrdinal>,
}

impl ChangePosition {
    /// The LSN up to which a partition was read.
    fn lsn_in(&self, slot: &PartitionSlot) -> Lsn {
        // Ancestors are listed oldest first.
        let ancestors = slot.ancestors.iter().rev().map(|ancestor| ancestor.ordinal);
        let mut nearest_first = std::iter::once(slot.ordinal).chain(ancestors);
        let named = |ordinal: PartitionOrdinal| self.named.iter().find(|(named, _)| *named == ordinal);
        nearest_first.find_map(named).map_or(self.base, |(_, lsn)| *lsn)
    }

    /// Refuses a position that cannot be one of this container, nor of a dropped one: all of these are at or below
    /// `floor`, which is 0 if there are none. A container that is created again under its name continues their LSNs,
    /// and so do their readers.
    fn check_ranges(&self, container: &Container, floor: Lsn) -> Result<(), ChangeFeedFault> {
        let mut reached = self.named.iter().map(|(_, lsn)| *lsn).chain([self.base]);
        if floor > Lsn(0) && reached.all(|lsn| lsn <= floor) {
            return Ok(());
        }
        let mut named = self.named.iter().map(|(ordinal, _)| *ordinal).chain(self.first);
        match named.find(|ordinal| container.range_of(*ordinal).is_err()) {
            Some(range) => Err(ChangeFeedFault::OtherContainer { range }),
            None => Ok(()),
        }
    }

    /// The position after these partitions were read up to these LSNs.
    fn of(reached: &[(PartitionOrdinal, Lsn)], first: Option<PartitionOrdinal>) -> ChangePosition {
        let base = reached.iter().map(|(_, lsn)| *lsn).min().unwrap_or_default();
        let named = reached.iter().filter(|(_, lsn)| *lsn != base).copied().collect();
        ChangePosition { base, named, first }
    }
}

/// The request for a page.
#[derive(Clone, Debug)]
pub struct ChangeRequest {
    /// Which changes are returned.
    pub mode: ChangeMode,
    /// Where the page starts.
    pub start: ChangeStart,
    /// Number of changes after which the page ends.
    pub items_max: usize,
    /// The client's session tokens.
    pub session: Vec<SessionToken>,
}

/// Changes, as the mode of the request requires.
#[derive(Clone, Debug)]
pub enum Changes {
    /// Last versions.
    Latest(Vec<StoredDocument>),
    /// All versions and removals, with their positions in the log.
    All(Vec<(LogPosition, HistoryEntry)>),
}

impl Changes {
    fn none(mode: ChangeMode) -> Changes {
        match mode {
            ChangeMode::LatestVersion => Changes::Latest(Vec::new()),
            ChangeMode::AllVersions => Changes::All(Vec::new()),
        }
    }

    /// The number of changes.
    pub fn len(&self) -> usize {
        match self {
            Changes::Latest(changes) => changes.len(),
            Changes::All(changes) => changes.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A page of changes; without any if there are no new ones.
#[derive(Clone, Debug)]
pub struct ChangeFeedPage {
    /// The changes.
    pub changes: Changes,
    /// Where the next page starts.
    pub position: ChangePosition,
    /// The client's new session tokens, one per partition that was read.
    pub session: Vec<SessionToken>,
    /// Its charge.
    pub charge: Charge,
}

impl Engine {
    /// Reads a page of changes.
    pub async fn changes(
        &self,
        pass: ChangeFeedPass<'_>,
        request: &ChangeRequest,
    ) -> Result<ChangeFeedPage, Fault> {
        self.check_start(pass.container, request)?;
        let mut attempts = Attempts::default();
        loop {
            let sources = self.change_sources(&pass, request).await?;
            let page = match (&sources[..], &request.start) {
                // An empty interval of hashes: the reader stays where it is.
                ([], ChangeStart::After(position)) => Ok(PageRead::empty(request.mode, position.clone())),
                ([..], _) => self.read_changes(pass.principal, &sources, request).await,
            };
            match page {
                Err(_) if attempts.again(sources.iter().map(|source| &source.routed.partition)) => {}
                page => {
                    let mut page = charged(page?, &sources, pass.principal.class().read_quorum);
                    if let Some(ordinal) = pass.scope.range_id() {
                        page.session = pass.container.tokens_for_range(ordinal, page.session);
                    }
                    return Ok(page);
                }
            }
        }
    }

    fn check_start(&self, container: &Container, request: &ChangeRequest) -> Result<(), ChangeFeedFault> {
        match &request.start {
            ChangeStart::Beginning | ChangeStart::Now => {}
            ChangeStart::After(position) => {
                position.check_ranges(container, self.catalog.state().floor())?;
            }
            ChangeStart::Since(second) => {
                let seconds = second.saturating_sub(self.ambient.now_seconds());
                if seconds > AHEAD_SECONDS_MAX {
                    return Err(ChangeFeedFault::Future { seconds });
                }
            }
        }
        match request.mode {
            ChangeMode::LatestVersion => Ok(()),
            ChangeMode::AllVersions => {
                let policy = container.definition().policies.change_feed;
                if policy.and_then(ChangeFeedPolicy::retention_seconds).is_none() {
                    return Err(ChangeFeedFault::NoRetention);
                }
                match request.start {
                    ChangeStart::Now | ChangeStart::After(_) => Ok(()),
                    ChangeStart::Beginning | ChangeStart::Since(_) => Err(ChangeFeedFault::Start),
                }
            }
        }
    }

    /// The partitions that a page is read from, in the order of reading. They are opened here: what reads them may run
    /// on other threads, where no writer may be started.
    async fn change_sources(
        &self,
        pass: &ChangeFeedPass<'_>,
        request: &ChangeRequest,
    ) -> Result<Vec<ChangeSource>, Fault> {
        let container = pass.container;
        let (hashes, keys) = bounds(container, &pass.scope)?;
        let definition = &container.definition().partition_key;
        let is_key = match &pass.scope {
            Scope::Key(key) => definition.is_complete(key),
            Scope::Container | Scope::Range(..) | Scope::Hashes(_) => false,
        };
        let source = |routed: Routed| {
            let logical = is_key.then(|| keyspace::logical_key(&keys.start));
            let keys = keys.intersection(routed.slot.keys(container.number()))?;
            let start = match &request.start {
                ChangeStart::Beginning => SourceStart::After(Lsn(0)),
                ChangeStart::Now => SourceStart::Now,
                ChangeStart::Since(second) => SourceStart::Since(*second),
                ChangeStart::After(position) => SourceStart::After(position.lsn_in(&routed.slot)),
            };
            Some(ChangeSource { routed, keys, logical, start })
        };
        let routed = self.owners_of(container, &hashes, &request.session).await?;
        for routed in &routed {
            self.admit(&routed.slot, pass.principal.class().priority)?;
        }
        let mut sources: Vec<_> = routed.into_iter().filter_map(source).collect();
        if let ChangeStart::After(ChangePosition { first: Some(first), .. }) = request.start {
            let is_first = |slot: &PartitionSlot| {
                slot.ordinal == first || slot.ancestors.iter().any(|ancestor| ancestor.ordinal == first)
            };
            let index = sources.iter().position(|source| is_first(&source.routed.slot));
            sources.rotate_left(index.unwrap_or(0));
        }
        Ok(sources)
    }

    /// Reads a page, on the thread of the request as long as that is short.
    async fn read_changes(
        &self,
        principal: &Principal,
        sources: &[ChangeSource],
        request: &ChangeRequest,
    ) -> Result<PageRead, Fault> {
        let sources: Arc<[_]> = sources.iter().map(ChangeSource::read_part).collect();
        let (mode, items_max) = (request.mode, request.items_max);
        let begin = |meter| read_page(Arc::clone(&sources), mode, items_max, meter);
        self.isolation.run(principal, Size::Ordinary, begin).await
    }
}

/// One partition of the scope.
struct ChangeSource {
    routed: Routed,
    keys: KeyRange,
    /// The logical key, if the scope is one logical partition.
    logical: Option<Bytes>,
    start: SourceStart,
}

#[derive(Clone, Copy)]
enum SourceStart {
    After(Lsn),
    Now,
    Since(u64),
}

/// What reading one partition needs.
struct SourceRead {
    partition: Arc<PhysicalPartition>,
    ordinal: PartitionOrdinal,
    keys: KeyRange,
    logical: Option<Bytes>,
    start: SourceStart,
}

impl ChangeSource {
    fn read_part(&self) -> SourceRead {
        SourceRead {
            partition: Arc::clone(&self.routed.partition),
            ordinal: self.routed.slot.ordinal,
            keys: self.keys.clone(),
            logical: self.logical.clone(),
            start: self.start,
        }
    }
}

impl SourceRead {
    /// The LSN after which the partition is read.
    async fn start_lsn(&self) -> Result<Lsn, Fault> {
        match self.start {
            SourceStart::After(lsn) => Ok(lsn),
            SourceStart::Now => Ok(self.partition.lsn()),
            SourceStart::Since(second) => self.partition.view().await?.lsn_before(second).await,
        }
    }
}

/// A page before it is charged.
struct PageRead {
    changes: Changes,
    position: ChangePosition,
    /// The partitions that were read, with the LSN of their state and the price of their changes.
    read: Vec<(PartitionOrdinal, Lsn, Charge)>,
}

impl PageRead {
    fn empty(mode: ChangeMode, position: ChangePosition) -> PageRead {
        PageRead { changes: Changes::none(mode), position, read: Vec::new() }
    }
}

/// Reads the partitions in turn until the page is full. Each step reads another view, because an open view costs disk
/// space: all views of a partition show the same changes up to the LSN of the older one, except those that were
/// superseded, which the newer ones show later.
async fn read_page(
    sources: Arc<[SourceRead]>,
    mode: ChangeMode,
    items_max: usize,
    meter: Arc<Meter>,
) -> Result<PageRead, Fault> {
    let mut page = PageProgress { changes: Changes::none(mode), bytes: 0 };
    let mut reached = Vec::with_capacity(sources.len());
    for source in &*sources {
        reached.push((source.ordinal, source.start_lsn().await?));
    }
    let mut read = Vec::new();
    let mut first = None;
    for (index, source) in sources.iter().enumerate() {
        if page.is_full(items_max) {
            first = Some(source.ordinal);
            break;
        }
        let mut charge = Charge::NONE;
        let (_, after) = &mut reached[index];
        let seen = loop {
            let scan = ChangeScan {
                after: *after,
                keys: source.keys.clone(),
                logical: source.logical.clone(),
                items_max: CHANGES_AT_ONCE.min(items_max - page.changes.len()),
                bytes_max: PAGE_BYTES_STOP - page.bytes,
            };
            let step = page.read(source, &scan).await?;
            *after = step.reached;
            charge += step.charge;
            if step.is_end || page.is_full(items_max) {
                break step.seen;
            }
            meter.check().map_err(exec::query_fault)?;
            tokio::task::yield_now().await;
        };
        read.push((source.ordinal, seen, charge));
    }
    Ok(PageRead { changes: page.changes, position: ChangePosition::of(&reached, first), read })
}

/// The changes of a page so far.
struct PageProgress {
    changes: Changes,
    bytes: usize,
}

/// What one step has read.
struct StepRead {
    reached: Lsn,
    is_end: bool,
    /// The LSN of the state that was read.
    seen: Lsn,
    charge: Charge,
}

impl PageProgress {
    fn is_full(&self, items_max: usize) -> bool {
        self.changes.len() >= items_max || self.bytes >= PAGE_BYTES_STOP
    }

    async fn read(&mut self, source: &SourceRead, scan: &ChangeScan) -> Result<StepRead, Fault> {
        let view = source.partition.view().await?;
        let price = |bytes: usize| Work::Read { bytes }.price();
        let (reached, is_end, bytes, charge) = match &mut self.changes {
            Changes::Latest(changes) => {
                let found = view.changes(scan).await?;
                let charge = found.changes.iter().map(|stored| price(stored.document.bytes().len())).sum();
                changes.extend(found.changes);
                (found.reached, found.is_end, found.bytes, charge)
            }
            Changes::All(changes) => {
                let found = view.versions(scan).await?;
                let charge = found.changes.iter().map(|(_, entry)| price(entry.document_bytes())).sum();
                changes.extend(found.changes);
                (found.reached, found.is_end, found.bytes, charge)
            }
        };
        self.bytes += bytes;
        Ok(StepRead { reached, is_end, seen: view.lsn(), charge })
    }
}

/// Records the charge of a page for its partitions. A page without changes has the minimum charge.
fn charged(page: PageRead, sources: &[ChangeSource], read_quorum: ReadQuorum) -> ChangeFeedPage {
    let PageRead { changes, position, mut read } = page;
    if read.is_empty() {
        let charge = read_quorum.price(Charge::MINIMUM);
        return ChangeFeedPage { changes, position, session: Vec::new(), charge };
    }
    if let Some((_, _, charge)) = read.first_mut().filter(|_| changes.is_empty()) {
        *charge = Charge::MINIMUM;
    }
    read.iter_mut().for_each(|(_, _, charge)| *charge = read_quorum.price(*charge));
    for (source, (_, _, charge)) in sources.iter().zip(&read) {
        source.routed.slot.ledger.add(*charge);
    }
    let charge = read.iter().map(|(_, _, charge)| *charge).sum();
    let session =
        read.iter().map(|(ordinal, lsn, _)| SessionToken { ordinal: *ordinal, lsn: *lsn }).collect();
    ChangeFeedPage { changes, position, session, charge }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::CatalogStamp;
    use model::EffectiveRange;
    use partition::{Ancestor, Remains};

    #[test]
    fn a_position_holds_for_the_parts_of_a_split_partition() {
        let slot = |ordinal, parents: &[u32]| {
            let ancestor = |ordinal: &u32| Ancestor {
                ordinal: PartitionOrdinal(*ordinal),
                lsn_last: Lsn(100),
                remains: Remains::All,
            };
            let ancestors = parents.iter().map(ancestor).collect();
            let since = CatalogStamp { change: 0, ts: 0 };
            PartitionSlot::new(PartitionOrdinal(ordinal), EffectiveRange::full(), ancestors, since)
        };
        let at = |ordinal, lsn| (PartitionOrdinal(ordinal), Lsn(lsn));
        let position = ChangePosition { base: Lsn(5), named: vec![at(0, 7), at(2, 9)], first: None };
        assert_eq!(position.lsn_in(&slot(0, &[])), Lsn(7));
        assert_eq!(position.lsn_in(&slot(3, &[0])), Lsn(7));
        assert_eq!(position.lsn_in(&slot(4, &[0, 2])), Lsn(9), "its nearest named ancestor");
        assert_eq!(position.lsn_in(&slot(5, &[0, 3])), Lsn(7));
        assert_eq!(position.lsn_in(&slot(1, &[])), Lsn(5));
        assert_eq!(ChangePosition::of(&[at(1, 4)], None).named, []);
        let of_three = ChangePosition::of(&[at(1, 4), at(2, 3), at(3, 3)], None);
        assert_eq!((of_three.base, of_three.named), (Lsn(3), vec![at(1, 4)]));
    }
}
