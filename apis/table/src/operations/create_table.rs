//! `POST /Tables`.

use super::{CATALOG_WRITE, Call, LOCATION, tables};
use crate::account::AccountStyle;
use crate::faults::{Code, TableFault, request};
use crate::wire::reply::Reply;
use crate::wire::{accept, names};
use http::StatusCode;
use model::{ConflictFault, Throughput};

pub(super) async fn perform(call: &Call<'_>) -> Result<Reply, TableFault> {
    let name = name(&call.body)?;
    tables::check_name(call.style(), &name)?;
    let throughput = throughput(call)?;
    let level = call.level()?;
    let prefers_content = call.prefers_content()?;
    let definition = tables::definition(&name).map_err(TableFault::of_table)?;
    let database = tables::database(call).await?;
    let pass = call.engine.access().change_catalog(&call.principal, &*database)?;
    let turn = call.creating.lock().await;
    if call.style() == AccountStyle::Storage
        && !tables::names_in_any_case(call.engine, &call.signer, &name)?.is_empty()
    {
        return Err(TableFault::of_table(ConflictFault::Id));
    }
    let created = call.engine.create_container(pass, definition, throughput).await;
    drop(turn);
    created.map_err(|fault| tables::not_created(call, &name, fault))?;
    let base = call.base();
    let mut reply = match prefers_content {
        Some(false) => {
            let mut reply = Reply::empty(StatusCode::NO_CONTENT, CATALOG_WRITE);
            reply.text(&names::DATA_SERVICE_ID, format!("{base}/Tables('{name}')"));
            reply
        }
        Some(true) | None => {
            let body = tables::table_body(level, &base, &call.account.name, &name);
            Reply::with_body(StatusCode::CREATED, CATALOG_WRITE, accept::content_type(level), body)
        }
    };
    reply.text(&LOCATION, format!("{base}/Tables('{name}')"));
    match prefers_content {
        Some(false) => reply.fixed(&names::PREFERENCE_APPLIED, "return-no-content"),
        Some(true) => reply.fixed(&names::PREFERENCE_APPLIED, "return-content"),
        None => {}
    }
    Ok(reply)
}

/// The name in the body.
fn name(body: &[u8]) -> Result<String, TableFault> {
    let invalid = |reason: String| {
        request(Code::InvalidInput, format!("One of the request inputs is not valid. {reason}"))
    };
    let body: serde_json::Value =
        serde_json::from_slice(body).map_err(|error| invalid(format!("The body is not JSON: {error}.")))?;
    let name = body.get("TableName").and_then(serde_json::Value::as_str);
    name.map(str::to_owned).ok_or_else(|| invalid("The body has no text \"TableName\".".to_owned()))
}

/// The throughput of the new table.
fn throughput(call: &Call<'_>) -> Result<Option<Throughput>, TableFault> {
    let invalid = |name: &str| {
        request(Code::InvalidHeaderValue, format!("The value of the header {name} is not valid."))
    };
    let manual = call.header(&names::OFFER_THROUGHPUT)?;
    let autoscale = call.header(&names::AUTOPILOT_SETTINGS)?;
    match (manual, autoscale) {
        (None, None) => Ok(None),
        (Some(text), None) => {
            let rate = text.trim().parse().map_err(|_| invalid("x-ms-offer-throughput"))?;
            Ok(Some(Throughput::manual(rate).map_err(TableFault::of_table)?))
        }
        (None, Some(text)) => {
            let name = "x-ms-cosmos-offer-autopilot-settings";
            let settings: serde_json::Value = serde_json::from_str(text).map_err(|_| invalid(name))?;
            let max = settings.get("maxThroughput").and_then(serde_json::Value::as_u64);
            let max = max.ok_or_else(|| invalid(name))?;
            Ok(Some(Throughput::autoscale(max).map_err(TableFault::of_table)?))
        }
        (Some(_), Some(_)) => Err(invalid("x-ms-offer-throughput")),
    }
}
