//! Queries over the documents of a container, page by page, over as many partitions as it has.
//!
//! Knows nothing of query text: a door lowers its language to [`plan::query::Query`].

use crate::access::ReadPass;
use crate::catalog::Container;
use crate::engine::Engine;
use crate::feed::{Scope, bounds, scope_context};
use crate::router::check_session;
use exec::{
    ComputedProperty, IndexUse, PageRequest, Part, PartScope, Program, QueryMetrics, QueryRow, Resume, rank,
};
use model::{Charge, Fault, SessionToken};
use partition::keyspace;
use plan::SystemProperties;
use plan::query::{Order, Query, Ranking};
use std::borrow::Cow;
use std::sync::Arc;
use value::Value;

/// Bytes of rows after which a page takes no further one. The text of a document can be somewhat longer than its
/// encoding, and the last row may have its full two megabytes: so far below the four that a page may have.
const PAGE_BYTES_STOP: usize = 3 * 512 * 1024;

/// Which rows are wanted.
#[derive(Clone, Debug)]
pub struct QueryRequest {
    /// What to compute.
    pub query: Arc<Query>,
    /// What continuations are bound to, if not to the query itself: a client that goes on behind a row by a condition
    /// brings the continuation that it had without the condition.
    pub bound_to: Option<Arc<Query>>,
    /// The computed properties of the container, lowered by the door.
    pub computed: Arc<[ComputedProperty]>,
    /// Over which documents.
    pub scope: Scope,
    /// Most rows of the page.
    pub items_max: usize,
    /// Where to go on.
    pub continuation: Option<String>,
    /// What the client has seen.
    pub session: Vec<SessionToken>,
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

impl Engine {
    /// Answers a page of a query.
    pub async fn query(&self, pass: ReadPass<'_>, request: &QueryRequest) -> Result<QueryPage, Fault> {
        let container = pass.container;
        let request = &with_vectors(container, request);
        let mut program = Arc::new(program(container, request)?);
        let mut spent = QueryMetrics::default();
        if let Order::Rank(ranking) = &request.query.order {
            program = Arc::new(Box::pin(self.ranked(container, request, ranking, &mut spent)).await?);
        }
        let resume = match &request.continuation {
            Some(text) => {
                let context = continuation_context(container, request);
                Some(Resume::decode(&self.continuation_key.open(&context, text)?)?)
            }
            None => None,
        };
        let parts = self.parts(container, &request.scope).await?;
        for part in &parts {
            check_session(&part.partition, &request.session)?;
        }
        let page = PageRequest {
            program,
            items_max: request.items_max,
            bytes_max: PAGE_BYTES_STOP,
            resume,
            bounds: self.options.query_bounds,
        };
        let page = Box::pin(exec::page(page, parts, Arc::clone(&self.ambient))).await?;
        spent.add(&page.metrics);
        let metrics = QueryMetrics { rows: page.metrics.rows, bytes: page.metrics.bytes, ..spent };
        let seal = |resume: Resume| {
            self.continuation_key.seal(&continuation_context(container, request), &resume.encode())
        };
        let token = |(ordinal, lsn)| SessionToken { ordinal, lsn };
        Ok(QueryPage {
            rows: page.rows,
            continuation: page.resume.map(seal),
            session: page.seen.into_iter().map(token).collect(),
            charge: Charge::query(metrics.documents_read, metrics.bytes_read),
            metrics,
        })
    }

    /// A ranked query in an ordinary order, by what other queries say of all documents and all scores.
    async fn ranked(
        &self,
        container: &Container,
        request: &QueryRequest,
        ranking: &Ranking,
        spent: &mut QueryMetrics,
    ) -> Result<Program, Fault> {
        let query = &request.query;
        let statistics = match rank::statistics_query(query, ranking) {
            Some(statistics) => {
                self.one_value(container, request, &Scope::Container, statistics, spent).await?
            }
            None => None,
        };
        let scores = rank::scores(ranking, statistics.as_ref().map(Value::as_ref));
        let rows = match rank::scores_query(query, &scores) {
            Some(rows) => self.one_value(container, request, &request.scope, rows, spent).await?,
            None => None,
        };
        let query = rank::ordered(query, ranking, scores, rows.as_ref().map(Value::as_ref));
        program(container, &QueryRequest { query: Arc::new(query), ..request.clone() })
    }

    /// The one value that a query over `scope` gives.
    async fn one_value(
        &self,
        container: &Container,
        request: &QueryRequest,
        scope: &Scope,
        query: Query,
        spent: &mut QueryMetrics,
    ) -> Result<Option<Value>, Fault> {
        let request = QueryRequest { query: Arc::new(query), ..request.clone() };
        let page = PageRequest {
            program: Arc::new(program(container, &request)?),
            items_max: 1,
            bytes_max: usize::MAX,
            resume: None,
            bounds: self.options.query_bounds,
        };
        let parts = self.parts(container, scope).await?;
        let page = Box::pin(exec::page(page, parts, Arc::clone(&self.ambient))).await?;
        spent.add(&page.metrics);
        Ok(page.rows.into_iter().next().and_then(|row| match row {
            QueryRow::Value(value) => Some(value),
            QueryRow::Document(_) => None,
        }))
    }

    /// How a query is carried out, as text.
    pub async fn explain(&self, pass: ReadPass<'_>, request: &QueryRequest) -> Result<String, Fault> {
        let program = program(pass.container, request)?;
        let parts = self.parts(pass.container, &request.scope).await?;
        exec::explain(&program, &parts).await
    }

    /// Which indexes a query uses, and which might help it.
    pub async fn index_use(&self, pass: &ReadPass<'_>, request: &QueryRequest) -> Result<IndexUse, Fault> {
        let program = program(pass.container, request)?;
        let parts = self.parts(pass.container, &request.scope).await?;
        let definition = pass.container.definition();
        let key = definition.partition_key.paths();
        exec::index_use(&program, &parts, &definition.policies.indexing, key).await
    }

    /// The partitions of a scope, and what is asked of each.
    async fn parts(&self, container: &Container, scope: &Scope) -> Result<Vec<Part>, Fault> {
        let (hashes, keys) = bounds(container, scope)?;
        let is_logical = match scope {
            Scope::Key(key) => container.definition().partition_key.is_complete(key),
            Scope::Container | Scope::Range(..) | Scope::Hashes(_) => false,
        };
        let mut parts = Vec::with_capacity(1);
        for entry in container.map.owners(&hashes) {
            let (keys, scope) = if is_logical {
                (keys.clone(), PartScope::Logical(keyspace::logical_key(&keys.start)))
            } else {
                let owned = keyspace::effective_range(container.number(), &entry.range);
                let Some(keys) = keys.intersection(&owned) else {
                    continue;
                };
                let is_whole = keys == owned;
                let part = || PartScope::Hashes(hashes.intersect(&entry.range));
                (keys, if is_whole { PartScope::Whole } else { part() })
            };
            let partition = self.opened(container, entry).await?;
            parts.push(Part { partition, keys, scope, ancestors: entry.parents.clone() });
        }
        Ok(parts)
    }
}

/// The request with the container's word on vectors in it.
fn with_vectors<'r>(container: &Container, request: &'r QueryRequest) -> Cow<'r, QueryRequest> {
    match &container.definition().policies.vectors {
        Some(policy) if !policy.embeddings.is_empty() => {
            let query = Arc::new(exec::with_policy(&request.query, &policy.embeddings));
            Cow::Owned(QueryRequest { query, ..request.clone() })
        }
        Some(_) | None => Cow::Borrowed(request),
    }
}

/// What a continuation belongs to: the query and where it is asked.
fn continuation_context(container: &Container, request: &QueryRequest) -> Vec<u8> {
    let mut context = scope_context("query", container, &request.scope);
    let digest = match &request.bound_to {
        None => exec::digest(&request.query, &request.computed),
        Some(query) => {
            let bound = QueryRequest { query: Arc::clone(query), ..QueryRequest::clone(request) };
            exec::digest(&with_vectors(container, &bound).query, &request.computed)
        }
    };
    context.extend_from_slice(&digest);
    context
}

fn program(container: &Container, request: &QueryRequest) -> Result<Program, Fault> {
    let system = SystemProperties { database: container.database().number(), container: container.number() };
    Program::new(Arc::clone(&request.query), &request.computed, system)
}
