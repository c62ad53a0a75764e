//! Scripts of a container: stored procedures, triggers, user-defined functions. Their text is not parsed.

use super::LetterCase;
use crate::limits::{SCRIPT_BYTES_MAX, STORED_PROCEDURES_MAX, TRIGGERS_MAX, USER_DEFINED_FUNCTIONS_MAX};
use crate::{
    DecodeFault, Decoder, DefinitionPart, DefinitionRule, Encoder, RequestFault, checked_script_name,
};
use std::sync::Arc;

/// The kind of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScriptKind {
    /// Called by a client, in one logical partition, in one transaction.
    StoredProcedure,
    /// Runs with a write that names it.
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

    /// The plural of its name.
    pub fn plural(self) -> &'static str {
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

impl TriggerTime {
    /// All times.
    pub(crate) const EACH: [TriggerTime; 2] = [TriggerTime::Pre, TriggerTime::Post];
}

/// The writes that a trigger applies to.
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

impl TriggerOperation {
    /// All operations.
    pub(crate) const EACH: [TriggerOperation; 6] = [
        TriggerOperation::All,
        TriggerOperation::Create,
        TriggerOperation::Update,
        TriggerOperation::Delete,
        TriggerOperation::Replace,
        TriggerOperation::Upsert,
    ];
}

/// A script's definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptDefinition {
    id: String,
    body: Arc<str>,
    trigger: Option<(TriggerTime, TriggerOperation)>,
    trigger_cases: (LetterCase, LetterCase),
}

impl ScriptDefinition {
    /// A script with its text; a trigger also has a time and an operation.
    pub fn new(
        id: &str,
        body: &str,
        trigger: Option<(TriggerTime, TriggerOperation)>,
    ) -> Result<ScriptDefinition, RequestFault> {
        let id = checked_script_name(id)?.to_owned();
        if body.trim().is_empty() {
            return Err(DefinitionPart::ScriptBody.violates(DefinitionRule::NotEmpty));
        }
        if body.len() > SCRIPT_BYTES_MAX {
            return Err(DefinitionPart::ScriptBody
                .violates(DefinitionRule::Length { bytes: body.len(), bytes_max: SCRIPT_BYTES_MAX }));
        }
        Ok(ScriptDefinition { id, body: body.into(), trigger, trigger_cases: Default::default() })
    }

    /// The same, with the letter cases in which the client wrote time and operation of the trigger.
    pub fn spelled(self, time: LetterCase, operation: LetterCase) -> ScriptDefinition {
        ScriptDefinition { trigger_cases: (time, operation), ..self }
    }

    /// The letter cases of time and operation.
    pub fn trigger_cases(&self) -> (LetterCase, LetterCase) {
        self.trigger_cases
    }

    /// Its name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its text.
    pub fn body(&self) -> &str {
        &self.body
    }

    /// The same, shared.
    pub fn source(&self) -> Arc<str> {
        Arc::clone(&self.body)
    }

    /// Time and operation, if it is a trigger.
    pub fn trigger(&self) -> Option<(TriggerTime, TriggerOperation)> {
        self.trigger
    }
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

fn spelled_time((time, case): (TriggerTime, LetterCase)) -> u8 {
    case.marked(time.tag(), 2)
}

fn spelled_operation((operation, case): (TriggerOperation, LetterCase)) -> u8 {
    case.marked(operation.tag(), 8)
}

impl ScriptDefinition {
    /// Appends its encoding.
    pub fn encode(&self, out: &mut Encoder) {
        out.text(&self.id);
        out.text(&self.body);
        let (time_case, operation_case) = self.trigger_cases;
        out.option(self.trigger, |out, (time, operation)| {
            out.byte(spelled_time((time, time_case)));
            out.byte(spelled_operation((operation, operation_case)));
        });
    }

    /// Reads its encoding.
    pub fn decode(input: &mut Decoder<'_>) -> Result<ScriptDefinition, DecodeFault> {
        let trigger = |input: &mut Decoder<'_>| {
            let times = LetterCase::EACH.map(|case| TriggerTime::EACH.map(|time| (time, case)));
            let time = input.choice("trigger time", times.into_iter().flatten(), spelled_time)?;
            let operations = LetterCase::EACH.map(|case| TriggerOperation::EACH.map(|each| (each, case)));
            let operation =
                input.choice("trigger operation", operations.into_iter().flatten(), spelled_operation)?;
            Ok((time, operation))
        };
        let id = input.text("name of a script")?;
        let body = input.text("text of a script")?.into();
        let trigger = input.option("trigger", trigger)?;
        let (trigger, trigger_cases) = match trigger {
            Some(((time, time_case), (operation, operation_case))) => {
                (Some((time, operation)), (time_case, operation_case))
            }
            None => (None, Default::default()),
        };
        Ok(ScriptDefinition { id, body, trigger, trigger_cases })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_bounded_and_the_name_checked() {
        let is_good = |id: &str, body: &str| ScriptDefinition::new(id, body, None).is_ok();
        assert!(is_good("s", "x") && !is_good("s", "  ") && !is_good("a/b", "x") && is_good("a\t\r\nb", "x"));
        assert!(is_good("s", &"x".repeat(SCRIPT_BYTES_MAX)));
        assert!(!is_good("s", &"x".repeat(SCRIPT_BYTES_MAX + 1)));
    }
}
