//! Queries on partitions: how rows are reached, what is made of them, how answers of several partitions are joined.
//!
//! Knows nothing of query text, HTTP, catalogs or access rights.
//!
//! Every result has a *position*, a byte string whose order is the order of the results, and a page is the first so
//! many results behind a position: for one partition, and by merging for all. So the order of a result never depends
//! on how it was found.
//!
//! | file | holds |
//! |---|---|
//! | `position` | where a result stands |
//! | `program` | a query made ready: layers, shapes, what it needs of documents (`needs`, `computed`) |
//! | `access` | access paths to a partition's documents as values, the choice between them, and how each is executed |
//! | `source` | where a part is read: a live partition or one state of it |
//! | `stream` | rows in the order of numbers, no further than they are wanted |
//! | `select`, `collect` | all documents are looked at, the first results are kept; partitions are merged |
//! | `picks` | documents that indexes have named in order, read when all parts are merged |
//! | `merge`, `bounded` | streams of several partitions as one; work of a bounded number of partitions at a time |
//! | `page`, `assembly` | a page; offset, limit and size |
//! | `ranges` | the order of rows without ORDER BY over several ranges |
//! | `rank` | ranked queries made ordered ones |
//! | `resume` | what a continuation says |
//! | `explain` | how a query is carried out, as text: the access path of each part |
//! | `index_use` | the indexes that are used, and those that might help |

mod access;
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

pub use access::PathKind;
pub use computed::ComputedProperty;
pub use explain::explain;
pub use fault::query_fault;
pub use found::{PartitionWork, QueryMetrics, QueryRow};
pub use index_use::{Impact, IndexUse, Indexes, SingleIndex, index_use};
pub use page::{Page, PageRequest, page};
pub use program::{Program, digest};
pub use resume::Resume;
pub use source::PartSource;
pub use task::{Part, PartScope, QueryBounds};
