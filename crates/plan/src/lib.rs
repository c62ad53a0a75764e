//! Requests and their results as data: every change and every query of every API is expressed in these types.
//!
//! Pure data. Does not know how or where a change is executed.

mod filter;
mod item;
mod mutation;
pub mod query;
mod receipt;
mod system;

pub use filter::Filter;
pub use item::{Item, SYSTEM_PROPERTIES, Ttl};
pub use mutation::{
    Condition, DocumentOperation, LogicalKey, Mutation, Rename, ResultCheck, Returned, Target, Transaction,
    WhenAbsent,
};
pub use receipt::{Outcome, StepFault, StoredDocument};
pub use system::{ADDED_PROPERTIES, DocumentLink, SystemProperties};
