//! HTTP dates, as every signed request carries one.
//!
//! The form that clients send is read here, every other one by the library of the field: it looks for all three
//! forms of the standard and works out each date twice.

use std::time::{Duration, UNIX_EPOCH};

const WEEKDAYS: [&[u8; 3]; 7] = [b"mon", b"tue", b"wed", b"thu", b"fri", b"sat", b"sun"];
const MONTHS: [&[u8; 3]; 12] =
    [b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec"];
/// Days of a year before each month, and before the next year.
const DAYS_BEFORE: [u64; 13] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365];
/// The weekday of the first day of 1970, a Thursday.
const FIRST_WEEKDAY: u64 = 3;
/// The leap years before 1970.
const LEAP_YEARS_BEFORE: u64 = 477;

/// Seconds since 1970 at a date, in any letter case; `None` for what is no date.
pub(crate) fn parse(text: &str) -> Option<u64> {
    usual(text.as_bytes()).or_else(|| {
        let time = httpdate::parse_http_date(text).or_else(|_| httpdate::parse_http_date(&capitalised(text)));
        time.ok()?.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs())
    })
}

/// The text of a date.
pub(crate) fn text(seconds: u64) -> String {
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds))
}

/// Reads `Thu, 27 Apr 2017 00:51:12 GMT`.
#[rustfmt::skip] // the pattern is the form
fn usual(text: &[u8]) -> Option<u64> {
    let &[
        w1, w2, w3, b',', b' ', d1, d2, b' ', m1, m2, m3, b' ', y1, y2, y3, y4, b' ',
        h1, h2, b':', n1, n2, b':', s1, s2, b' ', b'G' | b'g', b'M' | b'm', b'T' | b't',
    ] = text else {
        return None;
    };
    let day = number([d1, d2])?;
    let month = place([m1, m2, m3], &MONTHS)?;
    let year = number([y1, y2, y3, y4]).filter(|year| *year >= 1970)?;
    let hour = number([h1, h2]).filter(|hour| *hour < 24)?;
    let minute = number([n1, n2]).filter(|minute| *minute < 60)?;
    let second = number([s1, s2]).filter(|second| *second < 60)?;
    let days = days_since_1970(year, month, day)?;
    let weekday = usize::try_from((days + FIRST_WEEKDAY) % 7).ok()?;
    (place([w1, w2, w3], &WEEKDAYS)? == weekday).then_some(((days * 24 + hour) * 60 + minute) * 60 + second)
}

fn number<const COUNT: usize>(digits: [u8; COUNT]) -> Option<u64> {
    let all_digits = digits.iter().all(u8::is_ascii_digit);
    all_digits.then(|| digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}

fn place(name: [u8; 3], names: &[&[u8; 3]]) -> Option<usize> {
    let name = name.map(|letter| letter.to_ascii_lowercase());
    names.iter().position(|known| **known == name)
}

/// `None` for a day that the month does not have. `month` counts from zero.
fn days_since_1970(year: u64, month: usize, day: u64) -> Option<u64> {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let [before, behind] = [*DAYS_BEFORE.get(month)?, *DAYS_BEFORE.get(month + 1)?];
    let length = behind - before + u64::from(is_leap && month == 1);
    if day == 0 || day > length {
        return None;
    }
    let past = year - 1;
    let leap_days = past / 4 - past / 100 + past / 400 - LEAP_YEARS_BEFORE + u64::from(is_leap && month > 1);
    Some((year - 1970) * 365 + leap_days + before + day - 1)
}

/// Some clients send the date as they sign it, in lower case: `thu, 27 apr 2017 00:51:12 gmt`.
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
    fn every_day_is_read_as_the_library_reads_it() {
        const DAY: u64 = 24 * 60 * 60;
        // A little more than days, so that hours, minutes and seconds change too; the end is that of the year 9999.
        for seconds in (0..253_402_300_800).step_by(usize::try_from(DAY * 29 + 3671).unwrap()) {
            let date = text(seconds);
            assert_eq!(usual(date.as_bytes()), Some(seconds), "{date}");
            assert_eq!(usual(date.to_ascii_lowercase().as_bytes()), Some(seconds), "{date}");
        }
        for leap in ["Tue, 29 Feb 2000 23:59:59 GMT", "Thu, 29 Feb 2024 00:00:00 GMT"] {
            let time = httpdate::parse_http_date(leap).unwrap();
            assert_eq!(parse(leap), time.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs()));
        }
    }

    #[test]
    fn what_the_library_refuses_is_refused() {
        let good = "Thu, 27 Apr 2017 00:51:12 GMT";
        let by_library = |date: &str| httpdate::parse_http_date(&capitalised(date)).is_ok();
        for place in 0..good.len() {
            for byte in 0..0x80_u8 {
                let mut date = good.as_bytes().to_vec();
                date[place] = byte;
                let date = String::from_utf8(date).unwrap();
                assert_eq!(parse(&date).is_some(), by_library(&date), "{date:?}");
            }
        }
        for date in [
            "Thu, 00 Apr 2017 00:51:12 GMT",
            "Mon, 31 Apr 2017 00:51:12 GMT",
            "Wed, 29 Feb 2017 00:51:12 GMT",
            "Mon, 29 Feb 2100 00:00:00 GMT",
            "Fri, 27 Apr 2017 00:51:12 GMT",
            "Sun, 27 Apr 1969 00:51:12 GMT",
            "é",
            "",
        ] {
            assert_eq!(parse(date), None, "{date}");
            assert!(!by_library(date), "{date}");
        }
    }

    #[test]
    fn other_forms_and_cases_are_read_too() {
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
        }
    }
}
