//! The door driven as a server drives it, over an engine in memory.

mod bad_requests;
mod batches;
mod catalog;
mod client;
mod documents;
mod feeds;
mod protocol;
