//! The life of a partition's index: which one serves, which one is being built, and what comes next.
//!
//! ```text
//!            opened               another policy, damage            built               swapped
//! Doubtful ─────────▶ Serving ──────────────────────▶ Building ──────────▶ Swapping ─────────▶ Serving
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

use crate::index::build::{Build, Plan};
use crate::index::keeper::{Event, Home, Keeper};
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
    home: Home,
    range: EffectiveRange,
    progress: Arc<IndexProgress>,
    state: State,
    /// The last build, if it failed: the pause is doubled if the next one of its policy fails too.
    failed: Option<FailedBuild>,
    /// Runs of indexes that serve no more. The manifest on disk may name them until another index is swapped in.
    discarded: Vec<u64>,
}

#[derive(Debug)]
enum State {
    /// The index of the policy that was asked for last.
    Serving(Box<Keeper>),
    /// Another one is being built.
    Building { old: Option<Box<Keeper>>, build: Build },
    /// Another one was built and waits for a moment without batches in flight.
    Swapping { old: Option<Box<Keeper>>, built: Box<Keeper> },
    /// Another one is wanted, and a build of it is begun later: the last one failed.
    Pausing { old: Option<Box<Keeper>> },
    /// A manifest is on its way to the store. If it is committed, the state before counts again.
    Saving(Box<State>),
    /// The manifest on disk may not be that of the index, which must be opened again.
    Doubtful { old: Option<Box<Keeper>> },
}

impl State {
    /// The index that serves.
    fn keeper(&self) -> Option<&Keeper> {
        match self {
            State::Serving(keeper) => Some(keeper),
            State::Building { old, .. }
            | State::Swapping { old, .. }
            | State::Pausing { old }
            | State::Doubtful { old } => old.as_deref(),
            State::Saving(before) => before.keeper(),
        }
    }

    /// The index that serves, and the one in the making.
    fn parts(&mut self) -> (Option<&mut Keeper>, Option<&mut Build>) {
        match self {
            State::Serving(keeper) => (Some(keeper), None),
            State::Building { old, build } => (old.as_deref_mut(), Some(build)),
            State::Swapping { old, .. } | State::Pausing { old } | State::Doubtful { old } => {
                (old.as_deref_mut(), None)
            }
            State::Saving(before) => before.parts(),
        }
    }

    /// The index that serves; whatever else there was is given up.
    fn into_keeper(self) -> Option<Box<Keeper>> {
        match self {
            State::Serving(keeper) => Some(keeper),
            State::Building { old, .. }
            | State::Swapping { old, .. }
            | State::Pausing { old }
            | State::Doubtful { old } => old,
            State::Saving(before) => before.into_keeper(),
        }
    }

    /// Whether it leads to an index of a policy, or cannot be told before the index was opened again.
    fn leads_to(&self, policy: Fingerprint) -> bool {
        match self {
            State::Serving(keeper) => is_of(keeper, policy),
            State::Building { build, .. } => build.rules.fingerprint() == policy,
            State::Swapping { built, .. } => is_of(built, policy),
            State::Pausing { .. } => false,
            State::Saving(_) | State::Doubtful { .. } => true,
        }
    }
}

fn is_of(keeper: &Keeper, policy: Fingerprint) -> bool {
    keeper.rules().fingerprint() == policy
}

/// Where a build begins: the position that every state from now on has reached, and the documents there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BuildStart {
    pub(crate) lsn: Lsn,
    pub(crate) documents: u64,
}

/// What the writer hears of its indexes.
pub(crate) enum IndexNews {
    Index(Event),
    Build(Box<Result<Result<Keeper, Fault>, JoinError>>),
}

impl IndexLife {
    /// Nothing is known of the index yet: it must be opened.
    pub(crate) fn new(home: Home, range: EffectiveRange, progress: Arc<IndexProgress>) -> IndexLife {
        let state = State::Doubtful { old: None };
        IndexLife { home, range, progress, state, failed: None, discarded: Vec::new() }
    }

    pub(crate) fn home(&self) -> &Home {
        &self.home
    }

    /// The index that serves.
    pub(crate) fn keeper(&self) -> Option<&Keeper> {
        self.state.keeper()
    }

    /// The index that serves.
    pub(crate) fn keeper_mut(&mut self) -> Option<&mut Keeper> {
        self.state.parts().0
    }

    /// Whether the index must be opened again before anything else is done with it.
    pub(crate) fn is_doubtful(&self) -> bool {
        matches!(self.state, State::Saving(_) | State::Doubtful { .. })
    }

    /// Whether runs wait for their manifest.
    pub(crate) fn has_install(&self) -> bool {
        self.keeper().is_some_and(Keeper::has_install)
    }

    /// Whether something waits for a moment without batches in flight.
    pub(crate) fn waits_for_rest(&self) -> bool {
        matches!(self.state, State::Swapping { .. }) || self.has_install()
    }

    /// Whether work would be lost if it ended now.
    pub(crate) fn is_working(&self) -> bool {
        let is_building = matches!(self.state, State::Building { .. } | State::Swapping { .. });
        is_building || self.keeper().is_some_and(|keeper| keeper.is_busy() || keeper.has_install())
    }

    /// Entries of the log behind this position may be needed to make an index; `None` if that cannot be told, since
    /// there may be one on disk that was not opened.
    pub(crate) fn log_needed(&self, head: Lsn) -> Option<Lsn> {
        let keeper = self.keeper()?;
        let other = match &self.state {
            State::Building { build, .. } => Some(build.lsn),
            State::Swapping { built, .. } => Some(built.lsn),
            State::Serving(_) | State::Pausing { .. } | State::Saving(_) | State::Doubtful { .. } => None,
        };
        Some(keeper.lsn_needed().into_iter().chain(other).min().unwrap_or(head))
    }

    fn take_state(&mut self) -> State {
        std::mem::replace(&mut self.state, State::Doubtful { old: None })
    }

    /// The store may not have what the index was told: it must be opened again, and what is under way is given up.
    pub(crate) fn distrust(&mut self) {
        let old = self.take_state().into_keeper();
        self.state = State::Doubtful { old };
    }

    /// An opening begins: nothing of what was there counts any more.
    pub(crate) fn begin_opening(&mut self) {
        self.state = State::Doubtful { old: None };
    }

    /// This index was found or made by an opening. If it is of another policy, or if there is none, one is built.
    pub(crate) async fn opened(&mut self, keeper: Option<Keeper>, rules: &Arc<Rules>, start: BuildStart) {
        let mut keeper = keeper.map(Box::new);
        if let Some(keeper) = &mut keeper {
            keeper.complete().await;
        }
        self.state = match keeper {
            Some(keeper) if is_of(&keeper, rules.fingerprint()) => State::Serving(keeper),
            old => State::Building { old, build: self.begin_build(rules, start) },
        };
    }

    /// The opening met records that cannot be read. A build is begun when the policy is checked next.
    pub(crate) fn not_opened(&mut self) {
        self.state = State::Pausing { old: None };
    }

    /// Whether there is, or will be, an index of a policy.
    pub(crate) fn leads_to(&self, policy: Fingerprint) -> bool {
        self.state.leads_to(policy)
    }

    /// Another policy is wanted than the one that this leads to.
    pub(crate) fn change_policy(&mut self, rules: &Arc<Rules>, start: BuildStart, now_ms: u64) {
        let wanted = rules.fingerprint();
        let is_paused = self.failed.is_some_and(|failed| failed.policy == wanted && !failed.is_due(now_ms));
        self.state = match self.take_state().into_keeper() {
            // The old policy came back before the new index was there.
            Some(keeper) if is_of(&keeper, wanted) => {
                self.failed = None;
                State::Serving(keeper)
            }
            old if is_paused => State::Pausing { old },
            old => State::Building { old, build: self.begin_build(rules, start) },
        };
    }

    fn begin_build(&self, rules: &Arc<Rules>, start: BuildStart) -> Build {
        self.home.metrics.index_builds_started.inc();
        self.progress.total.store(start.documents, Ordering::Relaxed);
        Build::begin(Plan {
            home: self.home.clone(),
            rules: Arc::clone(rules),
            lsn: start.lsn,
            range: self.range.clone(),
            walked: Arc::clone(&self.progress.walked),
        })
    }

    /// Waits for news; for ever if there can be none.
    pub(crate) async fn news(&mut self) -> IndexNews {
        let (keeper, build) = self.state.parts();
        let event = async {
            match keeper {
                Some(keeper) => keeper.event().await,
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
            event = event => IndexNews::Index(event),
            built = built => IndexNews::Build(Box::new(built)),
        }
    }

    /// Something has happened to the index that serves or to the one in the making.
    pub(crate) fn hear(&mut self, news: IndexNews, rules: &Arc<Rules>, start: BuildStart, now_ms: u64) {
        let partition = self.home.partition;
        match news {
            IndexNews::Index(Event::Changed) => {}
            IndexNews::Index(Event::Damaged) => {
                tracing::error!(event = "index_damaged", ?partition, "the index is damaged and is rebuilt");
                self.damaged(rules, start);
            }
            IndexNews::Build(ended) => match *ended {
                Ok(Ok(built)) => {
                    let old = self.take_state().into_keeper();
                    self.state = State::Swapping { old, built: Box::new(built) };
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
            State::Building { old, build } => (old, State::Building { old: None, build }),
            State::Swapping { old, built } => (old, State::Swapping { old: None, built }),
            state @ (State::Serving(_) | State::Pausing { .. }) => {
                let build = self.begin_build(rules, start);
                (state.into_keeper(), State::Building { old: None, build })
            }
            state @ (State::Saving(_) | State::Doubtful { .. }) => {
                (state.into_keeper(), State::Doubtful { old: None })
            }
        };
        self.discarded.extend(damaged.iter().flat_map(|keeper| keeper.own_runs()));
        self.state = next;
    }

    fn end_failed_build(&mut self, now_ms: u64) {
        match self.take_state() {
            State::Building { old, build } => {
                self.note_failed_build(build.rules.fingerprint(), now_ms);
                self.state = State::Pausing { old };
            }
            other @ (State::Serving(_)
            | State::Swapping { .. }
            | State::Pausing { .. }
            | State::Saving(_)
            | State::Doubtful { .. }) => self.state = other,
        }
    }

    /// A build of this policy came to nothing.
    pub(crate) fn note_failed_build(&mut self, policy: Fingerprint, now_ms: u64) {
        self.home.metrics.index_builds_failed.inc();
        self.failed = Some(FailedBuild::new(self.failed, policy, now_ms));
    }

    /// The index that waits to be swapped in, if there is one. It is given up unless it is [`IndexLife::swapped`].
    pub(crate) fn take_built(&mut self) -> Option<Keeper> {
        match self.take_state() {
            State::Swapping { old, built } => {
                self.state = State::Pausing { old };
                Some(*built)
            }
            other @ (State::Serving(_)
            | State::Building { .. }
            | State::Pausing { .. }
            | State::Saving(_)
            | State::Doubtful { .. }) => {
                self.state = other;
                None
            }
        }
    }

    /// A manifest is handed to the store.
    pub(crate) fn begin_saving(&mut self) {
        self.state = State::Saving(Box::new(self.take_state()));
    }

    /// The manifest is committed.
    pub(crate) fn saved(&mut self) {
        self.state = match self.take_state() {
            State::Saving(before) => *before,
            other @ (State::Serving(_)
            | State::Building { .. }
            | State::Swapping { .. }
            | State::Pausing { .. }
            | State::Doubtful { .. }) => other,
        };
    }

    /// The manifest was not committed. Unless the index was opened again since, that is still to be done.
    pub(crate) fn not_saved(&mut self) {
        if matches!(self.state, State::Saving(_)) {
            self.distrust();
        }
    }

    /// The manifest of an index that was built is committed: it serves from now on. Returns the runs whose rows may go.
    pub(crate) async fn swapped(&mut self, mut built: Keeper) -> Vec<u64> {
        built.complete().await;
        let old = self.take_state().into_keeper();
        self.discarded.extend(old.iter().flat_map(|keeper| keeper.own_runs()));
        self.state = State::Serving(Box::new(built));
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
