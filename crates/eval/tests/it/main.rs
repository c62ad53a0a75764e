//! Cases as text: expressions and whole queries with what they yield.
//!
//! The texts are read by the SQL parser, which the crate itself does not see.

#![allow(clippy::unwrap_used)] // a failed expectation ends the test

mod ambient;
mod expressions;
mod limits;
mod properties;
mod queries;
mod text;
