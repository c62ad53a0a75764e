//! What all partitions share that work for one page.

use bytes::Bytes;
use eval::{Budget, Context, Deadline, Meter, NoUserFunctions, Patterns, QueryMemory, Steps};
use kv::KeyRange;
use model::{Ambient, EffectiveRange, Fault, Lsn, PartitionOrdinal};
use partition::PartitionView;
use partition::index::{Documents, IndexReader, Lookup};
use std::sync::Arc;
use tokio::sync::OnceCell;

use crate::access::{SharedFilter, SharedNeedles, Statistics};
use crate::fault::query_fault;
use crate::program::{Layer, Program};
use crate::source::PartSource;

/// Bounds of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryBounds {
    /// Bytes that a page may hold while it is made.
    pub memory_bytes: usize,
    /// Rows that a page may look at.
    pub rows: u64,
    /// Milliseconds in which a page must be made.
    pub time_ms: u64,
    /// Milliseconds after which a page is given as far as it is, where that can be done.
    pub patience_ms: u64,
}

impl Default for QueryBounds {
    fn default() -> QueryBounds {
        QueryBounds { memory_bytes: 256 << 20, rows: 1_000_000_000, time_ms: 60_000, patience_ms: 5_000 }
    }
}

/// The part of a partition that is asked.
#[derive(Clone, Debug)]
pub struct Part {
    /// Where they are read.
    pub source: PartSource,
    /// The keys of the documents that are asked for.
    pub keys: KeyRange,
    /// The same for an index.
    pub scope: PartScope,
    /// The partitions it came from by splits: it holds documents with their numbers.
    pub ancestors: Vec<PartitionOrdinal>,
}

/// Which documents of a partition are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartScope {
    /// All.
    Whole,
    /// Those of one logical partition: effective key and partition key code.
    Logical(Bytes),
    /// Those of a stretch of the hash space.
    Hashes(EffectiveRange),
}

impl PartScope {
    /// What an index is asked for; nothing where all are meant.
    pub(crate) fn lookup(&self) -> Option<Lookup> {
        match self {
            PartScope::Whole => None,
            PartScope::Logical(key) => Some(Lookup::Logical(key.clone())),
            PartScope::Hashes(range) => Some(Lookup::Effective(range.clone())),
        }
    }

    /// The same in words.
    pub(crate) fn text(&self) -> &'static str {
        match self {
            PartScope::Whole => "the partition",
            PartScope::Logical(_) => "the logical partition",
            PartScope::Hashes(_) => "the range of hashes",
        }
    }
}

impl Part {
    /// The state of the part, if its index knows without a look at anything else that no document passes the filter.
    pub(crate) fn seen_without(&self, needles: &mut SharedNeedles<'_>) -> Option<Seen> {
        let lsn = match &self.source {
            PartSource::Live(partition) => partition.lacks(needles.rules, &mut needles.needles)?,
            PartSource::Fixed(view) => view.lacks(needles.rules, &mut needles.needles)?,
        };
        Some((self.source.ordinal(), lsn))
    }

    /// The partitions whose numbers its documents have.
    pub(crate) fn ordinals(&self) -> impl Iterator<Item = PartitionOrdinal> {
        self.ancestors.iter().copied().chain([self.source.ordinal()])
    }
}

/// A partition that was read, and its state.
pub(crate) type Seen = (PartitionOrdinal, Lsn);

/// A part in one state, for one page.
#[derive(Debug)]
pub(crate) struct OpenPart {
    pub(crate) part: Part,
    pub(crate) view: PartitionView,
    /// How much was done for the page, and whether it must stop.
    pub(crate) meter: Arc<Meter>,
    /// What indexes know of the filter of the page.
    pub(crate) filter: Arc<SharedFilter>,
    /// Whether paths are put into words, with numbers that are counted all the way.
    pub(crate) is_explained: bool,
    /// What the choice of a path depends on, once that is asked for.
    statistics: OnceCell<Statistics>,
}

impl OpenPart {
    /// A part in its latest state, for a look at its access path.
    pub(crate) async fn alone(part: &Part, is_explained: bool, meter: Arc<Meter>) -> Result<OpenPart, Fault> {
        let (view, statistics) = (part.source.view().await?, OnceCell::new());
        let (part, filter) = (part.clone(), Arc::default());
        Ok(OpenPart { part, view, meter, filter, is_explained, statistics })
    }

    /// What the choice of a path depends on, by the index of the part.
    pub(crate) async fn statistics(&self, index: &IndexReader) -> Result<&Statistics, Fault> {
        self.statistics.get_or_try_init(|| Statistics::new(self, index)).await
    }

    /// Whether the same lookups find the documents of both parts.
    pub(crate) fn is_asked_like(&self, other: &OpenPart) -> bool {
        let is_shared = |open: &OpenPart| {
            open.part.scope == PartScope::Whole
                && open.view.index().is_some_and(|index| open.filter.is_shared_by(index))
        };
        is_shared(self) && is_shared(other)
    }

    /// What the client has seen when it has seen this.
    pub(crate) fn seen(&self) -> Seen {
        (self.part.source.ordinal(), self.view.lsn())
    }

    /// The documents that a lookup finds. One that goes through many terms does so on another thread.
    pub(crate) async fn looked_up(&self, index: &IndexReader, lookup: &Lookup) -> Result<Documents, Fault> {
        if self.meter.is_inline() && !is_light(lookup, &mut { LIGHT_LEAVES_MAX }) {
            self.meter.expect(index.work_bound(lookup)?.saturating_mul(TERM_STEPS));
            rest_if_due(&self.meter).await?;
        }
        let documents = index.documents(lookup).await?;
        // Tests of values say nothing any more once the work is to stop.
        self.meter.check().map_err(query_fault)?;
        Ok(documents)
    }
}

/// Leaves of a lookup that are answered at once.
const LIGHT_LEAVES_MAX: usize = 64;
/// What a term counts for that a lookup goes through.
const TERM_STEPS: u64 = 4;

/// Whether a lookup asks for few values and for no range of them; `leaves_left` counts them.
fn is_light(lookup: &Lookup, leaves_left: &mut usize) -> bool {
    match lookup {
        Lookup::All | Lookup::Present(_) | Lookup::Term { .. } | Lookup::Logical(_) => {
            *leaves_left = leaves_left.saturating_sub(1);
            *leaves_left > 0
        }
        Lookup::And(parts) | Lookup::Or(parts) => parts.iter().all(|part| is_light(part, leaves_left)),
        Lookup::Without(part) => is_light(part, leaves_left),
        Lookup::Range { .. } | Lookup::Tested { .. } | Lookup::Effective(_) => false,
    }
}

/// Lets others go first if the work is due to be moved, and whoever polls it move it.
pub(crate) async fn rest_if_due(meter: &Meter) -> Result<(), Fault> {
    if meter.is_due() { rest(meter).await } else { Ok(()) }
}

/// Lets others go first.
pub(crate) async fn rest(meter: &Meter) -> Result<(), Fault> {
    tokio::task::yield_now().await;
    meter.check().map_err(query_fault)
}

/// One page's work.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) program: Arc<Program>,
    pub(crate) ambient: Arc<dyn Ambient>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) meter: Arc<Meter>,
    patterns: Arc<Patterns>,
    filter: Arc<SharedFilter>,
    /// Seconds since 1970 at which documents count as expired or not.
    now_seconds: u64,
    now_static_ms: u64,
    deadline: Deadline,
    patience_end_ms: u64,
    /// Whether indexes are asked; if not, everything is found by looking at all records.
    asks_indexes: bool,
}

impl Task {
    pub(crate) fn new(
        program: Arc<Program>,
        ambient: Arc<dyn Ambient>,
        (bounds, memory): (QueryBounds, Arc<QueryMemory>),
        meter: Arc<Meter>,
        now_static_ms: u64,
    ) -> Task {
        let now_ms = ambient.now_ms();
        Task {
            program,
            budget: Arc::new(Budget::new(bounds.memory_bytes, bounds.rows).within(memory)),
            meter,
            patterns: Arc::default(),
            filter: Arc::default(),
            now_seconds: ambient.now_seconds(),
            ambient,
            now_static_ms,
            deadline: Deadline { at_ms: now_ms.saturating_add(bounds.time_ms), granted_ms: bounds.time_ms },
            patience_end_ms: now_ms.saturating_add(bounds.patience_ms),
            asks_indexes: true,
        }
    }

    /// The same work without a word from any index.
    pub(crate) fn without_indexes(self) -> Task {
        Task { asks_indexes: false, ..self }
    }

    /// The layer that reads documents.
    pub(crate) fn innermost(&self) -> Result<&Layer, Fault> {
        self.program.layers.first().ok_or_else(|| Fault::Internal("a program without layers".to_owned()))
    }

    /// Lets others go first.
    pub(crate) async fn rest(&self) -> Result<(), Fault> {
        rest(&self.meter).await
    }

    /// What must be in a partition for one of its documents to pass the filter, if an index has said so.
    pub(crate) fn needles(&self) -> Option<SharedNeedles<'_>> {
        self.filter.needles()
    }

    /// Whether it is time to give what there is.
    pub(crate) fn is_late(&self) -> bool {
        self.ambient.now_ms() >= self.patience_end_ms
    }

    /// What expressions see.
    pub(crate) fn context(&self) -> Context<'_> {
        Context {
            ambient: &*self.ambient,
            now_static_ms: self.now_static_ms,
            user_functions: &NoUserFunctions,
            budget: Arc::clone(&self.budget),
            deadline: Some(self.deadline),
            patterns: Arc::clone(&self.patterns),
            meter: Arc::clone(&self.meter),
            steps: Steps::default(),
        }
    }

    /// The latest state of a part, at the time of the page.
    pub(crate) async fn open(&self, part: Part) -> Result<Arc<OpenPart>, Fault> {
        let view = part.source.view().await?.at_seconds(self.now_seconds);
        let view = if self.asks_indexes { view } else { view.without_index() };
        let (meter, filter) = (Arc::clone(&self.meter), Arc::clone(&self.filter));
        let (is_explained, statistics) = (false, OnceCell::new());
        Ok(Arc::new(OpenPart { part, view, meter, filter, is_explained, statistics }))
    }
}
