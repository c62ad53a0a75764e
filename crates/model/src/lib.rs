//! What all floors agree on: ids, definitions, partition keys, faults, charges, continuations.
//!
//! Pure: no I/O, no clock, no storage, no wire codes. Time and randomness come in through [`Ambient`].

mod ambient;
mod charge;
mod definition;
mod fault;
mod ids;
pub mod limits;
mod partition_key;
mod session;
mod throughput;

pub use ambient::Ambient;
pub use charge::Charge;
pub use definition::{
    checked_name, name_of,
    ContainerDefinition, DefaultTtl, UniqueKey, UniqueKeyPolicy,
};
pub use fault::{
    AccessFault, ConflictFault, Fault, LimitFault, MissingFault, PreconditionFault, RequestFault, StorageFault,
};
pub use ids::{ContainerNumber, DatabaseNumber, DocumentNumber, Etag, Lsn, OfferNumber, PartitionOrdinal};
pub use partition_key::{KeyComponent, PartitionKey, PartitionKeyDefinition, PartitionKeyKind};
pub use session::SessionToken;
pub use throughput::Throughput;
