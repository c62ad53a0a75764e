//! `GET /Tables`: tables in the order of their names.

use super::{CATALOG_READ, Call, query_entities, tables};
use crate::faults::{Code, TableFault, request};
use crate::filter::{self, Filter};
use crate::wire::entity::MetadataLevel;
use crate::wire::reply::Reply;
use crate::wire::{accept, names};
use http::StatusCode;
use model::Ticks;
use value::{Value, write_json_string};

/// The property with the name of a table.
const TABLE_NAME: &str = "TableName";
/// Longest name at which a page begins.
const NEXT_BYTES_MAX: usize = 255;

pub(super) fn perform(call: &Call<'_>) -> Result<Reply, TableFault> {
    let level = call.level()?;
    let top = query_entities::top(call)?;
    let filter = filter::parse(call.query.get("$filter").unwrap_or_default())?;
    let from = call.query.get("NextTableName").unwrap_or_default();
    if from.len() > NEXT_BYTES_MAX {
        return Err(request(Code::InvalidQueryParameterValue, "NextTableName is too long."));
    }
    let names = tables::names(call.engine, &call.principal)?;
    let mut matching = names.iter().filter(|name| name.as_str() >= from && is_kept(filter.as_ref(), name));
    let page: Vec<&String> = matching.by_ref().take(top).collect();
    let base = call.base();
    let mut body = b"{".to_vec();
    if level >= MetadataLevel::Minimal {
        body.extend_from_slice(br#""odata.metadata":"#);
        write_json_string(&format!("{base}/$metadata#Tables"), &mut body);
        body.push(b',');
    }
    body.extend_from_slice(br#""value":["#);
    for (index, name) in page.iter().enumerate() {
        body.extend_from_slice(if index > 0 { b",{" } else { b"{" });
        tables::push_table(level, &base, &call.account.name, name, &mut body);
        body.push(b'}');
    }
    body.extend_from_slice(b"]}");
    let mut reply = Reply::with_body(StatusCode::OK, CATALOG_READ, accept::content_type(level), body);
    if let Some(next) = matching.next() {
        reply.text(&names::NEXT_TABLE_NAME, next.clone());
    }
    Ok(reply)
}

fn is_kept(filter: Option<&Filter>, name: &str) -> bool {
    let Some(filter) = filter else { return true };
    let table = Value::Object([(TABLE_NAME.to_owned(), Value::from(name))].into_iter().collect());
    filter.matches(table.as_ref(), Ticks(0))
}
