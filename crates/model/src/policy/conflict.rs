//! The conflict resolution policy: which of two versions wins. A single store never has two; it only keeps the policy.

use crate::{DecodeFault, Decoder, DefinitionPart, DefinitionRule, Encoder, RequestFault};
use value::PropertyPath;

/// Which of two versions wins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConflictResolution {
    /// The version with the larger number at this path.
    LastWriterWins(String),
    /// The version that a stored procedure chooses; without a procedure the client chooses.
    Custom(String),
}

impl Default for ConflictResolution {
    /// The later write wins.
    fn default() -> ConflictResolution {
        ConflictResolution::LastWriterWins("/_ts".to_owned())
    }
}

impl ConflictResolution {
    /// Refuses an invalid path.
    pub fn check(&self) -> Result<(), RequestFault> {
        let ConflictResolution::LastWriterWins(text) = self else { return Ok(()) };
        let invalid =
            |error| DefinitionPart::Conflicts.violates(DefinitionRule::Path { path: text.clone(), error });
        PropertyPath::parse(text).map(drop).map_err(invalid)
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
