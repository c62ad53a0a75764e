//! How long documents live.

use super::reader::bad;
use crate::{DecodeFault, Decoder, Encoder, RequestFault};
use serde_json::Value as Json;

/// Longest life in seconds.
const SECONDS_MAX: i64 = 0x7FFF_FFFF;

/// The container's word on expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultTtl {
    /// Nothing expires, whatever the document says.
    Off,
    /// Documents expire when they say so themselves.
    OnDemand,
    /// Documents expire after so many seconds unless they say otherwise.
    Seconds(u32),
}

impl DefaultTtl {
    pub(crate) fn from_json(json: Option<&Json>) -> Result<DefaultTtl, RequestFault> {
        let Some(json) = json.filter(|json| !json.is_null()) else { return Ok(DefaultTtl::Off) };
        match json.as_i64() {
            Some(-1) => Ok(DefaultTtl::OnDemand),
            Some(seconds @ 1..=SECONDS_MAX) => {
                Ok(DefaultTtl::Seconds(u32::try_from(seconds).unwrap_or(u32::MAX)))
            }
            Some(_) | None => Err(bad("defaultTtl", "it must be -1 or a whole number from 1 to 2147483647")),
        }
    }

    /// The wire form; nothing when nothing expires.
    pub(crate) fn to_json(self) -> Option<Json> {
        match self {
            DefaultTtl::Off => None,
            DefaultTtl::OnDemand => Some((-1).into()),
            DefaultTtl::Seconds(seconds) => Some(seconds.into()),
        }
    }
}

/// How long the analytical store, which is not built, would keep documents: kept and given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnalyticalTtl(i64);

impl AnalyticalTtl {
    pub(super) fn from_json(json: &Json) -> Result<AnalyticalTtl, RequestFault> {
        match json.as_i64() {
            Some(seconds @ -1..=SECONDS_MAX) => Ok(AnalyticalTtl(seconds)),
            Some(_) | None => {
                Err(bad("analyticalStorageTtl", "it must be a whole number from -1 to 2147483647"))
            }
        }
    }

    pub(super) fn to_json(self) -> Json {
        self.0.into()
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
    use serde_json::json;

    #[test]
    fn bounds_hold_on_both_sides() {
        let default = |json: Json| DefaultTtl::from_json(Some(&json));
        assert_eq!(default(json!(null)), Ok(DefaultTtl::Off));
        assert_eq!(default(json!(-1)), Ok(DefaultTtl::OnDemand));
        assert_eq!(default(json!(1)), Ok(DefaultTtl::Seconds(1)));
        assert!(default(json!(2_147_483_647_u32)).is_ok() && default(json!(2_147_483_648_u32)).is_err());
        assert!(default(json!(0)).is_err() && default(json!(-2)).is_err() && default(json!("1")).is_err());
        let analytical = |json: Json| AnalyticalTtl::from_json(&json);
        assert!(
            analytical(json!(-1)).is_ok() && analytical(json!(0)).is_ok() && analytical(json!(-2)).is_err()
        );
        assert!(analytical(json!(1.5)).is_err());
    }
}
