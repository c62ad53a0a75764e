//! Dates and times given as arguments. Texts that are not dates make the result undefined.

use value::Value;

use super::Call;
use super::moment::{Calendar, Moment, TICKS_PER_DAY, TICKS_PER_MS, TICKS_PER_SECOND};
use super::strings::text_of;
use crate::EvalFault;
use crate::expression::{EvalResult, defined};

/// A part of a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DatePart {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
    Microsecond,
    Nanosecond,
}

impl DatePart {
    /// The part with this name, in any letter case.
    fn find(name: &str) -> Option<DatePart> {
        const NAMES: [(DatePart, &[&str]); 9] = [
            (DatePart::Year, &["year", "yyyy", "yy"]),
            (DatePart::Month, &["month", "mm", "m"]),
            (DatePart::Day, &["day", "dd", "d"]),
            (DatePart::Hour, &["hour", "hh"]),
            (DatePart::Minute, &["minute", "mi", "n"]),
            (DatePart::Second, &["second", "ss", "s"]),
            (DatePart::Millisecond, &["millisecond", "ms"]),
            (DatePart::Microsecond, &["microsecond", "mcs"]),
            (DatePart::Nanosecond, &["nanosecond", "ns"]),
        ];
        let found =
            NAMES.iter().find(|(_, names)| names.iter().any(|known| known.eq_ignore_ascii_case(name)));
        found.map(|(part, _)| *part)
    }

    /// Its length: months, which have no fixed length, or nanoseconds.
    fn unit(self) -> Unit {
        const NS_PER_TICK: i128 = 100;
        let of_ticks = |ticks: i64| Unit::Nanoseconds(i128::from(ticks) * NS_PER_TICK);
        match self {
            DatePart::Year => Unit::Months(12),
            DatePart::Month => Unit::Months(1),
            DatePart::Day => of_ticks(TICKS_PER_DAY),
            DatePart::Hour => of_ticks(3_600 * TICKS_PER_SECOND),
            DatePart::Minute => of_ticks(60 * TICKS_PER_SECOND),
            DatePart::Second => of_ticks(TICKS_PER_SECOND),
            DatePart::Millisecond => of_ticks(TICKS_PER_MS),
            DatePart::Microsecond => of_ticks(10),
            DatePart::Nanosecond => Unit::Nanoseconds(1),
        }
    }

    fn of(self, moment: Moment) -> i64 {
        let parts = moment.calendar();
        match self {
            DatePart::Year => parts.year,
            DatePart::Month => parts.month,
            DatePart::Day => parts.day,
            DatePart::Hour => parts.hour,
            DatePart::Minute => parts.minute,
            DatePart::Second => parts.second,
            DatePart::Millisecond => parts.ticks / TICKS_PER_MS,
            DatePart::Microsecond => parts.ticks / 10,
            DatePart::Nanosecond => parts.ticks * 100,
        }
    }
}

enum Unit {
    Months(i64),
    Nanoseconds(i128),
}

fn nanoseconds(moment: Moment) -> i128 {
    i128::from(moment.ticks()) * 100
}

fn months(moment: Moment) -> i64 {
    let parts = moment.calendar();
    parts.year * 12 + parts.month - 1
}

fn from_nanoseconds(nanoseconds: i128) -> Option<Moment> {
    Moment::from_ticks(i64::try_from(nanoseconds.div_euclid(100)).ok()?)
}

/// The moment `count` parts later.
pub(super) fn shift(moment: Moment, part: DatePart, count: i64) -> Option<Moment> {
    match part.unit() {
        Unit::Months(months) => moment.plus_months(count.checked_mul(months)?),
        Unit::Nanoseconds(unit) => {
            from_nanoseconds(nanoseconds(moment).checked_add(i128::from(count) * unit)?)
        }
    }
}

fn moment(call: Call<'_>, index: usize) -> Result<Option<Moment>, EvalFault> {
    Ok(call.text(index)?.and_then(|text| Moment::parse(&text)))
}

/// The part named by an argument.
pub(super) fn part_named(call: Call<'_>, index: usize) -> Result<Option<DatePart>, EvalFault> {
    Ok(call.text(index)?.and_then(|name| DatePart::find(&name)))
}

pub(super) fn add(call: Call<'_>) -> EvalResult<'_> {
    let part = defined!(part_named(call, 0));
    let count = defined!(call.integer(1));
    let moment = defined!(moment(call, 2));
    text_of_moment(shift(moment, part, count))
}

/// The signed number of boundaries of the part between two moments.
pub(super) fn difference(call: Call<'_>) -> EvalResult<'_> {
    let part = defined!(part_named(call, 0));
    let from = defined!(moment(call, 1));
    let to = defined!(moment(call, 2));
    let count = match part.unit() {
        Unit::Months(unit) => i128::from(months(to).div_euclid(unit) - months(from).div_euclid(unit)),
        Unit::Nanoseconds(unit) => nanoseconds(to).div_euclid(unit) - nanoseconds(from).div_euclid(unit),
    };
    // Only nanoseconds between distant moments exceed 64 bits.
    #[allow(clippy::cast_precision_loss)]
    let count = i64::try_from(count).map_or_else(|_| Value::Double(count as f64), Value::Int64);
    Ok(Some(count.into()))
}

pub(super) fn part(call: Call<'_>) -> EvalResult<'_> {
    let part = defined!(part_named(call, 0));
    let moment = defined!(moment(call, 1));
    Ok(Some(Value::Int64(part.of(moment)).into()))
}

/// For DAY, MONTH and YEAR.
pub(super) fn part_of(call: Call<'_>, part: DatePart) -> EvalResult<'_> {
    let moment = defined!(moment(call, 0));
    Ok(Some(Value::Int64(part.of(moment)).into()))
}

/// The start of the bin that contains a moment; bins are counted from an origin, 1970 by default.
pub(super) fn bin(call: Call<'_>) -> EvalResult<'_> {
    let date = defined!(moment(call, 0));
    let part = defined!(part_named(call, 1));
    let size = if call.has(2) { defined!(call.integer(2)) } else { 1 };
    let origin = if call.has(3) { moment(call, 3)? } else { Moment::from_ticks(0) };
    let Some(origin) = origin.filter(|_| size > 0) else {
        return Ok(None);
    };
    text_of_moment(bin_start(date, part, size, origin))
}

fn bin_start(date: Moment, part: DatePart, size: i64, origin: Moment) -> Option<Moment> {
    match part.unit() {
        Unit::Months(unit) => {
            let unit = unit.checked_mul(size)?;
            let bins = (months(date) - months(origin)).div_euclid(unit);
            let start = origin.plus_months(bins * unit)?;
            // Inside the month of a bin's start, but before its day.
            if start <= date { Some(start) } else { origin.plus_months((bins - 1) * unit) }
        }
        Unit::Nanoseconds(unit) => {
            let unit = unit.checked_mul(i128::from(size))?;
            let distance = nanoseconds(date) - nanoseconds(origin);
            from_nanoseconds(nanoseconds(origin) + distance.div_euclid(unit) * unit)
        }
    }
}

pub(super) fn from_parts(call: Call<'_>) -> EvalResult<'_> {
    let mut parts = [0; 7];
    for (index, part) in parts.iter_mut().enumerate().take(call.arguments.len()) {
        *part = defined!(call.integer(index));
    }
    let [year, month, day, hour, minute, second, ticks] = parts;
    text_of_moment(Moment::from_calendar(Calendar { year, month, day, hour, minute, second, ticks }))
}

pub(super) fn to_ticks(call: Call<'_>) -> EvalResult<'_> {
    let moment = defined!(moment(call, 0));
    Ok(Some(Value::Int64(moment.ticks()).into()))
}

pub(super) fn to_timestamp(call: Call<'_>) -> EvalResult<'_> {
    let moment = defined!(moment(call, 0));
    Ok(Some(Value::Int64(moment.ticks().div_euclid(TICKS_PER_MS)).into()))
}

pub(super) fn from_ticks(call: Call<'_>) -> EvalResult<'_> {
    let ticks = defined!(call.integer(0));
    text_of_moment(Moment::from_ticks(ticks))
}

pub(super) fn from_timestamp(call: Call<'_>) -> EvalResult<'_> {
    let milliseconds = defined!(call.integer(0));
    text_of_moment(Moment::from_ms(milliseconds))
}

/// The text of a moment, undefined outside the calendar.
pub(super) fn text_of_moment<'a>(moment: Option<Moment>) -> EvalResult<'a> {
    match moment {
        Some(moment) => text_of(moment.text()),
        None => Ok(None),
    }
}
