//! Tests of the public interface of the crate.

#![allow(clippy::unwrap_used)] // a failed expectation ends the test

mod definitions;
