//! A moment in UTC, to 100 nanoseconds, in the years 1 to 9999; its text and its calendar fields.

/// Ticks of 100 nanoseconds.
pub(super) const TICKS_PER_SECOND: i64 = 10_000_000;
pub(super) const TICKS_PER_MS: i64 = 10_000;
pub(super) const TICKS_PER_DAY: i64 = 86_400 * TICKS_PER_SECOND;

/// Days from 0000-03-01 to 1970-01-01.
const EPOCH_FROM_MARCH_OF_YEAR_0: i64 = 719_468;

/// A moment within the supported years.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment {
    /// Since 1970-01-01, negative before.
    ticks: i64,
}

/// The calendar fields of a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Calendar {
    pub(super) year: i64,
    pub(super) month: i64,
    pub(super) day: i64,
    pub(super) hour: i64,
    pub(super) minute: i64,
    pub(super) second: i64,
    /// The fraction of the second.
    pub(super) ticks: i64,
}

impl Moment {
    /// The moment `ticks` after 1970, if it is within the supported years.
    pub(super) fn from_ticks(ticks: i64) -> Option<Moment> {
        let year = civil_date(ticks.div_euclid(TICKS_PER_DAY)).0;
        (1..=9999).contains(&year).then_some(Moment { ticks })
    }

    /// The moment `milliseconds` after 1970.
    pub(super) fn from_ms(milliseconds: i64) -> Option<Moment> {
        Moment::from_ticks(milliseconds.checked_mul(TICKS_PER_MS)?)
    }

    /// The moment with these fields; `None` for a date or time that does not exist.
    pub(super) fn from_calendar(parts: Calendar) -> Option<Moment> {
        let is_time = (0..24).contains(&parts.hour)
            && (0..60).contains(&parts.minute)
            && (0..60).contains(&parts.second)
            && (0..TICKS_PER_SECOND).contains(&parts.ticks);
        let is_date = (1..=9999).contains(&parts.year)
            && (1..=12).contains(&parts.month)
            && (1..=days_of_month(parts.year, parts.month)).contains(&parts.day);
        if !is_time || !is_date {
            return None;
        }
        let seconds = (parts.hour * 60 + parts.minute) * 60 + parts.second;
        let days = day_number(parts.year, parts.month, parts.day);
        Some(Moment { ticks: days * TICKS_PER_DAY + seconds * TICKS_PER_SECOND + parts.ticks })
    }

    /// Parses `YYYY-MM-DD` with an optional time `Thh:mm[:ss[.fffffff]]` and an optional `Z`; always UTC. A blank is
    /// accepted in place of the `T`.
    pub(super) fn parse(text: &str) -> Option<Moment> {
        let (text, _) = text.strip_suffix('Z').map_or((text, false), |text| (text, true));
        let (date, time) = match text.split_once(['T', ' ']) {
            Some((date, time)) => (date, Some(time)),
            None => (text, None),
        };
        let (year, date) = date.split_once('-')?;
        let (month, day) = date.split_once('-')?;
        let (hour, minute, second, ticks) = match time {
            Some(time) => parse_time(time)?,
            None => (0, 0, 0, 0),
        };
        Moment::from_calendar(Calendar {
            year: digits(year, 4)?,
            month: digits(month, 2)?,
            day: digits(day, 2)?,
            hour,
            minute,
            second,
            ticks,
        })
    }

    /// Since 1970-01-01.
    pub(super) fn ticks(self) -> i64 {
        self.ticks
    }

    /// Year, month, day and so on.
    pub(super) fn calendar(self) -> Calendar {
        let (year, month, day) = civil_date(self.ticks.div_euclid(TICKS_PER_DAY));
        let time = self.ticks.rem_euclid(TICKS_PER_DAY);
        let seconds = time / TICKS_PER_SECOND;
        Calendar {
            year,
            month,
            day,
            hour: seconds / 3_600,
            minute: seconds / 60 % 60,
            second: seconds % 60,
            ticks: time % TICKS_PER_SECOND,
        }
    }

    /// Day of the week; Sunday is 0.
    pub(super) fn weekday(self) -> usize {
        usize::try_from((self.ticks.div_euclid(TICKS_PER_DAY) + 4).rem_euclid(7)).unwrap_or(0)
    }

    /// The moment `months` later; a day that the month does not have becomes its last.
    pub(super) fn plus_months(self, months: i64) -> Option<Moment> {
        let parts = self.calendar();
        let month = (parts.year * 12 + parts.month - 1).checked_add(months)?;
        let (year, month) = (month.div_euclid(12), month.rem_euclid(12) + 1);
        if !(1..=9999).contains(&year) {
            return None;
        }
        Moment::from_calendar(Calendar {
            year,
            month,
            day: parts.day.min(days_of_month(year, month)),
            ..parts
        })
    }

    /// The text form of the service: seven fractional digits and `Z`.
    pub(super) fn text(self) -> String {
        let Calendar { year, month, day, hour, minute, second, ticks } = self.calendar();
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ticks:07}Z")
    }
}

fn parse_time(text: &str) -> Option<(i64, i64, i64, i64)> {
    let (hour, rest) = text.split_once(':')?;
    let (minute, second) = match rest.split_once(':') {
        Some((minute, second)) => (minute, Some(second)),
        None => (rest, None),
    };
    let (second, fraction) = match second.map(|second| second.split_once('.').unwrap_or((second, "0"))) {
        Some((second, fraction)) => (digits(second, 2)?, fraction),
        None => (0, "0"),
    };
    if fraction.len() > 7 {
        return None;
    }
    let ticks = digits(fraction, fraction.len())?;
    let scale = 10i64.pow(u32::try_from(7 - fraction.len()).ok()?);
    Some((digits(hour, 2)?, digits(minute, 2)?, second, ticks * scale))
}

/// A number of exactly `count` digits.
fn digits(text: &str, count: usize) -> Option<i64> {
    let is_number = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

fn days_of_month(year: i64, month: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to a date of the Gregorian calendar.
fn day_number(year: i64, month: i64, day: i64) -> i64 {
    // Counted from March, the leap day is the last of its year.
    let year = if month <= 2 { year - 1 } else { year };
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + day_of_year - EPOCH_FROM_MARCH_OF_YEAR_0
}

/// Year, month and day of a day counted from 1970-01-01.
fn civil_date(day: i64) -> (i64, i64, i64) {
    let day = day + EPOCH_FROM_MARCH_OF_YEAR_0;
    // 400 years are always 146,097 days.
    let era = day.div_euclid(146_097);
    let day_of_era = day.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day_of_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_reads_back() {
        let first = Moment::parse("0001-01-01").unwrap().ticks / TICKS_PER_DAY;
        let last = Moment::parse("9999-12-31").unwrap().ticks / TICKS_PER_DAY;
        assert_eq!((first, last), (-719_162, 2_932_896));
        for day in (first..=last).step_by(13).chain([last]) {
            let (year, month, day_of_month) = civil_date(day);
            assert_eq!(day_number(year, month, day_of_month), day);
        }
        assert_eq!(Moment::from_ticks((last + 1) * TICKS_PER_DAY), None);
        assert_eq!(Moment::from_ticks(first * TICKS_PER_DAY - 1), None);
        assert_eq!(Moment::from_ticks(i64::MIN), None);
    }

    #[test]
    fn texts() {
        let check = |text: &str, expected: &str| assert_eq!(Moment::parse(text).unwrap().text(), expected);
        check("2020-08-13", "2020-08-13T00:00:00.0000000Z");
        check("2020-08-13T23:19", "2020-08-13T23:19:00.0000000Z");
        check("2020-08-13T23:19:54.3Z", "2020-08-13T23:19:54.3000000Z");
        check("2024-10-10 14:40:20", "2024-10-10T14:40:20.0000000Z");
        check("1601-01-01T00:00:00.0000001", "1601-01-01T00:00:00.0000001Z");
        for wrong in
            ["", "2020", "2020-8-13", "2021-02-29", "2020-13-01", "2020-01-01T24:00", "2020-01-01T", "x"]
        {
            assert_eq!(Moment::parse(wrong), None, "{wrong}");
        }
        assert_eq!(Moment::parse("2020-01-01T00:00:00.12345678Z"), None);
        assert_eq!(Moment::parse("2020-01-01T00:00:00."), None);
        assert_eq!(Moment::parse("2020-01-01T00:00:00+02:00"), None);
    }

    #[test]
    fn weekdays() {
        assert_eq!(Moment::parse("1970-01-01").unwrap().weekday(), 4);
        assert_eq!(Moment::parse("2024-02-29").unwrap().weekday(), 4);
        assert_eq!(Moment::parse("1969-12-28").unwrap().weekday(), 0);
    }
}
