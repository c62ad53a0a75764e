//! The engine: the only interface of an API.
//!
//! Checks the pass, finds the partition, passes on the change or read, and counts the charge. Does not know HTTP or any
//! other protocol, and does not know the bytes on disk.

mod admission;
mod authorisation;
mod budget;
mod catalog;
mod change_feed;
mod continuation;
mod derived;
mod documents;
mod engine;
mod feed;
mod hot_keys;
mod isolation;
mod jobs;
mod join;
mod ledger;
mod log;
mod metrics;
mod partition_load;
mod pinned;
mod query;
mod read_many;
mod request_memory;
mod resource_query;
mod restored;
mod router;
mod scripts;
mod slot;
mod split;
mod transaction;
mod used_rate;
mod verify;

pub use admission::AdmissionBounds;
pub use authorisation::{
    Access, Account, AccountKey, Action, AdminPass, Assignee, BatchPass, CatalogPass, CatalogRights,
    ChangeFeedPass, Delegation, DocumentPass, DocumentsPass, ExecutePass, FeedPass, Grant, Guarded, Identity,
    IdentityOptions, KeyBound, KeyFingerprint, KeyInterval, KeyName, KeyUse, LogicalPartitionPass,
    Permissions, Principal, QueryPass, Reach, Resource, RoleAssignment, RoleDefinition, RoleTable, Scripts,
    TransactionPass, Users, WritePass,
};
pub use catalog::{
    Addressed, Annotation, AnnotationDefinition, ClientEncryptionKey, Container, ContainerUsage, Creation,
    Database, Entry, ListPage, ListRequest, NamedScript, Offer, OfferOwner, PartitionRange, PartitionUsage,
    Permission, PermissionPart, PermissionResource, RangeFeed, Script, User, WantedPermission, Written,
};
pub use change_feed::{ChangeFeedPage, ChangeMode, ChangePosition, ChangeRequest, ChangeStart, Changes};
pub use continuation::Continuation;
pub use derived::Derived;
pub use documents::{
    AfterRefusal, BatchReceipt, BulkReceipt, DocumentAddress, DocumentReceipt, Keyed, ReadOptions,
    RefusedDocument, StepReceipt,
};
pub use engine::{
    Engine, EngineOptions, MemoryUse, PartitionBounds, STORE_SPACES, STORED_BYTES_PER_UNIT, ThroughputMode,
};
pub use exec::{Impact, IndexUse, Indexes, ParsedProperty, QueryBounds, QueryMetrics, QueryRow, SingleIndex};
pub use feed::{FeedPage, FeedRequest, Scope};
pub use hot_keys::HotKey;
pub use isolation::LARGE_TEXT_BYTES;
pub use ledger::{LedgerTotals, refusal_charge};
pub use partition::index::IndexOptions;
pub use partition::{HistoryEntry, HistoryKind, LogPosition};
pub use partition_load::PartitionLoad;
pub use pinned::pinned_keys;
pub use query::{QueryPage, QueryRequest};
pub use read_many::{ManyDocuments, READ_MANY_MAX};
pub use request_memory::{
    ConnectionMemory, MemoryHolder, MemoryKind, RequestMemory, RequestMemoryOptions, Reservation,
};
pub use resource_query::ResourceQuery;
pub use restored::skip_ahead;
pub use router::RefusedStep;
/// Scripts as worker processes execute them: calls, the operations that they ask for, and faults.
pub use script;
pub use scripts::{ScriptOptions, ScriptPlace, ScriptRefusal};
pub use split::{Children, PartitionState, PartitionStatus, SplitAt};
pub use transaction::{LockWhen, Transaction, TransactionOptions, TransactionReceipt};
pub use verify::{StoredContainer, Verification, VerifiedContainer, stored_containers, verify};
