//! Queries over the small resources of the catalog: databases, containers, offers, users, scripts.
//!
//! There are few of them and all are in memory, so a query evaluates each. The caller has read the resources with a
//! pass; computing over them needs no other. The wire form of resources is not known here: an API passes values.

use crate::authorisation::Principal;
use crate::catalog::{ListPage, ListRequest};
use crate::engine::Engine;
use eval::{Budget, Context, Deadline, DocumentRow};
use exec::query_fault;
use model::{ContinuationFault, Fault, RequestFault};
use plan::query::Query;
use std::sync::Arc;
use value::Value;

/// Maximum memory of a query over resources.
const BYTES_MAX: usize = 64 << 20;
/// Maximum number of rows that a query over resources evaluates.
const ROWS_MAX: u64 = 1_000_000;

/// A query over a list of resources.
#[derive(Clone, Debug)]
pub struct ResourceQuery {
    /// The query.
    pub query: Arc<Query>,
    /// Name of the list: a continuation is valid for one list only.
    pub list: String,
    /// Which part of the result is requested.
    pub page: ListRequest,
}

impl Engine {
    /// Computes a page of a query over `resources`, which are in the order of the list.
    ///
    /// The whole result is computed for each page; the continuation counts the results that were returned.
    pub async fn query_resources(
        &self,
        principal: &Principal,
        request: ResourceQuery,
        resources: Vec<Value>,
    ) -> Result<ListPage<Value>, Fault> {
        let ResourceQuery { query, list, page } = request;
        let context = format!("query {list}\n{query}");
        let given = match &page.continuation {
            None => 0,
            Some(text) => {
                let position = self.continuation_key.open(context.as_bytes(), text)?;
                let position = position.try_into().map(u64::from_be_bytes);
                position.map_err(|_| RequestFault::BadContinuation(ContinuationFault::OtherList))?
            }
        };
        let ambient = Arc::clone(&self.ambient);
        let granted_ms = self.options.query_bounds.time_ms;
        let compute = move |meter| {
            let mut context = Context::new(&*ambient, Budget::new(BYTES_MAX, ROWS_MAX)).with_meter(meter);
            context.deadline =
                Some(Deadline { at_ms: ambient.now_ms().saturating_add(granted_ms), granted_ms });
            let rows = resources.iter().zip(0..);
            let rows = rows.map(|(resource, number)| DocumentRow { number, root: resource.as_ref() });
            eval::run(&context, &query, rows).map_err(query_fault)
        };
        let results = self.isolation.compute_apart(principal, compute).await?;
        let mut rest = results.into_iter().skip(usize::try_from(given).unwrap_or(usize::MAX));
        let items: Vec<Value> = rest.by_ref().take(page.items_max).collect();
        let next = given.saturating_add(items.len() as u64);
        let continuation = rest
            .next()
            .is_some()
            .then(|| self.continuation_key.seal(context.as_bytes(), &next.to_be_bytes()));
        Ok(ListPage { items, continuation })
    }
}
