//! Reading a policy's JSON: every fault names the policy and the member.

use super::{bad, opaque};
use crate::faults::NosqlFault;
use model::{DefinitionNumber, DefinitionPart, DefinitionRule, OpaqueMembers};
use serde_json::{Map, Value as Json};
use std::ops::RangeInclusive;
use value::PropertyPath;

/// An object inside a policy.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    policy: &'static str,
    members: &'a Map<String, Json>,
}

impl<'a> Reader<'a> {
    /// Wraps `json`, which must be an object; `what` names it in a fault.
    pub(super) fn new(policy: &'static str, what: &str, json: &'a Json) -> Result<Reader<'a>, NosqlFault> {
        match json {
            Json::Object(members) => Ok(Reader { policy, members }),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) => {
                Err(bad(policy, format!("{what} must be an object")))
            }
        }
    }

    pub(super) fn bad(&self, reason: impl Into<String>) -> NosqlFault {
        bad(self.policy, reason)
    }

    /// Refuses unknown members, unless they are null or an empty array.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), NosqlFault> {
        let says_something =
            |json: &Json| !json.is_null() && json.as_array().is_none_or(|list| !list.is_empty());
        let unknown =
            |(name, json): &(&String, &Json)| !known.contains(&name.as_str()) && says_something(json);
        match self.members.iter().find(unknown) {
            Some((name, _)) => Err(self.bad(format!("the member \"{name}\" is not known"))),
            None => Ok(()),
        }
    }

    /// Unknown members, which are stored without being interpreted.
    pub(super) fn others(&self, known: &[&str]) -> OpaqueMembers {
        let others = self.members.iter().filter(|(name, _)| !known.contains(&name.as_str()));
        others.map(|(name, json)| (name.clone(), opaque::read(json))).collect()
    }

    /// A member that is present; null counts as absent.
    pub(super) fn get(&self, name: &str) -> Option<&'a Json> {
        self.members.get(name).filter(|json| !json.is_null())
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<&'a str>, NosqlFault> {
        match self.get(name) {
            None => Ok(None),
            Some(json) => json.as_str().map(Some).ok_or_else(|| self.wrong(name, "a string")),
        }
    }

    pub(super) fn required_text(&self, name: &str) -> Result<&'a str, NosqlFault> {
        let text = self.text(name)?.filter(|text| !text.is_empty());
        text.ok_or_else(|| self.wrong(name, "a string that is not empty"))
    }

    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>, NosqlFault> {
        match self.get(name) {
            None => Ok(None),
            Some(json) => json.as_bool().map(Some).ok_or_else(|| self.wrong(name, "true or false")),
        }
    }

    /// Refuses an integer out of bounds with the fault of the core, which says the number.
    pub(super) fn check_bounds(
        &self,
        name: &str,
        part: DefinitionPart,
        number: DefinitionNumber,
        bounds: &RangeInclusive<u32>,
    ) -> Result<(), NosqlFault> {
        let (min, max) = (*bounds.start(), *bounds.end());
        match self.get(name).and_then(Json::as_i64) {
            Some(given) if !(i64::from(min)..=i64::from(max)).contains(&given) => {
                Err(part.violates(DefinitionRule::Bounds { number, given, min, max }).into())
            }
            Some(_) | None => Ok(()),
        }
    }

    /// An integer within bounds.
    pub(super) fn whole(&self, name: &str, bounds: RangeInclusive<u32>) -> Result<Option<u32>, NosqlFault> {
        let Some(json) = self.get(name) else { return Ok(None) };
        let number = json.as_u64().and_then(|number| u32::try_from(number).ok());
        let number = number.filter(|number| bounds.contains(number));
        let (least, most) = (bounds.start(), bounds.end());
        number.map(Some).ok_or_else(|| self.wrong(name, &format!("a whole number from {least} to {most}")))
    }

    /// An array; absent means empty.
    pub(super) fn list(&self, name: &str) -> Result<&'a [Json], NosqlFault> {
        match self.get(name) {
            None => Ok(&[]),
            Some(Json::Array(list)) => Ok(list),
            Some(_) => Err(self.wrong(name, "an array")),
        }
    }

    /// One of `choices`, case-insensitive.
    pub(super) fn choice<T: Copy>(&self, name: &str, choices: &[(&str, T)]) -> Result<Option<T>, NosqlFault> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        self.chosen(name, text, choices).map(Some)
    }

    /// The entry of `choices` that `text` names, case-insensitive.
    pub(super) fn chosen<T: Copy>(
        &self,
        name: &str,
        text: &str,
        choices: &[(&str, T)],
    ) -> Result<T, NosqlFault> {
        let found = choices.iter().find(|(choice, _)| choice.eq_ignore_ascii_case(text));
        let names = || choices.iter().map(|(choice, _)| *choice).collect::<Vec<_>>().join(", ");
        found.map(|(_, choice)| *choice).ok_or_else(|| self.wrong(name, &format!("one of {}", names())))
    }

    /// The path of a property.
    pub(super) fn path(&self, name: &str) -> Result<PropertyPath, NosqlFault> {
        let text = self.required_text(name)?;
        PropertyPath::parse(text)
            .map_err(|error| self.bad(format!("the path \"{text}\" is invalid: {error}")))
    }

    fn wrong(&self, name: &str, wanted: &str) -> NosqlFault {
        self.bad(format!("\"{name}\" must be {wanted}"))
    }
}
