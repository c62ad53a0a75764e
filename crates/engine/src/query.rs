//! Queries over the documents of a container, page by page, over as many partitions as it has.
//!
//! Knows nothing of query text: a door lowers its language to [`plan::query::Query`].

use crate::access::ReadPass;
use crate::engine::Engine;
use crate::feed::FeedScope;
use model::{Charge, Fault, RequestFault, SessionToken};
use plan::StoredDocument;
use plan::query::Query;
use std::sync::Arc;
use std::time::Duration;
use value::Value;

/// Which rows are wanted.
#[derive(Clone, Debug)]
pub struct QueryRequest {
    /// What to compute.
    pub query: Arc<Query>,
    /// Over which documents.
    pub scope: FeedScope,
    /// Most rows of the page.
    pub items_max: usize,
    /// Where to go on.
    pub continuation: Option<String>,
    /// What the client has seen.
    pub session: Vec<SessionToken>,
}

/// A row of a result.
#[derive(Clone, Debug)]
pub enum QueryRow {
    /// A document as it is stored; the door adds the system properties when it writes it.
    Document(StoredDocument),
    /// A computed value.
    Value(Value),
}

/// A page of rows.
#[derive(Clone, Debug)]
pub struct QueryPage {
    /// The rows.
    pub rows: Vec<QueryRow>,
    /// Where to go on, if there may be more.
    pub continuation: Option<String>,
    /// What the client has seen now, one entry per partition that was read.
    pub session: Vec<SessionToken>,
    /// What it cost.
    pub charge: Charge,
    /// What was done for it.
    pub metrics: QueryMetrics,
}

/// What was done for a page. Counts are exact, times are measured.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueryMetrics {
    /// Documents that were read.
    pub documents_read: u64,
    /// Their bytes.
    pub bytes_read: u64,
    /// Rows that were given.
    pub rows: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Of the documents read, those that an index had named.
    pub documents_by_index: u64,
    /// Time in the index.
    pub index_time: Duration,
    /// Time to read documents.
    pub read_time: Duration,
    /// Time to evaluate.
    pub evaluation_time: Duration,
    /// Time altogether.
    pub total_time: Duration,
}

impl Engine {
    /// Answers a page of a query.
    pub async fn query(&self, _pass: ReadPass<'_>, _request: &QueryRequest) -> Result<QueryPage, Fault> {
        Err(RequestFault::NotSupported { feature: "a query other than SELECT * FROM c".to_owned() }.into())
    }
}
