//! The requested throughput in the body of a replaced offer.

use super::bad;
use crate::faults::NosqlFault;
use model::{Throughput, ThroughputChange};
use serde_json::Value as Json;

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
        return Ok(ThroughputChange::To(Throughput::Autoscale { max }));
    }
    let rate = content.get("offerThroughput").and_then(Json::as_u64);
    let rate = rate.ok_or_else(|| bad("content.offerThroughput", "it must be a whole number"))?;
    Ok(ThroughputChange::To(Throughput::Manual(rate)))
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
        assert_eq!(reread(json!({ "offerThroughput": 500, "offerAutopilotSettings": null })), Ok(manual));
        let autoscale = ThroughputChange::To(Throughput::Autoscale { max: 4000 });
        let settings = json!({ "offerThroughput": 400, "offerAutopilotSettings": { "maxThroughput": 4000 } });
        assert_eq!(reread(settings), Ok(autoscale));
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
