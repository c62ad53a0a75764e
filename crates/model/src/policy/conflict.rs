//! Which of two versions wins. One store never has two; the policy is kept for those that will.

use super::reader::Reader;
use crate::{DecodeFault, Decoder, Encoder, RequestFault};
use serde_json::{Value as Json, json};
use value::PropertyPath;

const POLICY: &str = "conflictResolutionPolicy";

/// Which of two versions wins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConflictResolution {
    /// The one with the larger number at this path.
    LastWriterWins(String),
    /// The one that a stored procedure chooses; without one the client does.
    Custom(String),
}

#[derive(Clone, Copy)]
enum Mode {
    LastWriterWins,
    Custom,
}

impl ConflictResolution {
    /// Absent means that the later write wins.
    pub(super) fn from_json(json: Option<&Json>) -> Result<ConflictResolution, RequestFault> {
        let default = || ConflictResolution::LastWriterWins("/_ts".to_owned());
        let Some(json) = json else { return Ok(default()) };
        let reader = Reader::new(POLICY, "it", json)?;
        reader.only(&["mode", "conflictResolutionPath", "conflictResolutionProcedure"])?;
        let modes = [("LastWriterWins", Mode::LastWriterWins), ("Custom", Mode::Custom)];
        let said = |name| Ok::<_, RequestFault>(reader.text(name)?.filter(|text| !text.is_empty()));
        let (path, procedure) = (said("conflictResolutionPath")?, said("conflictResolutionProcedure")?);
        match reader.choice("mode", &modes)?.unwrap_or(Mode::LastWriterWins) {
            Mode::LastWriterWins if procedure.is_some() => {
                Err(reader.bad("\"conflictResolutionProcedure\" is for the mode Custom"))
            }
            Mode::LastWriterWins => match path {
                None => Ok(default()),
                Some(text) => {
                    let invalid = |error| reader.bad(format!("the path \"{text}\" is invalid: {error}"));
                    PropertyPath::parse(text).map_err(invalid)?;
                    Ok(ConflictResolution::LastWriterWins(text.to_owned()))
                }
            },
            Mode::Custom if path.is_some() => {
                Err(reader.bad("\"conflictResolutionPath\" is for the mode LastWriterWins"))
            }
            Mode::Custom => Ok(ConflictResolution::Custom(procedure.unwrap_or_default().to_owned())),
        }
    }

    pub(super) fn to_json(&self) -> Json {
        let (mode, path, procedure) = match self {
            ConflictResolution::LastWriterWins(path) => ("LastWriterWins", path.as_str(), ""),
            ConflictResolution::Custom(procedure) => ("Custom", "", procedure.as_str()),
        };
        json!({ "mode": mode, "conflictResolutionPath": path, "conflictResolutionProcedure": procedure })
    }
}

impl ConflictResolution {
    pub(super) fn encode(&self, out: &mut Encoder) {
        match self {
            ConflictResolution::LastWriterWins(path) => {
                out.byte(0);
                out.text(path);
            }
            ConflictResolution::Custom(procedure) => {
                out.byte(1);
                out.text(procedure);
            }
        }
    }

    pub(super) fn decode(input: &mut Decoder<'_>) -> Result<ConflictResolution, DecodeFault> {
        match input.byte("conflict resolution mode")? {
            0 => input.text("conflict resolution path").map(ConflictResolution::LastWriterWins),
            1 => input.text("conflict resolution procedure").map(ConflictResolution::Custom),
            tag => Err(input.unknown("conflict resolution mode", tag)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_decides_which_member_may_speak() {
        let read = |json: Json| ConflictResolution::from_json(Some(&json)).map(|policy| policy.to_json());
        let default = ConflictResolution::from_json(None).unwrap().to_json();
        assert_eq!(default["conflictResolutionPath"], "/_ts");
        assert_eq!(read(json!({ "mode": "lastWriterWins", "conflictResolutionPath": "" })).unwrap(), default);
        assert_eq!(read(default.clone()).unwrap(), default);
        let custom = json!({ "mode": "custom", "conflictResolutionProcedure": "dbs/d/colls/c/sprocs/s" });
        assert_eq!(read(custom).unwrap()["mode"], "Custom");
        for bad in [
            json!("LastWriterWins"),
            json!({ "mode": "First" }),
            json!({ "mode": "Custom", "conflictResolutionPath": "/a" }),
            json!({ "mode": "LastWriterWins", "conflictResolutionProcedure": "s" }),
            json!({ "mode": "LastWriterWins", "conflictResolutionPath": "a" }),
        ] {
            assert!(read(bad.clone()).is_err(), "{bad}");
        }
    }
}
