//! The NoSQL API over HTTP.
//!
//! A request is checked in this order: shape of path and verb ([`route`]), credential ([`auth`], [`resource_token`]),
//! common headers and body ([`service`]), then its operation ([`operations`]). The result is an answer or a fault; only
//! [`faults`] maps faults to statuses. Everything goes through [`engine::Engine`]; the API does not know partitions,
//! storage or sockets.

mod answers;
mod auth;
mod client_plan;
mod compatibility;
mod consistency;
mod cors;
mod credential;
mod faults;
#[doc(hidden)]
pub mod fuzzing;
mod lower;
mod operations;
mod resource_token;
mod role_actions;
mod role_scope;
mod route;
mod scripts;
mod service;
mod signing;
#[cfg(test)]
#[path = "../../../tests-data/text_cases.rs"]
mod text_cases;
mod wire;

pub use api_http::{AnswerBody, ConnectionInfo};
pub use compatibility::Compatibility;
pub use consistency::ConsistencyLevel;
pub use cors::CorsPolicy;
pub use lower::read_computed_property;
pub use role_actions::{built_in_roles, role};
pub use role_scope::role_scope;
pub use service::{NosqlApi, NosqlOptions};
pub use signing::signed_headers;
pub use wire::links::document_link;
