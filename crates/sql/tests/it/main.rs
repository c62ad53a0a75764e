//! Tests of the query language from text to plan and back.

#![allow(clippy::unwrap_used)] // a failed expectation ends the test

mod limits;
mod round_trip;
mod suites;
#[path = "../../../../tests-data/text_cases.rs"]
mod text_cases;
