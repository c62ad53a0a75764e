//! What the change feed keeps beyond the latest version of each document.

use super::reader::Reader;
use crate::{DecodeFault, Decoder, Encoder, RequestFault};
use serde_json::{Value as Json, json};

/// Longest retention in minutes: a year.
const RETENTION_MINUTES_MAX: u32 = 366 * 24 * 60;

/// What the change feed keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeFeedPolicy {
    /// How long all versions and deletes are kept; 0 for not at all.
    pub retention_minutes: u32,
}

impl ChangeFeedPolicy {
    pub(super) fn from_json(json: &Json) -> Result<ChangeFeedPolicy, RequestFault> {
        let reader = Reader::new("changeFeedPolicy", "it", json)?;
        reader.only(&["retentionDuration"])?;
        let retention_minutes = reader.whole("retentionDuration", 0, RETENTION_MINUTES_MAX)?.unwrap_or(0);
        Ok(ChangeFeedPolicy { retention_minutes })
    }

    pub(super) fn to_json(self) -> Json {
        json!({ "retentionDuration": self.retention_minutes })
    }
}

impl ChangeFeedPolicy {
    pub(super) fn encode(self, out: &mut Encoder) {
        out.number(self.retention_minutes);
    }

    pub(super) fn decode(input: &mut Decoder<'_>) -> Result<ChangeFeedPolicy, DecodeFault> {
        Ok(ChangeFeedPolicy { retention_minutes: input.number("change feed retention")? })
    }
}
