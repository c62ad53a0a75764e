//! The Azure Table API over HTTP.
//!
//! A table is a container of one database, an entity is a document. Edm types are tags of the stored document
//! ([`edm`]), `$filter` is lowered to a `plan::query::Query` ([`filter`]). A request is checked in this order: shape of
//! path and verb ([`route`]), credential ([`auth`]), body ([`service`]), then its operation ([`operations`]). Everything
//! goes through `engine::Engine`; the API does not know partitions, storage or sockets.

mod account;
mod auth;
mod cors;
pub mod edm;
mod faults;
pub mod filter;
#[doc(hidden)]
pub mod fuzzing;
mod operations;
mod policies;
mod query_string;
mod route;
mod service;
mod service_properties;
pub mod wire;

pub use account::{
    AccountKeys, AccountStyle, TABLE_NAME_MAX, TABLE_NAME_MAX_COSMOS, TABLE_NAME_MIN, TableAccount,
};
pub use service::{DATABASE, TableApi, TableOptions};
