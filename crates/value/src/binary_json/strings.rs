//! The string encodings of binary JSON.

use super::read::ByteCursor;
use crate::json::{JsonError, JsonErrorKind};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use std::borrow::Cow;

/// The system string table: names that many documents have. The order is part of the format.
const SYSTEM_STRINGS: [&str; 32] = [
    "$s",
    "$t",
    "$v",
    "_attachments",
    "_etag",
    "_rid",
    "_self",
    "_ts",
    "attachments/",
    "coordinates",
    "geometry",
    "GeometryCollection",
    "id",
    "url",
    "Value",
    "label",
    "LineString",
    "link",
    "MultiLineString",
    "MultiPoint",
    "MultiPolygon",
    "name",
    "Name",
    "Type",
    "Point",
    "Polygon",
    "properties",
    "type",
    "value",
    "Feature",
    "FeatureCollection",
    "_id",
];

const LOWER_HEX: &[u8; 16] = b"0123456789abcdef";
const UPPER_HEX: &[u8; 16] = b"0123456789ABCDEF";
/// The characters of dates and times.
const DATE_TIME: &[u8; 16] = b" 0123456789:-.TZ";

/// The string of `marker`; `None` if the marker is not a string marker.
pub(super) fn text<'a>(cursor: &mut ByteCursor<'a>, marker: u8) -> Result<Option<Cow<'a, str>>, JsonError> {
    let text = match marker {
        0x20..=0x3F => Cow::Borrowed(SYSTEM_STRINGS[usize::from(marker - 0x20)]),
        0x40..=0x67 => return Err(cursor.error(JsonErrorKind::ForeignString)),
        0x71 | 0x72 => base64(cursor, marker - 0x71, &STANDARD)?.into(),
        0x73 | 0x74 => base64(cursor, marker - 0x73, &URL_SAFE)?.into(),
        0x75 => guid_text(cursor, LOWER_HEX)?.into(),
        0x76 => guid_text(cursor, UPPER_HEX)?.into(),
        0x77 => format!("\"{}\"", guid_text(cursor, LOWER_HEX)?).into(),
        0x78 => of_table(cursor, LOWER_HEX)?.into(),
        0x79 => of_table(cursor, UPPER_HEX)?.into(),
        0x7A => of_table(cursor, DATE_TIME)?.into(),
        0x7B => packed(cursor, 4, 0, true)?.into(),
        0x7C => packed(cursor, 5, 0, true)?.into(),
        0x7D => packed(cursor, 6, 0, true)?.into(),
        0x7E => packed(cursor, 7, 0, false)?.into(),
        0x7F => packed(cursor, 7, 1, false)?.into(),
        0x80..=0xBF => utf8(cursor, usize::from(marker - 0x80))?.into(),
        0xC0..=0xC2 => {
            let length = cursor.length(marker - 0xC0)?;
            utf8(cursor, length)?.into()
        }
        0xC3..=0xC6 => referred(cursor, marker - 0xC3)?,
        0xD3 => guid(cursor)?.into(),
        0xDD..=0xDF => {
            let length = cursor.length(marker - 0xDD)?;
            STANDARD.encode(cursor.bytes(length)?).into()
        }
        _ => return Ok(None),
    };
    Ok(Some(text))
}

fn utf8<'a>(cursor: &mut ByteCursor<'a>, length: usize) -> Result<&'a str, JsonError> {
    let offset = cursor.position;
    str::from_utf8(cursor.bytes(length)?)
        .map_err(|error| JsonError { kind: JsonErrorKind::InvalidUtf8, offset: offset + error.valid_up_to() })
}

/// The string at an earlier offset, which must not be a reference itself.
fn referred<'a>(cursor: &mut ByteCursor<'a>, width: u8) -> Result<Cow<'a, str>, JsonError> {
    let mut bytes = [0; 4];
    for byte in bytes.iter_mut().take(usize::from(width) + 1) {
        *byte = cursor.byte()?;
    }
    let wrong = cursor.error(JsonErrorKind::WrongReference);
    let target = usize::try_from(u32::from_le_bytes(bytes)).map_err(|_| wrong.clone())?;
    let mut there = ByteCursor { buffer: cursor.buffer, position: target, budget: 0 };
    let text = match there.byte() {
        Ok(0xC3..=0xC6) | Err(_) => return Err(wrong),
        Ok(marker @ 0x20..0xC7) => text(&mut there, marker)?.ok_or(wrong)?,
        Ok(_) => return Err(wrong),
    };
    cursor.spend(text.len())?;
    Ok(text)
}

/// Bytes whose text is base64. The number of groups of four characters is followed by the number of padding characters,
/// complemented if the text omits the padding.
fn base64(cursor: &mut ByteCursor<'_>, width: u8, engine: &impl Engine) -> Result<String, JsonError> {
    let characters = cursor.length(width)? * 4;
    let padding = cursor.byte()?;
    let (padding, is_left_out) = if padding > 2 { (!padding, true) } else { (padding, false) };
    let wrong = cursor.error(JsonErrorKind::WrongLength);
    let payload = characters.checked_sub(padding.into()).filter(|_| padding <= 2).ok_or(wrong)?;
    let mut text = engine.encode(cursor.bytes(payload * 3 / 4)?);
    text.truncate(if is_left_out { payload } else { characters });
    Ok(text)
}

/// A GUID as its text was written: two hex digits per byte, the first in the lower half.
fn guid_text(cursor: &mut ByteCursor<'_>, digits: &[u8; 16]) -> Result<String, JsonError> {
    let bytes = cursor.array::<16>()?;
    let mut text = String::with_capacity(36);
    for (index, byte) in bytes.into_iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        for half in [byte & 0x0F, byte >> 4] {
            text.push(char::from(digits[usize::from(half)]));
        }
    }
    Ok(text)
}

/// A GUID as a value: its first three parts are little-endian numbers.
fn guid(cursor: &mut ByteCursor<'_>) -> Result<String, JsonError> {
    let [a0, a1, a2, a3, b0, b1, c0, c1, rest @ ..] = cursor.array::<16>()?;
    let (a, b, c) =
        (u32::from_le_bytes([a0, a1, a2, a3]), u16::from_le_bytes([b0, b1]), u16::from_le_bytes([c0, c1]));
    let [d0, d1, node @ ..] = rest;
    let node = u64::from_be_bytes([0, 0, node[0], node[1], node[2], node[3], node[4], node[5]]);
    Ok(format!("{a:08x}-{b:04x}-{c:04x}-{d0:02x}{d1:02x}-{node:012x}"))
}

/// Two characters per byte, each an index into a table, the first in the lower half.
fn of_table(cursor: &mut ByteCursor<'_>, table: &[u8; 16]) -> Result<String, JsonError> {
    let length = cursor.length(0)?;
    let bytes = cursor.bytes(length.div_ceil(2))?;
    let halves = bytes.iter().flat_map(|byte| [byte & 0x0F, byte >> 4]);
    Ok(halves.take(length).map(|half| char::from(table[usize::from(half)])).collect())
}

/// Characters of a few bits each, lowest bits first, relative to a base character if there is one.
fn packed(cursor: &mut ByteCursor<'_>, bits: usize, width: u8, has_base: bool) -> Result<String, JsonError> {
    let length = cursor.length(width)?;
    let base = if has_base { cursor.byte()? } else { 0 };
    let bytes = cursor.bytes((length * bits).div_ceil(8))?;
    let mut text = String::with_capacity(length);
    for index in 0..length {
        let (byte, shift) = (index * bits / 8, index * bits % 8);
        let pair = [bytes[byte], bytes.get(byte + 1).copied().unwrap_or(0)];
        let value = u16::from_le_bytes(pair) >> shift & ((1 << bits) - 1);
        let character = u8::try_from(value).ok().and_then(|value| value.checked_add(base));
        let ascii = character.filter(u8::is_ascii);
        text.push(ascii.map(char::from).ok_or_else(|| cursor.error(JsonErrorKind::InvalidUtf8))?);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(buffer: &[u8]) -> Result<String, JsonErrorKind> {
        let mut cursor = ByteCursor { buffer, position: 0, budget: 10 };
        let marker = cursor.byte().unwrap();
        let text = text(&mut cursor, marker).map_err(|error| error.kind)?.unwrap().into_owned();
        assert_eq!(cursor.position, buffer.len(), "{text}");
        Ok(text)
    }

    #[track_caller]
    fn check(buffer: &[u8], expected: &str) {
        assert_eq!(read(buffer).as_deref(), Ok(expected));
    }

    #[test]
    fn strings_in_every_form() {
        check(&[0x20], "$s");
        check(&[0x2C], "id");
        check(&[0x3F], "_id");
        check(&[0x80], "");
        check(&[0x83, b'a', 0xC3, 0xA9], "aé");
        check(&[0xC0, 1, b'a'], "a");
        check(&[0xC1, 1, 0, b'a'], "a");
        check(&[0xC2, 1, 0, 0, 0, b'a'], "a");
        check(&[0xDD, 3, b'f', b'o', b'o'], "Zm9v");
        check(&[0x78, 3, 0x1A, 0x0F], "a1f");
        check(&[0x79, 2, 0xFA], "AF");
        check(&[0x7A, 4, 0x21, 0xC3], "012-");
        // "abcd" from 'a' on: 0, 1, 2, 3 in four bits each; then in five and six.
        check(&[0x7B, 4, b'a', 0x10, 0x32], "abcd");
        check(&[0x7C, 2, b'a', 0x20, 0x00], "ab");
        check(&[0x7D, 2, b'a', 0x40, 0x00], "ab");
        check(&[0x7E, 2, 0xE1, 0x31], "ac");
        check(&[0x7F, 1, 0, 0x61], "a");
    }

    #[test]
    fn guids_differ_as_text_and_as_values() {
        let text: Vec<u8> = (0..16).map(|number| (number & 0x0F) << 4).collect();
        let mut buffer = vec![0x75];
        buffer.extend(&text);
        check(&buffer, "00010203-0405-0607-0809-0a0b0c0d0e0f");
        buffer[0] = 0x76;
        check(&buffer, "00010203-0405-0607-0809-0A0B0C0D0E0F");
        buffer[0] = 0x77;
        check(&buffer, "\"00010203-0405-0607-0809-0a0b0c0d0e0f\"");
        let mut buffer = vec![0xD3];
        buffer.extend(0..16);
        check(&buffer, "03020100-0504-0706-0809-0a0b0c0d0e0f");
    }

    #[test]
    fn base64_with_and_without_padding() {
        check(&[0x71, 1, 0, b'f', b'o', b'o'], "Zm9v");
        check(&[0x71, 1, 1, b'f', b'o'], "Zm8=");
        check(&[0x71, 1, !2, b'f'], "Zg");
        check(&[0x72, 1, 0, 2, b'f'], "Zg==");
        check(&[0x73, 1, 0, 0xFB, 0xFF, 0xBF], "-_-_");
        assert_eq!(read(&[0x71, 1, 7, b'f']), Err(JsonErrorKind::WrongLength));
        assert_eq!(read(&[0x71, 0, 1]), Err(JsonErrorKind::WrongLength));
    }

    #[test]
    fn references_point_at_strings_and_cost_their_length() {
        let there = |reference: &[u8]| {
            let buffer = [&[0x82, b'h', b'i', 0xC3, 0, 0x01][..], reference].concat();
            let mut cursor = ByteCursor { buffer: &buffer, position: 7, budget: 3 };
            let first = text(&mut cursor, reference[0]).map(|text| text.unwrap().into_owned());
            cursor.position = 7;
            (first.map_err(|error| error.kind), text(&mut cursor, reference[0]).is_ok())
        };
        for reference in [&[0xC3, 0][..], &[0xC4, 0, 0], &[0xC5, 0, 0, 0], &[0xC6, 0, 0, 0, 0]] {
            assert_eq!(there(reference), (Ok("hi".to_owned()), false), "the second time is too much");
        }
        for reference in [[0xC3, 3], [0xC3, 5], [0xC3, 200]] {
            assert_eq!(there(&reference).0, Err(JsonErrorKind::WrongReference));
        }
    }

    #[test]
    fn what_no_server_can_know_is_refused() {
        assert_eq!(read(&[0x40]), Err(JsonErrorKind::ForeignString));
        assert_eq!(read(&[0x60, 1]), Err(JsonErrorKind::ForeignString));
        assert_eq!(read(&[0x7B, 1, 0x7F, 0x01]), Err(JsonErrorKind::InvalidUtf8));
        assert_eq!(read(&[0x81, 0xFF]), Err(JsonErrorKind::InvalidUtf8));
    }
}
