//! Literals: parsing and printing strings and numbers.

use crate::ast::NumberLiteral;
use std::fmt::Write;

/// The string of a quoted token; `None` if an escape is invalid or is half a character.
pub(crate) fn read_string(token: &str) -> Option<String> {
    let inside = token.get(1..token.len().checked_sub(1)?)?;
    let mut string = String::with_capacity(inside.len());
    let mut characters = inside.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            string.push(character);
            continue;
        }
        string.push(match characters.next()? {
            escaped @ ('"' | '\'' | '\\' | '/') => escaped,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => read_unicode(&mut characters)?,
            _ => return None,
        });
    }
    Some(string)
}

/// What follows `\u`: four digits, and a second escape for a character outside the basic multilingual plane.
fn read_unicode(characters: &mut std::str::Chars<'_>) -> Option<char> {
    let first = read_unit(characters)?;
    let mut units = vec![first];
    if (0xD800..0xDC00).contains(&first) {
        if (characters.next()?, characters.next()?) != ('\\', 'u') {
            return None;
        }
        units.push(read_unit(characters)?);
    }
    char::decode_utf16(units).next()?.ok()
}

fn read_unit(characters: &mut std::str::Chars<'_>) -> Option<u16> {
    (0..4).try_fold(0u16, |unit, _| {
        let digit = characters.next()?.to_digit(16)?;
        Some(unit << 4 | u16::try_from(digit).ok()?)
    })
}

/// The number of a token; `None` if it is out of the range of doubles.
///
/// Integers are exact up to 64 bits.
pub(crate) fn read_number(token: &str) -> Option<NumberLiteral> {
    if let Some(digits) = token.strip_prefix("0x").or_else(|| token.strip_prefix("0X")) {
        return match u64::from_str_radix(digits, 16) {
            Ok(integer) => Some(unsigned(integer)),
            Err(_) => finite(
                digits
                    .chars()
                    .try_fold(0.0, |sum: f64, digit| Some(sum * 16.0 + f64::from(digit.to_digit(16)?)))?,
            ),
        };
    }
    match token.parse::<u64>() {
        Ok(integer) => Some(unsigned(integer)),
        Err(_) => finite(token.parse().ok()?),
    }
}

fn unsigned(integer: u64) -> NumberLiteral {
    i64::try_from(integer).map_or(NumberLiteral::Unsigned(integer), NumberLiteral::Integer)
}

fn finite(double: f64) -> Option<NumberLiteral> {
    double.is_finite().then_some(NumberLiteral::Double(double))
}

/// Writes a string in double quotes.
pub(crate) fn write_string(string: &str, out: &mut String) {
    out.push('"');
    for character in string.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..='\u{1f}' => {
                write!(out, "\\u{:04x}", u32::from(character)).ok();
            }
            _ => out.push(character),
        }
    }
    out.push('"');
}

/// Writes a number so that it parses to the same kind of number.
pub(crate) fn write_number(number: NumberLiteral, out: &mut String) {
    match number {
        NumberLiteral::Integer(integer) => {
            write!(out, "{integer}").ok();
        }
        NumberLiteral::Unsigned(integer) => {
            write!(out, "{integer}").ok();
        }
        NumberLiteral::Double(double) => out.push_str(zmij::Buffer::new().format(double)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes() {
        assert_eq!(read_string(r#"'a\'\"\\\/\b\f\n\r\t'"#).unwrap(), "a'\"\\/\u{8}\u{c}\n\r\t");
        assert_eq!(read_string(r#""\u00e9\uD83D\uDE00""#).unwrap(), "é😀");
        for wrong in [r"'\x'", r"'\u12'", r"'\uD83D'", r"'\uDE00'", r"'\uD83Dx'", r"'\uD83DA'"] {
            assert_eq!(read_string(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn numbers() {
        assert_eq!(read_number("0x1F"), Some(NumberLiteral::Integer(31)));
        assert_eq!(read_number("9223372036854775807"), Some(NumberLiteral::Integer(i64::MAX)));
        assert_eq!(read_number("9223372036854775808"), Some(NumberLiteral::Unsigned(1 << 63)));
        assert_eq!(read_number("0xFFFFFFFFFFFFFFFF"), Some(NumberLiteral::Unsigned(u64::MAX)));
        assert_eq!(
            read_number("18446744073709551616"),
            Some(NumberLiteral::Double(18_446_744_073_709_551_616.0))
        );
        assert_eq!(read_number("1."), Some(NumberLiteral::Double(1.0)));
        assert_eq!(read_number(".5"), Some(NumberLiteral::Double(0.5)));
        assert_eq!(read_number("1e999"), None);
        assert_eq!(read_number(&format!("0x{}", "F".repeat(400))), None);
    }
}
