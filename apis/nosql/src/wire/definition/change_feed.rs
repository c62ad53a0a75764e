//! `changeFeedPolicy`

use super::reader::Reader;
use crate::faults::NosqlFault;
use model::policy::ChangeFeedPolicy;
use serde_json::{Value as Json, json};

pub(super) fn read(json: &Json) -> Result<ChangeFeedPolicy, NosqlFault> {
    let reader = Reader::new("changeFeedPolicy", "it", json)?;
    reader.only(&["retentionDuration"])?;
    let bounds = 0..=ChangeFeedPolicy::RETENTION_MINUTES_MAX;
    Ok(ChangeFeedPolicy { retention_minutes: reader.whole("retentionDuration", bounds)?.unwrap_or(0) })
}

pub(super) fn write(policy: ChangeFeedPolicy) -> Json {
    json!({ "retentionDuration": policy.retention_minutes })
}
