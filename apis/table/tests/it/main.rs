//! Tests of the Table API over an engine in memory.

mod bad_input;
mod batches;
mod client;
mod credentials;
mod entities;
mod queries;
mod service;
mod signatures;
mod tables;
