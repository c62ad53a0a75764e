//! A write with triggers: they and the write are one transaction.

use super::Call;
use super::document::{item, written};
use crate::faults::{NosqlFault, Refusal};
use crate::scripts::{self, ScriptHost, SpentCharge, Triggers, document_json};
use crate::wire::reply::Reply;
use crate::wire::{headers, names};
use bytes::Bytes;
use engine::script::{Role, ScriptTurn};
use engine::{Container, DocumentReceipt, Script, ScriptRefusal, Transaction, WritePass};
use model::Charge;
use plan::{DocumentOperation, Item, Mutation, Outcome};

/// Performs a write and its triggers.
pub(super) async fn perform(
    call: &Call<'_>,
    container: &Container,
    pass: WritePass<'_>,
    triggers: Triggers,
) -> Result<Reply, Refusal> {
    let logs = headers::flag(call.headers(), &names::ENABLE_SCRIPT_LOGGING)?;
    let (pass, operation) = pass.transaction();
    let options = scripts::transaction_options(call, triggers.count(), Vec::new());
    let turn = call.engine.script_turn().await.map_err(NosqlFault::from)?;
    let write = TriggeredWrite { call, container, triggers, logs, turn };
    let (write, spent) = (&write, &SpentCharge::default());
    let run = |mut transaction: Transaction| {
        let operation = operation.clone();
        async move {
            let run = write.run(&mut transaction, operation).await;
            spent.set(transaction.charge());
            (transaction, run)
        }
    };
    let transacted = call.engine.transact(&pass, &options, run).await;
    let ((mut outcome, log), receipt) = transacted.map_err(|fault: NosqlFault| spent.refusal(fault))?;
    if let (Outcome::Created(stored) | Outcome::Replaced(stored), Some(lsn)) = (&mut outcome, receipt.lsn) {
        stored.lsn = lsn;
    }
    let charge = receipt.charge.max(Charge::MINIMUM);
    let receipt = DocumentReceipt { outcome, session: receipt.session, charge };
    let mut reply = written(call, container, receipt)?;
    if logs {
        scripts::add_log(&mut reply, &log);
    }
    Ok(reply)
}

struct TriggeredWrite<'a> {
    call: &'a Call<'a>,
    container: &'a Container,
    triggers: Triggers,
    logs: bool,
    turn: ScriptTurn<'a>,
}

impl TriggeredWrite<'_> {
    /// The outcome of the write, and the log of the triggers.
    async fn run(
        &self,
        transaction: &mut Transaction,
        operation: DocumentOperation,
    ) -> Result<(Outcome, String), NosqlFault> {
        let Triggers { write, before, after } = &self.triggers;
        let (mut operation, mut log) = (operation, String::new());
        if let Some(script) = before {
            let document = requested(&operation);
            let role = Role::PreTrigger { operation: *write, document };
            let finished = self.run_script(transaction, script, role).await?;
            log.push_str(&finished.log);
            if let Some(document) = finished.document {
                operation = with_item(operation, item(&document)?);
            }
        }
        let request = if after.is_some() { requested(&operation) } else { Bytes::new() };
        let outcome = transaction.execute(operation).await?.outcome;
        if let Some(script) = after {
            let document = match &outcome {
                Outcome::Created(stored) | Outcome::Replaced(stored) | Outcome::Read(stored) => {
                    document_json(self.container, stored)
                }
                Outcome::Deleted | Outcome::NotModified(_) | Outcome::Nothing => Bytes::new(),
            };
            let role = Role::PostTrigger { operation: *write, request, document };
            log.push_str(&self.run_script(transaction, script, role).await?.log);
        }
        Ok((outcome, log))
    }

    async fn run_script(
        &self,
        transaction: &mut Transaction,
        script: &Script,
        role: Role,
    ) -> Result<engine::script::Finished, ScriptRefusal> {
        let script = scripts::script_call(self.call, self.container, script, role, self.logs);
        let host = &mut ScriptHost::new(transaction, self.call.texts);
        self.call.engine.run_script(&self.turn, &script, host).await
    }
}

/// The document of the request, as JSON; empty if it has none.
fn requested(operation: &DocumentOperation) -> Bytes {
    let item = match operation {
        DocumentOperation::Write(
            Mutation::Create { item, .. }
            | Mutation::Upsert { item, .. }
            | Mutation::Replace { item, .. }
            | Mutation::Merge { item, .. },
        ) => item,
        DocumentOperation::Write(
            Mutation::Patch { .. }
            | Mutation::Delete { .. }
            | Mutation::Expire { .. }
            | Mutation::Reschedule { .. },
        )
        | DocumentOperation::Read { .. } => return Bytes::new(),
    };
    let mut out = Vec::new();
    item.document().write_json(&mut out);
    out.into()
}

/// The same operation with another document.
fn with_item(operation: DocumentOperation, item: Item) -> DocumentOperation {
    match operation {
        DocumentOperation::Write(Mutation::Create { .. }) => {
            DocumentOperation::Write(Mutation::Create { item })
        }
        DocumentOperation::Write(Mutation::Upsert { condition, .. }) => {
            DocumentOperation::Write(Mutation::Upsert { item, condition })
        }
        DocumentOperation::Write(Mutation::Replace { target, condition, rename, .. }) => {
            DocumentOperation::Write(Mutation::Replace { target, item, condition, rename })
        }
        operation @ (DocumentOperation::Read { .. }
        | DocumentOperation::Write(
            Mutation::Merge { .. }
            | Mutation::Patch { .. }
            | Mutation::Delete { .. }
            | Mutation::Expire { .. }
            | Mutation::Reschedule { .. },
        )) => operation,
    }
}
