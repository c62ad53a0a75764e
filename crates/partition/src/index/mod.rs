//! The automatic index of a partition: maps values at paths to documents.
//!
//! A term is a path and the key code of a value. Terms and their postings are stored in *pieces*, each with its own
//! universe of document versions. The results of the pieces, without dead documents, are merged. The index returns
//! what a scan of all records would return at the same position; a result that terms cannot decide is marked as
//! inexact, and the caller checks the documents.
//!
//! | file | contains |
//! |---|---|
//! | `path`, `code` | the bytes of a term |
//! | `rules`, `terms`, `computed`, `spatial`, `cells` | the terms of a document under a policy |
//! | `segment`, `merge` | pieces in memory |
//! | `piece`, `universe`, `packed`, `dead`, `ranks` | what pieces have in common: document numbers and sets of ranks |
//! | `block`, `block_cache`, `run`, `run_writer`, `run_cursor`, `run_merge`, `run_numbers`, `unnamed`, `manifest` | pieces on disk |
//! | `life` | the states of an index: serving, building, swapping |
//! | `index_writer`, `jobs`, `memory`, `options` | the writer's side: applying changes, merging and flushing pieces |
//! | `recovery`, `build` | opening and rebuilding |
//! | `split` | the indexes of two partitions that share the runs of the one they were split from |
//! | `lookup`, `leaf`, `required_terms`, `documents`, `walk`, `counts`, `statistics`, `columns`, `reader`, `overlay` | the reader's side |
//! | `audit` | comparison of the index with the records |

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
mod split;
mod statistics;
mod term_count;
mod terms;
#[cfg(test)]
mod tests;
mod universe;
mod unnamed;
mod walk;

pub use audit::{IndexFinding, unnamed_runs};
pub use code::{CODE_BYTES_MAX, write_tuple_member};
pub use columns::{Column, Columns};
pub use computed::{ComputedQueries, ComputedReader, parse_computed};
pub use counts::{Counted, Detail};
pub use documents::Documents;
pub use lookup::{Lookup, ValueTest, Verdict};
pub use memory::IndexMemory;
pub use options::IndexOptions;
pub use path::{IndexPath, IndexStep};
pub use reader::{Coverage, IndexReader};
pub use recovery::is_damage;
pub use required_terms::RequiredTerms;
pub use spatial::near;
pub use statistics::{ValueRange, ValueSample};
pub use walk::{TermWalk, WalkStep};

pub(crate) use audit::audit_index;
pub(crate) use index_writer::{Changes, IndexEnvironment, IndexWriter, InstallBatch, Prepared};
pub(crate) use jobs::drop_run;
pub(crate) use life::{BuildStart, IndexEvent, IndexLife, IndexProgress};
pub use manifest::Fingerprint;
pub(crate) use manifest::Manifest;
pub(crate) use recovery::{catch_up, open};
pub(crate) use rules::Rules;
pub(crate) use run::Run;
pub(crate) use run_cursor::RunSource;
pub(crate) use run_numbers::RunNumbers;
pub(crate) use split::{Half, LargestKeys, RunHalves, SealedIndex, SplitPoint};
pub(crate) use term_count::term_count;
pub(crate) use terms::DocumentVersion;
pub(crate) use unnamed::UnnamedRun;
