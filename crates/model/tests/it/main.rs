//! Tests of what the crate offers to others.

#![allow(clippy::unwrap_used)] // a failed expectation ends the test

mod definitions;
