//! The server through the official Rust SDK.

mod access;
mod batch;
mod catalog;
mod change_feed;
mod conditions;
mod credentials;
mod expiry;
mod feed;
mod hot_partition;
mod items;
mod partition_keys;
mod partitioning;
mod patch;
mod policies;
mod queries;
mod restart;
mod session;
mod throughput;
mod unique_keys;
