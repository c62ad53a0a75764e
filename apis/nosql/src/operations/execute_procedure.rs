//! `POST …/sprocs/{id}`: executes a stored procedure in one transaction of one logical partition.

use super::Call;
use super::document::required_key;
use crate::faults::{NosqlFault, Refusal, WireFault};
use crate::route::ScriptPath;
use crate::scripts::{self, Attempt, ScriptHost, refuse_triggers};
use crate::wire::reply::Reply;
use crate::wire::{headers, names};
use bytes::Bytes;
use engine::script::Role;
use engine::{Action, Transaction};
use http::StatusCode;
use model::limits::PROCEDURE_BYTES_MAX;
use model::{Charge, LimitFault};
use serde_json::value::RawValue;

pub(super) async fn perform(call: &Call<'_>, path: ScriptPath<'_>) -> Result<Reply, Refusal> {
    let container = call.owner(path.container, Action::ExecuteProcedure)?.resource;
    let named = call.engine.named_script(&container, path.kind, path.script);
    let pass = call.engine.access().execute(&call.principal, named)?;
    let procedure = call.engine.find_procedure(&pass)?;
    refuse_triggers(call, "the execution of a procedure")?;
    let key = required_key(call, &container)?;
    let parameters = parameters(&call.body)?;
    let logs = headers::flag(call.headers(), &names::ENABLE_SCRIPT_LOGGING)?;
    let options = scripts::transaction_options(call, 1, headers::session(call.headers())?);
    let pass = pass.transaction(key)?;
    let usage = scripts::usage(call, &pass, std::iter::once(&*procedure)).await?;
    let _place = call.engine.script_place(&pass).await;
    let attempt = &Attempt::default();
    let turn = async || call.engine.script_turn(&call.principal, &container).await.map_err(NosqlFault::from);
    let run = |mut transaction: Transaction, turn| {
        let role = Role::Procedure { parameters: parameters.clone() };
        let script = scripts::script_call(call, &container, &procedure, role, logs, attempt, usage.as_ref());
        async move {
            let mut host = ScriptHost::new(&mut transaction, call.texts, usage.as_ref());
            let run = call.engine.run_script(&turn, &script, &mut host).await;
            let log = host.into_log();
            let run = attempt.record(&mut transaction, log, run);
            (transaction, run)
        }
    };
    let transacted = call.engine.transact_prepared(&pass, &options, turn, run).await;
    let (finished, receipt) = transacted.map_err(|fault: NosqlFault| attempt.refusal(fault, logs))?;
    let charge = receipt.charge.max(Charge::MINIMUM);
    let mut reply = match finished.body {
        Some(body) => Reply::json(StatusCode::OK, charge, body.to_vec()),
        None => Reply::empty(StatusCode::OK, charge),
    };
    if logs {
        scripts::add_log(&mut reply, &finished.log);
    }
    reply.session(&container, receipt.session);
    Ok(reply)
}

/// The parameters: an array, or nothing.
fn parameters(body: &Bytes) -> Result<Bytes, NosqlFault> {
    if body.len() > PROCEDURE_BYTES_MAX {
        return Err(LimitFault::TooLarge { bytes: body.len(), limit: PROCEDURE_BYTES_MAX }.into());
    }
    if body.trim_ascii().is_empty() {
        return Ok(Bytes::new());
    }
    // The depth of the elements is checked where they are parsed.
    match serde_json::from_slice::<Vec<&RawValue>>(body) {
        Ok(_) => Ok(body.clone()),
        Err(error) => {
            let reason = format!("the parameters of a procedure are a JSON array: {error}");
            Err(WireFault::Body { reason }.into())
        }
    }
}
