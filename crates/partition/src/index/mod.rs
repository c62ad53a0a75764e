//! The automatic index of a partition: from values at paths to documents.
//!
//! A term is a path and the key code of a value. Terms and their documents lie in *pieces*, each with a universe of
//! document versions of its own; the answers of the pieces, without their dead documents, are united. What the index
//! says is what a scan of all records would say at the same position: what a term cannot tell is marked so, and the
//! caller looks at the document.
//!
//! | file | holds |
//! |---|---|
//! | `path`, `code` | the bytes of a term |
//! | `rules`, `terms`, `computed`, `spatial`, `cells` | from a policy and a document to its terms |
//! | `segment`, `merge` | pieces in memory |
//! | `piece`, `universe`, `packed`, `dead`, `ranks` | what pieces have in common; their documents, and sets of them |
//! | `block`, `block_cache`, `run`, `run_writer`, `run_cursor`, `run_merge`, `run_numbers`, `unnamed`, `manifest` | pieces on disk |
//! | `life` | which index serves and which one is built |
//! | `index_writer`, `jobs`, `memory`, `options` | the writer's side: when pieces move on |
//! | `recovery`, `build` | the index from what is stored |
//! | `lookup`, `leaf`, `required_terms`, `documents`, `walk`, `counts`, `columns`, `reader`, `overlay` | the reader's face |
//! | `audit` | whether the index says what the records say |

mod audit;
mod block;
mod block_cache;
mod build;
mod cells;
mod code;
mod columns;
mod computed;
mod counts;
mod dead;
mod documents;
mod index_writer;
mod jobs;
mod leaf;
mod life;
mod lookup;
mod manifest;
mod memory;
mod merge;
mod options;
mod overlay;
mod packed;
mod path;
mod piece;
mod ranks;
mod reader;
mod recovery;
mod required_terms;
mod rules;
mod run;
mod run_cursor;
mod run_merge;
mod run_numbers;
mod run_writer;
mod segment;
mod spatial;
mod statistics;
mod terms;
#[cfg(test)]
mod tests;
mod universe;
mod unnamed;
mod walk;

pub use audit::{IndexFinding, unnamed_runs};
pub use code::write_tuple_member;
pub use columns::{Column, Columns};
pub use computed::ComputedReader;
pub use counts::{Counted, Detail};
pub use documents::Documents;
pub use lookup::{Lookup, ValueTest, Verdict};
pub use memory::IndexMemory;
pub use options::IndexOptions;
pub use path::{IndexPath, PathStep};
pub use reader::{Coverage, IndexReader};
pub use recovery::is_damage;
pub use required_terms::RequiredTerms;
pub use spatial::near;
pub use statistics::ValueRange;
pub use walk::{TermWalk, WalkStep};

pub(crate) use audit::audit_index;
pub(crate) use index_writer::{Changes, IndexEnvironment, IndexWriter, InstallBatch, Prepared};
pub(crate) use jobs::drop_run;
pub(crate) use life::{BuildStart, IndexEvent, IndexLife, IndexProgress};
pub use manifest::Fingerprint;
pub(crate) use recovery::{catch_up, open};
pub(crate) use rules::Rules;
pub(crate) use run_numbers::RunNumbers;
pub(crate) use terms::DocumentVersion;
pub(crate) use unnamed::UnnamedRun;
