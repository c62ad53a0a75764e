//! The triggers that a write names in its headers.

use crate::faults::{NosqlFault, WireFault};
use crate::operations::Call;
use crate::wire::headers;
use crate::wire::trigger_time::{header, option, word};
use engine::script::TriggerOperation as Write;
use engine::{Container, Script};
use model::{TriggerOperation, TriggerTime};
use std::sync::Arc;

/// The triggers of one write.
#[derive(Clone, Debug)]
pub(crate) struct Triggers {
    pub(crate) write: Write,
    pub(crate) before: Option<Arc<Script>>,
    pub(crate) after: Option<Arc<Script>>,
}

impl Triggers {
    /// The scripts.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Script> {
        self.before.iter().chain(&self.after).map(|script| &**script)
    }

    /// The number of scripts.
    pub(crate) fn count(&self) -> u32 {
        u32::from(self.before.is_some()) + u32::from(self.after.is_some())
    }
}

/// The triggers that a request names for a write; `None` if it names none.
pub(crate) fn named_triggers(
    call: &Call<'_>,
    container: &Container,
    write: Write,
) -> Result<Option<Triggers>, NosqlFault> {
    let before = named(call, container, TriggerTime::Pre, write)?;
    let after = named(call, container, TriggerTime::Post, write)?;
    let is_any = before.is_some() || after.is_some();
    Ok(is_any.then_some(Triggers { write, before, after }))
}

/// Refuses triggers where the service has none.
pub(crate) fn refuse_triggers(call: &Call<'_>, operation: &str) -> Result<(), WireFault> {
    for time in [TriggerTime::Pre, TriggerTime::Post] {
        if let Some(value) =
            headers::text(call.headers(), header(time))?.filter(|value| !value.trim().is_empty())
        {
            return Err(bad(time, value, format!("{operation} has no triggers")));
        }
    }
    Ok(())
}

fn named(
    call: &Call<'_>,
    container: &Container,
    time: TriggerTime,
    write: Write,
) -> Result<Option<Arc<Script>>, NosqlFault> {
    let Some(value) = headers::text(call.headers(), header(time))? else { return Ok(None) };
    let bad = |reason: String| NosqlFault::from(bad(time, value.trim(), reason));
    let mut names = value.split(',').map(str::trim).filter(|name| !name.is_empty());
    let Some(name) = names.next() else { return Ok(None) };
    if names.next().is_some() {
        return Err(bad(format!("a request has at most one {}-trigger", word(time))));
    }
    let trigger = call.engine.find_trigger(container, name);
    let trigger = trigger.ok_or_else(|| bad("the container has no trigger of this name".to_owned()))?;
    let (defined, operation) = trigger.definition().trigger().unwrap_or((time, TriggerOperation::All));
    if defined != time {
        let (word, option) = (word(defined), option(defined));
        return Err(bad(format!("it is a {word}-trigger, which belongs into the option {option}")));
    }
    if !fits(operation, write) {
        return Err(bad(format!(
            "it is for the operation {operation:?}, and the request is {}",
            in_words(write)
        )));
    }
    Ok(Some(trigger))
}

/// The fault of a trigger that cannot run with a request.
fn bad(time: TriggerTime, name: &str, reason: String) -> WireFault {
    WireFault::Trigger { time, name: name.to_owned(), reason }
}

fn in_words(write: Write) -> &'static str {
    match write {
        Write::Create => "a create",
        Write::Replace => "a replace",
        Write::Upsert => "an upsert",
        Write::Delete => "a delete",
    }
}

/// Whether a trigger for `operation` runs with a write.
fn fits(operation: TriggerOperation, write: Write) -> bool {
    match operation {
        TriggerOperation::All => true,
        TriggerOperation::Create => write == Write::Create,
        TriggerOperation::Update => write == Write::Replace || write == Write::Upsert,
        TriggerOperation::Delete => write == Write::Delete,
        TriggerOperation::Replace => write == Write::Replace,
        TriggerOperation::Upsert => write == Write::Upsert,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trigger_fits_the_writes_that_it_is_for() {
        let writes = [Write::Create, Write::Replace, Write::Upsert, Write::Delete];
        let fitting = |operation| writes.map(|write| fits(operation, write));
        assert_eq!(fitting(TriggerOperation::All), [true; 4]);
        assert_eq!(fitting(TriggerOperation::Create), [true, false, false, false]);
        assert_eq!(fitting(TriggerOperation::Replace), [false, true, false, false]);
        assert_eq!(fitting(TriggerOperation::Upsert), [false, false, true, false]);
        assert_eq!(fitting(TriggerOperation::Update), [false, true, true, false]);
        assert_eq!(fitting(TriggerOperation::Delete), [false, false, false, true]);
    }
}
