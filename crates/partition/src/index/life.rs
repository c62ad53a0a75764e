//! The states of a partition's index: which one serves, which one is being built, and what comes next.
//!
//! ```text
//!            opened             new policy, damage               built               swapped
//! NeedsReopen ──────▶ Serving ──────────────────────▶ Building ──────────▶ Swapping ─────────▶ Serving
//!     ▲                  ▲       policy changed back     │ ▲
//!     │                  ├───────────────────────────────┤ │ pause over
//!     │ not committed    │                        failed ▼ │
//!   Saving ──────────────┼──────────────────────────── Pausing
//! ```
//!
//! An opening that finds no index, or one of another policy, leads to Building. Every state but Serving may have an
//! *old* index: one of an older policy, which is correct for the paths that the policy covers. It serves, is updated
//! and saved until another index replaces it. Any state may change to Saving while a manifest is being committed.
//!
//! Knows nothing of batches and commits: the writer calls what is due and commits it.

use crate::index::build::{Build, BuildInput};
use crate::index::index_writer::{IndexEnvironment, IndexWriter, IndexWriterEvent};
use crate::index::manifest::Fingerprint;
use crate::index::rules::Rules;
use model::{EffectiveRange, Fault, Lsn};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::task::JoinError;

/// Pause before a failed index build is retried; doubled with each failure, up to the maximum.
const BUILD_PAUSE_FIRST_MS: u64 = 1_000;
const BUILD_PAUSE_MAX_MS: u64 = 10 * 60 * 1_000;

/// The index of a partition with its state.
#[derive(Debug)]
pub(crate) struct IndexLife {
    environment: IndexEnvironment,
    range: EffectiveRange,
    progress: Arc<IndexProgress>,
    state: IndexState,
    /// The last build, if it failed: the pause is doubled if the next build of its policy fails too.
    failed: Option<FailedBuild>,
    /// Runs of indexes that no longer serve. The manifest on disk may name them until another index is swapped in.
    discarded: Vec<u64>,
}

#[derive(Debug)]
enum IndexState {
    /// The index has the current policy.
    Serving(Box<IndexWriter>),
    /// Another index is being built.
    Building { old: Option<Box<IndexWriter>>, build: Build },
    /// Another index was built and waits for a moment without batches in flight.
    Swapping { old: Option<Box<IndexWriter>>, built: Box<IndexWriter> },
    /// Another index is needed, and its build starts later, because the last one failed.
    Pausing { old: Option<Box<IndexWriter>> },
    /// A manifest is being committed. After the commit the previous state applies again.
    Saving(Box<IndexState>),
    /// The manifest on disk may not be that of the index, which must be opened again.
    NeedsReopen { old: Option<Box<IndexWriter>> },
}

impl IndexState {
    /// The serving index.
    fn index_writer(&self) -> Option<&IndexWriter> {
        match self {
            IndexState::Serving(index_writer) => Some(index_writer),
            IndexState::Building { old, .. }
            | IndexState::Swapping { old, .. }
            | IndexState::Pausing { old }
            | IndexState::NeedsReopen { old } => old.as_deref(),
            IndexState::Saving(before) => before.index_writer(),
        }
    }

    /// The serving index and the build.
    fn parts(&mut self) -> (Option<&mut IndexWriter>, Option<&mut Build>) {
        match self {
            IndexState::Serving(index_writer) => (Some(index_writer), None),
            IndexState::Building { old, build } => (old.as_deref_mut(), Some(build)),
            IndexState::Swapping { old, .. }
            | IndexState::Pausing { old }
            | IndexState::NeedsReopen { old } => (old.as_deref_mut(), None),
            IndexState::Saving(before) => before.parts(),
        }
    }

    /// The serving index; a build is abandoned.
    fn into_index_writer(self) -> Option<Box<IndexWriter>> {
        match self {
            IndexState::Serving(index_writer) => Some(index_writer),
            IndexState::Building { old, .. }
            | IndexState::Swapping { old, .. }
            | IndexState::Pausing { old }
            | IndexState::NeedsReopen { old } => old,
            IndexState::Saving(before) => before.into_index_writer(),
        }
    }

    /// Whether it has or will have an index of a policy; true if that is unknown until the index is opened again.
    fn leads_to(&self, policy: Fingerprint) -> bool {
        match self {
            IndexState::Serving(index_writer) => is_of(index_writer, policy),
            IndexState::Building { build, .. } => build.rules.fingerprint() == policy,
            IndexState::Swapping { built, .. } => is_of(built, policy),
            IndexState::Pausing { .. } => false,
            IndexState::Saving(_) | IndexState::NeedsReopen { .. } => true,
        }
    }
}

fn is_of(index_writer: &IndexWriter, policy: Fingerprint) -> bool {
    index_writer.rules().fingerprint() == policy
}

/// The starting point of a build: a position that every state from now on has reached, and the document count there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BuildStart {
    pub(crate) lsn: Lsn,
    pub(crate) documents: u64,
}

/// Events of the serving index and of builds, for the partition's writer.
pub(crate) enum IndexEvent {
    Writer(IndexWriterEvent),
    BuildEnded(Box<Result<Result<IndexWriter, Fault>, JoinError>>),
}

impl IndexLife {
    /// An index that must be opened first.
    pub(crate) fn new(
        environment: IndexEnvironment,
        range: EffectiveRange,
        progress: Arc<IndexProgress>,
    ) -> IndexLife {
        let state = IndexState::NeedsReopen { old: None };
        IndexLife { environment, range, progress, state, failed: None, discarded: Vec::new() }
    }

    pub(crate) fn environment(&self) -> &IndexEnvironment {
        &self.environment
    }

    /// The serving index.
    pub(crate) fn index_writer(&self) -> Option<&IndexWriter> {
        self.state.index_writer()
    }

    /// The serving index.
    pub(crate) fn index_writer_mut(&mut self) -> Option<&mut IndexWriter> {
        self.state.parts().0
    }

    /// Whether the index must be opened again before it is used.
    pub(crate) fn needs_reopen(&self) -> bool {
        matches!(self.state, IndexState::Saving(_) | IndexState::NeedsReopen { .. })
    }

    /// Whether runs wait for their manifest. Not if the index must be opened again, which abandons them: the writer
    /// would try to install them without a pause as long as the store is not available.
    pub(crate) fn has_install(&self) -> bool {
        !self.needs_reopen() && self.index_writer().is_some_and(IndexWriter::has_install)
    }

    /// Whether something waits for a moment without batches in flight.
    pub(crate) fn waits_for_idle(&self) -> bool {
        matches!(self.state, IndexState::Swapping { .. }) || self.has_install()
    }

    /// Whether work would be lost if the partition were closed now.
    pub(crate) fn is_working(&self) -> bool {
        let is_building = matches!(self.state, IndexState::Building { .. } | IndexState::Swapping { .. });
        is_building || self.index_writer().is_some_and(IndexWriter::is_working)
    }

    /// Log entries after this position may be needed for an index. Returns `None` if that is unknown, because an index
    /// on disk may not be open.
    pub(crate) fn log_needed(&self, head: Lsn) -> Option<Lsn> {
        let index_writer = self.index_writer()?;
        let other = match &self.state {
            IndexState::Building { build, .. } => Some(build.lsn),
            IndexState::Swapping { built, .. } => Some(built.lsn),
            IndexState::Serving(_)
            | IndexState::Pausing { .. }
            | IndexState::Saving(_)
            | IndexState::NeedsReopen { .. } => None,
        };
        Some(index_writer.lsn_needed().into_iter().chain(other).min().unwrap_or(head))
    }

    fn take_state(&mut self) -> IndexState {
        std::mem::replace(&mut self.state, IndexState::NeedsReopen { old: None })
    }

    /// The store may not have what the index contains: it must be opened again, and running work is abandoned.
    pub(crate) fn require_reopen(&mut self) {
        let old = self.take_state().into_index_writer();
        self.state = IndexState::NeedsReopen { old };
    }

    /// An opening starts: the previous state is discarded.
    pub(crate) fn begin_opening(&mut self) {
        self.state = IndexState::NeedsReopen { old: None };
    }

    /// Sets the index that an opening found or rebuilt. If it has another policy, or if there is none, a build starts.
    pub(crate) async fn opened(
        &mut self,
        index_writer: Option<IndexWriter>,
        rules: &Arc<Rules>,
        start: BuildStart,
    ) {
        let mut index_writer = index_writer.map(Box::new);
        if let Some(index_writer) = &mut index_writer {
            index_writer.complete().await;
        }
        self.state = match index_writer {
            Some(index_writer) if is_of(&index_writer, rules.fingerprint()) => {
                IndexState::Serving(index_writer)
            }
            old => IndexState::Building { old, build: self.begin_build(rules, start) },
        };
    }

    /// The opening found records that cannot be read. A build starts when the policy is checked next.
    pub(crate) fn not_opened(&mut self) {
        self.state = IndexState::Pausing { old: None };
    }

    /// Whether there is, or will be, an index of a policy.
    pub(crate) fn leads_to(&self, policy: Fingerprint) -> bool {
        self.state.leads_to(policy)
    }

    /// Starts to change to another policy than the one that this leads to.
    pub(crate) fn change_policy(&mut self, rules: &Arc<Rules>, start: BuildStart, now_ms: u64) {
        let wanted = rules.fingerprint();
        let is_paused = self.failed.is_some_and(|failed| failed.policy == wanted && !failed.is_due(now_ms));
        self.state = match self.take_state().into_index_writer() {
            // The old policy was restored before the new index was built.
            Some(index_writer) if is_of(&index_writer, wanted) => {
                self.failed = None;
                IndexState::Serving(index_writer)
            }
            old if is_paused => IndexState::Pausing { old },
            old => IndexState::Building { old, build: self.begin_build(rules, start) },
        };
    }

    fn begin_build(&self, rules: &Arc<Rules>, start: BuildStart) -> Build {
        self.environment.metrics.index_builds_started.inc();
        self.progress.total.store(start.documents, Ordering::Relaxed);
        Build::begin(BuildInput {
            environment: self.environment.clone(),
            rules: Arc::clone(rules),
            lsn: start.lsn,
            range: self.range.clone(),
            walked: Arc::clone(&self.progress.walked),
        })
    }

    /// Waits for the next event; forever if there can be none.
    pub(crate) async fn next_event(&mut self) -> IndexEvent {
        let (index_writer, build) = self.state.parts();
        let event = async {
            match index_writer {
                Some(index_writer) => index_writer.next_event().await,
                None => std::future::pending().await,
            }
        };
        let built = async {
            match build {
                Some(build) => build.ended().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            event = event => IndexEvent::Writer(event),
            built = built => IndexEvent::BuildEnded(Box::new(built)),
        }
    }

    /// Handles an event of the serving index or of the build.
    pub(crate) fn on_event(&mut self, event: IndexEvent, rules: &Arc<Rules>, start: BuildStart, now_ms: u64) {
        let partition = self.environment.partition;
        match event {
            IndexEvent::Writer(IndexWriterEvent::Changed) => {}
            IndexEvent::Writer(IndexWriterEvent::Damaged) => {
                tracing::error!(event = "index_damaged", ?partition, "the index is damaged and is rebuilt");
                self.damaged(rules, start);
            }
            IndexEvent::BuildEnded(ended) => match *ended {
                Ok(Ok(built)) => {
                    let old = self.take_state().into_index_writer();
                    self.state = IndexState::Swapping { old, built: Box::new(built) };
                }
                Ok(Err(fault)) => {
                    tracing::warn!(event = "index_build_failed", ?partition, cause = %fault, "the index build failed and is tried again");
                    self.end_failed_build(now_ms);
                }
                Err(error) => {
                    tracing::error!(event = "index_build_failed", ?partition, %error, "the index build failed and is tried again");
                    self.end_failed_build(now_ms);
                }
            },
        }
    }

    /// The serving index is damaged and is not used any more.
    fn damaged(&mut self, rules: &Arc<Rules>, start: BuildStart) {
        let (damaged, next) = match self.take_state() {
            IndexState::Building { old, build } => (old, IndexState::Building { old: None, build }),
            IndexState::Swapping { old, built } => (old, IndexState::Swapping { old: None, built }),
            state @ (IndexState::Serving(_) | IndexState::Pausing { .. }) => {
                let build = self.begin_build(rules, start);
                (state.into_index_writer(), IndexState::Building { old: None, build })
            }
            state @ (IndexState::Saving(_) | IndexState::NeedsReopen { .. }) => {
                (state.into_index_writer(), IndexState::NeedsReopen { old: None })
            }
        };
        self.discarded.extend(damaged.iter().flat_map(|index_writer| index_writer.own_runs()));
        self.state = next;
    }

    fn end_failed_build(&mut self, now_ms: u64) {
        match self.take_state() {
            IndexState::Building { old, build } => {
                self.note_failed_build(build.rules.fingerprint(), now_ms);
                self.state = IndexState::Pausing { old };
            }
            other @ (IndexState::Serving(_)
            | IndexState::Swapping { .. }
            | IndexState::Pausing { .. }
            | IndexState::Saving(_)
            | IndexState::NeedsReopen { .. }) => self.state = other,
        }
    }

    /// Notes that a build of this policy failed.
    pub(crate) fn note_failed_build(&mut self, policy: Fingerprint, now_ms: u64) {
        self.environment.metrics.index_builds_failed.inc();
        self.failed = Some(FailedBuild::new(self.failed, policy, now_ms));
    }

    /// Takes the index that waits to be swapped in, if there is one. It is abandoned unless [`IndexLife::swapped`] is
    /// called.
    pub(crate) fn take_built(&mut self) -> Option<IndexWriter> {
        match self.take_state() {
            IndexState::Swapping { old, built } => {
                self.state = IndexState::Pausing { old };
                Some(*built)
            }
            other @ (IndexState::Serving(_)
            | IndexState::Building { .. }
            | IndexState::Pausing { .. }
            | IndexState::Saving(_)
            | IndexState::NeedsReopen { .. }) => {
                self.state = other;
                None
            }
        }
    }

    /// A manifest is submitted to the store.
    pub(crate) fn begin_saving(&mut self) {
        self.state = IndexState::Saving(Box::new(self.take_state()));
    }

    /// The manifest is committed.
    pub(crate) fn saved(&mut self) {
        self.state = match self.take_state() {
            IndexState::Saving(before) => *before,
            other @ (IndexState::Serving(_)
            | IndexState::Building { .. }
            | IndexState::Swapping { .. }
            | IndexState::Pausing { .. }
            | IndexState::NeedsReopen { .. }) => other,
        };
    }

    /// The manifest was not committed. The index must be opened again, unless that was done since.
    pub(crate) fn not_saved(&mut self) {
        if matches!(self.state, IndexState::Saving(_)) {
            self.require_reopen();
        }
    }

    /// The manifest of a built index is committed: the index serves from now on. Returns the runs whose rows can be
    /// deleted.
    pub(crate) async fn swapped(&mut self, mut built: IndexWriter) -> Vec<u64> {
        built.complete().await;
        let old = self.take_state().into_index_writer();
        self.discarded.extend(old.iter().flat_map(|index_writer| index_writer.own_runs()));
        self.state = IndexState::Serving(Box::new(built));
        self.failed = None;
        std::mem::take(&mut self.discarded)
    }
}

/// A failed index build, and when it is retried.
#[derive(Clone, Copy, Debug)]
struct FailedBuild {
    policy: Fingerprint,
    failed_at_ms: u64,
    pause_ms: u64,
}

impl FailedBuild {
    fn new(before: Option<FailedBuild>, policy: Fingerprint, now_ms: u64) -> FailedBuild {
        let same = before.filter(|before| before.policy == policy);
        let pause_ms = same.map_or(BUILD_PAUSE_FIRST_MS, |before| before.pause_ms.saturating_mul(2));
        FailedBuild { policy, failed_at_ms: now_ms, pause_ms: pause_ms.min(BUILD_PAUSE_MAX_MS) }
    }

    /// Whether the pause is over. A clock that was set back ends it.
    fn is_due(&self, now_ms: u64) -> bool {
        now_ms.checked_sub(self.failed_at_ms).is_none_or(|passed| passed >= self.pause_ms)
    }
}

/// Progress of an index build.
#[derive(Debug, Default)]
pub(crate) struct IndexProgress {
    walked: Arc<AtomicU64>,
    total: AtomicU64,
}

impl IndexProgress {
    /// From 0 to 99, because the index is not ready.
    pub(crate) fn percent(&self) -> u8 {
        let (walked, total) = (self.walked.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed));
        let percent = walked.saturating_mul(100).checked_div(total).unwrap_or(0);
        u8::try_from(percent.min(99)).unwrap_or(99)
    }
}
