//! What the writer does when a batch was not committed: who is refused, who runs again, what the state is now.
//!
//! A batch that was refused because the head or the owner is not what this writer knows was decided on another state
//! than the stored one: somebody else writes the partition, or its container was dropped. The writer ends then.
//! Whoever waits is told to try again, which opens the partition anew.
//!
//! Any other batch that the store has refused left nothing behind, and nobody has seen its LSNs: the writer goes on from the
//! head that is stored, or from the one it began with. After an unknown outcome it waits until the store was reopened,
//! and goes on behind all LSNs that may have been given.

use super::{InFlight, Writer};
use crate::head::Head;
use crate::log::load_consumers;
use crate::published::Published;
use crate::state::State;
use crate::storage::{commit_fault, read_fault};
use crate::verdicts::{Again, refuse};
use kv::{CommitFault, Durability, Health};
use model::{Fault, StorageFault};
use std::collections::VecDeque;
use std::sync::Arc;

/// What is known of a batch that failed. The greater one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Doubt {
    /// Nothing of it was applied, and what was acknowledged before is there.
    Refused,
    /// It may be there, or the store must be reopened, which may take acknowledged batches that were not synced.
    Unknown,
    /// Nothing of it was applied, and the partition is not this writer's any more.
    Lost,
}

impl Doubt {
    pub(super) fn of(fault: &CommitFault) -> Doubt {
        match fault {
            CommitFault::PreconditionFailed { .. } => Doubt::Lost,
            CommitFault::ChainBroken
            | CommitFault::LaneCrowded { .. }
            | CommitFault::Full { .. }
            | CommitFault::TooLarge { .. }
            | CommitFault::BadKey { .. }
            | CommitFault::UnknownSpace { .. }
            | CommitFault::UnknownIngest { .. }
            | CommitFault::Unsorted { .. }
            | CommitFault::Unreadable(_) => Doubt::Refused,
            CommitFault::Uncertain { .. } | CommitFault::Poisoned { .. } | CommitFault::Closed => {
                Doubt::Unknown
            }
        }
    }
}

/// Who of a refused batch runs again.
fn again_after(fault: &CommitFault) -> Again {
    match fault {
        CommitFault::Full { .. } => Again::Shrinking,
        // What the batch is made of was refused. Each transaction alone, only that one is refused which is to blame.
        CommitFault::TooLarge { .. } | CommitFault::BadKey { .. } => Again::All,
        // The partition is not this writer's any more: it gives back what waits, for who owns it now.
        CommitFault::PreconditionFailed { .. } => Again::All,
        CommitFault::ChainBroken
        | CommitFault::LaneCrowded { .. }
        | CommitFault::Uncertain { .. }
        | CommitFault::Poisoned { .. }
        | CommitFault::Closed
        | CommitFault::UnknownSpace { .. }
        | CommitFault::UnknownIngest { .. }
        | CommitFault::Unsorted { .. }
        | CommitFault::Unreadable(_) => Again::None,
    }
}

impl Writer {
    /// A batch failed: all behind it fail too. Tells everybody, and begins anew from what is really there.
    pub(super) async fn recover(&mut self, failed: InFlight, fault: CommitFault) {
        tracing::warn!(event = "batch_failed", partition = ?self.id, cause = %fault, "a batch was not committed");
        let mut doubt = Doubt::of(&fault);
        let runs_again = again_after(&fault);
        let told = commit_fault(fault);
        let mut again = VecDeque::new();
        let is_to_blame = failed.decided.len() <= 1 && doubt == Doubt::Refused;
        let of_failed = if is_to_blame && runs_again == Again::All { Again::None } else { runs_again };
        refuse(failed.decided, &told, of_failed, &mut again);
        if of_failed == Again::All && doubt == Doubt::Refused {
            self.alone = again.len();
        }
        self.unsettled.extend(failed.records.into_iter().map(|(key, _)| key));
        while let Some(mut batch) = self.in_flight.pop_front() {
            // The lane is broken, so none of these can have been committed; waiting makes that certain.
            self.unsettled.extend(batch.records.drain(..).map(|(key, _)| key));
            if let Err(fault) = (&mut batch.commit).await {
                doubt = doubt.max(Doubt::of(&fault));
                let is_open = matches!(fault, CommitFault::Uncertain { .. });
                let runs_again = if is_open { Again::None } else { runs_again };
                // Whoever waits behind a full disk meets the same full disk.
                let fault = if runs_again == Again::Shrinking { told.clone() } else { commit_fault(fault) };
                refuse(batch.decided, &fault, runs_again, &mut again);
            }
        }
        // They came before what waits.
        again.into_iter().rev().for_each(|command| self.backlog.push_front(command));
        self.begin_doubt(doubt).await;
    }

    /// A batch has failed. Reads the state again at once if it can be told now, and otherwise before the next decision.
    pub(super) async fn begin_doubt(&mut self, doubt: Doubt) {
        self.doubt = self.doubt.max(Some(doubt));
        if let Err(fault) = self.reload().await {
            tracing::warn!(event = "partition_waits", partition = ?self.id, cause = %fault, "the partition waits until the store is reopened");
        }
    }

    /// Reads the state again. Nothing is submitted to the lane until then.
    async fn reload(&mut self) -> Result<(), Fault> {
        if self.doubt == Some(Doubt::Lost) && !self.lane.is_rewound() {
            return Err(self.end());
        }
        let mut lane = match self.store.settle(&self.lane).await {
            Ok(lane) => lane,
            Err(fault) => {
                // What has become of the last batches is not known yet.
                self.doubt = Some(Doubt::Unknown);
                return Err(StorageFault::Unavailable { cause: fault.to_string() }.into());
            }
        };
        let view = self.store.view().await.map_err(read_fault)?;
        // Behind the view: the store rewinds the lanes of what may be gone before it shows what is there.
        if self.lane.is_rewound() {
            // Acknowledged batches may be gone, and with them what index and cache were told.
            self.doubt = Some(Doubt::Unknown);
            self.index.distrust();
            self.cache.clear();
            lane = self.store.lane();
        }
        let (head_row, head) = Head::load_row(&view, self.id).await?;
        self.head_row = head_row;
        self.consumers = load_consumers(&view, self.id).await?;
        self.settle_index(&view, &head).await?;
        let head = match self.doubt {
            Some(Doubt::Refused) => head.after_refusal(&self.first_head),
            Some(Doubt::Lost | Doubt::Unknown) | None => {
                self.first_head = head.reopened();
                self.first_head.clone()
            }
        };
        self.lane = lane;
        self.publish(view.clone(), &head);
        self.state = State::new(view, head);
        self.doubt = None;
        // A batch that was in doubt may be there, with expiry rows that nobody has noted.
        self.shape.note_expiry(0);
        // What readers see from now on is what was decided.
        for key in self.unsettled.drain(..) {
            self.cache.opened(&key);
        }
        Ok(())
    }

    /// The partition is not this writer's any more. Nothing of it may be served from here, and what was refused left
    /// nothing behind.
    fn end(&mut self) -> Fault {
        if !self.has_ended {
            tracing::warn!(event = "ownership_lost", partition = ?self.id, "another writer owns the partition; this one ends");
        }
        self.has_ended = true;
        self.rest_published();
        for key in self.unsettled.drain(..) {
            self.cache.opened(&key);
        }
        StorageFault::Unavailable { cause: "the partition has another writer".to_owned() }.into()
    }

    /// Makes sure that there is a view to decide on, and tells it.
    pub(super) async fn wake(&mut self) -> Result<Arc<Published>, Fault> {
        if self.lane.is_rewound() && self.in_flight.is_empty() {
            self.doubt = Some(Doubt::Unknown);
        }
        if self.doubt.is_some() {
            self.reload().await?;
        }
        let published = self.published.load_full();
        match &published.view {
            // A batch in flight brings a new view with its answer.
            Some(view) if view.is_live() || !self.in_flight.is_empty() => {
                return Ok(published);
            }
            // The store was reopened because of others, or this writer rests.
            Some(_) | None => {}
        }
        let view = self.store.view().await.map_err(read_fault)?;
        if self.durability == Durability::Buffered
            && let Health::Poisoned { cause } = self.store.health()
        {
            // Only when it was reopened is it known whether anything of this writer is gone.
            return Err(StorageFault::Unavailable { cause: cause.to_string() }.into());
        }
        if self.lane.is_rewound() {
            self.doubt = Some(Doubt::Unknown);
            self.reload().await?;
            return Ok(self.published.load_full());
        }
        self.state.wake(view.clone());
        Ok(self.publish(view, &self.state.head))
    }
}
