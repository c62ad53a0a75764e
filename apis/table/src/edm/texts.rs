//! Texts of the types that JSON writes as strings.

use super::{EdmType, parse_date_time};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use value::Value;

/// Parses the text of a value of a type; `None` if the text is not one of the type.
pub fn parse_text(edm_type: EdmType, text: &str) -> Option<Value> {
    match edm_type {
        EdmType::String => Some(Value::from(text)),
        EdmType::Boolean => match text {
            "true" | "True" | "1" => Some(Value::Bool(true)),
            "false" | "False" | "0" => Some(Value::Bool(false)),
            _ => None,
        },
        EdmType::Int32 => text.trim_ascii().parse().ok().map(Value::Int32),
        EdmType::Int64 => text.trim_ascii().parse().ok().map(Value::Int64),
        EdmType::Double => parse_double(text).map(Value::Double),
        EdmType::DateTime => parse_date_time(text).map(Value::Ticks),
        EdmType::Guid => parse_guid(text).map(Value::Guid),
        EdmType::Binary => {
            let bytes = BASE64_STANDARD.decode(text).ok()?;
            Some(Value::Binary { subtype: 0, bytes })
        }
    }
}

/// A number, NaN or an infinity. Numbers beyond the largest double are refused.
pub(crate) fn parse_double(text: &str) -> Option<f64> {
    match text.trim_ascii() {
        "NaN" => Some(f64::NAN),
        "Infinity" | "INF" => Some(f64::INFINITY),
        "-Infinity" | "-INF" => Some(f64::NEG_INFINITY),
        // Rust also knows names for them, which are none here.
        number if number.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first)) => {
            number.parse().ok().filter(|double: &f64| double.is_finite())
        }
        _ => None,
    }
}

/// Parses 32 hexadecimal digits, with hyphens after the 8th, 12th, 16th and 20th or without, in braces or without.
pub fn parse_guid(text: &str) -> Option<[u8; 16]> {
    let text = text.trim_ascii();
    let text = text.strip_prefix('{').map_or(Some(text), |inner| inner.strip_suffix('}'))?.as_bytes();
    let digits: Vec<u8> = match text.len() {
        32 => text.to_vec(),
        36 if [8, 13, 18, 23].iter().all(|place| text.get(*place) == Some(&b'-')) => {
            let is_digit = |place: &usize| ![8, 13, 18, 23].contains(place);
            (0..36).filter(is_digit).filter_map(|place| text.get(place).copied()).collect()
        }
        _ => return None,
    };
    parse_hex(&digits)?.try_into().ok()
}

/// Parses pairs of hexadecimal digits.
pub(crate) fn parse_hex(digits: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    digits.chunks_exact(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(edm_type: EdmType, text: &str, expected: Option<Value>) {
        let found = parse_text(edm_type, text);
        assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{edm_type:?} {text:?}");
    }

    #[test]
    fn integers_end_on_both_sides() {
        check(EdmType::Int32, "-2147483648", Some(Value::Int32(i32::MIN)));
        check(EdmType::Int32, "2147483647", Some(Value::Int32(i32::MAX)));
        check(EdmType::Int32, "2147483648", None);
        check(EdmType::Int64, "9223372036854775807", Some(Value::Int64(i64::MAX)));
        check(EdmType::Int64, "-9223372036854775808", Some(Value::Int64(i64::MIN)));
        for text in ["9223372036854775808", "", "1.0", "1e3", "0x1", "1L", "one"] {
            check(EdmType::Int64, text, None);
        }
    }

    #[test]
    fn doubles_have_names_for_what_is_no_number() {
        check(EdmType::Double, "3", Some(Value::Double(3.0)));
        check(EdmType::Double, "-0.0", Some(Value::Double(-0.0)));
        check(EdmType::Double, "NaN", Some(Value::Double(f64::NAN)));
        check(EdmType::Double, "-Infinity", Some(Value::Double(f64::NEG_INFINITY)));
        check(EdmType::Double, "1.7976931348623157e308", Some(Value::Double(f64::MAX)));
        for text in ["1e309", "nan", "inf", "infinity", "", "1.0d", "+", "."] {
            check(EdmType::Double, text, None);
        }
    }

    #[test]
    fn guids_and_bytes_are_read() {
        let guid = Value::Guid(std::array::from_fn(|index| u8::try_from(index).unwrap() * 0x11));
        for text in [
            "00112233-4455-6677-8899-aabbccddeeff",
            "00112233-4455-6677-8899-AABBCCDDEEFF",
            "00112233445566778899aabbccddeeff",
            "{00112233-4455-6677-8899-aabbccddeeff}",
        ] {
            check(EdmType::Guid, text, Some(guid.clone()));
        }
        for text in
            ["", "00112233-4455-6677-8899-aabbccddeef", "00112233-4455-6677-8899-aabbccddeefg", "{}", "é"]
        {
            check(EdmType::Guid, text, None);
        }
        let bytes = |bytes: &[u8]| Some(Value::Binary { subtype: 0, bytes: bytes.to_vec() });
        check(EdmType::Binary, "", bytes(&[]));
        check(EdmType::Binary, "AP+A", bytes(&[0, 0xff, 0x80]));
        check(EdmType::Binary, "AP8=", bytes(&[0, 0xff]));
        for text in ["A", "AP8", "AP", "AP=", "AP8-", "AP8==", "*", "AP+A "] {
            check(EdmType::Binary, text, None);
        }
    }

    #[test]
    fn booleans_are_words_or_digits() {
        check(EdmType::Boolean, "true", Some(Value::Bool(true)));
        check(EdmType::Boolean, "0", Some(Value::Bool(false)));
        check(EdmType::Boolean, "yes", None);
        check(EdmType::String, "", Some(Value::from("")));
    }
}
