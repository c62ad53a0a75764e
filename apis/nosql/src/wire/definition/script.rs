//! Scripts of a container.

use super::{choice, letter_case, members, name_in, spelled, text};
use crate::faults::NosqlFault;
use model::{ScriptDefinition, ScriptKind, TriggerOperation, TriggerTime};
use serde_json::{Map, Value as Json};

const TIMES: [(&str, TriggerTime); 2] = [("Pre", TriggerTime::Pre), ("Post", TriggerTime::Post)];

const OPERATIONS: [(&str, TriggerOperation); 6] = [
    ("All", TriggerOperation::All),
    ("Create", TriggerOperation::Create),
    ("Update", TriggerOperation::Update),
    ("Delete", TriggerOperation::Delete),
    ("Replace", TriggerOperation::Replace),
    ("Upsert", TriggerOperation::Upsert),
];

pub(crate) fn read(kind: ScriptKind, body: &Json) -> Result<ScriptDefinition, NosqlFault> {
    let members = members(body, "a script")?;
    let id = text(members, "id")?;
    // Its text is checked before the members that only triggers have.
    let script = ScriptDefinition::new(id, text(members, "body")?, None)?;
    match kind {
        ScriptKind::StoredProcedure | ScriptKind::UserDefinedFunction => Ok(script),
        ScriptKind::Trigger => {
            let time = choice(members, "triggerType", &TIMES)?;
            let operation = choice(members, "triggerOperation", &OPERATIONS)?;
            let cases = ["triggerType", "triggerOperation"].map(|field| letter_case(members, field));
            let trigger = ScriptDefinition::new(id, script.body(), Some((time, operation)))?;
            Ok(trigger.spelled(cases[0], cases[1]))
        }
    }
}

pub(crate) fn write(script: &ScriptDefinition) -> Map<String, Json> {
    let mut json = Map::new();
    json.insert("id".to_owned(), script.id().into());
    json.insert("body".to_owned(), script.body().into());
    if let Some((time, operation)) = script.trigger() {
        let (time_case, operation_case) = script.trigger_cases();
        json.insert("triggerType".to_owned(), spelled(name_in(&TIMES, &time), time_case));
        let operation = spelled(name_in(&OPERATIONS, &operation), operation_case);
        json.insert("triggerOperation".to_owned(), operation);
    }
    json
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn triggers_are_written_as_clients_do() {
        let body = json!({ "id": "t", "body": "function () {}", "triggerType": "pre", "triggerOperation": "CREATE" });
        let trigger = read(ScriptKind::Trigger, &body).unwrap();
        assert_eq!(trigger.trigger(), Some((TriggerTime::Pre, TriggerOperation::Create)));
        let json = write(&trigger);
        assert_eq!((&json["triggerType"], &json["triggerOperation"]), (&json!("pre"), &json!("Create")));
        let procedure = read(ScriptKind::StoredProcedure, &body).unwrap();
        assert_eq!(write(&procedure).len(), 2);
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
            let fault = read(ScriptKind::Trigger, &body).unwrap_err();
            assert!(field == "id" || crate::faults::text(&fault).contains(field), "{fault}");
        }
    }
}
