//! Wire formats: header names and values, activity ids, JSON of resources, answers.

pub(crate) mod activity;
pub(crate) mod change_position;
pub(crate) mod change_rows;
pub(crate) mod continuation;
pub(crate) mod definition;
pub(crate) mod header_map;
pub(crate) mod headers;
pub(crate) mod index_metrics;
pub(crate) mod json;
pub(crate) mod key_header;
pub(crate) mod links;
pub(crate) mod names;
pub(crate) mod permission_link;
pub(crate) mod pieces;
pub(crate) mod plan_document;
pub(crate) mod reply;
pub(crate) mod resources;
pub(crate) mod session;
pub(crate) mod small_resources;
pub(crate) mod trigger_time;
pub(crate) mod version;

pub(crate) use api_http::{answer_body, body, date, percent, request_headers};
