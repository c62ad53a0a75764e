//! The change feed policy: what is retained in addition to the latest version of each document.

use super::check::within;
use crate::{DecodeFault, Decoder, DefinitionNumber, DefinitionPart, Encoder, RequestFault};

/// What the change feed retains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeFeedPolicy {
    /// How long all versions and deletes are retained; 0 disables this.
    pub retention_minutes: u32,
}

impl ChangeFeedPolicy {
    /// Longest retention in minutes: a year.
    pub const RETENTION_MINUTES_MAX: u32 = 366 * 24 * 60;

    /// How long all versions and deletes are retained, if they are.
    pub fn retention_seconds(self) -> Option<u64> {
        (self.retention_minutes > 0).then(|| u64::from(self.retention_minutes) * 60)
    }

    /// Refuses a retention that is too long.
    pub(crate) fn check(self) -> Result<(), RequestFault> {
        let bounds = 0..=ChangeFeedPolicy::RETENTION_MINUTES_MAX;
        within(DefinitionPart::ChangeFeed, DefinitionNumber::RetentionMinutes, self.retention_minutes, bounds)
    }

    pub(super) fn encode(self, out: &mut Encoder) {
        out.number(self.retention_minutes);
    }

    pub(super) fn decode(input: &mut Decoder<'_>) -> Result<ChangeFeedPolicy, DecodeFault> {
        Ok(ChangeFeedPolicy { retention_minutes: input.number("change feed retention")? })
    }
}
