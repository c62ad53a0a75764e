//! Tests of the Table API over an engine in memory.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod bad_input;
mod batches;
mod client;
mod credentials;
mod entities;
mod foreign_documents;
mod memory;
mod queries;
mod roles;
mod service;
mod signatures;
mod tables;
