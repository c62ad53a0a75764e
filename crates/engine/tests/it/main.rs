//! The engine on a store in memory: the operations of an API and their results.

#![allow(clippy::unwrap_used)] // a failed expectation ends the test

mod catalog;
mod change_feed;
mod documents;
mod doubt;
mod expiry;
mod feed;
mod harness;
mod index;
mod isolation;
mod lifecycle;
mod merge;
mod query;
mod rank;
mod read_many;
mod recreated;
mod slots;
mod small_resources;
mod split;
mod sweep;
mod throughput;
mod transactions;
