//! Random queries over random documents, judged page by page by code that shares nothing with the product.
//!
//! | file | holds |
//! |---|---|
//! | `wish` | what is asked, as a tree of its own and as SQL text |
//! | `definition` | containers, their indexing policies and computed properties |
//! | `draw`, `places` | documents, geometries, wishes and changes of a seed |
//! | `rules` | what a wish comes to: full scans over JSON trees, sorting, folding |
//! | `duel` | both sides over one container of one to eight partitions |
//! | `drafts` | uncommitted changes of a partition against the same changes committed |

mod definition;
mod drafts;
mod draw;
mod duel;
mod places;
mod rules;
mod wish;

pub(crate) use definition::lowered;
pub use drafts::drafts;
pub use duel::{Tally, duel};
