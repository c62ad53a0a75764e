//! Tests of the query language from text to plan and back.

#![allow(clippy::unwrap_used)] // a test that cannot go on says so

mod limits;
mod round_trip;
mod suites;
