//! A write with triggers: they and the write are one transaction.

use super::Call;
use super::document::{item, written};
use super::replace_document::rename;
use crate::faults::{NosqlFault, Refusal};
use crate::scripts::{self, Attempt, ScriptHost, Triggers, document_json};
use crate::wire::reply::Reply;
use crate::wire::{headers, names};
use bytes::Bytes;
use engine::script::{Finished, Role, ScriptTurn};
use engine::{Container, ContainerUsage, DocumentReceipt, Script, Transaction, WritePass};
use model::{Charge, PartitionKey};
use plan::{DocumentOperation, Item, Mutation, Outcome, Target};

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
    let usage = scripts::usage(call, &pass, triggers.all()).await?;
    let _place = call.engine.script_place(&pass).await;
    let attempt = Attempt::default();
    let write = &TriggeredWrite { call, container, triggers, logs, attempt, usage };
    let turn = async || call.engine.script_turn(&call.principal, container).await.map_err(NosqlFault::from);
    let run = |mut transaction: Transaction, turn| {
        let operation = operation.clone();
        async move {
            let run = write.run(&mut transaction, &turn, operation).await;
            write.attempt.record_charge(transaction.charge());
            (transaction, run)
        }
    };
    let transacted = call.engine.transact_prepared(&pass, &options, turn, run).await;
    let (mut ran, receipt) = transacted.map_err(|fault: NosqlFault| write.attempt.refusal(fault, logs))?;
    if let (Outcome::Created(stored) | Outcome::Replaced(stored), Some(lsn)) = (&mut ran.outcome, receipt.lsn)
    {
        stored.lsn = lsn;
    }
    let charge = receipt.charge.max(Charge::MINIMUM);
    let has_body = !matches!(ran.outcome, Outcome::Deleted) && !headers::prefers_minimal(call.headers())?;
    let receipt = DocumentReceipt { outcome: ran.outcome, session: receipt.session, charge };
    let mut reply = written(call, container, receipt)?;
    if let Some(body) = ran.body.filter(|_| has_body) {
        reply.replace_body(&body);
    }
    if logs {
        scripts::add_log(&mut reply, &ran.log);
    }
    Ok(reply)
}

/// A write with its triggers that ended normally.
struct Ran {
    outcome: Outcome,
    /// The body of the answer, if the trigger after the write has set one.
    body: Option<Bytes>,
    log: String,
}

struct TriggeredWrite<'a> {
    call: &'a Call<'a>,
    container: &'a Container,
    triggers: Triggers,
    logs: bool,
    attempt: Attempt,
    usage: Option<ContainerUsage>,
}

impl TriggeredWrite<'_> {
    async fn run(
        &self,
        transaction: &mut Transaction,
        turn: &ScriptTurn,
        operation: DocumentOperation,
    ) -> Result<Ran, NosqlFault> {
        let Triggers { write, before, after } = &self.triggers;
        let (mut operation, mut log) = (operation, String::new());
        if let Some(script) = before {
            let document = requested(&operation);
            let role = Role::PreTrigger { operation: *write, document };
            let (finished, _) = self.run_script(transaction, turn, script, role, &mut log).await?;
            if let Some(document) = finished.document {
                operation = self.with_item(operation, item(&document)?, transaction.key());
            }
        }
        let request = if after.is_some() { requested(&operation) } else { Bytes::new() };
        let mut outcome = transaction.execute(operation).await?.outcome;
        let Some(script) = after else { return Ok(Ran { outcome, body: None, log }) };
        let document = match &outcome {
            Outcome::Created(stored) | Outcome::Replaced(stored) | Outcome::Read(stored) => {
                document_json(self.container, stored)
            }
            Outcome::Deleted | Outcome::NotModified(_) | Outcome::Nothing => Bytes::new(),
        };
        let role = Role::PostTrigger { operation: *write, request, document };
        let (finished, has_written) = self.run_script(transaction, turn, script, role, &mut log).await?;
        if has_written {
            refresh(transaction, &mut outcome).await?;
        }
        Ok(Ran { outcome, body: finished.body, log })
    }

    /// Runs a trigger and appends its log; returns also whether it has changed documents.
    async fn run_script(
        &self,
        transaction: &mut Transaction,
        turn: &ScriptTurn,
        script: &Script,
        role: Role,
        log: &mut String,
    ) -> Result<(Finished, bool), NosqlFault> {
        let TriggeredWrite { call, container, logs, attempt, .. } = self;
        let usage = self.usage.as_ref();
        let script = scripts::script_call(call, container, script, role, *logs, attempt, usage);
        let mut host = ScriptHost::new(transaction, call.texts, usage);
        let run = self.call.engine.run_script(turn, &script, &mut host).await;
        let has_written = host.has_written();
        let failed_log = host.into_log();
        let finished = self.attempt.record(transaction, format!("{log}{failed_log}"), run)?;
        log.push_str(&finished.log);
        Ok((finished, has_written))
    }

    /// The same operation with another document, which may have another id.
    fn with_item(&self, operation: DocumentOperation, item: Item, key: &PartitionKey) -> DocumentOperation {
        match operation {
            DocumentOperation::Write(Mutation::Create { .. }) => {
                DocumentOperation::Write(Mutation::Create { item })
            }
            DocumentOperation::Write(Mutation::Upsert { condition, .. }) => {
                DocumentOperation::Write(Mutation::Upsert { item, condition })
            }
            DocumentOperation::Write(Mutation::Replace { target, condition, .. }) => {
                let rename = rename(self.call, self.container, key, &target, &item);
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
}

/// The written document as the trigger after the write has left it: the answer must not show an ETag that no longer
/// exists. One that the trigger has deleted and created again has another number. One that it has only deleted is
/// answered as it was written.
async fn refresh(transaction: &mut Transaction, outcome: &mut Outcome) -> Result<(), NosqlFault> {
    let (Outcome::Created(stored) | Outcome::Replaced(stored)) = outcome else { return Ok(()) };
    let id = stored.document.root().member("id").and_then(|id| id.as_str()).map(str::to_owned);
    for target in [Some(Target::Number(stored.number)), id.map(Target::Id)].into_iter().flatten() {
        if let Some(current) = transaction.reread(target).await? {
            *stored = current;
            return Ok(());
        }
    }
    Ok(())
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
