//! What the writer does about the index: opens it, commits what it saves, publishes it. What comes next in its life is
//! decided in `index/life.rs`.

use super::Writer;
use super::recovery::Doubt;
use crate::head::Head;
use crate::index::{
    self, BuildStart, Fingerprint, IndexNews, IndexReader, InstallBatch, Keeper, UnnamedRun, drop_run,
    is_damage,
};
use crate::keyspace::{self, META};
use crate::published::Published;
use crate::storage::{commit_fault, read_fault};
use kv::{Batch, CommitFault, Direction, Durability, ScanLimit, View};
use model::Fault;
use std::sync::Arc;

impl Writer {
    /// Opens the index that is stored, or makes it anew. Without one the partition serves all the same.
    pub(super) async fn open_index(&mut self, view: &View, head: &Head) -> Result<(), Fault> {
        let rules = Arc::clone(&self.shape.load().rules);
        self.index.begin_opening();
        let home = self.index.home().clone();
        match index::open(home, Arc::clone(&rules), view, head, &self.spec.range).await {
            Ok(opened) => {
                if opened.is_manifest_stale {
                    let mut batch = self.manifest_deletion(view).await?;
                    self.require_ownership(&mut batch);
                    let deleted = self.store.submit(&self.store.lane(), batch, Durability::Sync).await;
                    deleted.map_err(commit_fault)?;
                }
                self.drop_runs(opened.strays);
                // Nothing can fail from here on: an opening that fails has no job under way.
                let start = BuildStart { lsn: head.lsn, documents: head.documents };
                self.index.opened(opened.keeper, &rules, start).await;
                Ok(())
            }
            Err(fault) if is_damage(&fault) => {
                tracing::error!(event = "index_unavailable", partition = ?self.id, cause = %fault, "the index cannot be built; queries scan");
                self.index.not_opened();
                Ok(())
            }
            Err(fault) => Err(fault),
        }
    }

    /// Deletes the rows of runs that no manifest names any more.
    fn drop_runs(&self, runs: impl IntoIterator<Item = u64>) {
        for run in runs {
            tokio::spawn(drop_run(self.store.clone(), self.id, self.claim.clone(), run));
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
        if self.index.is_doubtful() {
            return self.open_index(view, head).await;
        }
        let Some(keeper) = self.index.keeper_mut() else { return Ok(()) };
        match index::catch_up(keeper, view, self.id).await {
            Err(fault) if is_damage(&fault) => self.open_index(view, head).await,
            other => other.map(drop),
        }
    }

    /// Begins to build an index for the policy of now, unless there is one or one is being built.
    pub(super) fn check_policy(&mut self) {
        let shape = self.shape.load();
        // Nearly always; every batch comes by here.
        if !self.index.leads_to(shape.rules.fingerprint()) {
            self.index.change_policy(&shape.rules, self.build_start(), self.ambient.now_ms());
        }
    }

    /// Where a build that begins now begins.
    fn build_start(&self) -> BuildStart {
        BuildStart { lsn: self.published.load().lsn, documents: self.state.head.documents }
    }

    /// Something has happened to the index or to the one in the making.
    pub(super) fn hear(&mut self, news: IndexNews) {
        let changes_readers = matches!(news, IndexNews::Index(_));
        let rules = Arc::clone(&self.shape.load().rules);
        self.index.hear(news, &rules, self.build_start(), self.ambient.now_ms());
        if changes_readers {
            self.republish();
        }
    }

    /// Takes over what waits for a moment without batches in flight.
    pub(super) async fn take_over(&mut self) {
        if let Err(fault) = self.wake().await {
            tracing::warn!(event = "index_swap_delayed", partition = ?self.id, cause = %fault, "the index swap waits for the store");
            self.index.distrust();
            self.doubt = Some(Doubt::Unknown);
            return;
        }
        if let Some(built) = self.index.take_built() {
            let policy = built.rules().fingerprint();
            if let Err(fault) = self.swap(built).await {
                tracing::warn!(event = "index_build_failed", partition = ?self.id, cause = %fault, "the index swap failed and the index is built again");
                self.index.note_failed_build(policy, self.ambient.now_ms());
            }
        } else if self.index.has_install() {
            self.install().await;
        }
    }

    /// Puts an index that was built in the place of the one that serves, and its manifest in the place of the other.
    async fn swap(&mut self, mut built: Keeper) -> Result<(), Fault> {
        let view = self.store.view().await.map_err(read_fault)?;
        index::catch_up(&mut built, &view, self.id).await?;
        let mut batch = self.manifest_deletion(&view).await?;
        drop(view);
        let named = built.save(&mut batch);
        self.save(batch, named).await.map_err(commit_fault)?;
        let replaced = self.index.swapped(built).await;
        self.republish();
        self.drop_runs(replaced);
        Ok(())
    }

    /// Makes new runs a part of the index. If that fails, nobody knows which manifest is on disk, and the index is
    /// opened again.
    async fn install(&mut self) {
        let Some(keeper) = self.index.keeper_mut() else { return };
        let Some(InstallBatch { batch, named, installed }) = keeper.install_batch() else { return };
        if let Err(fault) = self.save(batch, named).await {
            tracing::warn!(event = "index_install_failed", partition = ?self.id, cause = %fault, "the manifest of new index runs was not committed");
            return;
        }
        let Some(keeper) = self.index.keeper_mut() else { return };
        let replaced = keeper.installed(installed).await;
        self.drop_runs(replaced);
        self.republish();
    }

    /// Commits a manifest, with the runs that it names first.
    async fn save(&mut self, batch: Batch, named: Vec<UnnamedRun>) -> Result<(), CommitFault> {
        self.index.begin_saving();
        let committed = self.commit_alone(batch, None).await;
        keep_named(named, &committed);
        match committed {
            Ok(()) => self.index.saved(),
            Err(_) => self.index.not_saved(),
        }
        committed
    }

    /// Lets readers see the state at `view`, which the index has reached.
    pub(super) fn publish(&self, view: View, head: &Head) -> Arc<Published> {
        let reader = self.reader(&view);
        let published = Arc::new(Published::new(
            view,
            reader,
            self.policy(),
            self.index_pieces(),
            head,
            self.lane.clone(),
        ));
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
                index_pieces: self.index_pieces(),
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
        let index_pieces = self.index_pieces();
        let resting =
            Published { view: None, index: None, policy, index_pieces, lsn, counts, lane, has_ended };
        self.published.store(Arc::new(resting));
    }

    fn index_pieces(&self) -> usize {
        self.index.keeper().map_or(0, Keeper::piece_count)
    }

    fn policy(&self) -> Option<Fingerprint> {
        self.index.keeper().map(|keeper| keeper.rules().fingerprint())
    }

    fn reader(&self, view: &View) -> Option<IndexReader> {
        self.index.keeper().map(|keeper| IndexReader {
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
