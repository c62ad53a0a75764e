//! The trace of a run as readable lines, which are also hashed into its digest.

use crate::clients::{Answer, Call, Record};
use crate::feeds::QUERIES;
use crate::history::{Seen, Stored};
use crate::naive::{Logical, Step, Version};
use crate::scenario::Wave;

/// Longer strings are omitted.
const LONG_TEXT: usize = 80;

/// A short description of a wave.
pub(crate) fn title(wave: &Wave) -> String {
    match wave {
        Wave::Recreate { opening_turns, trouble, crash, .. } => {
            format!("drop and create, openings {opening_turns}, {trouble:?}, crash {crash:?}")
        }
        Wave::Split { key, in_middle, trouble, crash, .. } => {
            format!("split at key {key}, in the middle {in_middle}, {trouble:?}, crash {crash:?}")
        }
        Wave::Clients { trouble, crash, .. } => format!("clients, {trouble:?}, crash {crash:?}"),
        Wave::Clock(_)
        | Wave::Rest { .. }
        | Wave::Define { .. }
        | Wave::Empty(..)
        | Wave::Restart
        | Wave::Rewind
        | Wave::Crash(..)
        | Wave::Disk(_) => format!("{wave:?}"),
    }
}

/// A request and its answer on one line.
pub(crate) fn shown(record: &Record) -> String {
    let span = match record.answered {
        Some(answered) => format!("{}-{answered}", record.invoked),
        None => format!("{}-", record.invoked),
    };
    let call = match &record.call {
        Call::Steps { key, steps } => {
            format!("key {key} {}", steps.iter().map(brief_step).collect::<Vec<_>>().join(" + "))
        }
        Call::Transaction { key, steps } => {
            let steps = steps.iter().map(brief_step).collect::<Vec<_>>().join(" + ");
            format!("key {key} transaction {steps}")
        }
        Call::Page { scope, items_max, query, .. } => {
            let what = query.map_or("the feed", |query| QUERIES[query].text);
            format!("page of {items_max} of {scope:?} of {what}")
        }
    };
    let answer = match &record.answer {
        None => "no answer".to_owned(),
        Some(Answer::Steps(Ok(seen))) => seen.iter().map(brief_seen).collect::<Vec<_>>().join(" + "),
        Some(Answer::Steps(Err((index, fault)))) => format!("step {index}: {fault}"),
        Some(Answer::Page(Ok(page))) => {
            let end = if page.continuation.is_some() { "more" } else { "end" };
            format!("{} documents, {end}", page.documents.len())
        }
        Some(Answer::Page(Err(fault))) => fault.to_string(),
    };
    format!("[{span}] lane {} {call} => {answer}", record.lane)
}

fn brief_step(step: &Step) -> String {
    let body = |body: &crate::naive::Body| {
        let mut body = body.clone();
        for text in body.values_mut() {
            if text.as_str().is_some_and(|text| text.len() > LONG_TEXT) {
                *text = "…".into();
            }
        }
        serde_json::Value::Object(body).to_string()
    };
    match step {
        Step::Create { body: new } => format!("create {}", body(new)),
        Step::Upsert { body: new, precondition } => format!("upsert {} {precondition:?}", body(new)),
        Step::Replace { selector, body: new, precondition } => {
            format!("replace {selector:?} {} {precondition:?}", body(new))
        }
        Step::Patch { selector, edits, precondition } => {
            format!("patch {selector:?} {edits:?} {precondition:?}")
        }
        Step::Delete { selector, precondition } => format!("delete {selector:?} {precondition:?}"),
        Step::Read { selector, precondition } => format!("read {selector:?} {precondition:?}"),
        Step::List { by_query } => format!("list, by query {by_query}"),
    }
}

fn brief_seen(seen: &Seen) -> String {
    let stored = |stored: &Stored| {
        let Stored { number, ordinal, lsn, ts, .. } = stored;
        let mark = stored.body.get("w").map(ToString::to_string).unwrap_or_default();
        format!("w {mark} number {number} lsn {ordinal}.{lsn} ts {ts}")
    };
    match seen {
        Seen::Created(new) => format!("created {}", stored(new)),
        Seen::Replaced(new) => format!("replaced {}", stored(new)),
        Seen::Deleted => "deleted".to_owned(),
        Seen::Read(read) => format!("read {}", stored(read)),
        Seen::NotModified(etag) => format!("not modified {etag}"),
        Seen::Listed(listed) => {
            format!("listed {}", listed.values().map(stored).collect::<Vec<_>>().join(", "))
        }
    }
}

/// The documents of a logical partition, one line each.
pub(crate) fn brief(logical: &Logical) -> Vec<String> {
    let one = |(id, version): (&String, &std::sync::Arc<Version>)| {
        let mark = version.body.get("w").map(ToString::to_string).unwrap_or_default();
        format!("{id}: w {mark} ts {} ttl {:?} {:?}", version.ts, version.body.get("ttl"), version.stamp)
    };
    logical.iter().map(one).collect()
}
