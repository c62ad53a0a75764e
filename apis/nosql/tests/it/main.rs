//! The API called as the server calls it, over an engine in memory.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod answer_headers;
mod authorisation;
mod bad_requests;
mod batches;
mod catalog;
mod change_feed;
mod charges;
mod client;
mod compatibility;
mod cors;
mod documents;
mod execution;
mod feeds;
mod index_metrics;
mod memory;
mod offers;
mod old_clients;
mod partition_keys;
mod patch_conditions;
mod policies;
mod protocol;
mod queries;
mod query_plans;
mod resource_queries;
mod scripts;
mod splits;
#[path = "../../../../tests-data/text_cases.rs"]
mod text_cases;
mod texts;
mod tokens;
mod users;
