//! Limits that the service publishes. Each is tested on both sides where it is enforced.

/// Largest item in bytes of JSON text.
pub const ITEM_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Largest request body in bytes.
pub const REQUEST_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Largest page of a feed in bytes of JSON text.
pub const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Longest item id in bytes.
pub const ID_BYTES_MAX: usize = 1023;
/// Longest name of a database or container in characters.
pub const NAME_CHARS_MAX: usize = 255;
/// Longest string in a partition key in bytes.
pub(crate) const KEY_STRING_BYTES_MAX: usize = 2048;
/// Most paths of a hierarchical partition key.
pub const KEY_PATHS_MAX: usize = 3;
/// Most operations of a batch.
pub const BATCH_OPERATIONS_MAX: usize = 100;
/// Largest batch body in bytes.
pub const BATCH_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Most bytes of the documents that one batch or bulk request returns.
pub const BATCH_ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Most unique key constraints of a container.
pub const UNIQUE_KEYS_MAX: usize = 10;
/// Most paths of one unique key constraint.
pub(crate) const UNIQUE_KEY_PATHS_MAX: usize = 16;
/// Most items of one page, whatever the client requests.
pub const PAGE_ITEMS_MAX: usize = 1000;
/// Items of a page if the client does not specify a number.
pub const PAGE_ITEMS_DEFAULT: usize = 100;
/// Minimum throughput of a container in request units per second.
pub const THROUGHPUT_MIN: u64 = 400;
/// Maximum throughput of a container in request units per second.
pub(crate) const THROUGHPUT_MAX: u64 = 1_000_000;
/// Granularity of a manually set throughput.
pub(crate) const THROUGHPUT_STEP: u64 = 100;
/// Minimum of an autoscale maximum, and its granularity.
pub const AUTOSCALE_MIN: u64 = 1000;
/// Number of containers that the minimum of a shared throughput covers.
pub(crate) const SHARED_CONTAINERS_FREE: u64 = 25;
/// Stored procedures of a container.
pub(crate) const STORED_PROCEDURES_MAX: usize = 100;
/// Triggers of a container.
pub(crate) const TRIGGERS_MAX: usize = 50;
/// User-defined functions of a container.
pub(crate) const USER_DEFINED_FUNCTIONS_MAX: usize = 50;
/// Largest text of a script in bytes.
pub(crate) const SCRIPT_BYTES_MAX: usize = 1024 * 1024;
/// Most bytes of the parameters of a stored procedure.
pub const PROCEDURE_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Shortest lifetime of a resource token in seconds.
pub const TOKEN_SECONDS_MIN: u64 = 10;
/// Longest lifetime of a resource token in seconds.
pub const TOKEN_SECONDS_MAX: u64 = 24 * 60 * 60;
/// Default lifetime of a resource token in seconds.
pub(crate) const TOKEN_SECONDS_DEFAULT: u64 = 60 * 60;
/// Size in bytes above which a physical partition should be split.
pub const PARTITION_BYTES_MAX: u64 = 50 * 1024 * 1024 * 1024;
