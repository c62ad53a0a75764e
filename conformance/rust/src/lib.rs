//! What the tests through the Rust SDK share: a server, clients of it over plain HTTP and TLS, an identity provider,
//! small assertions.

pub mod check;
pub mod fixture;
pub mod issuer;
pub mod server;
pub mod walk;

pub use check::{good, plain, refused};
pub use fixture::{Fixture, over_both};
