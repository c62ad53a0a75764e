//! `defaultTtl` and `analyticalStorageTtl`

use model::policy::AnalyticalTtl;
use model::{DefaultTtl, RequestFault};
use serde_json::Value as Json;

/// Absent means that nothing expires.
pub(super) fn read_default(json: Option<&Json>) -> Result<DefaultTtl, RequestFault> {
    let Some(json) = json.filter(|json| !json.is_null()) else { return Ok(DefaultTtl::Off) };
    let ttl = match json.as_i64().ok_or_else(DefaultTtl::invalid)? {
        -1 => DefaultTtl::OnDemand,
        seconds => DefaultTtl::Seconds(u32::try_from(seconds).map_err(|_| DefaultTtl::invalid())?),
    };
    ttl.check()?;
    Ok(ttl)
}

/// `None` if nothing expires.
pub(super) fn write_default(ttl: DefaultTtl) -> Option<Json> {
    match ttl {
        DefaultTtl::Off => None,
        DefaultTtl::OnDemand => Some((-1).into()),
        DefaultTtl::Seconds(seconds) => Some(seconds.into()),
    }
}

pub(super) fn read_analytical(json: &Json) -> Result<AnalyticalTtl, RequestFault> {
    let seconds = json.as_i64().ok_or_else(AnalyticalTtl::invalid)?;
    AnalyticalTtl::new(seconds)
}

pub(super) fn write_analytical(ttl: AnalyticalTtl) -> Json {
    ttl.seconds().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_wrong_number_has_the_same_fault() {
        let default = |json: Json| read_default(Some(&json));
        assert_eq!(default(json!(null)), Ok(DefaultTtl::Off));
        assert_eq!(default(json!(-1)), Ok(DefaultTtl::OnDemand));
        assert_eq!(default(json!(1)), Ok(DefaultTtl::Seconds(1)));
        assert!(default(json!(2_147_483_647_u32)).is_ok());
        for wrong in [json!(2_147_483_648_u32), json!(0), json!(-2), json!("1"), json!(1.5), json!(i64::MAX)]
        {
            assert_eq!(default(wrong.clone()), Err(DefaultTtl::invalid()), "{wrong}");
        }
        let analytical = |json: Json| read_analytical(&json);
        assert!(analytical(json!(-1)).is_ok() && analytical(json!(0)).is_ok());
        for wrong in [json!(2_147_483_648_u32), json!(-2), json!("1"), json!(1.5)] {
            let expected = Err(AnalyticalTtl::invalid());
            assert_eq!(analytical(wrong.clone()), expected, "{wrong}");
        }
    }
}
