//! Execution of queries on partitions: access paths, operators, and merging of the results of several partitions.
//!
//! Does not know query text, HTTP, catalogs or access rights.
//!
//! Every result has a *position*, a byte string whose order is the order of the results. A page is the first N results
//! after a position: for one partition, and by merging for all. So the order of a result never depends on the access
//! path.
//!
//! | file | contains |
//! |---|---|
//! | `position` | the position of a result |
//! | `program` | a query prepared for execution: layers, shapes, what it needs of documents (`needs`, `computed`) |
//! | `access_path` | access paths to a partition's documents as values, the choice between them, and how each is executed |
//! | `source` | where a part is read: a live partition or one state of it |
//! | `stream` | rows in the order of numbers or of an index, read only as far as they are wanted |
//! | `select`, `collect` | all documents are read, the first results are kept; partitions are merged |
//! | `picks` | documents that indexes have found in order, read after all parts are merged |
//! | `merge`, `bounded` | merging streams of several partitions; a limited number of partitions working concurrently |
//! | `page`, `assembly` | a page; offset, limit and size |
//! | `ranges` | the order of rows without ORDER BY over several ranges |
//! | `rank` | rewrites ranked queries as ordered queries |
//! | `resume` | the content of a continuation |
//! | `user_calls` | calls of user-defined functions for several rows at once |
//! | `explain` | how a query is executed, as text: the access path of each part |
//! | `index_use` | the indexes that are used, and those that might help |

mod access_path;
mod assembly;
mod bounded;
mod collect;
mod computed;
mod explain;
mod fault;
mod found;
mod index_use;
mod merge;
mod needs;
mod page;
mod picks;
mod position;
mod program;
mod ranges;
pub mod rank;
mod resume;
mod select;
mod source;
mod stream;
mod task;
mod user_calls;

pub use access_path::PathKind;
pub use computed::ParsedProperty;
pub use explain::explain;
pub use fault::query_fault;
pub use found::{PartitionWork, QueryMetrics, QueryRow};
pub use index_use::{Impact, IndexUse, Indexes, SingleIndex, index_use};
pub use page::{Page, PageRequest, page};
pub use program::Program;
pub use resume::Resume;
pub use source::PartSource;
pub use task::{Part, PartScope, QueryBounds};
pub use user_calls::{NoUserFunctions, PendingCalls, UserFunctions};
