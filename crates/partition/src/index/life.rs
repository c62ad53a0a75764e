//! The life of a partition's index: which one serves, which one is being built, and what comes next.
//!
//! ```text
//!            opened               another policy, damage            built               swapped
//! NeedsReopen ─────────▶ Serving ──────────────────────▶ Building ──────────▶ Swapping ─────────▶ Serving
//!     ▲                  ▲       the policy came back    │ ▲
//!     │                  ├───────────────────────────────┤ │ the pause is over
//!     │ not committed    │                        failed ▼ │
//!   Saving ──────────────┼──────────────────────────── Pausing
//! ```
//!
//! An opening that finds no index, or one of another policy, leads to Building. Every state but Serving may have an
//! *old* index: of an older policy, and right for the paths which that policy covers. It serves, is kept up and saved
//! until another takes its place. Any state may go over to Saving while a manifest is on its way to the store.
//!
//! Knows nothing of batches and commits: the writer calls what is due, and commits it.

use crate::index::build::{Build, BuildInput};
use crate::index::index_writer::{IndexEnvironment, IndexWriter, IndexWriterEvent};
use crate::index::manifest::Fingerprint;
use crate::index::rules::Rules;
use model::{EffectiveRange, Fault, Lsn};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::task::JoinError;

/// Time until an index build that failed is tried again; doubled with each failure, up to the most.
const BUILD_PAUSE_FIRST_MS: u64 = 1_000;
const BUILD_PAUSE_MAX_MS: u64 = 10 * 60 * 1_000;

/// See the file's head.
#[derive(Debug)]
pub(crate) struct IndexLife {
    environment: IndexEnvironment,
    range: EffectiveRange,
    progress: Arc<IndexProgress>,
    state: IndexState,
    /// The last build, if it failed: the pause is doubled if the next one of its policy fails too.
    failed: Option<FailedBuild>,
    /// Runs of indexes that serve no more. The manifest on disk may name them until another index is swapped in.
    discarded: Vec<u64>,
}

#[derive(Debug)]
enum IndexState {
    /// The index of the policy that was asked for last.
    Serving(Box<IndexWriter>),
    /// Another one is being built.
    Building { old: Option<Box<IndexWriter>>, build: Build },
    /// Another one was built and waits for a moment without batches in flight.
    Swapping { old: Option<Box<IndexWriter>>, built: Box<IndexWriter> },
    /// Another one is wanted, and a build of it is begun later: the last one failed.
    Pausing { old: Option<Box<IndexWriter>> },
    /// A manifest is on its way to the store. If it is committed, the state before counts again.
    Saving(Box<IndexState>),
    /// The manifest on disk may not be that of the index, which must be opened again.
    NeedsReopen { old: Option<Box<IndexWriter>> },
}

impl IndexState {
    /// The index that serves.
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

    /// The index that serves, and the one in the making.
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

    /// The index that serves; whatever else there was is given up.
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

    /// Whether it leads to an index of a policy, or cannot be told before the index was opened again.
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

/// Where a build begins: the position that every state from now on has reached, and the documents there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BuildStart {
    pub(crate) lsn: Lsn,
    pub(crate) documents: u64,
}

/// What the writer hears of its indexes.
pub(crate) enum IndexEvent {
    Writer(IndexWriterEvent),
    BuildEnded(Box<Result<Result<IndexWriter, Fault>, JoinError>>),
}

impl IndexLife {
    /// Nothing is known of the index yet: it must be opened.
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

    /// The index that serves.
    pub(crate) fn index_writer(&self) -> Option<&IndexWriter> {
        self.state.index_writer()
    }

    /// The index that serves.
    pub(crate) fn index_writer_mut(&mut self) -> Option<&mut IndexWriter> {
        self.state.parts().0
    }

    /// Whether the index must be opened again before anything else is done with it.
    pub(crate) fn needs_reopen(&self) -> bool {
        matches!(self.state, IndexState::Saving(_) | IndexState::NeedsReopen { .. })
    }

    /// Whether runs wait for their manifest.
    pub(crate) fn has_install(&self) -> bool {
        self.index_writer().is_some_and(IndexWriter::has_install)
    }

    /// Whether something waits for a moment without batches in flight.
    pub(crate) fn waits_for_idle(&self) -> bool {
        matches!(self.state, IndexState::Swapping { .. }) || self.has_install()
    }

    /// Whether work would be lost if it ended now.
    pub(crate) fn is_working(&self) -> bool {
        let is_building = matches!(self.state, IndexState::Building { .. } | IndexState::Swapping { .. });
        is_building
            || self
                .index_writer()
                .is_some_and(|index_writer| index_writer.is_busy() || index_writer.has_install())
    }

    /// Entries of the log behind this position may be needed to make an index; `None` if that cannot be told, since
    /// there may be one on disk that was not opened.
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

    /// The store may not have what the index was told: it must be opened again, and what is under way is given up.
    pub(crate) fn require_reopen(&mut self) {
        let old = self.take_state().into_index_writer();
        self.state = IndexState::NeedsReopen { old };
    }

    /// An opening begins: nothing of what was there counts any more.
    pub(crate) fn begin_opening(&mut self) {
        self.state = IndexState::NeedsReopen { old: None };
    }

    /// This index was found or made by an opening. If it is of another policy, or if there is none, one is built.
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

    /// The opening met records that cannot be read. A build is begun when the policy is checked next.
    pub(crate) fn not_opened(&mut self) {
        self.state = IndexState::Pausing { old: None };
    }

    /// Whether there is, or will be, an index of a policy.
    pub(crate) fn leads_to(&self, policy: Fingerprint) -> bool {
        self.state.leads_to(policy)
    }

    /// Another policy is wanted than the one that this leads to.
    pub(crate) fn change_policy(&mut self, rules: &Arc<Rules>, start: BuildStart, now_ms: u64) {
        let wanted = rules.fingerprint();
        let is_paused = self.failed.is_some_and(|failed| failed.policy == wanted && !failed.is_due(now_ms));
        self.state = match self.take_state().into_index_writer() {
            // The old policy came back before the new index was there.
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

    /// Waits for news; for ever if there can be none.
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

    /// Something has happened to the index that serves or to the one in the making.
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

    /// The index that serves cannot any more.
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

    /// A build of this policy came to nothing.
    pub(crate) fn note_failed_build(&mut self, policy: Fingerprint, now_ms: u64) {
        self.environment.metrics.index_builds_failed.inc();
        self.failed = Some(FailedBuild::new(self.failed, policy, now_ms));
    }

    /// The index that waits to be swapped in, if there is one. It is given up unless it is [`IndexLife::swapped`].
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

    /// A manifest is handed to the store.
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

    /// The manifest was not committed. Unless the index was opened again since, that is still to be done.
    pub(crate) fn not_saved(&mut self) {
        if matches!(self.state, IndexState::Saving(_)) {
            self.require_reopen();
        }
    }

    /// The manifest of an index that was built is committed: it serves from now on. Returns the runs whose rows may go.
    pub(crate) async fn swapped(&mut self, mut built: IndexWriter) -> Vec<u64> {
        built.complete().await;
        let old = self.take_state().into_index_writer();
        self.discarded.extend(old.iter().flat_map(|index_writer| index_writer.own_runs()));
        self.state = IndexState::Serving(Box::new(built));
        self.failed = None;
        std::mem::take(&mut self.discarded)
    }
}

/// An index build that failed, and when it is tried again.
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

/// How far the making of an index has come.
#[derive(Debug, Default)]
pub(crate) struct IndexProgress {
    walked: Arc<AtomicU64>,
    total: AtomicU64,
}

impl IndexProgress {
    /// From 0 to 99: it is not ready.
    pub(crate) fn percent(&self) -> u8 {
        let (walked, total) = (self.walked.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed));
        let percent = walked.saturating_mul(100).checked_div(total).unwrap_or(0);
        u8::try_from(percent.min(99)).unwrap_or(99)
    }
}
