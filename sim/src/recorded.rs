//! Histories recorded by external clients: reads their file and searches an order that explains it.
//!
//! One JSON object per line, in any order. An operation:
//!
//! ```json
//! {"wave":0,"key":"k","invoked":1,"answered":5,
//!  "steps":[{"kind":"replace","id":"a","body":{…},"if_match":"\"…\""}],
//!  "done":[{"kind":"replaced","item":{…}}]}
//! ```
//!
//! with `"refused":{"step":0,"status":412}` or `"unknown":true` in place of `done`; and the state that a client found
//! in a logical partition when no operation was running:
//!
//! ```json
//! {"wave":0,"key":"k","found":[{…}]}
//! ```
//!
//! Waves of one key follow each other; operations of one wave overlap. Every write has a unique mark in the member `w`.

use crate::history::{Judged, Operation, Seen, Stored, Verdict, explain, quiescent};
use crate::naive::{Body, DefaultTtl, Edit, Logical, Precondition, Refusal, Rules, Selector, Step};
use model::Rid;
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// Members that the server adds to an item.
const SYSTEM_MEMBERS: [&str; 5] = ["_rid", "_self", "_etag", "_attachments", "_ts"];

/// Content of a checked file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckedHistories {
    /// Waves of one logical partition, each explained separately.
    pub histories: usize,
    /// Operations in them.
    pub operations: usize,
}

/// What is wrong with a history or with its file.
pub type CheckFailure = String;

#[derive(Default)]
struct Wave {
    operations: Vec<Operation>,
    found: Option<BTreeMap<String, Stored>>,
}

/// Checks all histories of a file's text.
pub fn check(text: &str) -> Result<CheckedHistories, CheckFailure> {
    let mut waves: BTreeMap<(String, u64), Wave> = BTreeMap::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let at = |failure: CheckFailure| format!("line {}: {failure}", index + 1);
        let line: Json = serde_json::from_str(line).map_err(|error| at(error.to_string()))?;
        let key = text_of(&line, "key").map_err(at)?;
        let wave = waves.entry((key, number_of(&line, "wave").map_err(at)?)).or_default();
        match line.get("found") {
            Some(found) => wave.found = Some(found_of(found).map_err(at)?),
            None => wave.operations.push(operation(&line).map_err(at)?),
        }
    }
    check_waves(&waves)
}

fn check_waves(waves: &BTreeMap<(String, u64), Wave>) -> Result<CheckedHistories, CheckFailure> {
    let rules = Rules { unique: Vec::new(), default_ttl: DefaultTtl::Off, now: 0 };
    let mut checked = CheckedHistories::default();
    let mut before: Option<(&str, Logical)> = None;
    for ((key, number), wave) in waves {
        let start = match before.take() {
            Some((last, state)) if last == key => state,
            Some(_) | None => Logical::new(),
        };
        let Some(found) = &wave.found else {
            return Err(format!("wave {number} of \"{key}\" has no state after it"));
        };
        let explained = explain(&rules, &start, &wave.operations, Judged::End, |moments| {
            quiescent(&moments.last()?.state, found, |_, _| false)
        });
        let (_, state) = explained.map_err(|unexplained| {
            let stuck = unexplained.stuck_on.iter().map(|index| format!("\n  {:?}", wave.operations[*index]));
            let stuck: String = stuck.collect();
            let early = if unexplained.gave_up { " (the search gave up)" } else { "" };
            format!("no order explains wave {number} of \"{key}\"{early}; what fits nowhere:{stuck}")
        })?;
        checked.histories += 1;
        checked.operations += wave.operations.len();
        before = Some((key, state));
    }
    Ok(checked)
}

fn operation(line: &Json) -> Result<Operation, CheckFailure> {
    let steps = list_of(line, "steps")?.iter().map(step).collect::<Result<Vec<_>, _>>()?;
    let verdict = if let Some(done) = line.get("done").and_then(Json::as_array) {
        Verdict::Done(done.iter().map(seen).collect::<Result<_, _>>()?)
    } else if let Some(refused) = line.get("refused") {
        let index = usize::try_from(number_of(refused, "step")?).map_err(|error| error.to_string())?;
        let step = steps.get(index).ok_or("the refused step does not exist")?;
        Verdict::Refused(index, refusal(step, number_of(refused, "status")?)?)
    } else {
        Verdict::Unknown
    };
    let answered = line.get("answered").and_then(Json::as_u64);
    Ok(Operation { invoked: number_of(line, "invoked")?, answered, steps, verdict })
}

fn step(json: &Json) -> Result<Step, CheckFailure> {
    let selector = || text_of(json, "id").map(Selector::Id);
    let body = || json.get("body").and_then(Json::as_object).cloned().ok_or("a step without its body");
    let precondition = match json.get("if_match").and_then(Json::as_str) {
        Some(etag) => Precondition::Match(etag.to_owned()),
        None => Precondition::None,
    };
    Ok(match text_of(json, "kind")?.as_str() {
        "create" => Step::Create { body: body()? },
        "upsert" => Step::Upsert { body: body()?, precondition },
        "replace" => Step::Replace { selector: selector()?, body: body()?, precondition },
        "patch" => {
            let by = json.get("increment").and_then(Json::as_i64).ok_or("a patch without its increment")?;
            let mark = json.get("w").cloned().ok_or("a patch without its mark")?;
            Step::Patch {
                selector: selector()?,
                edits: vec![Edit::Set("w", mark), Edit::Increment("n", by)],
                precondition,
            }
        }
        "delete" => Step::Delete { selector: selector()?, precondition },
        "read" => Step::Read { selector: selector()?, precondition: Precondition::None },
        other => return Err(format!("unknown kind of step \"{other}\"")),
    })
}

/// The refusal of a status; each status of a step has one cause here.
fn refusal(step: &Step, status: u64) -> Result<Refusal, CheckFailure> {
    match (step, status) {
        (Step::Create { .. }, 409) => Ok(Refusal::IdTaken),
        (_, 404) => Ok(Refusal::Missing),
        (_, 412) => Ok(Refusal::Mismatch(None)),
        _ => Err(format!("status {status} explains no refusal of {step:?}")),
    }
}

fn seen(json: &Json) -> Result<Seen, CheckFailure> {
    let item = || stored(json.get("item").ok_or("an answer without its item")?);
    Ok(match text_of(json, "kind")?.as_str() {
        "created" => Seen::Created(item()?),
        "replaced" => Seen::Replaced(item()?),
        "deleted" => Seen::Deleted,
        "read" => Seen::Read(item()?),
        other => return Err(format!("unknown kind of answer \"{other}\"")),
    })
}

fn found_of(json: &Json) -> Result<BTreeMap<String, Stored>, CheckFailure> {
    let items = json.as_array().ok_or("what was found is no list")?;
    items.iter().map(|item| Ok((text_of(item, "id")?, stored(item)?))).collect()
}

/// Splits an item as returned to a client into the values of the store and the written body.
fn stored(item: &Json) -> Result<Stored, CheckFailure> {
    let rid = text_of(item, "_rid")?;
    let Some(Rid::Document(_, _, number)) = Rid::parse(&rid) else {
        return Err(format!("\"{rid}\" is no resource id of an item"));
    };
    let etag = text_of(item, "_etag")?;
    // Clients do not see the LSN of a version. Stamps have the same order.
    let (ordinal, stamp) = position(&etag).ok_or_else(|| format!("{etag} is no ETag of an item"))?;
    let members = item.as_object().ok_or("an item is an object")?.iter();
    let written = members.filter(|(name, _)| !SYSTEM_MEMBERS.contains(&name.as_str()));
    let body: Body = written.map(|(name, value)| (name.clone(), value.clone())).collect();
    Ok(Stored { number: number.raw(), ordinal, lsn: stamp, stamp, ts: number_of(item, "_ts")?, etag, body })
}

/// Partition and stamp inside an ETag: `"ssssssss-ssss-ssss-oooo-oooooooooooo"`, low digits of the stamp first.
fn position(etag: &str) -> Option<(u32, u64)> {
    let text = etag.strip_prefix('"')?.strip_suffix('"')?;
    let groups: Vec<u64> =
        text.split('-').map(|group| u64::from_str_radix(group, 16).ok()).collect::<Option<_>>()?;
    let [low, middle, high, _, ordinal] = groups[..] else {
        return None;
    };
    Some((u32::try_from(ordinal).ok()?, high << 48 | middle << 32 | low))
}

fn text_of(json: &Json, name: &str) -> Result<String, CheckFailure> {
    json.get(name).and_then(Json::as_str).map(str::to_owned).ok_or_else(|| format!("no text \"{name}\""))
}

fn number_of(json: &Json, name: &str) -> Result<u64, CheckFailure> {
    json.get(name).and_then(Json::as_u64).ok_or_else(|| format!("no number \"{name}\""))
}

fn list_of<'a>(json: &'a Json, name: &str) -> Result<&'a Vec<Json>, CheckFailure> {
    json.get(name).and_then(Json::as_array).ok_or_else(|| format!("no list \"{name}\""))
}
