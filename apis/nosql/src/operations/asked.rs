//! Requests to a list of small resources: the list, or a query over it.
//!
//! A query is a POST to the list. It sees each resource as the list contains it, with system properties.

use super::{CATALOG_READ, Call, not_supported};
use crate::faults::{Refusal, WireFault};
use crate::wire::reply::Reply;
use crate::wire::{headers, json, names, resources};
use engine::{ListPage, ListRequest, ResourceQuery};
use http::{Method, StatusCode};
use model::Fault;
use plan::query::Query;
use serde_json::Value as Json;
use std::sync::Arc;
use value::Value;

/// A page of the list, or a page of a query over all of it.
pub(super) struct Asked {
    page: ListRequest,
    query: Option<Arc<Query>>,
}

impl Call<'_> {
    /// Whether a POST to a list is a query instead of a create.
    pub(super) fn is_query(&self) -> Result<bool, WireFault> {
        if headers::flag(self.headers(), &names::IS_QUERY_PLAN)? {
            return Err(not_supported("a query plan for anything but items"));
        }
        headers::is_query(self.headers())
    }

    /// The request to a list.
    pub(super) async fn asked(&self) -> Result<Asked, Refusal> {
        let page = self.page_request()?;
        if self.parts.method != Method::POST {
            return Ok(Asked { page, query: None });
        }
        let query = self.query().await?.query;
        Ok(Asked { page, query: Some(query) })
    }
}

/// The list that is answered, for the envelope.
pub(super) struct List<'a> {
    /// RID of the owner of the list; empty for the account.
    pub(super) parent_rid: &'a str,
    /// Name of the member with the resources.
    pub(super) envelope: &'static str,
}

impl Asked {
    /// The page of the list that is read; a query reads all of it.
    pub(super) fn page(&self) -> ListRequest {
        match &self.query {
            None => self.page.clone(),
            Some(_) => ListRequest { items_max: usize::MAX, continuation: None },
        }
    }

    /// The answer, from the page that [`Asked::page`] returned.
    pub(super) async fn answer<T>(
        self,
        call: &Call<'_>,
        list: List<'_>,
        part: ListPage<T>,
        resource: impl Fn(&T) -> Json,
    ) -> Result<Reply, Refusal> {
        let resources: Vec<Json> = part.items.iter().map(resource).collect();
        let Some(query) = self.query else {
            let count = resources.len();
            let body = resources::feed(list.parent_rid, list.envelope, resources);
            return Ok(reply(body, count, part.continuation));
        };
        let values = resources.iter().map(value_of).collect::<Result<_, Fault>>()?;
        let name = format!("{} {}", list.envelope, list.parent_rid);
        let request = ResourceQuery { query, list: name, page: self.page };
        let page = call.engine.query_resources(&call.principal, request, values).await?;
        Ok(reply(feed(&list, &page.items), page.items.len(), page.continuation))
    }
}

fn value_of(resource: &Json) -> Result<Value, Fault> {
    Value::from_json(&resources::text(resource)).map_err(|error| Fault::Internal(error.to_string()))
}

/// The envelope of the list around the results of the query.
fn feed(list: &List<'_>, results: &[Value]) -> Vec<u8> {
    let mut body = b"{\"_rid\":".to_vec();
    json::push_string(list.parent_rid, &mut body);
    body.extend_from_slice(b",\"");
    body.extend_from_slice(list.envelope.as_bytes());
    body.extend_from_slice(b"\":[");
    for (index, result) in results.iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        result.as_ref().write_json(&mut body);
    }
    body.extend_from_slice(b"],\"_count\":");
    json::push_integer(results.len(), &mut body);
    body.push(b'}');
    body
}

fn reply(body: Vec<u8>, count: usize, continuation: Option<String>) -> Reply {
    let mut reply = Reply::json(StatusCode::OK, CATALOG_READ, body);
    reply.number(&names::ITEM_COUNT, count);
    if let Some(continuation) = continuation {
        reply.text(&names::CONTINUATION, continuation);
    }
    reply
}
