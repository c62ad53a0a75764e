//! Random queries over random documents, checked page by page by code that shares nothing with the product.
//!
//! | file | holds |
//! |---|---|
//! | `random_query` | a query, as a tree and as SQL text |
//! | `definition` | containers, their indexing policies and computed properties |
//! | `draw`, `geometries` | random documents, geometries, queries and changes |
//! | `rules` | the expected results: full scans over JSON trees, sorting, folding |
//! | `comparison` | product and rules over one container of one to eight partitions |
//! | `drafts` | uncommitted changes of a partition against the same changes committed |

mod comparison;
mod definition;
mod drafts;
mod draw;
mod geometries;
mod random_query;
mod rules;

pub use comparison::{Tally, compare};
pub(crate) use definition::lowered;
pub use drafts::drafts;
