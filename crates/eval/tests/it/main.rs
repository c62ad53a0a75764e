//! Cases as text: expressions and whole queries with what they yield.
//!
//! The texts are read by a small reader of this folder, not by the SQL parser, which this crate does not see.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)] // a failed expectation ends the test

mod ambient;
mod expressions;
mod limits;
mod properties;
mod queries;
mod reader;
mod tokens;
