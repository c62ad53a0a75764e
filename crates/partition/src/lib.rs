//! Physical partition: documents, change log and the single writer of a hash range.
//!
//! Knows nothing of HTTP, SQL text or other partitions.

mod audit;
mod audit_history;
mod audit_log;
mod basis;
mod budget;
mod cache;
mod carryover;
mod changes;
mod changes_of_key;
mod checkpoint;
mod clock;
mod draft;
mod evaluate;
mod expiry;
mod filter;
mod head;
mod history;
pub mod index;
mod key_cache;
pub mod keyspace;
mod last_writes;
mod lineage;
mod log;
mod metrics;
mod numbering;
mod overlay;
mod owner;
mod partition;
#[cfg(feature = "planted-faults")]
pub mod planted;
mod published;
mod record;
mod shape;
mod split;
mod staging;
mod state;
mod storage;
mod tally;
mod unique;
mod verdicts;
mod view;
mod writer;

pub use audit::{AuditReport, AuditScope, AuditedPartition, ExpiryRule, Finding, audit, stray_containers};
pub use budget::{BudgetStep, STEPS_MAX, StepBudget};
pub use cache::RecordCache;
pub use carryover::Carryover;
pub use changes::{ChangePage, ChangeScan};
pub use checkpoint::{RescheduleCheckpoint, RescheduleProgress};
pub use draft::Draft;
pub use head::{Skipped, highest_assigned, skip_ahead};
pub use history::{HistoryEntry, HistoryKind};
pub use lineage::{Ancestor, Remains};
pub use log::{LogEntry, LogKind, LogPosition};
pub use metrics::PartitionMetrics;
pub use partition::{
    Executed, IdleClose, PartitionCounts, PartitionEnvironment, PartitionSpec, PhysicalPartition, Unexecuted,
    delete_owner_row, new_partition_rows, stored_counts,
};
pub use record::stored_document;
pub use shape::{ContainerShape, CurrentShape};
pub use split::{PreparedSplit, Seal, SealedPartition};
pub use staging::{TRANSACTION_BYTES_MAX, TRANSACTION_DOCUMENTS_MAX};
pub use storage::{commit_fault, read_fault};
pub use view::{NumberPage, NumberScan, PartitionView, RecordPage, RecordScan};
pub use writer::{KeyLock, LOCK_TIME_MAX, LOCK_WAIT_MAX};
