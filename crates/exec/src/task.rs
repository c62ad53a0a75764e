//! State shared by all partitions of one page.

use bytes::Bytes;
use eval::{Budget, Context, Deadline, Meter, Patterns, QueryMemory, Steps, UserCalls};
use kv::KeyRange;
use model::{Ambient, EffectiveRange, Fault, Lsn, PartitionOrdinal};
use partition::PartitionView;
use partition::index::{Documents, IndexReader, Lookup};
use std::sync::Arc;
use tokio::sync::OnceCell;

use crate::access_path::{PartStatistics, SharedFilter, SharedRequiredTerms};
use crate::fault::query_fault;
use crate::program::{Layer, Program};
use crate::source::PartSource;
use crate::user_calls::UserFunctions;

/// Bounds of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryBounds {
    /// Bytes that a page may hold while it is computed.
    pub memory_bytes: usize,
    /// Rows that a page may evaluate.
    pub rows: u64,
    /// Milliseconds in which a page must be complete.
    pub time_ms: u64,
    /// Milliseconds after which a page is returned incomplete, if that is possible.
    pub patience_ms: u64,
}

impl Default for QueryBounds {
    fn default() -> QueryBounds {
        QueryBounds { memory_bytes: 256 << 20, rows: 1_000_000_000, time_ms: 60_000, patience_ms: 5_000 }
    }
}

/// The section of a partition that a query reads.
#[derive(Clone, Debug)]
pub struct Part {
    /// Where it is read.
    pub source: PartSource,
    /// The keys of the documents that are requested.
    pub keys: KeyRange,
    /// The same for an index.
    pub scope: PartScope,
    /// The partitions from which it results by splits: it contains documents with their numbers.
    pub ancestors: Vec<PartitionOrdinal>,
}

/// Which documents of a partition are requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartScope {
    /// All.
    Whole,
    /// Those of one logical partition: effective key and partition key code.
    Logical(Bytes),
    /// Those of a range of the hash space.
    Hashes(EffectiveRange),
}

impl PartScope {
    /// The lookup for an index; `None` for all documents.
    pub(crate) fn lookup(&self) -> Option<Lookup> {
        match self {
            PartScope::Whole => None,
            PartScope::Logical(key) => Some(Lookup::Logical(key.clone())),
            PartScope::Hashes(range) => Some(Lookup::Effective(range.clone())),
        }
    }

    /// The same as text.
    pub(crate) fn text(&self) -> &'static str {
        match self {
            PartScope::Whole => "the partition",
            PartScope::Logical(_) => "the logical partition",
            PartScope::Hashes(_) => "the range of hashes",
        }
    }
}

impl Part {
    /// The state of the part, if its index shows without further reads that no document passes the filter.
    pub(crate) fn seen_if_no_match(&self, required_terms: &mut SharedRequiredTerms<'_>) -> Option<SeenState> {
        let lsn = match &self.source {
            PartSource::Live(partition) => {
                partition.lacks(required_terms.rules, &mut required_terms.terms)?
            }
            PartSource::Fixed(view) => view.lacks(required_terms.rules, &mut required_terms.terms)?,
        };
        Some((self.source.ordinal(), lsn))
    }

    /// The partitions whose numbers its documents have.
    pub(crate) fn ordinals(&self) -> impl Iterator<Item = PartitionOrdinal> {
        self.ancestors.iter().copied().chain([self.source.ordinal()])
    }
}

/// A partition that was read, and its state.
pub(crate) type SeenState = (PartitionOrdinal, Lsn);

/// A part in one state, for one page.
#[derive(Debug)]
pub(crate) struct OpenPart {
    pub(crate) part: Part,
    pub(crate) view: PartitionView,
    /// The work done for the page, and whether it must stop.
    pub(crate) meter: Arc<Meter>,
    /// What indexes know about the filter of the page.
    pub(crate) filter: Arc<SharedFilter>,
    /// Whether paths are explained as text, with complete counts.
    pub(crate) is_explained: bool,
    /// What the choice of a path depends on, once requested.
    statistics: OnceCell<PartStatistics>,
}

impl OpenPart {
    /// A part in its latest state, for the inspection of its access path.
    pub(crate) async fn for_inspection(
        part: &Part,
        is_explained: bool,
        meter: Arc<Meter>,
    ) -> Result<OpenPart, Fault> {
        let (view, statistics) = (part.source.view().await?, OnceCell::new());
        let (part, filter) = (part.clone(), Arc::default());
        Ok(OpenPart { part, view, meter, filter, is_explained, statistics })
    }

    /// What the choice of a path depends on, from the index of the part.
    pub(crate) async fn statistics(&self, index: &IndexReader) -> Result<&PartStatistics, Fault> {
        self.statistics.get_or_try_init(|| PartStatistics::new(self, index)).await
    }

    /// Whether the same lookups find the documents of both parts.
    pub(crate) fn has_same_lookups(&self, other: &OpenPart) -> bool {
        let is_shared = |open: &OpenPart| {
            open.part.scope == PartScope::Whole
                && open.view.index().is_some_and(|index| open.filter.is_shared_by(index))
        };
        is_shared(self) && is_shared(other)
    }

    /// The state that a client has seen after reading this part.
    pub(crate) fn seen(&self) -> SeenState {
        (self.part.source.ordinal(), self.view.lsn())
    }

    /// The documents that a lookup finds. A lookup that visits many terms runs on another thread.
    pub(crate) async fn documents_of(
        &self,
        index: &IndexReader,
        lookup: &Lookup,
    ) -> Result<Documents, Fault> {
        if self.meter.is_inline() && !is_light(lookup, &mut { LIGHT_LEAVES_MAX }) {
            self.meter.expect(index.work_bound(lookup)?.saturating_mul(TERM_STEPS));
            yield_if_due(&self.meter).await?;
        }
        let documents = index.documents(lookup).await?;
        // Results of tests are not valid once the work must stop.
        self.meter.check().map_err(query_fault)?;
        Ok(documents)
    }
}

/// Leaves of a lookup that are answered on the current thread.
const LIGHT_LEAVES_MAX: usize = 64;
/// Steps for a term that a lookup visits.
const TERM_STEPS: u64 = 4;

/// Whether a lookup requests few values and no range; `leaves_left` counts them.
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

/// Yields if the work is due to be moved, so that the poller can move it.
pub(crate) async fn yield_if_due(meter: &Meter) -> Result<(), Fault> {
    if meter.is_due() { yield_now(meter).await } else { Ok(()) }
}

/// Yields to other tasks.
pub(crate) async fn yield_now(meter: &Meter) -> Result<(), Fault> {
    tokio::task::yield_now().await;
    meter.check().map_err(query_fault)
}

/// The work for one page.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) program: Arc<Program>,
    pub(crate) ambient: Arc<dyn Ambient>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) meter: Arc<Meter>,
    pub(crate) user_functions: Arc<dyn UserFunctions>,
    patterns: Arc<Patterns>,
    filter: Arc<SharedFilter>,
    now_static_ms: u64,
    begun_ms: u64,
    deadline: Deadline,
    patience_end_ms: u64,
    /// Whether indexes are used; otherwise all records are scanned.
    asks_indexes: bool,
}

impl Task {
    pub(crate) fn new(
        program: Arc<Program>,
        ambient: Arc<dyn Ambient>,
        user_functions: Arc<dyn UserFunctions>,
        (bounds, memory): (QueryBounds, Arc<QueryMemory>),
        meter: Arc<Meter>,
        now_static_ms: u64,
    ) -> Task {
        let now_ms = ambient.now_ms();
        Task {
            program,
            budget: Arc::new(Budget::new(bounds.memory_bytes, bounds.rows).within(memory)),
            meter,
            user_functions,
            patterns: Arc::default(),
            filter: Arc::default(),
            ambient,
            now_static_ms,
            begun_ms: now_ms,
            deadline: Deadline { at_ms: now_ms.saturating_add(bounds.time_ms), granted_ms: bounds.time_ms },
            patience_end_ms: now_ms.saturating_add(bounds.patience_ms),
            asks_indexes: true,
        }
    }

    pub(crate) fn without_indexes(self) -> Task {
        Task { asks_indexes: false, ..self }
    }

    /// The layer that reads documents.
    pub(crate) fn innermost(&self) -> Result<&Layer, Fault> {
        self.program.layers.first().ok_or_else(|| Fault::Internal("a program without layers".to_owned()))
    }

    /// Yields to other tasks.
    pub(crate) async fn yield_now(&self) -> Result<(), Fault> {
        yield_now(&self.meter).await
    }

    /// Values that a partition must contain for a document to pass the filter, if an index has determined them.
    pub(crate) fn required_terms(&self) -> Option<SharedRequiredTerms<'_>> {
        self.filter.required_terms()
    }

    /// Whether it is time to return the rows so far.
    pub(crate) fn is_time_up(&self) -> bool {
        self.ambient.now_ms() >= self.patience_end_ms
    }

    pub(crate) fn context(&self) -> Context<'_> {
        Context {
            ambient: &*self.ambient,
            now_static_ms: self.now_static_ms,
            user_calls: self.program.calls_functions().then(|| UserCalls::at(self.begun_ms)),
            budget: Arc::clone(&self.budget),
            deadline: Some(self.deadline),
            patterns: Arc::clone(&self.patterns),
            meter: Arc::clone(&self.meter),
            steps: Steps::default(),
        }
    }

    /// The latest state of a part, at the time of the page.
    pub(crate) async fn open(&self, part: Part) -> Result<Arc<OpenPart>, Fault> {
        let view = part.source.view().await?;
        let view = if self.asks_indexes { view } else { view.without_index() };
        let (meter, filter) = (Arc::clone(&self.meter), Arc::clone(&self.filter));
        let (is_explained, statistics) = (false, OnceCell::new());
        Ok(Arc::new(OpenPart { part, view, meter, filter, is_explained, statistics }))
    }
}
