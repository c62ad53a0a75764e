//! The steps of batch and bulk bodies, and the array of their results.
//!
//! ```json
//! [{"operationType":"Create","resourceBody":{…}}, {"operationType":"Read","id":"1"}]
//! [{"statusCode":201,"requestCharge":5.29,"eTag":"…","resourceBody":{…}}, …]
//! ```

use super::document::{Patch, item, patch};
use super::not_supported;
use crate::faults::{self, NosqlFault, WireFault};
use crate::wire::headers::{if_match, if_none_match};
use crate::wire::json;
use crate::wire::resources::{ItemWriter, push_etag};
use engine::{Container, StepReceipt};
use http::StatusCode;
use model::limits::{BATCH_BYTES_MAX, BATCH_OPERATIONS_MAX};
use model::{Charge, LimitFault};
use plan::{Condition, DocumentOperation, Mutation, Outcome, Rename, Returned, StoredDocument, Target};
use serde::Deserialize;
use serde_json::value::RawValue;

/// First byte of the binary form in which one client sends batches.
const HYBRID_ROW: u8 = 0x81;

/// One step as sent. The item remains text, because it has its own parser.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RawStep<'a> {
    operation_type: String,
    id: Option<String>,
    #[serde(borrow)]
    resource_body: Option<&'a RawValue>,
    if_match: Option<String>,
    if_none_match: Option<String>,
    /// Bulk only: the text of the partition key header in a single request.
    pub(super) partition_key: Option<String>,
    minimal_return_preference: Option<bool>,
}

/// The steps of a body.
pub(super) fn parse(body: &[u8]) -> Result<Vec<RawStep<'_>>, NosqlFault> {
    if body.len() > BATCH_BYTES_MAX {
        return Err(LimitFault::TooLarge { bytes: body.len(), limit: BATCH_BYTES_MAX }.into());
    }
    if body.first() == Some(&HYBRID_ROW) {
        return Err(not_supported("a batch in binary form").into());
    }
    let steps: Vec<RawStep<'_>> =
        serde_json::from_slice(body).map_err(|error| WireFault::Body { reason: error.to_string() })?;
    if steps.is_empty() {
        return Err(WireFault::Body { reason: "Batch request has no operations.".to_owned() }.into());
    }
    if steps.len() > BATCH_OPERATIONS_MAX {
        let reason = format!(
            "Batch request has more operations than what is supported. ({} given, {BATCH_OPERATIONS_MAX} allowed)",
            steps.len()
        );
        return Err(WireFault::Body { reason }.into());
    }
    Ok(steps)
}

/// Which documents are returned, by the preference of the request.
pub(super) fn returned(minimal: bool) -> Returned {
    if minimal { Returned::Reads } else { Returned::All }
}

impl RawStep<'_> {
    /// The operation of the step in `container`.
    pub(super) fn operation(&self, container: &Container) -> Result<DocumentOperation, NosqlFault> {
        let condition = self.condition();
        let kinds = ["Create", "Upsert", "Replace", "Patch", "Delete", "Read"];
        let kind = kinds.into_iter().find(|kind| self.operation_type.eq_ignore_ascii_case(kind));
        Ok(match kind.unwrap_or_default() {
            "Create" => DocumentOperation::Write(Mutation::Create { item: item(self.body()?)? }),
            "Upsert" => DocumentOperation::Write(Mutation::Upsert { item: item(self.body()?)?, condition }),
            "Replace" => {
                let (target, item) = (self.target()?, item(self.body()?)?);
                // Permission for a batch or a bulk covers the whole logical partition.
                DocumentOperation::Write(Mutation::Replace {
                    target,
                    item,
                    condition,
                    rename: Rename::Allowed,
                })
            }
            "Patch" => {
                let (target, Patch { operations, filter }) =
                    (self.target()?, patch(container, self.body()?)?);
                DocumentOperation::Write(Mutation::Patch { target, operations, condition, filter })
            }
            "Delete" => DocumentOperation::Write(Mutation::Delete { target: self.target()?, condition }),
            "Read" => DocumentOperation::Read { target: self.target()?, condition: self.read_condition() },
            _ => {
                let reason = format!("the operation type \"{}\" is unknown", self.operation_type);
                return Err(WireFault::Body { reason }.into());
            }
        })
    }

    /// Whether the answer may omit the item.
    pub(super) fn prefers_minimal(&self) -> bool {
        self.minimal_return_preference.unwrap_or(false)
    }

    fn condition(&self) -> Condition {
        match (&self.if_match, &self.if_none_match) {
            (Some(etag), _) => if_match(etag),
            (None, Some(etag)) => if_none_match(etag),
            (None, None) => Condition::None,
        }
    }

    /// The version that the client has already, which clients give in either member.
    fn read_condition(&self) -> Condition {
        let etag = self.if_match.as_ref().or(self.if_none_match.as_ref());
        etag.map_or(Condition::None, |etag| if_none_match(etag))
    }

    fn body(&self) -> Result<&[u8], WireFault> {
        let missing = || WireFault::Body { reason: "an operation lacks its \"resourceBody\"".to_owned() };
        self.resource_body.map(|body| body.get().as_bytes()).ok_or_else(missing)
    }

    fn target(&self) -> Result<Target, WireFault> {
        let missing = || WireFault::Body { reason: "an operation lacks its \"id\"".to_owned() };
        self.id.clone().map(Target::Id).ok_or_else(missing)
    }
}

/// The status of a step's outcome.
fn status(outcome: &Outcome) -> StatusCode {
    match outcome {
        Outcome::Created(_) => StatusCode::CREATED,
        Outcome::Replaced(_) | Outcome::Read(_) => StatusCode::OK,
        Outcome::Deleted | Outcome::Nothing => StatusCode::NO_CONTENT,
        Outcome::NotModified(_) => StatusCode::NOT_MODIFIED,
    }
}

/// Writes the array of results.
pub(super) struct StepWriter<'a> {
    items: ItemWriter<'a>,
    out: Vec<u8>,
}

impl StepWriter<'_> {
    /// A writer for steps on items of `container`.
    pub(super) fn new(container: &Container) -> StepWriter<'_> {
        StepWriter { items: ItemWriter::new(container), out: vec![b'['] }
    }

    /// Adds the result of a step.
    pub(super) fn done(&mut self, receipt: &StepReceipt, minimal: bool) {
        self.start(status(&receipt.outcome), 0, receipt.charge);
        match &receipt.outcome {
            Outcome::Read(stored) => self.stored(stored, true),
            Outcome::Created(stored) | Outcome::Replaced(stored) => self.stored(stored, !minimal),
            Outcome::NotModified(etag) => {
                self.out.extend_from_slice(b",\"eTag\":");
                push_etag(*etag, &mut self.out);
            }
            Outcome::Deleted | Outcome::Nothing => {}
        }
        self.out.push(b'}');
    }

    /// Adds the fault of a refused step.
    pub(super) fn refused(&mut self, fault: &NosqlFault) {
        let (status, substatus, _) = faults::wire(fault);
        self.start(status, substatus, fault.charge());
        if let Some(retry_after_ms) = fault.retry_after_ms() {
            self.out.extend_from_slice(b",\"retryAfterMilliseconds\":");
            json::push_integer(retry_after_ms, &mut self.out);
        }
        self.out.push(b'}');
    }

    /// Adds a step that was not executed because another was refused.
    pub(super) fn not_done(&mut self) {
        self.start(StatusCode::FAILED_DEPENDENCY, 0, Charge::NONE);
        self.out.push(b'}');
    }

    /// The finished array.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.out.push(b']');
        self.out
    }

    fn start(&mut self, status: StatusCode, substatus: u32, charge: Charge) {
        if self.out.len() > 1 {
            self.out.push(b',');
        }
        self.out.extend_from_slice(b"{\"statusCode\":");
        json::push_integer(status.as_u16(), &mut self.out);
        if substatus != 0 {
            self.out.extend_from_slice(b",\"subStatusCode\":");
            json::push_integer(substatus, &mut self.out);
        }
        self.out.extend_from_slice(b",\"requestCharge\":");
        self.out.extend_from_slice(charge.to_string().as_bytes());
    }

    fn stored(&mut self, stored: &StoredDocument, with_body: bool) {
        self.out.extend_from_slice(b",\"eTag\":");
        push_etag(stored.etag, &mut self.out);
        if with_body {
            self.out.extend_from_slice(b",\"resourceBody\":");
            self.items.push(stored, &mut self.out);
        }
    }
}
