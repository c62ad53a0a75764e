//! `GET /name`: a page of entities in the order of their keys.
//!
//! The continuation is the engine's, in the header of the next PartitionKey. Clients return it as they got it, together
//! with that of the next RowKey, which some require.

use super::Call;
use super::entity::{has_row_key, is_entity, partition_key, target};
use crate::faults::{Code, TableFault, request};
use crate::filter::{self, Filter, LoweredFilter};
use crate::wire::entity::{EntityRow, Select, write_page};
use crate::wire::reply::Reply;
use crate::wire::{accept, etag, names};
use engine::{Action, Container, DocumentAddress, QueryRequest, QueryRow, ReadOptions, Scope, pinned_keys};
use http::StatusCode;
use model::{Charge, Fault, MissingFault};
use plan::{Outcome, StoredDocument};
use std::sync::Arc;

/// Most entities of a page.
pub(super) const PAGE_ENTITIES_MAX: usize = 1000;
/// Query options of OData that the service does not have.
const UNSUPPORTED: [&str; 5] = ["$orderby", "$skip", "$expand", "$inlinecount", "$count"];
/// The value of the second continuation header.
const NEXT_ROW: &str = "1";

/// A page, before it is written.
struct Page {
    entities: Vec<StoredDocument>,
    continuation: Option<String>,
    charge: Charge,
}

pub(super) async fn perform(call: &Call<'_>, name: &str) -> Result<Reply, TableFault> {
    let table = call.table(name, Action::QueryDocuments)?;
    let level = call.level()?;
    let select = select(call)?;
    let items_max = top(call)?;
    if let Some(option) = UNSUPPORTED.iter().find(|option| call.query.get(option).is_some()) {
        return Err(request(Code::NotImplemented, format!("The query option {option} is not supported.")));
    }
    let filter_text = call.query.get("$filter").unwrap_or_default();
    let filter = filter::parse(filter_text)?;
    let page = match filter.as_ref().and_then(filter::exact_keys) {
        Some(keys) => point(call, &table, keys).await?,
        None => page(call, &table, filter.as_ref(), items_max, filter_text.len()).await?,
    };
    let base = call.base();
    let frame = call.frame(level, &base, &table, &select);
    let etags: Vec<String> = page.entities.iter().map(|stored| etag::etag(stored.time)).collect();
    let rows = page.entities.iter().zip(&etags).map(|(stored, etag)| EntityRow {
        document: stored.document.root(),
        timestamp: stored.time,
        etag,
    });
    let bytes: usize = page.entities.iter().map(|stored| stored.document.bytes().len() * 5 / 4 + 128).sum();
    let mut body = Vec::with_capacity(bytes + 256);
    write_page(&frame, rows, &mut body);
    let mut reply = Reply::with_body(StatusCode::OK, page.charge, accept::content_type(level), body);
    if let Some(continuation) = page.continuation {
        reply.text(&names::NEXT_PARTITION_KEY, continuation);
        reply.fixed(&names::NEXT_ROW_KEY, NEXT_ROW);
    }
    Ok(reply)
}

/// The entity with these keys, if there is one. A caller who may query may read it.
async fn point(
    call: &Call<'_>,
    table: &Container,
    (partition, row): (&str, &str),
) -> Result<Page, TableFault> {
    let none = |charge| Page { entities: Vec::new(), continuation: None, charge };
    let Ok(key) = partition_key(table, partition) else { return Ok(none(Charge::MINIMUM)) };
    let address = DocumentAddress { key, target: target(row) };
    let access = call.engine.access();
    let pass = match access.read_row(&call.principal, table, address, row) {
        Ok(pass) => pass,
        // The rights may be for other keys of the table: a query finds nothing there.
        Err(refused) => {
            let scope = Scope::Container;
            return access
                .query_documents(&call.principal, table, scope)
                .map_or(Err(refused.into()), |_| Ok(none(Charge::MINIMUM)));
        }
    };
    let receipt = match call.engine.read(pass, &ReadOptions::default()).await {
        Ok(receipt) => receipt,
        Err(refused) if refused.fault == Fault::Missing(MissingFault::Resource) => {
            return Ok(none(Charge::MINIMUM));
        }
        Err(refused) => return Err(refused.into()),
    };
    Ok(match receipt.outcome {
        Outcome::Read(stored) | Outcome::Created(stored) | Outcome::Replaced(stored)
            if has_row_key(&stored, row) =>
        {
            Page { entities: vec![stored], continuation: None, charge: receipt.charge }
        }
        Outcome::Read(_)
        | Outcome::Created(_)
        | Outcome::Replaced(_)
        | Outcome::Deleted
        | Outcome::NotModified(_)
        | Outcome::Nothing => none(receipt.charge),
    })
}

async fn page(
    call: &Call<'_>,
    table: &Container,
    filter: Option<&Filter>,
    items_max: usize,
    text_bytes: usize,
) -> Result<Page, TableFault> {
    let LoweredFilter { query, needs_check } = filter::lower(filter);
    let scope = match pinned_keys(&query, &table.definition().partition_key).as_deref() {
        Some([key]) => Scope::Key(key.clone()),
        Some(_) | None => Scope::Container,
    };
    let pass = call.engine.access().query_documents(&call.principal, table, scope)?;
    let continuation = call.query.get("NextPartitionKey").filter(|text| !text.is_empty()).map(str::to_owned);
    let request = QueryRequest {
        query: Arc::new(query),
        items_max,
        ends_at_ranges: false,
        continuation,
        session: Vec::new(),
        text_bytes,
    };
    let page = call.engine.query(pass, &request).await?;
    let mut entities = Vec::with_capacity(page.rows.len());
    for row in page.rows {
        match row {
            QueryRow::Document(stored) => entities.push(stored),
            QueryRow::Value(_) => {
                return Err(Fault::Internal("a query for documents has returned a value".to_owned()).into());
            }
        }
    }
    entities.retain(|stored| is_entity(stored.document.root()));
    if let Some(filter) = filter.filter(|_| needs_check) {
        entities.retain(|stored| filter.matches(stored.document.root(), stored.time));
    }
    Ok(Page { entities, continuation: page.continuation.map(|next| next.text), charge: page.charge })
}

/// The number of results that the client wants at most.
pub(super) fn top(call: &Call<'_>) -> Result<usize, TableFault> {
    let Some(text) = call.query.get("$top").filter(|text| !text.is_empty()) else {
        return Ok(PAGE_ENTITIES_MAX);
    };
    match text.trim().parse() {
        Ok(top @ 1..=PAGE_ENTITIES_MAX) => Ok(top),
        Ok(_) | Err(_) => Err(request(
            Code::InvalidInput,
            format!(
                "One of the request inputs is not valid. $top is a number from 1 to {PAGE_ENTITIES_MAX}."
            ),
        )),
    }
}

/// The selected properties.
pub(super) fn select(call: &Call<'_>) -> Result<Select, TableFault> {
    let text = call.query.get("$select").unwrap_or_default();
    let invalid =
        || request(Code::InvalidInput, "One of the request inputs is not valid. $select is malformed.");
    Select::parse(text).ok_or_else(invalid)
}
