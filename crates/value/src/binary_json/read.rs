//! The structure of binary JSON: one pass from the buffer to encoded bytes, without recursion.

use super::BINARY_JSON_MARK;
use super::strings;
use crate::encode::{ContainerKind, TooLarge, ValueEncoder};
use crate::json::{JsonError, JsonErrorKind};
use crate::{Decimal128, JSON_DEPTH_MAX};

/// Most bytes that references and counts may add to the size of the buffer: a few bytes can expand to many.
const EXPANSION_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Encodes an object without the root members named in `skip`.
pub(crate) fn encode_object(buffer: &[u8], skip: &[&str]) -> Result<Vec<u8>, JsonError> {
    let mut reader = BinaryReader {
        cursor: ByteCursor { buffer, position: 0, budget: EXPANSION_BYTES_MAX },
        encoder: ValueEncoder::with_capacity(buffer.len() + buffer.len() / 8 + 16),
        frames: Vec::new(),
        skip,
        skipping: false,
    };
    if reader.cursor.byte()? != BINARY_JSON_MARK {
        return Err(JsonError { kind: JsonErrorKind::UnknownMarker { marker: buffer[0] }, offset: 0 });
    }
    if !matches!(buffer.get(1), Some(0xE8..=0xEF)) {
        return Err(reader.cursor.error(JsonErrorKind::NotAnObject));
    }
    reader.document()?;
    match reader.cursor.position == buffer.len() {
        true => Ok(reader.encoder.into_bytes()),
        false => Err(reader.cursor.error(JsonErrorKind::TrailingText)),
    }
}

/// An open array or object. It ends at an offset, after a number of entries, or both.
struct OpenValue {
    container: ContainerKind,
    end: Option<usize>,
    entries_left: Option<usize>,
}

impl OpenValue {
    /// Whether nothing is left at `position`; `None` if length and count contradict each other.
    fn has_ended(&self, position: usize) -> Option<bool> {
        match (self.end, self.entries_left) {
            (None, left) => Some(left == Some(0)),
            (Some(end), left) if position == end => matches!(left, None | Some(0)).then_some(true),
            (Some(end), left) => (position < end && left != Some(0)).then_some(false),
        }
    }
}

struct BinaryReader<'a> {
    cursor: ByteCursor<'a>,
    encoder: ValueEncoder,
    frames: Vec<OpenValue>,
    /// Names of root members to skip.
    skip: &'a [&'a str],
    /// Whether the current root member is skipped.
    skipping: bool,
}

impl BinaryReader<'_> {
    /// Reads the only value of the buffer.
    fn document(&mut self) -> Result<(), JsonError> {
        loop {
            self.value()?;
            if !self.after_value()? {
                return Ok(());
            }
        }
    }

    /// Ends the containers that are complete and reads up to the next value; false if the root has ended.
    fn after_value(&mut self) -> Result<bool, JsonError> {
        loop {
            if self.skipping && self.frames.len() == 1 {
                self.encoder.drop_last_member();
                self.skipping = false;
            }
            let Some(frame) = self.frames.last_mut() else {
                return Ok(false);
            };
            let position = self.cursor.position;
            if frame.has_ended(position).ok_or_else(|| self.cursor.error(JsonErrorKind::WrongLength))? {
                self.frames.pop();
                self.end_container()?;
                continue;
            }
            frame.entries_left = frame.entries_left.map(|left| left.saturating_sub(1));
            if frame.container == ContainerKind::Object {
                self.member_name()?;
            }
            return Ok(true);
        }
    }

    fn member_name(&mut self) -> Result<(), JsonError> {
        let marker = self.cursor.byte()?;
        let name = strings::text(&mut self.cursor, marker)?;
        let name = name.ok_or_else(|| self.cursor.unknown(marker))?;
        self.skipping |= self.frames.len() == 1 && self.skip.contains(&&*name);
        self.encoder.name(&name);
        Ok(())
    }

    /// Reads a scalar or begins a container.
    fn value(&mut self) -> Result<(), JsonError> {
        let marker = self.cursor.byte()?;
        match marker {
            0x00..=0x1F => self.encoder.int64(marker.into()),
            0xD0 => self.encoder.null(),
            0xD1 => self.encoder.bool(false),
            0xD2 => self.encoder.bool(true),
            0xC7..=0xCE | 0xD7..=0xDC => self.number(marker)?,
            0xE0..=0xE7 => self.begin(ContainerKind::Array, marker - 0xE0)?,
            0xE8..=0xEF => self.begin(ContainerKind::Object, marker - 0xE8)?,
            0xF0 | 0xF1 => {
                let item = self.cursor.byte()?;
                let count = self.cursor.length(marker - 0xF0)?;
                self.numbers(item, count)?;
            }
            0xF2 | 0xF3 => self.arrays_of_numbers(marker - 0xF2)?,
            _ => match strings::text(&mut self.cursor, marker)? {
                Some(text) => self.encoder.string(&text),
                None => return Err(self.cursor.unknown(marker)),
            },
        }
        Ok(())
    }

    /// Begins a container; the last three bits of its marker give its form.
    fn begin(&mut self, container: ContainerKind, form: u8) -> Result<(), JsonError> {
        let (end, entries_left) = match form {
            0 => (None, Some(0)),
            1 => (None, Some(1)),
            2..=4 => (Some(self.cursor.length(form - 2)?), None),
            _ => {
                let length = self.cursor.length(form - 5)?;
                (Some(length), Some(self.cursor.length(form - 5)?))
            }
        };
        // A length counts the bytes after the length and count fields.
        let end = end.map(|length| self.cursor.position.saturating_add(length));
        if end.is_some_and(|end| end > self.cursor.buffer.len()) {
            return Err(self.cursor.error(JsonErrorKind::UnexpectedEnd));
        }
        self.open(container)?;
        self.frames.push(OpenValue { container, end, entries_left });
        Ok(())
    }

    fn open(&mut self, container: ContainerKind) -> Result<(), JsonError> {
        let depth = self.encoder.depth() + 1;
        if depth > JSON_DEPTH_MAX {
            return Err(self.cursor.error(JsonErrorKind::TooDeep { depth }));
        }
        self.encoder.begin(container);
        Ok(())
    }

    fn end_container(&mut self) -> Result<(), JsonError> {
        self.encoder.end().map_err(|TooLarge| self.cursor.error(JsonErrorKind::TooLarge))
    }

    /// An array whose numbers share one marker.
    fn numbers(&mut self, marker: u8, count: usize) -> Result<(), JsonError> {
        if !matches!(marker, 0xCD | 0xCE | 0xD7..=0xDC) {
            return Err(self.cursor.unknown(marker));
        }
        self.open(ContainerKind::Array)?;
        for _ in 0..count {
            self.number(marker)?;
        }
        self.end_container()
    }

    /// An array of arrays that share their kind and their count.
    fn arrays_of_numbers(&mut self, width: u8) -> Result<(), JsonError> {
        let inner = self.cursor.byte()?;
        if inner != 0xF0 + width {
            return Err(self.cursor.unknown(inner));
        }
        let item = self.cursor.byte()?;
        let inner_count = self.cursor.length(width)?;
        let outer_count = self.cursor.length(width)?;
        self.open(ContainerKind::Array)?;
        for _ in 0..outer_count {
            // Empty arrays take no bytes of the buffer, whatever their count.
            self.cursor.spend(8)?;
            self.numbers(item, inner_count)?;
        }
        self.end_container()
    }

    fn number(&mut self, marker: u8) -> Result<(), JsonError> {
        let cursor = &mut self.cursor;
        let integer = match marker {
            0xC7 => {
                let number = u64::from_le_bytes(cursor.array()?);
                match i64::try_from(number) {
                    Ok(number) => number,
                    // As text of such a number is read.
                    Err(_) => {
                        self.encoder.decimal(Decimal128::from_u64(number));
                        return Ok(());
                    }
                }
            }
            0xC8 | 0xD7 => cursor.byte()?.into(),
            0xD8 => i8::from_le_bytes(cursor.array()?).into(),
            0xC9 | 0xD9 => i16::from_le_bytes(cursor.array()?).into(),
            0xCA | 0xDA => i32::from_le_bytes(cursor.array()?).into(),
            0xCB | 0xDB => i64::from_le_bytes(cursor.array()?),
            0xDC => u32::from_le_bytes(cursor.array()?).into(),
            0xCC | 0xCE => {
                let number = f64::from_le_bytes(cursor.array()?);
                return self.double(number);
            }
            0xCD => {
                let number = f32::from_le_bytes(cursor.array()?);
                return self.double(number.into());
            }
            _ => return Err(cursor.unknown(marker)),
        };
        self.encoder.int64(integer);
        Ok(())
    }

    fn double(&mut self, number: f64) -> Result<(), JsonError> {
        if !number.is_finite() {
            return Err(self.cursor.error(JsonErrorKind::NumberOutOfRange));
        }
        self.encoder.double(number);
        Ok(())
    }
}

/// A position in the buffer.
pub(super) struct ByteCursor<'a> {
    pub(super) buffer: &'a [u8],
    pub(super) position: usize,
    /// Bytes that references and counts may still add.
    pub(super) budget: usize,
}

impl<'a> ByteCursor<'a> {
    pub(super) fn byte(&mut self) -> Result<u8, JsonError> {
        Ok(self.array::<1>()?[0])
    }

    pub(super) fn array<const SIZE: usize>(&mut self) -> Result<[u8; SIZE], JsonError> {
        let bytes = self.bytes(SIZE)?;
        bytes.try_into().map_err(|_| self.error(JsonErrorKind::UnexpectedEnd))
    }

    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8], JsonError> {
        let rest = self.buffer.get(self.position..).unwrap_or_default();
        let bytes = rest.get(..count).ok_or_else(|| self.error(JsonErrorKind::UnexpectedEnd))?;
        self.position += count;
        Ok(bytes)
    }

    /// A length or count of one, two or four bytes.
    pub(super) fn length(&mut self, width: u8) -> Result<usize, JsonError> {
        let length = match width {
            0 => self.byte()?.into(),
            1 => u16::from_le_bytes(self.array()?).into(),
            _ => u32::from_le_bytes(self.array()?),
        };
        usize::try_from(length).map_err(|_| self.error(JsonErrorKind::TooLarge))
    }

    pub(super) fn spend(&mut self, bytes: usize) -> Result<(), JsonError> {
        self.budget = self.budget.checked_sub(bytes).ok_or_else(|| self.error(JsonErrorKind::TooLarge))?;
        Ok(())
    }

    pub(super) fn error(&self, kind: JsonErrorKind) -> JsonError {
        JsonError { kind, offset: self.position }
    }

    pub(super) fn unknown(&self, marker: u8) -> JsonError {
        self.error(JsonErrorKind::UnknownMarker { marker })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Document;
    use proptest::prelude::*;

    /// The text of the object `{"v": …}` whose value is given in hex.
    fn decoded(value: &str) -> Result<String, JsonErrorKind> {
        let bytes: Vec<u8> = value.split(' ').map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
        let buffer = [&[BINARY_JSON_MARK, 0xE9, 0x81, b'v'][..], &bytes].concat();
        let document = Document::from_binary_json_without(&buffer, &[]).map_err(|error| error.kind)?;
        document.validate().unwrap();
        let mut text = Vec::new();
        document.write_json(&mut text);
        let text = String::from_utf8(text).unwrap();
        Ok(text.strip_prefix("{\"v\":").unwrap().strip_suffix('}').unwrap().to_owned())
    }

    #[track_caller]
    fn check(value: &str, expected: &str) {
        assert_eq!(decoded(value).as_deref(), Ok(expected), "{value}");
    }

    #[test]
    fn numbers_and_literals() {
        for (value, expected) in [
            ("00", "0"),
            ("1F", "31"),
            ("D0", "null"),
            ("D1", "false"),
            ("D2", "true"),
            ("C8 C8", "200"),
            ("C9 FE FF", "-2"),
            ("CA 00 00 00 80", "-2147483648"),
            ("CB FF FF FF FF FF FF FF 7F", "9223372036854775807"),
            ("C7 01 00 00 00 00 00 00 00", "1"),
            ("C7 FF FF FF FF FF FF FF FF", "18446744073709551615"),
            ("CC 00 00 00 00 00 00 0C 40", "3.5"),
            ("CD 00 00 C0 3F", "1.5"),
            ("CE 00 00 00 00 00 00 00 80", "-0.0"),
            ("D7 FF", "255"),
            ("D8 FF", "-1"),
            ("DC FF FF FF FF", "4294967295"),
        ] {
            check(value, expected);
        }
        assert_eq!(decoded("CC 00 00 00 00 00 00 F0 7F"), Err(JsonErrorKind::NumberOutOfRange));
        assert_eq!(decoded("CF 00 00"), Err(JsonErrorKind::UnknownMarker { marker: 0xCF }));
    }

    #[test]
    fn containers_in_every_form() {
        for (value, expected) in [
            ("E0", "[]"),
            ("E1 D2", "[true]"),
            ("E2 02 01 02", "[1,2]"),
            ("E3 01 00 01", "[1]"),
            ("E4 01 00 00 00 01", "[1]"),
            ("E5 02 02 01 E0", "[1,[]]"),
            ("E6 01 00 01 00 01", "[1]"),
            ("E7 00 00 00 00 00 00 00 00", "[]"),
            ("E8", "{}"),
            ("E9 2C 01", "{\"id\":1}"),
            ("EA 06 81 61 01 81 62 E8", "{\"a\":1,\"b\":{}}"),
            ("ED 03 01 81 61 01", "{\"a\":1}"),
            ("F0 DA 02 01 00 00 00 FF FF FF FF", "[1,-1]"),
            ("F1 D7 03 00 01 02 03", "[1,2,3]"),
            ("F2 F0 D7 02 02 01 02 03 04", "[[1,2],[3,4]]"),
            ("F3 F1 CD 01 00 01 00 00 00 80 3F", "[[1.0]]"),
        ] {
            check(value, expected);
        }
    }

    #[test]
    fn contradictions_are_refused() {
        for value in
            ["E5 02 03 01 02", "E5 02 01 01 02", "ED 03 02 81 61 01", "E2 01 C8 01", "F2 F1 D7 00 00"]
        {
            assert!(decoded(value).is_err(), "{value}");
        }
        assert_eq!(decoded("E2 05 01"), Err(JsonErrorKind::UnexpectedEnd));
        assert_eq!(decoded("EA 02 01 01"), Err(JsonErrorKind::UnknownMarker { marker: 1 }));
        assert_eq!(decoded("01 01"), Err(JsonErrorKind::TrailingText));
        assert_eq!(decoded("F0 D0 01 00"), Err(JsonErrorKind::UnknownMarker { marker: 0xD0 }));
        for buffer in [&[][..], &[0x80], &[0x80, 0x01], &[0x7B, 0x7D], &[0x80, 0xE0]] {
            assert!(Document::from_binary_json_without(buffer, &[]).is_err(), "{buffer:?}");
        }
    }

    #[test]
    fn depth_and_expansion_are_bounded() {
        let nested = |levels: usize| vec!["E1"; levels].join(" ") + " D0";
        assert!(decoded(&nested(JSON_DEPTH_MAX - 1)).is_ok());
        assert_eq!(
            decoded(&nested(JSON_DEPTH_MAX)),
            Err(JsonErrorKind::TooDeep { depth: JSON_DEPTH_MAX + 1 })
        );
        // Nine bytes that expand to 65,535 arrays: a few are accepted, many are not.
        let empties = "F3 F1 DA 00 00 FF FF";
        assert!(decoded(empties).is_ok());
        let many = [empties; 9].join(" ");
        assert_eq!(decoded(&format!("E2 3F {many}")), Err(JsonErrorKind::TooLarge));
    }

    #[test]
    fn members_of_the_root_can_be_left_out() {
        // _rid and a are skipped at the root only.
        let buffer = [0x80, 0xEA, 11, 0x25, 0xE8, 0x81, b'a', 0x01, 0x81, b'b', 0xE9, 0x81, b'a', 0x02];
        let document = Document::from_binary_json_without(&buffer, &["_rid", "a"]).unwrap();
        assert_eq!(document, Document::from_json(b"{\"b\":{\"a\":2}}").unwrap());
    }

    /// Writes values as the Rust SDK does: containers by length and count, short strings by their length.
    fn write(value: &serde_json::Value, out: &mut Vec<u8>) {
        use serde_json::Value as Json;
        match value {
            Json::Null => out.push(0xD0),
            Json::Bool(value) => out.push(0xD1 + u8::from(*value)),
            Json::Number(number) => match number.as_i64() {
                Some(number @ 0..32) => out.push(u8::try_from(number).unwrap()),
                Some(number) => {
                    out.push(0xCB);
                    out.extend(number.to_le_bytes());
                }
                None => {
                    out.push(0xCC);
                    out.extend(number.as_f64().unwrap().to_le_bytes());
                }
            },
            Json::String(text) => write_text(text, out),
            Json::Array(elements) => {
                let mut body = Vec::new();
                elements.iter().for_each(|element| write(element, &mut body));
                write_frame(0xE7, elements.len(), &body, out);
            }
            Json::Object(members) => {
                let mut body = Vec::new();
                for (name, value) in members {
                    write_text(name, &mut body);
                    write(value, &mut body);
                }
                write_frame(0xEF, members.len(), &body, out);
            }
        }
    }

    fn write_text(text: &str, out: &mut Vec<u8>) {
        match u8::try_from(text.len()) {
            Ok(length @ 0..64) => out.push(0x80 + length),
            Ok(length) => out.extend([0xC0, length]),
            Err(_) => {
                out.push(0xC2);
                out.extend(u32::try_from(text.len()).unwrap().to_le_bytes());
            }
        }
        out.extend(text.as_bytes());
    }

    fn write_frame(marker: u8, count: usize, body: &[u8], out: &mut Vec<u8>) {
        out.push(marker);
        out.extend(u32::try_from(body.len()).unwrap().to_le_bytes());
        out.extend(u32::try_from(count).unwrap().to_le_bytes());
        out.extend(body);
    }

    fn any_json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Into::into),
            ".{0,70}".prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
                prop::collection::btree_map(".{0,8}", inner, 0..6)
                    .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn binary_and_text_mean_the_same(members in prop::collection::btree_map(".{0,8}", any_json(), 0..6)) {
            let json = serde_json::Value::Object(members.into_iter().collect());
            let mut buffer = vec![BINARY_JSON_MARK];
            write(&json, &mut buffer);
            let document = Document::from_binary_json_without(&buffer, &[]).unwrap();
            prop_assert_eq!(document, Document::from_json(json.to_string().as_bytes()).unwrap());
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let buffer = [&[BINARY_JSON_MARK, 0xE9, 0x81, b'v'][..], &bytes].concat();
            if let Ok(document) = Document::from_binary_json_without(&buffer, &["x"]) {
                prop_assert_eq!(document.validate(), Ok(()));
            }
        }
    }
}
