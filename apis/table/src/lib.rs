//! The Azure Table API over HTTP.
//!
//! A table is a container of one database, an entity is a document. Edm types are tags of the stored document
//! ([`edm`]), `$filter` is lowered to a `plan::query::Query` ([`filter`]). Everything goes through `engine::Engine`; the
//! API does not know partitions, storage or sockets.

pub mod edm;
pub mod filter;
#[doc(hidden)]
pub mod fuzzing;
pub mod wire;
