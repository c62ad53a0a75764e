//! `conflictResolutionPolicy`

use super::reader::Reader;
use crate::faults::NosqlFault;
use model::policy::ConflictResolution;
use serde_json::{Value as Json, json};

const POLICY: &str = "conflictResolutionPolicy";

#[derive(Clone, Copy)]
enum Mode {
    LastWriterWins,
    Custom,
}

/// Absent means that the last write wins.
pub(super) fn read(json: Option<&Json>) -> Result<ConflictResolution, NosqlFault> {
    let Some(json) = json else { return Ok(ConflictResolution::default()) };
    let reader = Reader::new(POLICY, "it", json)?;
    reader.only(&["mode", "conflictResolutionPath", "conflictResolutionProcedure"])?;
    let modes = [("LastWriterWins", Mode::LastWriterWins), ("Custom", Mode::Custom)];
    let said = |name| Ok::<_, NosqlFault>(reader.text(name)?.filter(|text| !text.is_empty()));
    let (path, procedure) = (said("conflictResolutionPath")?, said("conflictResolutionProcedure")?);
    let policy = match reader.choice("mode", &modes)?.unwrap_or(Mode::LastWriterWins) {
        Mode::LastWriterWins if procedure.is_some() => {
            return Err(reader.bad("\"conflictResolutionProcedure\" is for the mode Custom"));
        }
        Mode::LastWriterWins => path.map_or_else(ConflictResolution::default, |text| {
            ConflictResolution::LastWriterWins(text.to_owned())
        }),
        Mode::Custom if path.is_some() => {
            return Err(reader.bad("\"conflictResolutionPath\" is for the mode LastWriterWins"));
        }
        Mode::Custom => ConflictResolution::Custom(procedure.unwrap_or_default().to_owned()),
    };
    policy.check()?;
    Ok(policy)
}

pub(super) fn write(policy: &ConflictResolution) -> Json {
    let (mode, path, procedure) = match policy {
        ConflictResolution::LastWriterWins(path) => ("LastWriterWins", path.as_str(), ""),
        ConflictResolution::Custom(procedure) => ("Custom", "", procedure.as_str()),
    };
    json!({ "mode": mode, "conflictResolutionPath": path, "conflictResolutionProcedure": procedure })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_decides_which_member_may_speak() {
        let reread = |json: Json| read(Some(&json)).map(|policy| write(&policy));
        let default = write(&read(None).unwrap());
        assert_eq!(default["conflictResolutionPath"], "/_ts");
        assert_eq!(
            reread(json!({ "mode": "lastWriterWins", "conflictResolutionPath": "" })).unwrap(),
            default
        );
        assert_eq!(reread(default.clone()).unwrap(), default);
        let custom = json!({ "mode": "custom", "conflictResolutionProcedure": "dbs/d/colls/c/sprocs/s" });
        assert_eq!(reread(custom).unwrap()["mode"], "Custom");
        for bad in [
            json!("LastWriterWins"),
            json!({ "mode": "First" }),
            json!({ "mode": "Custom", "conflictResolutionPath": "/a" }),
            json!({ "mode": "LastWriterWins", "conflictResolutionProcedure": "s" }),
            json!({ "mode": "LastWriterWins", "conflictResolutionPath": "a" }),
        ] {
            assert!(reread(bad.clone()).is_err(), "{bad}");
        }
    }
}
