//! What is wanted and what came of it: every change and every query of every API ends as one of these types.
//!
//! Pure data. Knows nothing of how or where a change is carried out.

mod filter;
mod item;
mod mutation;
pub mod query;
mod receipt;
mod system;

pub use filter::Filter;
pub use item::{Item, SYSTEM_PROPERTIES, Ttl};
pub use mutation::{
    Condition, LogicalKey, Mutation, Operation, Rename, Returned, Target, Transaction, WhenAbsent,
};
pub use receipt::{Outcome, StepFault, StoredDocument};
pub use system::{ADDED_PROPERTIES, DocumentLink, SystemProperties};
