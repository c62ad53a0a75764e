//! The writer's work for the index: opening it, committing manifests, publishing it. The transitions between the
//! states of an index are in `index/life.rs`.

use super::Writer;
use super::recovery::BatchFailure;
use crate::head::Head;
use crate::index::{
    self, BuildStart, Fingerprint, IndexEvent, IndexReader, IndexWriter, InstallBatch, UnnamedRun, drop_run,
    is_damage,
};
use crate::keyspace::{self, META};
use crate::published::Published;
use crate::storage::{commit_fault, read_fault};
use kv::{Batch, CommitFault, Direction, Durability, ScanLimit, View};
use model::Fault;
use std::sync::Arc;

impl Writer {
    /// Opens the stored index, or rebuilds it. Without an index the partition serves requests by scans.
    pub(super) async fn open_index(&mut self, view: &View, head: &Head) -> Result<(), Fault> {
        let rules = Arc::clone(&self.shape.load().rules);
        self.index.begin_opening();
        let environment = self.index.environment().clone();
        match index::open(environment, Arc::clone(&rules), view, head, &self.spec.range).await {
            Ok(opened) => {
                if opened.is_manifest_stale {
                    let mut batch = self.manifest_deletion(view).await?;
                    self.require_ownership(&mut batch);
                    let deleted = self.store.submit(&self.store.lane(), batch, Durability::Sync).await;
                    deleted.map_err(commit_fault)?;
                }
                self.drop_runs(opened.strays);
                // Nothing can fail after this: an opening that fails has no running job.
                let start = BuildStart { lsn: head.lsn, documents: head.documents };
                self.index.opened(opened.index_writer, &rules, start).await;
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

    /// A batch that deletes the manifest and all dead sets, to be committed before the runs are deleted.
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

    /// Applies to the index what batches with an unknown outcome have left in `view`.
    pub(super) async fn catch_up_index(&mut self, view: &View, head: &Head) -> Result<(), Fault> {
        if self.index.needs_reopen() {
            return self.open_index(view, head).await;
        }
        let Some(index_writer) = self.index.index_writer_mut() else { return Ok(()) };
        match index::catch_up(index_writer, view, &self.lineage).await {
            Err(fault) if is_damage(&fault) => self.open_index(view, head).await,
            other => other.map(drop),
        }
    }

    /// Starts to build an index for the current policy, unless there is one or one is being built.
    pub(super) fn check_policy(&mut self) {
        let shape = self.shape.load();
        // The usual case; this runs for every batch.
        if !self.index.leads_to(shape.rules.fingerprint()) {
            self.index.change_policy(&shape.rules, self.build_start(), self.ambient.now_ms());
        }
    }

    /// The starting point of a build that starts now.
    fn build_start(&self) -> BuildStart {
        BuildStart { lsn: self.published.load().lsn, documents: self.state.head.documents }
    }

    /// Handles an event of the serving index or of a build.
    pub(super) fn on_index_event(&mut self, event: IndexEvent) {
        let changes_readers = matches!(event, IndexEvent::Writer(_));
        let rules = Arc::clone(&self.shape.load().rules);
        self.index.on_event(event, &rules, self.build_start(), self.ambient.now_ms());
        if changes_readers {
            self.republish();
        }
    }

    /// Installs what waits for a moment without batches in flight.
    pub(super) async fn take_over(&mut self) {
        if let Err(fault) = self.ensure_view().await {
            tracing::warn!(event = "index_swap_delayed", partition = ?self.id, cause = %fault, "the index swap waits for the store");
            self.index.require_reopen();
            self.failure = Some(BatchFailure::Unknown);
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

    /// Replaces the serving index and its manifest by an index that was built.
    async fn swap(&mut self, mut built: IndexWriter) -> Result<(), Fault> {
        let view = self.store.view().await.map_err(read_fault)?;
        index::catch_up(&mut built, &view, &self.lineage).await?;
        let mut batch = self.manifest_deletion(&view).await?;
        drop(view);
        let named = built.save(&mut batch);
        self.save(batch, named).await.map_err(commit_fault)?;
        let replaced = self.index.swapped(built).await;
        self.republish();
        self.drop_runs(replaced);
        Ok(())
    }

    /// Adds new runs to the index. If that fails, it is unknown which manifest is on disk, and the index is opened
    /// again.
    async fn install(&mut self) {
        let Some(index_writer) = self.index.index_writer_mut() else { return };
        let Some(InstallBatch { batch, named, installed }) = index_writer.install_batch() else { return };
        if let Err(fault) = self.save(batch, named).await {
            tracing::warn!(event = "index_install_failed", partition = ?self.id, cause = %fault, "the manifest of new index runs was not committed");
            return;
        }
        let Some(index_writer) = self.index.index_writer_mut() else { return };
        let replaced = index_writer.installed(installed).await;
        self.drop_runs(replaced);
        self.republish();
    }

    /// Commits a manifest together with the runs that it names.
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

    /// Publishes the state at `view`, which the index has reached.
    pub(super) fn publish(&self, view: View, head: &Head) -> Arc<Published> {
        let reader = self.reader(&view);
        let (policy, pieces) = (self.policy(), self.index_pieces());
        let published = Published::new(view, reader, policy, pieces, head, self.lane.clone());
        let published = Arc::new(published);
        self.published.store(Arc::clone(&published));
        published
    }

    /// Publishes changed pieces of the index at the same state.
    pub(super) fn republish(&self) {
        let published = self.published.load_full();
        if let Some(view) = &published.view {
            let (lsn, counts, time) = (published.lsn, published.counts, published.time);
            let (set_back, history_from) = (published.set_back, published.history_from);
            let index = self.reader(view).map(Arc::new);
            let policy = self.policy();
            self.published.store(Arc::new(Published {
                view: Some(view.clone()),
                index,
                policy,
                index_pieces: self.index_pieces(),
                lsn,
                counts,
                time,
                set_back,
                history_from,
                lane: self.lane.clone(),
                has_ended: false,
            }));
        } else {
            self.publish_without_view();
        }
    }

    /// Publishes that there is no view: readers have to request one from the writer.
    pub(super) fn publish_without_view(&self) {
        let published = self.published.load_full();
        self.published.store(Arc::new(Published {
            view: None,
            index: None,
            policy: self.policy(),
            index_pieces: self.index_pieces(),
            lsn: published.lsn,
            counts: published.counts,
            time: published.time,
            set_back: published.set_back,
            history_from: published.history_from,
            lane: self.lane.clone(),
            has_ended: self.has_ended,
        }));
    }

    fn index_pieces(&self) -> usize {
        self.index.index_writer().map_or(0, IndexWriter::piece_count)
    }

    fn policy(&self) -> Option<Fingerprint> {
        self.index.index_writer().map(|index_writer| index_writer.rules().fingerprint())
    }

    fn reader(&self, view: &View) -> Option<IndexReader> {
        self.index.index_writer().map(|index_writer| IndexReader {
            pieces: index_writer.pieces(),
            rules: Arc::clone(index_writer.rules()),
            view: view.clone(),
            memory: Arc::clone(index_writer.memory()),
            damage_signal: Arc::clone(index_writer.damage_signal()),
        })
    }
}

/// Keeps `runs` if the batch that names them was or may have been committed. Otherwise they delete their rows when
/// they are dropped.
fn keep_named(runs: Vec<UnnamedRun>, committed: &Result<(), CommitFault>) {
    let is_unknown = committed.as_ref().is_err_and(|fault| BatchFailure::of(fault) == BatchFailure::Unknown);
    if is_unknown || committed.is_ok() {
        runs.into_iter().for_each(UnnamedRun::keep);
    }
}
