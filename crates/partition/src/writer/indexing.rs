//! What the writer does about the index: makes it, keeps it at the position of the published view, publishes it.

use super::Writer;
use super::recovery::Doubt;
use crate::head::Head;
use crate::index::{
    self, Build, Event, Fingerprint, IndexReader, Install, InstallBatch, Keeper, Plan, Rules, UnnamedRun,
    drop_run, is_damage,
};
use crate::keyspace::{self, META};
use crate::published::Published;
use crate::storage::{commit_fault, read_fault};
use kv::{Batch, CommitFault, Direction, Durability, ScanLimit, View};
use model::{Fault, Lsn};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::task::JoinError;

/// Time until an index build that failed is tried again; doubled with each failure, up to the most.
const BUILD_PAUSE_FIRST_MS: u64 = 1_000;
const BUILD_PAUSE_MAX_MS: u64 = 10 * 60 * 1_000;

/// An index build that failed, and when it is tried again.
#[derive(Clone, Copy, Debug)]
pub(super) struct FailedBuild {
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

impl Writer {
    /// Opens the index that is stored, or makes it anew. Without one the partition serves all the same.
    pub(super) async fn open_index(&mut self, view: &View, head: &Head) -> Result<(), Fault> {
        let rules = Arc::clone(&self.shape.load().rules);
        self.index = None;
        self.forget_index_work();
        self.index_stale = true;
        let home = self.index_home.clone();
        match index::open(home, Arc::clone(&rules), view, head, &self.spec.range).await {
            Ok(mut opened) => {
                if opened.is_manifest_stale {
                    let mut batch = self.manifest_deletion(view).await?;
                    self.require_ownership(&mut batch);
                    let deleted = self.store.submit(&self.store.lane(), batch, Durability::Sync).await;
                    deleted.map_err(commit_fault)?;
                }
                for run in opened.strays {
                    tokio::spawn(drop_run(self.store.clone(), self.id, self.claim.clone(), run));
                }
                self.index_stale = false;
                // Nothing can fail from here on: an opening that fails has no job under way.
                if let Some(keeper) = &mut opened.keeper {
                    keeper.complete().await;
                }
                let is_current = |keeper: &Keeper| keeper.rules().fingerprint() == rules.fingerprint();
                let is_wanted = opened.keeper.as_ref().is_none_or(|keeper| !is_current(keeper));
                self.index = opened.keeper;
                if is_wanted {
                    self.begin_build(rules, head.lsn);
                }
                Ok(())
            }
            Err(fault) if is_damage(&fault) => {
                tracing::error!(partition = ?self.id, cause = %fault, "the index cannot be made");
                self.index_stale = false;
                Ok(())
            }
            Err(fault) => Err(fault),
        }
    }

    /// Before the runs of a manifest that is not used any more are deleted, the manifest goes with all dead sets.
    async fn manifest_deletion(&mut self, view: &View) -> Result<Batch, Fault> {
        let limit = ScanLimit { rows: usize::MAX, bytes: usize::MAX };
        let range = keyspace::all_dead_range(self.id);
        let dead = view.scan(META, range, Direction::Forward, limit).await.map_err(read_fault)?;
        let mut batch = Batch::default();
        batch.mark_shrinking();
        batch.delete(META, keyspace::manifest_key(self.id));
        dead.rows.into_iter().for_each(|(key, _)| batch.delete(META, key));
        Ok(batch)
    }

    /// Takes what the doubtful batches have left in `view` into the index.
    pub(super) async fn settle_index(&mut self, view: &View, head: &Head) -> Result<(), Fault> {
        if self.index_stale {
            return self.open_index(view, head).await;
        }
        let Some(keeper) = &mut self.index else { return Ok(()) };
        match index::catch_up(keeper, view, self.id).await {
            Err(fault) if is_damage(&fault) => self.open_index(view, head).await,
            other => other.map(drop),
        }
    }

    /// Begins to make an index for the policy of now, unless there is one or one is in the making.
    pub(super) fn check_policy(&mut self) {
        let rules = Arc::clone(&self.shape.load().rules);
        let wanted = rules.fingerprint();
        let has = |keeper: &Option<Keeper>| {
            keeper.as_ref().is_some_and(|keeper| keeper.rules().fingerprint() == wanted)
        };
        if has(&self.index) {
            // Perhaps the old policy came back before the new index was there.
            self.build = None;
            self.built = None;
            self.build_failed = None;
        } else if self
            .build_failed
            .is_some_and(|failed| failed.policy == wanted && !failed.is_due(self.ambient.now_ms()))
        {
            // Waits.
        } else if !has(&self.built)
            && self.build.as_ref().is_none_or(|build| build.rules.fingerprint() != wanted)
        {
            self.built = None;
            self.begin_build(rules, self.published.load().lsn);
        }
    }

    fn begin_build(&mut self, rules: Arc<Rules>, lsn: Lsn) {
        self.progress.total.store(self.state.head.documents, Ordering::Relaxed);
        self.build = Some(Build::begin(Plan {
            home: self.index_home.clone(),
            rules,
            lsn,
            range: self.spec.range.clone(),
            walked: Arc::clone(&self.progress.walked),
        }));
    }

    fn forget_index_work(&mut self) {
        self.installing = None;
        self.build = None;
        self.built = None;
    }

    /// Something has happened to the index or to the one in the making.
    pub(super) async fn hear(&mut self, news: News) {
        match news {
            News::Index(Event::Changed) => self.republish(),
            News::Index(Event::Install(install)) => self.installing = Some(install),
            News::Index(Event::Damaged) => {
                tracing::error!(partition = ?self.id, "the index is damaged and made anew");
                let rules = Arc::clone(&self.shape.load().rules);
                self.begin_build(rules, self.published.load().lsn);
                if let Some(damaged) = self.index.take() {
                    self.discarded.extend(damaged.own_runs());
                }
                self.republish();
            }
            News::Build(Ok(Ok(keeper))) => {
                self.build = None;
                self.built = Some(keeper);
            }
            News::Build(Ok(Err(fault))) => {
                tracing::warn!(partition = ?self.id, cause = %fault, "index_build_failed");
                self.end_failed_build();
            }
            News::Build(Err(error)) => {
                tracing::error!(partition = ?self.id, %error, "index_build_failed");
                self.end_failed_build();
            }
        }
    }

    fn end_failed_build(&mut self) {
        if let Some(build) = self.build.take() {
            self.note_failed_build(build.rules.fingerprint());
        }
    }

    fn note_failed_build(&mut self, policy: Fingerprint) {
        self.build_failed = Some(FailedBuild::new(self.build_failed, policy, self.ambient.now_ms()));
    }

    /// Takes over what waits for a moment without batches in flight.
    pub(super) async fn take_over(&mut self) {
        if let Err(fault) = self.wake().await {
            tracing::warn!(partition = ?self.id, cause = %fault, "the index waits for the store");
            self.forget_index_work();
            self.index_stale = true;
            self.doubt = Some(Doubt::Unknown);
            return;
        }
        if let Some(built) = self.built.take() {
            let policy = built.rules().fingerprint();
            match self.adopt(built).await {
                Ok(()) => self.build_failed = None,
                Err(fault) => {
                    tracing::warn!(partition = ?self.id, cause = %fault, "index_build_failed");
                    self.note_failed_build(policy);
                }
            }
        } else if let Some(install) = self.installing.take() {
            self.install(install).await;
        }
    }

    /// Puts an index that was made beside in the place of the one in use, and its manifest in the place of the other.
    async fn adopt(&mut self, mut built: Keeper) -> Result<(), Fault> {
        let view = self.store.view().await.map_err(read_fault)?;
        index::catch_up(&mut built, &view, self.id).await?;
        let mut batch = self.manifest_deletion(&view).await?;
        drop(view);
        let named = built.save(&mut batch);
        self.installing = None;
        self.index_stale = true;
        let committed = self.commit_alone(batch, None).await;
        keep_named(named, &committed);
        committed.map_err(commit_fault)?;
        self.index_stale = false;
        built.complete().await;
        if let Some(old) = self.index.replace(built) {
            self.discarded.extend(old.own_runs());
        }
        self.republish();
        for run in std::mem::take(&mut self.discarded) {
            tokio::spawn(drop_run(self.store.clone(), self.id, self.claim.clone(), run));
        }
        Ok(())
    }

    /// Makes new runs a part of the index. If that fails, nobody knows which manifest is on disk, and the index is
    /// opened again.
    async fn install(&mut self, mut install: Install) {
        let Some(keeper) = &self.index else { return };
        let InstallBatch { batch, named, installed } = keeper.install_batch(&mut install);
        self.index_stale = true;
        let committed = self.commit_alone(batch, None).await;
        keep_named(named, &committed);
        if let Err(fault) = committed {
            tracing::warn!(partition = ?self.id, cause = %fault, "runs of the index were not taken");
            return;
        }
        self.index_stale = false;
        let Some(keeper) = &mut self.index else { return };
        for run in keeper.installed(install, installed).await {
            tokio::spawn(drop_run(self.store.clone(), self.id, self.claim.clone(), run));
        }
        self.republish();
    }

    /// Lets readers see the state at `view`, which the index has reached.
    pub(super) fn publish(&self, view: View, head: &Head) -> Arc<Published> {
        let reader = self.reader(&view);
        let published = Arc::new(Published::new(view, reader, self.policy(), head, self.lane.clone()));
        self.published.store(Arc::clone(&published));
        published
    }

    /// The pieces of the index have changed, but not what they say: lets readers have the new ones.
    pub(super) fn republish(&self) {
        let published = self.published.load_full();
        if let Some(view) = &published.view {
            let (lsn, counts) = (published.lsn, published.counts);
            let index = self.reader(view).map(Arc::new);
            let policy = self.policy();
            self.published.store(Arc::new(Published {
                view: Some(view.clone()),
                index,
                policy,
                lsn,
                counts,
                lane: self.lane.clone(),
                has_ended: false,
            }));
        } else {
            self.rest_published();
        }
    }

    /// Readers have to ask for a view.
    pub(super) fn rest_published(&self) {
        let published = self.published.load_full();
        let (lsn, counts, policy) = (published.lsn, published.counts, self.policy());
        let lane = self.lane.clone();
        let has_ended = self.has_ended;
        let resting = Published { view: None, index: None, policy, lsn, counts, lane, has_ended };
        self.published.store(Arc::new(resting));
    }

    fn policy(&self) -> Option<Fingerprint> {
        self.index.as_ref().map(|keeper| keeper.rules().fingerprint())
    }

    fn reader(&self, view: &View) -> Option<IndexReader> {
        self.index.as_ref().map(|keeper| IndexReader {
            pieces: keeper.pieces(),
            rules: Arc::clone(keeper.rules()),
            view: view.clone(),
            memory: Arc::clone(keeper.memory()),
            alarm: Arc::clone(keeper.alarm()),
        })
    }
}

/// The batch that names `runs` was committed or not. If it was refused, they are dropped and delete their rows.
fn keep_named(runs: Vec<UnnamedRun>, committed: &Result<(), CommitFault>) {
    let is_unknown = committed.as_ref().is_err_and(|fault| Doubt::of(fault) == Doubt::Unknown);
    if is_unknown || committed.is_ok() {
        runs.into_iter().for_each(UnnamedRun::keep);
    }
}

/// What the writer hears of its indexes.
pub(super) enum News {
    Index(Event),
    Build(Result<Result<Keeper, Fault>, JoinError>),
}

/// Waits for news; for ever if there can be none.
pub(super) async fn news(index: &mut Option<Keeper>, build: &mut Option<Build>) -> News {
    let event = async {
        match index {
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
        event = event => News::Index(event),
        built = built => News::Build(built),
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
