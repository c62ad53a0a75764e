//! What the writer does about the index: makes it, keeps it at the position of the published view, publishes it.

use super::Writer;
use crate::head::Head;
use crate::index::{self, IndexReader, Keeper};
use crate::published::Published;
use kv::View;
use model::{Fault, StorageFault};
use std::sync::Arc;

impl Writer {
    /// Makes the index from what is stored.
    pub(super) async fn open_index(&mut self, view: &View, head: &Head) -> Result<(), Fault> {
        let rules = Arc::clone(&self.shape.load().rules);
        let mut keeper = Keeper::new(self.index_options, rules, head.lsn);
        match index::take_records(&mut keeper, view, self.id, &self.spec.range).await {
            Ok(()) => self.index = Some(keeper),
            Err(fault) if is_damage(&fault) => {
                tracing::error!(partition = ?self.id, cause = %fault, "the index cannot be made");
            }
            Err(fault) => return Err(fault),
        }
        Ok(())
    }

    /// Takes what the doubtful batches have left in `view` into the index.
    pub(super) async fn settle_index(&mut self, view: &View) -> Result<(), Fault> {
        let Some(keeper) = &mut self.index else { return Ok(()) };
        match index::catch_up(keeper, view, self.id).await {
            Err(fault) if is_damage(&fault) => {
                tracing::error!(partition = ?self.id, cause = %fault, "the index is lost");
                self.index = None;
                Ok(())
            }
            other => other,
        }
    }

    /// Lets readers see the state at `view`, which the index has reached.
    pub(super) fn publish(&self, view: View, head: &Head) -> Arc<Published> {
        let reader = self.reader(&view);
        let published = Arc::new(Published::new(view, reader, head));
        self.published.store(Arc::clone(&published));
        published
    }

    /// The pieces of the index have changed, but not what they say: lets readers have the new ones.
    pub(super) fn republish(&self) {
        let published = self.published.load_full();
        if let Some(view) = &published.view {
            let (lsn, counts) = (published.lsn, published.counts);
            let index = self.reader(view).map(Arc::new);
            self.published.store(Arc::new(Published { view: Some(view.clone()), index, lsn, counts }));
        }
    }

    fn reader(&self, view: &View) -> Option<IndexReader> {
        self.index.as_ref().map(|keeper| IndexReader {
            pieces: keeper.pieces(),
            rules: Arc::clone(keeper.rules()),
            view: view.clone(),
        })
    }
}

/// Waits for what the index has under way; only called while there is something.
pub(super) async fn finished(index: &mut Option<Keeper>) {
    if let Some(keeper) = index {
        keeper.finish().await;
    }
}

fn is_damage(fault: &Fault) -> bool {
    matches!(fault, Fault::Storage(StorageFault::Damaged { .. }))
}
