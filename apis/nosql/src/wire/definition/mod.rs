//! The JSON of definitions of containers and small resources, one file each.
//!
//! Reading converts JSON to the typed definitions of `model`: members, their kinds, names of enum values, defaults. The
//! rules for definitions are checked there. Writing produces the form of the service, without system properties.

mod change_feed;
mod computed;
mod conflict;
pub(crate) mod container;
mod encryption;
pub(crate) mod encryption_key;
mod full_text;
mod geospatial;
mod indexing;
mod opaque;
pub(crate) mod partition_key;
pub(crate) mod permission;
#[cfg(test)]
mod random_tests;
mod reader;
pub(crate) mod script;
mod special_indexes;
pub(crate) mod throughput;
mod time_to_live;
mod unique;
mod vector;

use crate::faults::{NosqlFault, WireFault};
use model::{LetterCase, checked_name};
use serde_json::{Map, Value as Json};

pub(crate) fn name_of(members: &Map<String, Json>) -> Result<String, NosqlFault> {
    match members.get("id") {
        Some(Json::String(name)) => Ok(checked_name(name)?.to_owned()),
        Some(_) => Err(bad("id", "it must be a string")),
        None => Err(bad("id", "it is missing")),
    }
}

/// The members of a definition of a small resource.
fn members<'a>(body: &'a Json, what: &str) -> Result<&'a Map<String, Json>, WireFault> {
    body.as_object().ok_or_else(|| WireFault::Body { reason: format!("{what} is a JSON object") })
}

/// A required string member.
fn text<'a>(members: &'a Map<String, Json>, field: &str) -> Result<&'a str, NosqlFault> {
    match members.get(field) {
        Some(Json::String(text)) => Ok(text),
        Some(_) => Err(bad(field, "it must be a string")),
        None => Err(bad(field, "it is missing")),
    }
}

/// The entry of `choices` that `field` names, case-insensitive.
fn choice<T: Copy>(members: &Map<String, Json>, field: &str, choices: &[(&str, T)]) -> Result<T, NosqlFault> {
    let given = text(members, field)?;
    let found = choices.iter().find(|(name, _)| name.eq_ignore_ascii_case(given));
    let names = || choices.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    found.map(|(_, choice)| *choice).ok_or_else(|| bad(field, format!("it must be one of {}", names())))
}

/// The letter case of the word in `field`.
fn letter_case(members: &Map<String, Json>, field: &str) -> LetterCase {
    let word = members.get(field).and_then(Json::as_str).unwrap_or_default();
    match word.starts_with(|first: char| first.is_ascii_lowercase()) {
        true => LetterCase::Lower,
        false => LetterCase::Capital,
    }
}

/// `name` in a letter case.
fn spelled(name: &str, case: LetterCase) -> Json {
    match case {
        LetterCase::Capital => name.into(),
        LetterCase::Lower => name.to_ascii_lowercase().into(),
    }
}

/// The name of `choice` on the wire.
fn name_in<T: PartialEq>(choices: &[(&'static str, T)], choice: &T) -> &'static str {
    choices.iter().find(|(_, other)| other == choice).map_or("", |(name, _)| name)
}

fn bad(field: &str, reason: impl Into<String>) -> NosqlFault {
    WireFault::Definition { field: field.to_owned(), reason: reason.into() }.into()
}
