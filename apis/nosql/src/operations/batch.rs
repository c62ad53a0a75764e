//! `POST …/docs` with a transactional batch: all steps in one logical partition, in one commit, or none.

use super::Call;
use super::document::required_key;
use super::steps::{self, StepWriter};
use crate::faults::{NosqlFault, Refusal};
use crate::route::ContainerPath;
use crate::scripts::refuse_triggers;
use crate::wire::headers;
use crate::wire::reply::Reply;
use engine::{Action, BatchReceipt, Container};
use http::StatusCode;
use model::Charge;
use plan::DocumentOperation;

pub(super) async fn perform(call: &Call<'_>, path: ContainerPath<'_>) -> Result<Reply, Refusal> {
    let container = call.owner(path, Action::ReadDocument)?.resource;
    refuse_triggers(call, "a batch")?;
    let key = required_key(call, &container)?;
    let steps = steps::parse(&call.body)?;
    let minimal = headers::prefers_minimal(call.headers())?;
    let mut operations = Vec::with_capacity(steps.len());
    for (index, step) in steps.iter().enumerate() {
        match step.operation(&container) {
            Ok(operation) => operations.push(operation),
            Err(fault) => return Ok(refused(&container, steps.len(), index, &fault, Charge::MINIMUM)),
        }
    }
    // A batch that only writes needs no state that the client has seen.
    let session = match operations.iter().any(|operation| matches!(operation, DocumentOperation::Read { .. }))
    {
        true => headers::session(call.headers())?,
        false => Vec::new(),
    };
    let pass = call.engine.access().batch(&call.principal, &container, key, operations)?;
    let batch = call.engine.batch(pass, steps::returned(minimal), &session);
    let BatchReceipt { session, charge, result } = batch.await?;
    let mut reply = match result {
        Ok(receipts) => {
            let mut writer = StepWriter::new(&container);
            for (receipt, step) in receipts.iter().zip(&steps) {
                writer.done(receipt, minimal || step.prefers_minimal());
            }
            Reply::json(StatusCode::OK, charge, writer.finish())
        }
        Err(refusal) => refused(&container, steps.len(), refusal.index, &refusal.fault.into(), charge),
    };
    reply.session(&container, session);
    Ok(reply)
}

/// The refused step has the fault; the others report a failed dependency.
fn refused(container: &Container, count: usize, index: usize, fault: &NosqlFault, charge: Charge) -> Reply {
    let mut writer = StepWriter::new(container);
    for step in 0..count {
        if step == index {
            writer.refused(fault);
        } else {
            writer.not_done();
        }
    }
    Reply::json(StatusCode::MULTI_STATUS, charge, writer.finish())
}
