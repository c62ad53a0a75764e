//! `POST /$batch`: an entity group transaction, all or nothing, or a single query.

use super::entity::{partition_key, written_time};
use super::insert_entity::InsertAnswer;
use super::{Call, ETAG, delete_entity, entity, insert_entity, merge_entity, put_entity};
use crate::account::AccountStyle;
use crate::edm::PARTITION_KEY;
use crate::faults::{Code, TableFault, error_body, request};
use crate::query_string::QueryString;
use crate::route::{self, Operation, Selectors};
use crate::service::trailer;
use crate::wire::entity::{EntityKeys, entity_address, read_entity};
use crate::wire::multipart::{
    Batch, MultipartFault, PartRequest, PartResponse, batch_content_type, read_batch, write_changeset,
    write_retrieval,
};
use crate::wire::reply::Reply;
use crate::wire::{accept, etag, names};
use api_http::Guid;
use api_http::request_headers::RequestHeaders;
use bytes::Bytes;
use engine::{Action, BatchReceipt, Container};
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use model::Charge;
use plan::{DocumentOperation, Item, Mutation, Outcome, Returned};
use std::collections::HashSet;
use std::sync::Arc;

/// A request of the changeset, read and ready to be answered. Its operation is kept apart: the engine takes it.
struct Step {
    table: String,
    partition_key: String,
    row_key: String,
    content_id: Option<String>,
    /// What the client wants back from an insert; `None` for other writes.
    inserts: Option<InsertAnswer>,
    /// Whether the entity is inserted if it does not exist.
    may_insert: bool,
}

pub(super) async fn perform(call: &Call<'_>) -> Result<Reply, TableFault> {
    let content_type =
        call.headers.get(&CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let batch = match read_batch(content_type, &call.body) {
        // These are about one operation of a batch that is otherwise well-formed.
        Err(fault @ MultipartFault::TooManyOperations { count_max }) => {
            return Ok(written(
                call,
                Charge::MINIMUM,
                &[refused(call, &step_fault(count_max, fault.into()), None)],
            ));
        }
        Err(fault @ MultipartFault::QueryInChangeset { part }) => {
            return Ok(written(
                call,
                Charge::MINIMUM,
                &[refused(call, &step_fault(part, fault.into()), None)],
            ));
        }
        batch => batch?,
    };
    match batch {
        Batch::Retrieval(part) => retrieval(call, part).await,
        Batch::Changeset(parts) => changeset(call, parts).await,
    }
}

/// The fault of one operation of a batch.
fn step_fault(index: usize, fault: TableFault) -> TableFault {
    TableFault::Step { index, fault: Box::new(fault) }
}

static CONTENT_TYPE: http::HeaderName = names::CONTENT_TYPE;

/// A part as a request of its own.
struct Inner {
    uri: Uri,
    headers: RequestHeaders,
    operation: Operation,
    content_id: Option<String>,
    body: Bytes,
}

fn inner(call: &Call<'_>, part: PartRequest) -> Result<Inner, TableFault> {
    let malformed = || {
        request(
            Code::InvalidInput,
            "One of the request inputs is not valid. The address of an operation is malformed.",
        )
    };
    let uri: Uri =
        part.address.parse().or_else(|_| escaped(&part.address).parse()).map_err(|_| malformed())?;
    let accounts = [call.account.name.as_str()];
    let (_, path) = match route::is_table_like_account(uri.path(), uri.host(), uri.query()) {
        true => (None, uri.path().trim_start_matches('/')),
        false => route::split_account(uri.path(), &accounts),
    };
    let tunnel = part.headers.get(route::TUNNEL).and_then(|value| value.to_str().ok());
    let verb = route::tunneled(&part.method, tunnel)?;
    let operation = route::operation(&verb, route::place(path)?, Selectors::default());
    let operation = operation.map_err(|fault| request(Code::InvalidInput, fault.to_string()))?;
    let PartRequest { mut headers, content_id, body, .. } = part;
    // Addresses in answers are those of the outer request.
    if let Some(host) = call.headers.get(&names::HOST) {
        headers.insert(names::HOST, host.clone());
    }
    Ok(Inner { headers: RequestHeaders::from(headers), operation, uri, content_id, body })
}

/// An address in which characters that a URI cannot have are encoded: some clients do not encode keys in batches.
fn escaped(address: &str) -> String {
    let mut text = String::with_capacity(address.len() * 2);
    for byte in address.bytes() {
        match byte {
            b'!'..=b'~' if !matches!(byte, b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}') => {
                text.push(char::from(byte));
            }
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// The call of a part, with the caller of the batch.
fn part_call<'a>(call: &'a Call<'_>, inner: &'a Inner, query: &'a QueryString<'a>) -> Call<'a> {
    Call {
        engine: call.engine,
        options: call.options,
        creating: call.creating,
        account: call.account,
        is_account_in_path: call.is_account_in_path,
        principal: call.principal.clone(),
        signer: call.signer.clone(),
        connection: call.connection.clone(),
        uri: call.uri,
        headers: &inner.headers,
        query,
        body: inner.body.clone(),
    }
}

async fn retrieval(call: &Call<'_>, part: PartRequest) -> Result<Reply, TableFault> {
    let boundary = boundary(call, "batchresponse");
    let inner = inner(call, part)?;
    let query = QueryString::parse(inner.uri.query().unwrap_or_default())?;
    let part_call = part_call(call, &inner, &query);
    let is_read = matches!(inner.operation, Operation::ReadEntity(_) | Operation::QueryEntities(_));
    let answered = if is_read {
        Box::pin(super::perform(&part_call, &inner.operation)).await
    } else {
        Err(request(
            Code::InvalidInput,
            "One of the request inputs is not valid. A batch reads entities only.",
        ))
    };
    let (response, charge) = match answered {
        Ok(reply) => {
            let Reply { status, headers, body, charge, .. } = reply;
            (PartResponse { status, headers, content_id: inner.content_id.clone(), body }, charge)
        }
        Err(fault) => (refused(call, &fault, inner.content_id.clone()), fault.charge()),
    };
    let mut body = Vec::new();
    write_retrieval(&boundary, &response, &mut body);
    Ok(answer(charge, &boundary, body))
}

async fn changeset(call: &Call<'_>, parts: Vec<PartRequest>) -> Result<Reply, TableFault> {
    // Few clients number their operations, so this is usually a list of nothing.
    let content_ids: Vec<Option<String>> = parts.iter().map(|part| part.content_id.clone()).collect();
    let Done { table, steps, outcomes, charge } = match transact(call, parts).await {
        Ok(done) => done,
        Err(fault @ TableFault::Step { index, .. }) => {
            let content_id = content_ids.into_iter().nth(index).flatten();
            return Ok(written(call, fault.charge(), &[refused(call, &fault, content_id)]));
        }
        Err(fault) => return Err(fault),
    };
    let base = call.base();
    let mut responses = Vec::with_capacity(steps.len());
    for (step, outcome) in steps.into_iter().zip(&outcomes) {
        responses.push(answered(call, &base, &table, step, outcome));
    }
    Ok(written(call, charge, &responses))
}

/// The answer of a performed operation.
fn answered(call: &Call<'_>, base: &str, table: &Container, step: Step, outcome: &Outcome) -> PartResponse {
    let Step { partition_key, row_key, content_id, inserts, .. } = step;
    let mut response = match (inserts, outcome) {
        (Some(wanted), Outcome::Created(stored)) => {
            let address = entity_address(table.id(), &partition_key, &row_key);
            let Reply { status, headers, body, .. } =
                insert_entity::reply(call, table, stored, (base, &address), wanted);
            PartResponse { status, headers, content_id, body }
        }
        (_, outcome) => {
            let mut headers = HeaderMap::new();
            let etag = written_time(outcome).and_then(|time| HeaderValue::try_from(etag::etag(time)).ok());
            if let Some(etag) = etag {
                headers.insert(&ETAG, etag);
            }
            PartResponse { status: StatusCode::NO_CONTENT, headers, content_id, body: Vec::new() }
        }
    };
    response.headers.insert(&DATA_SERVICE_VERSION, HeaderValue::from_static("3.0"));
    response
}

static DATA_SERVICE_VERSION: http::HeaderName = http::HeaderName::from_static("dataserviceversion");

fn out_of_step() -> TableFault {
    model::Fault::Internal("a batch has more outcomes than operations".to_owned()).into()
}

/// A committed changeset.
struct Done {
    table: Arc<Container>,
    steps: Vec<Step>,
    outcomes: Vec<Outcome>,
    charge: Charge,
}

/// Performs all requests in one commit, or none.
async fn transact(call: &Call<'_>, parts: Vec<PartRequest>) -> Result<Done, TableFault> {
    let at = |index: usize| move |fault: TableFault| step_fault(index, fault);
    let mut steps: Vec<Step> = Vec::with_capacity(parts.len());
    let mut operations = Vec::with_capacity(parts.len());
    for (index, part) in parts.into_iter().enumerate() {
        let (step, operation) = step(call, part).map_err(at(index))?;
        check_group(call.style(), steps.first().unwrap_or(&step), &step).map_err(at(index))?;
        operations.push(operation);
        steps.push(step);
    }
    check_rows(&steps)?;
    let first = steps.first().ok_or_else(out_of_step)?;
    let action = operations.first().map_or(Action::ReadDocument, Action::of_step);
    // What is not permitted refuses the whole request, here as below.
    let is_access = |fault: &TableFault| matches!(fault, TableFault::Core(model::Fault::Access(_), _));
    let table = call.table(&first.table, action);
    let table = table.map_err(|fault| if is_access(&fault) { fault } else { at(0)(fault) })?;
    let key = partition_key(&table, &first.partition_key).map_err(|fault| at(0)(fault.into()))?;
    let steps_with_rows = operations
        .into_iter()
        .zip(&steps)
        .map(|(operation, step)| (operation, step.row_key.as_str()))
        .collect();
    let pass = call.engine.access().batch_of_rows(&call.principal, &table, key, steps_with_rows)?;
    // If the table was dropped meanwhile, the answer is that of a batch which comes after the drop.
    let of_batch = |fault: model::Fault| {
        let is_missing = matches!(fault, model::Fault::Missing(_));
        if is_missing { at(0)(fault.into()) } else { fault.into() }
    };
    let receipt = call.engine.batch(pass, Returned::Reads, &[]).await;
    let BatchReceipt { charge, result, .. } = receipt.map_err(of_batch)?;
    let receipts = result.map_err(|refused| {
        let may_insert = steps.get(refused.index).is_some_and(|step| step.may_insert);
        at(refused.index)(entity::refusal(refused.fault, may_insert))
    })?;
    let outcomes = receipts.into_iter().map(|receipt| receipt.outcome).collect();
    Ok(Done { table, steps, outcomes, charge })
}

/// Refuses a group that names an entity twice.
fn check_rows(steps: &[Step]) -> Result<(), TableFault> {
    let mut rows = HashSet::with_capacity(steps.len());
    match steps.iter().position(|step| !rows.insert(step.row_key.as_str())) {
        None => Ok(()),
        Some(index) => Err(step_fault(
            index,
            request(
                Code::InvalidDuplicateRow,
                "The batch request contains multiple changes with same row key. An entity can appear only once in a \
                 batch request.",
            ),
        )),
    }
}

fn step(call: &Call<'_>, part: PartRequest) -> Result<(Step, DocumentOperation), TableFault> {
    let inner = inner(call, part)?;
    let query = QueryString::default();
    let call = part_call(call, &inner, &query);
    let (path, operation) = match &inner.operation {
        Operation::InsertEntity(table) => return insertion(&call, table, inner.content_id.clone()),
        Operation::PutEntity(path) => (path, put_entity::operation(&call, path, entity::condition(&call)?)?),
        Operation::MergeEntity(path) => {
            (path, merge_entity::operation(&call, path, entity::condition(&call)?)?)
        }
        Operation::DeleteEntity(path) => (path, delete_entity::operation(path, entity::condition(&call)?)?),
        Operation::ReadServiceProperties
        | Operation::ReplaceServiceProperties
        | Operation::ReadStatistics
        | Operation::ListTables
        | Operation::CreateTable
        | Operation::ReadTable(_)
        | Operation::DeleteTable(_)
        | Operation::ReadTableAcl(_)
        | Operation::ReplaceTableAcl(_)
        | Operation::QueryEntities(_)
        | Operation::ReadEntity(_)
        | Operation::Batch => {
            return Err(request(
                Code::InvalidInput,
                "One of the request inputs is not valid. A changeset writes entities only.",
            ));
        }
    };
    let units_max = call.style().limits().key_units_max;
    crate::wire::entity::check_key(PARTITION_KEY, &path.partition_key, units_max)?;
    crate::wire::entity::check_key(crate::edm::ROW_KEY, &path.row_key, units_max)?;
    let step = Step {
        table: path.table.clone(),
        partition_key: path.partition_key.clone(),
        row_key: path.row_key.clone(),
        content_id: inner.content_id.clone(),
        inserts: None,
        may_insert: entity::may_insert(&operation),
    };
    Ok((step, operation))
}

fn insertion(
    call: &Call<'_>,
    table: &str,
    content_id: Option<String>,
) -> Result<(Step, DocumentOperation), TableFault> {
    let entity = read_entity(&call.body, EntityKeys::InBody, call.style().limits())?;
    let step = Step {
        table: table.to_owned(),
        partition_key: entity.partition_key,
        row_key: entity.row_key,
        content_id,
        inserts: Some(InsertAnswer::of(call)?),
        may_insert: true,
    };
    Ok((step, DocumentOperation::Write(Mutation::Create { item: Item::new(entity.document)? })))
}

/// Refuses a step of another table or partition than the first one.
fn check_group(style: AccountStyle, first: &Step, step: &Step) -> Result<(), TableFault> {
    if !style.is_same_table(&first.table, &step.table) {
        return Err(request(
            Code::InvalidInput,
            "One of the request inputs is not valid. All operations of a batch are in one table.",
        ));
    }
    if step.partition_key != first.partition_key {
        return Err(request(
            Code::CommandsInBatchActOnDifferentPartitions,
            "All commands in a batch must operate on same entity group.",
        ));
    }
    Ok(())
}

/// The answer of a refused operation.
fn refused(call: &Call<'_>, fault: &TableFault, content_id: Option<String>) -> PartResponse {
    let (style, form) = (call.style(), accept::error_form(call.headers));
    let code = fault.code(style);
    let ambient = call.engine.ambient();
    let trailer = trailer(&Guid::random(ambient), ambient.now_seconds());
    let body = error_body(form, code, &fault.message(style), &trailer);
    let mut headers = HeaderMap::new();
    let content_type = "application/json;odata=minimalmetadata;streaming=true;charset=utf-8";
    headers.insert(names::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert("dataserviceversion", HeaderValue::from_static("3.0"));
    PartResponse { status: code.status(style), headers, content_id, body }
}

fn written(call: &Call<'_>, charge: Charge, responses: &[PartResponse]) -> Reply {
    let (outer, inner) = (boundary(call, "batchresponse"), boundary(call, "changesetresponse"));
    let mut body = Vec::with_capacity(responses.iter().map(|response| response.body.len() + 512).sum());
    write_changeset(&outer, &inner, responses, &mut body);
    answer(charge, &outer, body)
}

fn answer(charge: Charge, boundary: &str, body: Vec<u8>) -> Reply {
    let mut reply = Reply { body, ..Reply::empty(StatusCode::ACCEPTED, charge) };
    reply.text(&CONTENT_TYPE, batch_content_type(boundary));
    reply
}

fn boundary(call: &Call<'_>, prefix: &str) -> String {
    format!("{prefix}_{}", Guid::random(call.engine.ambient()).as_str())
}
