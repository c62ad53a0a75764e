//! The requested throughput in the body of a replaced offer.

use super::bad;
use crate::faults::NosqlFault;
use crate::wire::headers::too_low;
use model::limits::THROUGHPUT_MIN;
use model::{Throughput, ThroughputChange};
use serde_json::{Number, Value as Json};

/// The requested rate is in `content`.
pub(crate) fn read(body: &Json) -> Result<ThroughputChange, NosqlFault> {
    let Some(Json::Object(content)) = body.get("content") else {
        return Err(bad("content", "it must be an object"));
    };
    let settings = content.get("offerAutopilotSettings").filter(|settings| !settings.is_null());
    if let Some(settings) = settings {
        let max = settings.get("maxThroughput").and_then(Json::as_u64);
        let field = "content.offerAutopilotSettings.maxThroughput";
        let max = max.ok_or_else(|| bad(field, "it must be a whole number"))?;
        let increment_percent = increment(settings)
            .map_err(|reason| bad("content.offerAutopilotSettings.autoUpgradePolicy", reason))?;
        return Ok(ThroughputChange::To(Throughput::Autoscale { max, increment_percent }));
    }
    let field = "content.offerThroughput";
    let rate = match content.get("offerThroughput") {
        Some(Json::Number(rate)) => match whole(rate) {
            Some(rate) => rate,
            None if rate.as_f64().is_some_and(|rate| rate < 0.0) => {
                return Err(bad(field, too_low(rate, THROUGHPUT_MIN)));
            }
            None => return Err(bad(field, "it must be a whole number")),
        },
        Some(_) | None => return Err(bad(field, "it must be a whole number")),
    };
    Ok(ThroughputChange::To(Throughput::Manual(rate)))
}

/// A rate, also if it is written with a fraction of zero.
fn whole(rate: &Number) -> Option<u64> {
    // Above the highest rate the exact value does not matter.
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    let of_fraction = |rate: f64| {
        let is_whole = rate.fract() == 0.0 && (0.0..=EXACT_MAX).contains(&rate);
        is_whole.then(|| format!("{rate:.0}").parse().ok()).flatten()
    };
    rate.as_u64().or_else(|| rate.as_f64().and_then(of_fraction))
}

/// The increment in the settings of autoscale; 0 if there is none.
pub(crate) fn increment(settings: &Json) -> Result<u8, &'static str> {
    let is_given = |value: &&Json| !value.is_null();
    let policy = settings.get("autoUpgradePolicy").filter(is_given);
    let policy = policy.and_then(|policy| policy.get("throughputPolicy")).filter(is_given);
    match policy.and_then(|policy| policy.get("incrementPercent")).filter(is_given) {
        None => Ok(0),
        Some(percent) => percent
            .as_u64()
            .filter(|percent| *percent <= 100)
            .and_then(|percent| u8::try_from(percent).ok())
            .ok_or("throughputPolicy.incrementPercent must be a whole number from 0 to 100"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn bodies_are_read_or_refused_with_the_field() {
        let reread = |content: Json| read(&json!({ "content": content }));
        let manual = ThroughputChange::To(Throughput::Manual(500));
        assert_eq!(reread(json!({ "offerThroughput": 500 })), Ok(manual));
        assert_eq!(reread(json!({ "offerThroughput": 500.0 })), Ok(manual));
        let negative = reread(json!({ "offerThroughput": -1 })).unwrap_err().to_string();
        assert!(
            negative.contains("throughput -1 is less than required minimum throughput 400"),
            "{negative}"
        );
        assert_eq!(reread(json!({ "offerThroughput": 500, "offerAutopilotSettings": null })), Ok(manual));
        let scaled =
            |increment_percent| ThroughputChange::To(Throughput::Autoscale { max: 4000, increment_percent });
        let settings = json!({ "offerThroughput": 400, "offerAutopilotSettings": { "maxThroughput": 4000 } });
        assert_eq!(reread(settings), Ok(scaled(0)));
        let upgraded = |percent: Json| {
            let policy = json!({ "throughputPolicy": { "incrementPercent": percent } });
            reread(
                json!({ "offerAutopilotSettings": { "maxThroughput": 4000, "autoUpgradePolicy": policy } }),
            )
        };
        assert_eq!((upgraded(json!(20)), upgraded(Json::Null)), (Ok(scaled(20)), Ok(scaled(0))));
        for percent in [json!(-1), json!(101), json!("20"), json!(2.5)] {
            assert!(upgraded(percent.clone()).is_err(), "{percent}");
        }
        for content in [
            json!({}),
            json!([]),
            json!({ "offerThroughput": "500" }),
            json!({ "offerThroughput": 400.5 }),
            json!({ "offerThroughput": -1 }),
            json!({ "offerAutopilotSettings": {} }),
            json!({ "offerAutopilotSettings": 7 }),
        ] {
            assert!(reread(content.clone()).is_err(), "{content}");
        }
    }
}
