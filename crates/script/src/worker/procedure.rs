//! A call of a procedure or trigger: the function of the script, then jobs and operations until none is left.

use super::natives::Text;
use super::outcome::{self, check_result};
use super::pipe::Pipe;
use super::realm::{DocumentEntry, Realm};
use super::{Over, compile};
use crate::limits::RESPONSE_BYTES_MAX;
use crate::wire::from_worker::{self, Failure};
use crate::wire::to_worker::{self, Allowance, ToWorker};
use crate::{Call, Finished, Outcome, Replies, Reply, Role, Thrown, TriggerOperation};
use bytes::Bytes;
use rquickjs::promise::PromiseState;
use rquickjs::{Ctx, Object, Persistent, Promise, Value};

/// Executes the call.
pub(super) fn run(
    realm: &Realm,
    allowance: Allowance,
    call: &Call,
    pipe: &mut Pipe,
) -> Result<Finished, Over> {
    let state = &realm.state;
    state.start(allowance, call.clock, call.seed);
    state.links.borrow_mut().clone_from(&call.links);
    state.quota.borrow_mut().clone_from(&call.quota);
    state.logs.set(call.logs);
    realm.limit_memory(allowance.memory_bytes);
    let running = Running { realm };
    let returned = running.begin(call)?;
    running.run_jobs()?;
    loop {
        let mut operations = state.take_operations();
        if operations.is_empty() {
            return running.finish(returned);
        }
        state.has_operated.set(true);
        pipe.send(|out| from_worker::put_operate(out, &operations))?;
        let replies = receive_replies(pipe, operations.len())?;
        state.is_budget_low.set(replies.is_budget_low);
        // Before the callbacks, which queue more.
        state.put_back(operations.split_off(replies.replies.len()));
        for reply in &replies.replies {
            running.deliver(reply)?;
            running.run_jobs()?;
        }
    }
}

fn receive_replies(pipe: &mut Pipe, count: usize) -> Result<Replies, Over> {
    match to_worker::read(pipe.receive()?) {
        Ok(ToWorker::Replies(replies)) if (1..=count).contains(&replies.replies.len()) => Ok(replies),
        Ok(ToWorker::Stop) => Err(Over::Stopped),
        Ok(
            ToWorker::Replies(_) | ToWorker::Run { .. } | ToWorker::Evaluate { .. } | ToWorker::Check { .. },
        )
        | Err(_) => Err(Over::Closed),
    }
}

/// A script in the middle of its call.
struct Running<'a> {
    realm: &'a Realm,
}

impl Running<'_> {
    /// Calls the function of the script; returns its promise if it returns one.
    fn begin(&self, call: &Call) -> Result<Option<Persistent<Promise<'static>>>, Failure> {
        self.with(|ctx, entry| {
            let script = match &self.realm.script {
                Some(script) => script.clone().restore(ctx).map_err(|error| self.failure(ctx, error))?,
                None => compile::compile(ctx, &call.name, &call.source)?,
            };
            // The text may use the input outside of its function.
            let accept =
                || -> rquickjs::Result<()> { entry.accept.clone().restore(ctx)?.call(input(ctx, call)?) };
            accept().map_err(|error| self.failure(ctx, error))?;
            let function = compile::function_of(self.realm, ctx, &script, &call.source)?;
            let begin = || -> rquickjs::Result<Value> { entry.begin.clone().restore(ctx)?.call((function,)) };
            let returned = begin().map_err(|error| self.failure(ctx, error))?;
            Ok(returned.into_promise().map(|promise| Persistent::save(ctx, promise)))
        })
    }

    /// Runs the jobs of promises until none is left.
    fn run_jobs(&self) -> Result<(), Failure> {
        loop {
            if self.realm.state.is_late() {
                return Err(Failure::TimeExceeded);
            }
            match self.realm.runtime.execute_pending_job() {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(_) => {
                    let thrown = |ctx: &Ctx<'_>| self.failure(ctx, rquickjs::Error::Exception);
                    return Err(self.realm.context.with(|ctx| thrown(&ctx)));
                }
            }
        }
    }

    fn deliver(&self, reply: &Reply) -> Result<(), Failure> {
        self.with(|ctx, entry| {
            let deliver = || -> rquickjs::Result<()> {
                let deliver = entry.deliver.clone().restore(ctx)?;
                match reply {
                    Reply::Done(outcome) => {
                        let value = parsed(ctx, outcome.body.as_ref())?;
                        deliver.call((true, value, outcome_object(ctx, outcome)?))
                    }
                    Reply::Refused(refusal) => {
                        let error = Object::new(ctx.clone())?;
                        error.set("number", refusal.number)?;
                        error.set("message", refusal.message.as_str())?;
                        deliver.call((false, Value::new_undefined(ctx.clone()), error))
                    }
                }
            };
            deliver().map_err(|error| self.failure(ctx, error))
        })
    }

    fn finish(&self, returned: Option<Persistent<Promise<'static>>>) -> Result<Finished, Over> {
        let state = &self.realm.state;
        let finished = self.with(|ctx, entry| {
            if let Some(returned) = returned {
                let promise = returned.restore(ctx).map_err(|error| self.failure(ctx, error))?;
                if promise.state() == PromiseState::Pending {
                    return Err(unsettled());
                }
            }
            let finish = || -> rquickjs::Result<(Option<String>, Option<String>)> {
                let texts: Object = entry.finish.clone().restore(ctx)?.call(())?;
                Ok((optional_text(&texts, "body")?, optional_text(&texts, "document")?))
            };
            finish().map_err(|error| self.failure(ctx, error))
        });
        if state.is_late() {
            return Err(Failure::TimeExceeded.into());
        }
        let (body, document) = finished?;
        if state.has_lost_rejection.get() {
            return Err(Failure::MemoryExceeded.into());
        }
        for text in body.iter().chain(&document) {
            check_result(text, RESPONSE_BYTES_MAX)?;
        }
        Ok(Finished {
            body: body.map(Bytes::from),
            document: document.map(Bytes::from),
            log: state.take_log(),
        })
    }

    fn with<T>(
        &self,
        work: impl FnOnce(&Ctx<'_>, &DocumentEntry) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let Some(entry) = &self.realm.entry.documents else { return Err(Failure::MemoryExceeded) };
        self.realm.context.with(|ctx| work(&ctx, entry))
    }

    fn failure(&self, ctx: &Ctx<'_>, error: rquickjs::Error) -> Failure {
        outcome::failure(self.realm, ctx, error)
    }
}

/// An async function has not come to its end: something that it waits for never happens. What it has done so far is
/// only a part of its work.
fn unsettled() -> Failure {
    let message = "the promise of the script was never settled".to_owned();
    Failure::Thrown(Thrown { text: format!("Error: {message}"), message, ..Thrown::default() })
}

/// What the prelude gets of a call: role, name of the write, request and response.
type Input<'js> = (i32, Option<&'static str>, Value<'js>, Value<'js>);

fn input<'js>(ctx: &Ctx<'js>, call: &Call) -> rquickjs::Result<Input<'js>> {
    let (role, operation, request, response) = match &call.role {
        Role::Procedure { parameters } => (0, None, Some(parameters), None),
        Role::PreTrigger { operation, document } => (1, Some(*operation), Some(document), None),
        Role::PostTrigger { operation, request, document } => {
            (2, Some(*operation), Some(request), Some(document))
        }
    };
    Ok((role, operation.map(operation_name), parsed(ctx, request)?, parsed(ctx, response)?))
}

fn operation_name(operation: TriggerOperation) -> &'static str {
    match operation {
        TriggerOperation::Create => "Create",
        TriggerOperation::Replace => "Replace",
        TriggerOperation::Upsert => "Upsert",
        TriggerOperation::Delete => "Delete",
    }
}

/// The value of a JSON text; undefined without one.
fn parsed<'js>(ctx: &Ctx<'js>, text: Option<&Bytes>) -> rquickjs::Result<Value<'js>> {
    match text {
        Some(text) if !text.is_empty() => ctx.json_parse(text.as_ref()),
        Some(_) | None => Ok(Value::new_undefined(ctx.clone())),
    }
}

/// The options that a callback gets.
fn outcome_object<'js>(ctx: &Ctx<'js>, outcome: &Outcome) -> rquickjs::Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    if outcome.is_not_modified {
        object.set("notModified", true)?;
    }
    if let Some(continuation) = &outcome.continuation {
        object.set("continuation", continuation.as_str())?;
    }
    if let Some(size) = outcome.container_size {
        object.set("currentCollectionSizeInMB", size.current_mb)?;
        object.set("maxCollectionSizeInMB", size.max_mb)?;
    }
    Ok(object)
}

fn optional_text(texts: &Object<'_>, name: &str) -> rquickjs::Result<Option<String>> {
    Ok(texts.get::<_, Option<Text>>(name)?.map(|text| text.0))
}
