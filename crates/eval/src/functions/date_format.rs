//! `DateTimeFormat`: a date by a pattern of letters.
//!
//! | letters | meaning | letters | meaning |
//! |---|---|---|---|
//! | `yyyy` `yy` `y` | year, of the century | `HH` `H`, `hh` `h` | hour of 24, of 12 |
//! | `MMMM` `MMM` `MM` `M` | name, short name, number of the month | `mm` `m` | minute |
//! | `dddd` `ddd` | name, short name of the weekday | `ss` `s` | second |
//! | `dd` `d` | day | `f`… `F`… | digits of the fraction; `F` without zeros at the end |
//! | `\x` | the letter x | `tt` `t` | AM or PM |
//!
//! All other characters are copied.

use super::Call;
use super::moment::{Calendar, Moment};
use super::strings::text_of;
use crate::budget::WeightSum;
use crate::expression::{EvalResult, defined};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

pub(super) fn format(call: Call<'_>) -> EvalResult<'_> {
    let date = defined!(call.text(0));
    let pattern = defined!(call.text(1));
    let Some(moment) = Moment::parse(&date) else {
        return Ok(None);
    };
    let mut scale = WeightSum::default();
    let mut text = String::new();
    let mut rest = &*pattern;
    while let Some(letter) = rest.chars().next() {
        let count = rest.chars().take(8).take_while(|other| *other == letter).count();
        let (taken, field) = match letter {
            '\\' => {
                let escaped = rest.chars().nth(1).unwrap_or('\\');
                (1 + usize::from(rest.len() > 1), escaped.to_string())
            }
            _ => field(moment, letter, count),
        };
        scale.add(field.len())?;
        text.push_str(&field);
        rest = rest.char_indices().nth(taken).map_or("", |(at, _)| &rest[at..]);
    }
    text_of(text)
}

/// Number of letters consumed from a run of equal ones, and the resulting text.
fn field(moment: Moment, letter: char, count: usize) -> (usize, String) {
    let Calendar { year, month, day, hour, minute, second, ticks } = moment.calendar();
    let twelve = if hour % 12 == 0 { 12 } else { hour % 12 };
    let half = if hour < 12 { "AM" } else { "PM" };
    match letter {
        'y' if count >= 3 => (count.min(4), format!("{year:04}")),
        'y' => (count, padded(year % 100, count)),
        'M' if count >= 3 => name(&MONTHS, usize::try_from(month - 1).unwrap_or(0), count),
        'M' => (count, padded(month, count)),
        'd' if count >= 3 => name(&WEEKDAYS, moment.weekday(), count),
        'd' => (count, padded(day, count)),
        'H' => (count.min(2), padded(hour, count)),
        'h' => (count.min(2), padded(twelve, count)),
        'm' => (count.min(2), padded(minute, count)),
        's' => (count.min(2), padded(second, count)),
        'f' => (count.min(7), fraction(ticks, count)),
        'F' => (count.min(7), fraction(ticks, count).trim_end_matches('0').to_owned()),
        't' => (count.min(2), half[..count.min(2)].to_owned()),
        _ => (1, letter.to_string()),
    }
}

fn padded(number: i64, count: usize) -> String {
    if count == 1 { number.to_string() } else { format!("{number:02}") }
}

fn name(names: &[&str], index: usize, count: usize) -> (usize, String) {
    let name = names.get(index).copied().unwrap_or_default();
    if count == 3 { (3, name.chars().take(3).collect()) } else { (4, name.to_owned()) }
}

fn fraction(ticks: i64, count: usize) -> String {
    format!("{ticks:07}").chars().take(count.min(7)).collect()
}
