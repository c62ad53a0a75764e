//! Texts of `Edm.DateTime`: ISO 8601 with up to seven digits of a second and an optional offset.
//!
//! A time is a count of ticks of 100 ns since 1970-01-01 UTC, from the first of the year 0001 to the last of 9999.

/// The first tick of the year 0001.
pub const TICKS_MIN: i64 = -621_355_968_000_000_000;
/// The first tick of the year 1601, the earliest time in an account of Storage.
pub const TICKS_MIN_STORAGE: i64 = -116_444_736_000_000_000;
/// The last tick of the year 9999.
pub const TICKS_MAX: i64 = 2_534_023_007_999_999_999;

const TICKS_PER_SECOND: i64 = 10_000_000;
const FRACTION_DIGITS_MAX: usize = 7;
/// Most hours of an offset.
const OFFSET_HOURS_MAX: i64 = 14;

/// Parses a time. Without an offset it is UTC. `None` if it is malformed or outside of the years 0001 to 9999.
///
/// Seconds, or seconds and minutes, may be absent, as may be the time of the day: `2024-02-03`, `2024-02-03T04:05Z`.
/// Digits of a second beyond the seventh are refused unless they are zero.
pub fn parse_date_time(text: &str) -> Option<i64> {
    let mut cursor = Cursor { rest: text.trim_ascii().as_bytes() };
    let year = cursor.digits(4)?;
    cursor.sign(b'-')?;
    let month = cursor.digits(2)?;
    cursor.sign(b'-')?;
    let day = cursor.digits(2)?;
    if year == 0 || !(1..=12).contains(&month) || !(1..=days_of_month(year, month)).contains(&day) {
        return None;
    }
    let (mut seconds, mut fraction, mut offset_seconds) = (0, 0, 0);
    if cursor.take(b'T') || cursor.take(b't') || cursor.take(b' ') {
        (seconds, fraction) = cursor.time_of_day()?;
        offset_seconds = cursor.offset_seconds()?;
    } else if cursor.take(b'Z') || cursor.take(b'z') {
        // A date alone may say that it is UTC.
    }
    if !cursor.rest.is_empty() {
        return None;
    }
    let seconds = day_number(year, month, day) * 86_400 + seconds - offset_seconds;
    let ticks = seconds * TICKS_PER_SECOND + fraction;
    (TICKS_MIN..=TICKS_MAX).contains(&ticks).then_some(ticks)
}

/// Appends the text of a time: `2024-02-03T04:05:06.7890000Z`.
pub fn write_date_time(ticks: i64, out: &mut Vec<u8>) {
    let mut quoted = Vec::with_capacity(32);
    value::Value::Ticks(ticks).as_ref().write_json(&mut quoted);
    out.extend_from_slice(quoted.get(1..quoted.len() - 1).unwrap_or_default());
}

struct Cursor<'a> {
    rest: &'a [u8],
}

impl Cursor<'_> {
    fn take(&mut self, sign: u8) -> bool {
        match self.rest.split_first() {
            Some((first, rest)) if *first == sign => {
                self.rest = rest;
                true
            }
            Some(_) | None => false,
        }
    }

    fn sign(&mut self, sign: u8) -> Option<()> {
        self.take(sign).then_some(())
    }

    /// A number of exactly `count` digits.
    fn digits(&mut self, count: usize) -> Option<i64> {
        let (digits, rest) = self.rest.split_at_checked(count)?;
        if !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        self.rest = rest;
        Some(digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
    }

    /// Seconds of the day, and ticks of the second.
    fn time_of_day(&mut self) -> Option<(i64, i64)> {
        let hour = self.digits(2)?;
        self.sign(b':')?;
        let minute = self.digits(2)?;
        let mut second = 0;
        let mut fraction = 0;
        if self.take(b':') {
            second = self.digits(2)?;
            if self.take(b'.') {
                fraction = self.fraction()?;
            }
        }
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        Some((hour * 3600 + minute * 60 + second, fraction))
    }

    fn fraction(&mut self) -> Option<i64> {
        let count = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        let (kept, dropped) = digits.split_at(count.min(FRACTION_DIGITS_MAX));
        if kept.is_empty() || dropped.iter().any(|digit| *digit != b'0') {
            return None;
        }
        let zeros = std::iter::repeat_n(&b'0', FRACTION_DIGITS_MAX - kept.len());
        Some(kept.iter().chain(zeros).fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
    }

    fn offset_seconds(&mut self) -> Option<i64> {
        if self.rest.is_empty() || self.take(b'Z') || self.take(b'z') {
            return Some(0);
        }
        let direction = if self.take(b'+') {
            1
        } else {
            self.sign(b'-')?;
            -1
        };
        let hours = self.digits(2)?;
        // The colon may be absent.
        let _ = self.take(b':');
        let minutes = self.digits(2)?;
        let is_valid =
            minutes < 60 && (hours < OFFSET_HOURS_MAX || (hours == OFFSET_HOURS_MAX && minutes == 0));
        is_valid.then_some(direction * (hours * 3600 + minutes * 60))
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_of_month(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The day, counted from 1970-01-01.
fn day_number(year: i64, month: i64, day: i64) -> i64 {
    // Counted from March the leap day is the last of its year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days_of_years = year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    days_of_years + (153 * month + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(ticks: i64) -> String {
        let mut out = Vec::new();
        write_date_time(ticks, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[track_caller]
    fn check(given: &str, expected: &str) {
        assert_eq!(parse_date_time(given).map(text).as_deref(), Some(expected), "{given}");
    }

    #[test]
    fn fractions_and_offsets_are_read() {
        check("2024-02-03T04:05:06.7890000Z", "2024-02-03T04:05:06.7890000Z");
        check("2024-02-03T04:05:06.7Z", "2024-02-03T04:05:06.7000000Z");
        check("2024-02-03T04:05:06.1234567Z", "2024-02-03T04:05:06.1234567Z");
        check("2024-02-03T04:05:06.123456700Z", "2024-02-03T04:05:06.1234567Z");
        check("2024-02-29T04:05:06+01:30", "2024-02-29T02:35:06.0000000Z");
        check("2024-02-29T23:05:06-0100", "2024-03-01T00:05:06.0000000Z");
        check("2024-02-03T04:05:06", "2024-02-03T04:05:06.0000000Z");
        check("2024-02-03T04:05Z", "2024-02-03T04:05:00.0000000Z");
        check("2024-02-03", "2024-02-03T00:00:00.0000000Z");
    }

    #[test]
    fn the_years_end_on_both_sides() {
        assert_eq!(parse_date_time("0001-01-01T00:00:00Z"), Some(TICKS_MIN));
        assert_eq!(parse_date_time("1601-01-01T00:00:00Z"), Some(TICKS_MIN_STORAGE));
        assert_eq!(parse_date_time("9999-12-31T23:59:59.9999999Z"), Some(TICKS_MAX));
        for given in
            ["0000-12-31T23:59:59Z", "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59.9999999-00:01"]
        {
            assert_eq!(parse_date_time(given), None, "{given}");
        }
    }

    #[test]
    fn malformed_texts_are_refused() {
        let texts = [
            "",
            "2024",
            "2024-2-3",
            "2024-02-30",
            "2023-02-29T00:00:00Z",
            "1900-02-29",
            "2024-13-01",
            "2024-00-01",
            "2024-01-00",
            "2024-02-03T24:00:00Z",
            "2024-02-03T04:60:00Z",
            "2024-02-03T04:05:60Z",
            "2024-02-03T04:05:06.Z",
            "2024-02-03T04:05:06.12345678Z",
            "2024-02-03T04:05:06Zx",
            "2024-02-03T04",
            "2024-02-03T04:05:06+15:00",
            "2024-02-03T04:05:06+14:01",
            "2024-02-03T04:05:06+1",
            "02/03/2024",
            "+2024-02-03T04:05:06Z",
            "2024-02-03Tx",
            "２０２４-02-03",
        ];
        for given in texts {
            assert_eq!(parse_date_time(given), None, "{given}");
        }
    }

    proptest! {
        #[test]
        fn every_tick_is_read_back(ticks in TICKS_MIN..=TICKS_MAX) {
            prop_assert_eq!(parse_date_time(&text(ticks)), Some(ticks));
        }

        #[test]
        fn any_text_is_read_or_refused(given in "\\PC{0,40}") {
            let _ = parse_date_time(&given);
        }
    }
}
