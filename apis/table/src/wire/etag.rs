//! ETags: the time of a version, `W/"datetime'2024-02-03T04%3A05%3A06.7890000Z'"`.

use crate::edm::{parse_date_time, write_date_time};
use crate::faults::{Code, TableFault, request};
use api_http::percent;
use model::Ticks;
use plan::Condition;

const PREFIX: &str = "W/\"datetime'";
const SUFFIX: &str = "'\"";

/// The ETag of a version that was written at this time.
pub(crate) fn etag(time: Ticks) -> String {
    let mut date = Vec::with_capacity(28);
    write_date_time(i64::try_from(time.0).unwrap_or(i64::MAX), &mut date);
    let mut text = String::with_capacity(48);
    text.push_str(PREFIX);
    for byte in date {
        match byte {
            b':' => text.push_str("%3A"),
            _ => text.push(char::from(byte)),
        }
    }
    text.push_str(SUFFIX);
    text
}

/// The condition of an `If-Match` header. A well-formed ETag of another server matches nothing.
pub(crate) fn condition(text: &str) -> Result<Condition, TableFault> {
    let text = text.trim();
    if text == "*" {
        return Ok(Condition::IfExists);
    }
    let opaque = text.strip_prefix("W/").unwrap_or(text);
    if opaque.len() < 2 || !opaque.starts_with('"') || !opaque.ends_with('"') {
        return Err(request(
            Code::InvalidInput,
            "The etag value specified in the If-Match header is not valid.",
        ));
    }
    let time = text.strip_prefix(PREFIX).and_then(|text| text.strip_suffix(SUFFIX));
    let time = time.and_then(percent::decoded).and_then(|time| parse_date_time(&time));
    let time = time.and_then(|ticks| u64::try_from(ticks).ok());
    // No version was written in 1970.
    Ok(Condition::IfWrittenAt(Ticks(time.unwrap_or(0))))
}

#[test]
fn an_etag_is_read_back_or_matches_nothing() {
    let time = Ticks(17_069_355_067_890_001);
    let text = etag(time);
    assert_eq!(text, "W/\"datetime'2024-02-03T04%3A45%3A06.7890001Z'\"");
    assert_eq!(condition(&text).unwrap(), Condition::IfWrittenAt(time));
    assert_eq!(condition(" * ").unwrap(), Condition::IfExists);
    for foreign in ["W/\"0x8D\"", "\"x\"", "W/\"datetime'never'\"", "\"\""] {
        assert_eq!(condition(foreign).unwrap(), Condition::IfWrittenAt(Ticks(0)), "{foreign}");
    }
    for malformed in ["", "x", "W/", "\"", "W/\"x"] {
        assert!(condition(malformed).is_err(), "{malformed}");
    }
}
