//! How requests and texts name the two times of triggers.

use super::names;
use http::HeaderName;
use model::TriggerTime;

/// The header that names the trigger of a request.
pub(crate) fn header(time: TriggerTime) -> &'static HeaderName {
    match time {
        TriggerTime::Pre => &names::PRE_TRIGGERS,
        TriggerTime::Post => &names::POST_TRIGGERS,
    }
}

/// What triggers of this time are called, before the word trigger.
pub(crate) fn word(time: TriggerTime) -> &'static str {
    match time {
        TriggerTime::Pre => "pre",
        TriggerTime::Post => "post",
    }
}

/// The option of a request that SDKs send as the header. Each writes it in its own way: `pre_trigger_include`,
/// `PreTriggers`.
pub(crate) fn option(time: TriggerTime) -> &'static str {
    match time {
        TriggerTime::Pre => "preTriggerInclude",
        TriggerTime::Post => "postTriggerInclude",
    }
}
