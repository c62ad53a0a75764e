//! Ordered key-value storage: key ranges and batches over a storage engine.
//!
//! A [`Store`] holds a fixed list of *spaces*, each an ordered map from bytes to bytes. It changes only through atomic
//! [`Batch`]es, each validated on its own, and is read only through [`View`]s, each a consistent snapshot. This is the
//! only crate that names a storage engine, and it exports no type of an engine.
//!
//! Knows nothing of documents, partitions, LSNs or what its keys mean.
//!
//! Reading order: [`Store`] is the public interface, `backend` the interface to engines, `lane` is shared by all
//! backends. `commit` validates batches and commits them in groups to a row store (`rows`): `memory`, `embedded` (on
//! disk) and `faulty` (a wrapper for tests). `round_trip` is a separate backend for tests.

mod backend;
mod batch;
mod commit;
mod embedded;
mod fault;
mod faulty;
mod ingest;
mod lane;
mod memory;
mod metrics;
#[cfg(feature = "round-trip")]
mod round_trip;
mod rows;
mod script;
mod store;
mod view;

pub use backend::{DiskSpace, StoreMemory};
pub use batch::{
    BATCH_BYTES_MAX, Batch, Durability, IngestId, KEY_BYTES_MAX, KEY_RESERVED, Space, SpaceOptions,
};
pub use commit::CommitMode;
pub use embedded::{EmbeddedOptions, JournalCut, Repair, StoreCopy, repair};
pub use fault::{Cause, CommitFault, Health, OpenFault, ReadFault};
pub use lane::{LANE_BATCHES_MAX, Lane};
pub use metrics::StoreMetrics;
#[cfg(feature = "round-trip")]
pub use round_trip::Link;
pub use script::{FaultScript, InjectedFault, StorageCall, Survivors};
pub use store::Store;
pub use view::{Chunk, Direction, KeyChunk, KeyRange, ScanLimit, View};
