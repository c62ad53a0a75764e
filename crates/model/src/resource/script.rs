//! Scripts of a container: stored procedures, triggers, user-defined functions. Their text is not looked into.

use super::{bad, choice, members, text};
use crate::limits::{SCRIPT_BYTES_MAX, STORED_PROCEDURES_MAX, TRIGGERS_MAX, USER_DEFINED_FUNCTIONS_MAX};
use crate::{DecodeFault, Decoder, Encoder, RequestFault, name_of};
use serde_json::{Map, Value as Json};

/// What a script is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScriptKind {
    /// Called by a client, in one logical partition, in one transaction.
    StoredProcedure,
    /// Runs beside a write that names it.
    Trigger,
    /// Called by queries.
    UserDefinedFunction,
}

impl ScriptKind {
    /// All kinds.
    pub const ALL: [ScriptKind; 3] =
        [ScriptKind::StoredProcedure, ScriptKind::Trigger, ScriptKind::UserDefinedFunction];

    /// Most scripts of this kind in a container.
    pub fn count_max(self) -> usize {
        match self {
            ScriptKind::StoredProcedure => STORED_PROCEDURES_MAX,
            ScriptKind::Trigger => TRIGGERS_MAX,
            ScriptKind::UserDefinedFunction => USER_DEFINED_FUNCTIONS_MAX,
        }
    }

    /// Several of them, in words.
    pub fn words(self) -> &'static str {
        match self {
            ScriptKind::StoredProcedure => "stored procedures",
            ScriptKind::Trigger => "triggers",
            ScriptKind::UserDefinedFunction => "user-defined functions",
        }
    }
}

/// When a trigger runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerTime {
    /// Before the write.
    Pre,
    /// After the write, in its transaction.
    Post,
}

const TIMES: [(&str, TriggerTime); 2] = [("Pre", TriggerTime::Pre), ("Post", TriggerTime::Post)];

/// Which writes a trigger is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerOperation {
    /// Every write.
    All,
    /// Creates.
    Create,
    /// Updates.
    Update,
    /// Deletes.
    Delete,
    /// Replaces.
    Replace,
    /// Upserts.
    Upsert,
}

const OPERATIONS: [(&str, TriggerOperation); 6] = [
    ("All", TriggerOperation::All),
    ("Create", TriggerOperation::Create),
    ("Update", TriggerOperation::Update),
    ("Delete", TriggerOperation::Delete),
    ("Replace", TriggerOperation::Replace),
    ("Upsert", TriggerOperation::Upsert),
];

/// A script's definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptDefinition {
    /// Its name.
    pub id: String,
    /// Its text.
    pub body: String,
    /// When and for what it runs, if it is a trigger.
    pub trigger: Option<(TriggerTime, TriggerOperation)>,
}

impl ScriptDefinition {
    /// Reads the wire form.
    pub fn from_json(kind: ScriptKind, body: &Json) -> Result<ScriptDefinition, RequestFault> {
        let members = members(body, "a script")?;
        let id = name_of(members)?;
        let body = text(members, "body")?;
        if body.trim().is_empty() {
            return Err(bad("body", "it is empty"));
        }
        if body.len() > SCRIPT_BYTES_MAX {
            return Err(bad("body", format!("it has {} bytes, {SCRIPT_BYTES_MAX} are allowed", body.len())));
        }
        let trigger = match kind {
            ScriptKind::Trigger => Some((
                choice(members, "triggerType", &TIMES)?,
                choice(members, "triggerOperation", &OPERATIONS)?,
            )),
            ScriptKind::StoredProcedure | ScriptKind::UserDefinedFunction => None,
        };
        Ok(ScriptDefinition { id, body: body.to_owned(), trigger })
    }

    /// The wire form, without system properties.
    pub fn to_json(&self) -> Map<String, Json> {
        let mut json = Map::new();
        json.insert("id".to_owned(), self.id.clone().into());
        json.insert("body".to_owned(), self.body.clone().into());
        if let Some((time, operation)) = self.trigger {
            json.insert("triggerType".to_owned(), name(&TIMES, time).into());
            json.insert("triggerOperation".to_owned(), name(&OPERATIONS, operation).into());
        }
        json
    }
}

fn name<T: PartialEq>(choices: &[(&'static str, T)], choice: T) -> &'static str {
    choices.iter().find(|(_, other)| *other == choice).map_or("", |(name, _)| name)
}

impl ScriptKind {
    /// Its tag in encodings.
    pub fn tag(self) -> u8 {
        match self {
            ScriptKind::StoredProcedure => 0,
            ScriptKind::Trigger => 1,
            ScriptKind::UserDefinedFunction => 2,
        }
    }
}

impl TriggerTime {
    fn tag(self) -> u8 {
        match self {
            TriggerTime::Pre => 0,
            TriggerTime::Post => 1,
        }
    }
}

impl TriggerOperation {
    fn tag(self) -> u8 {
        match self {
            TriggerOperation::All => 0,
            TriggerOperation::Create => 1,
            TriggerOperation::Update => 2,
            TriggerOperation::Delete => 3,
            TriggerOperation::Replace => 4,
            TriggerOperation::Upsert => 5,
        }
    }
}

impl ScriptDefinition {
    /// Appends its encoding.
    pub fn encode(&self, out: &mut Encoder) {
        out.text(&self.id);
        out.text(&self.body);
        out.option(self.trigger, |out, (time, operation)| {
            out.byte(time.tag());
            out.byte(operation.tag());
        });
    }

    /// Reads its encoding.
    pub fn decode(input: &mut Decoder<'_>) -> Result<ScriptDefinition, DecodeFault> {
        let trigger = |input: &mut Decoder<'_>| {
            let time = input.choice("trigger time", TIMES.map(|(_, time)| time), TriggerTime::tag)?;
            let operations = OPERATIONS.map(|(_, operation)| operation);
            Ok((time, input.choice("trigger operation", operations, TriggerOperation::tag)?))
        };
        Ok(ScriptDefinition {
            id: input.text("name of a script")?,
            body: input.text("text of a script")?,
            trigger: input.option("trigger", trigger)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn triggers_are_written_in_one_letter_case() {
        let body = json!({ "id": "t", "body": "function () {}", "triggerType": "pre", "triggerOperation": "CREATE" });
        let trigger = ScriptDefinition::from_json(ScriptKind::Trigger, &body).unwrap();
        assert_eq!(trigger.trigger, Some((TriggerTime::Pre, TriggerOperation::Create)));
        let json = trigger.to_json();
        assert_eq!((&json["triggerType"], &json["triggerOperation"]), (&json!("Pre"), &json!("Create")));
        let procedure = ScriptDefinition::from_json(ScriptKind::StoredProcedure, &body).unwrap();
        assert_eq!(procedure.to_json().len(), 2);
    }

    #[test]
    fn wrong_fields_are_named() {
        let good = json!({ "id": "t", "body": "x", "triggerType": "Pre", "triggerOperation": "All" });
        for (field, value) in [
            ("id", json!("a/b")),
            ("body", json!(7)),
            ("body", json!("  ")),
            ("triggerType", json!("During")),
            ("triggerOperation", json!(null)),
            ("triggerOperation", json!("Read")),
        ] {
            let mut body = good.clone();
            body[field] = value;
            let fault = ScriptDefinition::from_json(ScriptKind::Trigger, &body).unwrap_err();
            assert!(field == "id" || fault.to_string().contains(field), "{fault}");
        }
    }

    #[test]
    fn the_text_is_bounded() {
        let body = |bytes: usize| json!({ "id": "s", "body": "x".repeat(bytes) });
        let kind = ScriptKind::UserDefinedFunction;
        assert!(ScriptDefinition::from_json(kind, &body(SCRIPT_BYTES_MAX)).is_ok());
        assert!(ScriptDefinition::from_json(kind, &body(SCRIPT_BYTES_MAX + 1)).is_err());
    }
}
