//! Queries over partitions, compared with the same queries over all documents at once.

#![allow(clippy::unwrap_used)] // a failed expectation ends the test

mod bounds;
mod composite;
mod covered;
mod damage;
mod definition;
mod functions;
mod harness;
mod memory;
mod order;
mod paging;
mod plans;
mod shapes;
mod suites;
#[path = "../../../../tests-data/text_cases.rs"]
mod text_cases;
