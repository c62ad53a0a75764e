//! JSON writer. [`ValueRef::write_json`] lists the texts of values that JSON lacks.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::scan::{is_plain, plain_run};
use crate::{Decimal128, Decoded, Members, ValueRef, WALK_DEPTH_MAX};

const HEX_DIGITS: &[u8; 16] = b"0123456789abcdef";
const DAY_SECONDS: i64 = 86_400;
const TICKS_PER_SECOND: i64 = 10_000_000;

/// Appends the text of a value.
pub(crate) fn write_value(value: ValueRef<'_>, out: &mut Vec<u8>) {
    write_nested(value, WALK_DEPTH_MAX, out);
}

/// Appends an object without its closing brace; true when it has members.
pub(crate) fn write_open(members: Members<'_>, out: &mut Vec<u8>) -> bool {
    write_members(members, WALK_DEPTH_MAX, out)
}

/// Appends a string in quotes.
pub(crate) fn write_string(text: &str, out: &mut Vec<u8>) {
    write_text(text.as_bytes(), out);
}

/// Appends the bytes of a text in quotes.
#[inline]
fn write_text(text: &[u8], out: &mut Vec<u8>) {
    write_between(b"\"", text, b"\"", out);
}

/// Appends the bytes of a text in quotes, with a fixed prefix and suffix. Always inlined, since prefix and suffix then
/// become single stores instead of calls.
#[inline(always)]
fn write_between<const BEFORE: usize, const AFTER: usize>(
    before: &[u8; BEFORE],
    text: &[u8],
    after: &[u8; AFTER],
    out: &mut Vec<u8>,
) {
    out.reserve(text.len() + BEFORE + AFTER);
    out.extend_from_slice(before);
    if is_plain(text) {
        out.extend_from_slice(text);
    } else {
        write_escaped(text, out);
    }
    out.extend_from_slice(after);
}

#[cold]
fn write_escaped(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    loop {
        let (plain, after) = rest.split_at(plain_run(rest));
        out.extend_from_slice(plain);
        let Some((special, after)) = after.split_first() else {
            return;
        };
        write_escape(*special, out);
        rest = after;
    }
}

fn write_nested(value: ValueRef<'_>, levels_left: usize, out: &mut Vec<u8>) {
    // Most of a document is strings, and they were checked when they were stored: checking each byte again took a third
    // of the time of writing a read's text.
    if let Some(text) = value.text_bytes() {
        write_text(text, out);
        return;
    }
    match value.decode_within(levels_left) {
        Decoded::Null => out.extend_from_slice(b"null"),
        Decoded::Bool(true) => out.extend_from_slice(b"true"),
        Decoded::Bool(false) => out.extend_from_slice(b"false"),
        Decoded::Int32(value) => out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes()),
        Decoded::Int64(value) => out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes()),
        Decoded::Double(value) => write_double(value, out),
        Decoded::Decimal(value) => write_decimal(value, out),
        Decoded::String(value) => write_string(value, out),
        Decoded::Binary { bytes, .. } => write_ascii(&STANDARD.encode(bytes), out),
        Decoded::Date(value) => write_ascii(&date_text(value), out),
        Decoded::Ticks(value) => write_ascii(&ticks_text(value), out),
        Decoded::Guid(value) => write_guid(&value, out),
        Decoded::ObjectId(value) => {
            out.push(b'"');
            write_hex(&value, out);
            out.push(b'"');
        }
        Decoded::Array(elements) => {
            out.push(b'[');
            for (index, element) in elements.enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_nested(element, levels_left - 1, out);
            }
            out.push(b']');
        }
        Decoded::Object(members) => {
            write_members(members, levels_left, out);
            out.push(b'}');
        }
    }
}

fn write_members(mut members: Members<'_>, levels_left: usize, out: &mut Vec<u8>) -> bool {
    let Some((name, member)) = members.next_bytes() else {
        out.push(b'{');
        return false;
    };
    write_between(b"{\"", name, b"\":", out);
    write_nested(member, levels_left - 1, out);
    while let Some((name, member)) = members.next_bytes() {
        write_between(b",\"", name, b"\":", out);
        write_nested(member, levels_left - 1, out);
    }
    true
}

fn write_escape(byte: u8, out: &mut Vec<u8>) {
    let short = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        0x0c => b'f',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        _ => {
            out.extend_from_slice(b"\\u00");
            write_hex(&[byte], out);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

fn write_double(value: f64, out: &mut Vec<u8>) {
    if value.is_finite() {
        out.extend_from_slice(zmij::Buffer::new().format_finite(value).as_bytes());
    } else if value.is_nan() {
        write_ascii("NaN", out);
    } else {
        write_ascii(if value > 0.0 { "Infinity" } else { "-Infinity" }, out);
    }
}

/// Most readers refuse numbers outside the range of doubles, so these are written as strings.
fn write_decimal(value: Decimal128, out: &mut Vec<u8>) {
    let text = value.to_string();
    if value.to_f64().is_finite() {
        out.extend_from_slice(text.as_bytes());
    } else {
        write_ascii(&text, out);
    }
}

fn write_guid(bytes: &[u8; 16], out: &mut Vec<u8>) {
    out.push(b'"');
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        write_hex(&[*byte], out);
    }
    out.push(b'"');
}

fn write_hex(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in bytes {
        out.push(HEX_DIGITS[usize::from(byte >> 4)]);
        out.push(HEX_DIGITS[usize::from(byte & 0x0f)]);
    }
}

/// Appends text without escapes, in quotes.
fn write_ascii(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

/// ISO 8601 text of a time in milliseconds.
fn date_text(milliseconds: i64) -> String {
    let second = second_text(milliseconds.div_euclid(1_000));
    format!("{second}.{:03}Z", milliseconds.rem_euclid(1_000))
}

/// ISO 8601 text of a time in ticks of 100 ns.
fn ticks_text(ticks: i64) -> String {
    let second = second_text(ticks.div_euclid(TICKS_PER_SECOND));
    format!("{second}.{:07}Z", ticks.rem_euclid(TICKS_PER_SECOND))
}

/// Date and time of a second in UTC, with the long year of ECMAScript outside 0000 to 9999.
fn second_text(seconds: i64) -> String {
    let (year, month, day) = civil_date(seconds.div_euclid(DAY_SECONDS));
    let time = seconds.rem_euclid(DAY_SECONDS);
    let (hour, minute, second) = (time / 3_600, time / 60 % 60, time % 60);
    let year = match year {
        0..=9999 => format!("{year:04}"),
        _ => format!("{year:+07}"),
    };
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

/// Year, month and day of a day counted from 1970-01-01, in the Gregorian calendar.
fn civil_date(day: i64) -> (i64, i64, i64) {
    // Counted from 0000-03-01 the leap day is the last of its year, and 400 years are always 146,097 days.
    let day = day + 719_468;
    let era = day.div_euclid(146_097);
    let day_of_era = day.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_month)
}
