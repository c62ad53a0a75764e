//! Cases as text: expressions and whole queries with their results.
//!
//! The SQL parser reads the texts; the crate itself does not depend on it.

#![allow(clippy::unwrap_used)] // a failed expectation ends the test

mod ambient;
mod expressions;
mod limits;
mod properties;
mod queries;
mod text;
#[path = "../../../../tests-data/text_cases.rs"]
mod text_cases;
