//! HTTP dates, which every signed request contains.

use std::cell::Cell;
use std::time::{Duration, UNIX_EPOCH};

/// Length of a date in the form that all SDKs send: `Thu, 27 Apr 2017 00:51:12 GMT`.
const DATE_BYTES: usize = 29;

thread_local! {
    /// The last parsed date. A date has whole seconds, so under load nearly all requests send the same text.
    static LAST: Cell<([u8; DATE_BYTES], u64)> = const { Cell::new(([0; DATE_BYTES], 0)) };
}

/// Parses a date, case-insensitive, to seconds since 1970; `None` if it is invalid.
pub fn parse(text: &str) -> Option<u64> {
    let Ok(bytes) = <[u8; DATE_BYTES]>::try_from(text.as_bytes()) else { return parse_any(text) };
    let (last, seconds) = LAST.get();
    if bytes == last {
        return Some(seconds);
    }
    let seconds = parse_any(text)?;
    LAST.set((bytes, seconds));
    Some(seconds)
}

fn parse_any(text: &str) -> Option<u64> {
    let time = httpdate::parse_http_date(text).or_else(|_| httpdate::parse_http_date(&capitalised(text)));
    time.ok()?.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs())
}

/// The text of a date.
pub fn text(seconds: u64) -> String {
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds))
}

/// Some clients send the date in lower case, as they sign it: `thu, 27 apr 2017 00:51:12 gmt`.
fn capitalised(date: &str) -> String {
    let mut text = String::with_capacity(date.len());
    let mut inside_word = false;
    for character in date.chars() {
        let upper = !inside_word || date.len() - text.len() <= "GMT".len();
        text.push(if upper { character.to_ascii_uppercase() } else { character.to_ascii_lowercase() });
        inside_word = character.is_ascii_alphabetic();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_date_is_refused() {
        for date in [
            "Mon, 31 Apr 2017 00:51:12 GMT",
            "Wed, 29 Feb 2017 00:51:12 GMT",
            "Fri, 27 Apr 2017 00:51:12 GMT",
            "Thu, 27 Apr 2017 24:51:12 GMT",
            "Sun, 27 Apr 1969 00:51:12 GMT",
            "é",
            "",
        ] {
            assert_eq!(parse(date), None, "{date}");
        }
    }

    #[test]
    fn all_forms_and_cases_are_read() {
        let seconds = Some(1_493_254_272);
        for date in [
            "Thu, 27 Apr 2017 00:51:12 GMT",
            "thu, 27 apr 2017 00:51:12 gmt",
            "THU, 27 APR 2017 00:51:12 GMT",
            " Thu, 27 Apr 2017 00:51:12 GMT ",
            "Thursday, 27-Apr-17 00:51:12 GMT",
            "Thu Apr 27 00:51:12 2017",
        ] {
            assert_eq!(parse(date), seconds, "{date}");
            assert_eq!(parse(date), seconds, "{date}, again");
            assert_eq!(parse("Thu, 27 Apr 2017 00:51:13 GMT"), Some(1_493_254_273));
        }
    }
}
