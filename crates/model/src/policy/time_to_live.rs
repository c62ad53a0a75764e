//! Time to live: when documents expire.

use crate::{DecodeFault, Decoder, DefinitionPart, DefinitionRule, Encoder, RequestFault};

/// The longest time to live, in seconds.
const SECONDS_MAX: u32 = 0x7FFF_FFFF;

/// The default time to live of a container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DefaultTtl {
    /// Nothing expires, whatever the document specifies.
    #[default]
    Off,
    /// Only documents with their own time to live expire.
    OnDemand,
    /// Documents expire after this many seconds unless they specify another time.
    Seconds(u32),
}

impl DefaultTtl {
    /// The fault of a value that is no time to live.
    pub fn invalid() -> RequestFault {
        DefinitionPart::DefaultTtl.violates(DefinitionRule::Seconds { seconds_max: SECONDS_MAX })
    }

    /// Refuses zero and values above the maximum.
    pub fn check(self) -> Result<(), RequestFault> {
        match self {
            DefaultTtl::Off | DefaultTtl::OnDemand | DefaultTtl::Seconds(1..=SECONDS_MAX) => Ok(()),
            DefaultTtl::Seconds(_) => Err(DefaultTtl::invalid()),
        }
    }
}

/// Time to live in the analytical store, which is not implemented: the value is stored and returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnalyticalTtl(i64);

impl AnalyticalTtl {
    /// A time to live in seconds; -1 means forever.
    pub fn new(seconds: i64) -> Result<AnalyticalTtl, RequestFault> {
        let fits = (-1..=i64::from(SECONDS_MAX)).contains(&seconds);
        fits.then_some(AnalyticalTtl(seconds)).ok_or_else(AnalyticalTtl::invalid)
    }

    /// The fault of a value that is no time to live.
    pub fn invalid() -> RequestFault {
        DefinitionPart::AnalyticalTtl.violates(DefinitionRule::Seconds { seconds_max: SECONDS_MAX })
    }

    /// The seconds, or -1.
    pub fn seconds(self) -> i64 {
        self.0
    }
}

impl DefaultTtl {
    pub(crate) fn encode(self, out: &mut Encoder) {
        match self {
            DefaultTtl::Off => out.byte(0),
            DefaultTtl::OnDemand => out.byte(1),
            DefaultTtl::Seconds(seconds) => {
                out.byte(2);
                out.number(seconds);
            }
        }
    }

    pub(crate) fn decode(input: &mut Decoder<'_>) -> Result<DefaultTtl, DecodeFault> {
        match input.byte("default time to live")? {
            0 => Ok(DefaultTtl::Off),
            1 => Ok(DefaultTtl::OnDemand),
            2 => input.number("default time to live").map(DefaultTtl::Seconds),
            tag => Err(input.unknown("default time to live", tag)),
        }
    }
}

impl AnalyticalTtl {
    pub(super) fn encode(self, out: &mut Encoder) {
        out.signed(self.0);
    }

    pub(super) fn decode(input: &mut Decoder<'_>) -> Result<AnalyticalTtl, DecodeFault> {
        input.signed("analytical time to live").map(AnalyticalTtl)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_hold_on_both_sides() {
        let is_good = |seconds| DefaultTtl::Seconds(seconds).check().is_ok();
        assert!(!is_good(0) && is_good(1) && is_good(SECONDS_MAX) && !is_good(SECONDS_MAX + 1));
        assert!(DefaultTtl::Off.check().is_ok() && DefaultTtl::OnDemand.check().is_ok());
        let is_good = |seconds| AnalyticalTtl::new(seconds).is_ok();
        assert!(!is_good(-2) && is_good(-1) && is_good(0));
        assert!(is_good(i64::from(SECONDS_MAX)) && !is_good(i64::from(SECONDS_MAX) + 1));
    }
}
