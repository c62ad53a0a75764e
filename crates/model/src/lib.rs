//! Types that all crates share: ids, definitions, partition keys, faults, charges, continuations.
//!
//! Pure: no I/O, no clock, no storage, no wire codes. Time and randomness are provided by [`Ambient`].

mod ambient;
mod charge;
mod continuation;
mod definition;
mod effective;
mod encoding;
mod fault;
mod id_code;
mod ids;
pub mod limits;
mod murmur;
mod opaque;
mod partition_key;
pub mod policy;
mod priority;
mod read_quorum;
mod resource;
mod rid;
mod session;
mod throughput;
mod ticks;
mod work;

pub use ambient::Ambient;
pub use charge::Charge;
pub use continuation::ContinuationKey;
pub use definition::{
    ContainerChange, ContainerDefinition, ContainerDraft, KeptProperty, ValueOrder, checked_name,
    checked_script_name,
};
pub use effective::{EffectiveKey, EffectiveRange};
pub use encoding::{DecodeFault, Decoder, Encoder};
pub use fault::{
    AccessFault, BearerFault, ChangeFeedFault, ComputedRule, ConflictFault, ContinuationFault, DataAction,
    DefinitionList, DefinitionNumber, DefinitionPart, DefinitionRule, EncryptionRule, EvaluationFault, Fault,
    IndexRule, LimitFault, MissingFault, NameRule, PolicyPathError, PreconditionFault, PropertyRule,
    QueryFault, RequestFault, ScopeName, StorageFault, ThroughputRule, UserFunctionFault,
};
pub use id_code::IdCode;
pub use ids::{
    ContainerNumber, DatabaseNumber, DocumentNumber, Etag, Lsn, OfferNumber, PartitionOrdinal, ResourceNumber,
};
pub use opaque::{Opaque, OpaqueMembers};
pub use partition_key::{KeyComponent, PartitionKey, PartitionKeyDefinition, PartitionKeyKind};
pub use policy::{DefaultTtl, UniqueKey, UniqueKeyPolicy};
pub use priority::Priority;
pub use read_quorum::ReadQuorum;
pub use resource::{
    ClientEncryptionKeyDefinition, LetterCase, PermissionDefinition, PermissionMode, ScriptDefinition,
    ScriptKind, TokenLife, TriggerOperation, TriggerTime,
};
pub use rid::{Rid, RidText};
pub use session::SessionToken;
pub use throughput::{Throughput, ThroughputChange, ThroughputFloor};
pub use ticks::Ticks;
pub use work::Work;
