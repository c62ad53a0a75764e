//! The key code: bytes that sort like the values and from which values can be decoded.
//!
//! ```text
//! end of a container  01
//! undefined           08
//! null                10
//! false, true         18, 19
//! NaN                 20
//! number              21  code drawn in `numbercode`
//! string              28  UTF-8, 00 written as 00 ff  00 01
//! date                30  8 bytes big endian, sign turned
//! ticks               32  8 bytes big endian, sign turned
//! guid                38  16 bytes
//! object id           40  12 bytes
//! binary              48  subtype  bytes, 00 written as 00 ff  00 01
//! array               50  code of each element  01
//! object              58  for each member in the order of names: code of name, code of value  01
//! ```
//!
//! Values sort by kind in this order, and within a kind as shown: numbers of all kinds by size, strings by their UTF-8
//! bytes, arrays element by element, objects by their members in name order whatever the order they were written in. No
//! code is a prefix of another, so codes can be concatenated, and the complement of all bytes gives the descending
//! order.
//!
//! The code does not preserve the kind of a number, the sign of zero, and the order of members.

use std::ops::RangeInclusive;

use crate::decoded::DecodedNumber;
use crate::numbercode::{complement, decode_number, encode_number};
use crate::order::sorted_members;
use crate::{Damaged, Decoded, Kind, Value, ValueRef, WALK_DEPTH_MAX};

const END: u8 = 0x01;
const UNDEFINED: u8 = 0x08;
const NULL: u8 = 0x10;
const FALSE: u8 = 0x18;
const TRUE: u8 = 0x19;
const NAN: u8 = 0x20;
const NUMBER: u8 = 0x21;
const STRING: u8 = 0x28;
const DATE: u8 = 0x30;
const TICKS: u8 = 0x32;
const GUID: u8 = 0x38;
const OBJECT_ID: u8 = 0x40;
const BINARY: u8 = 0x48;
const ARRAY: u8 = 0x50;
const OBJECT: u8 = 0x58;

/// Follows a zero byte of a string; greater than [`TEXT_END`], so that a longer string sorts after it.
const ZERO_ESCAPED: u8 = 0xff;
const TEXT_END: u8 = 0x01;

/// Appends the key code of a value.
pub fn encode_key(value: ValueRef<'_>, out: &mut Vec<u8>) {
    encode_nested(value, WALK_DEPTH_MAX, out);
}

/// Appends the key code of a value of which only the first `bytes` bytes are needed: the rest may be omitted.
pub fn encode_key_prefix(value: ValueRef<'_>, bytes: usize, out: &mut Vec<u8>) {
    match value.text_bytes() {
        Some(text) => {
            out.push(STRING);
            // A byte of text takes at least one byte of code.
            encode_bytes(&text[..text.len().min(bytes)], out);
        }
        None => encode_key(value, out),
    }
}

/// Appends the key code of a tree.
pub fn encode_key_value(value: &Value, out: &mut Vec<u8>) {
    encode_key(ValueRef::from(value), out);
}

/// Appends the key code of a string.
pub fn encode_key_str(text: &str, out: &mut Vec<u8>) {
    encode_string(text, out);
}

/// Appends the code of undefined, which sorts before all values.
pub fn encode_undefined(out: &mut Vec<u8>) {
    out.push(UNDEFINED);
}

/// As [`encode_key`], in descending order; `None` is undefined.
pub fn encode_key_descending(value: Option<ValueRef<'_>>, out: &mut Vec<u8>) {
    let start = out.len();
    match value {
        Some(value) => encode_key(value, out),
        None => encode_undefined(out),
    }
    complement(&mut out[start..]);
}

/// Decodes the first of several concatenated codes and returns the remaining bytes.
pub fn decode_key(code: &[u8]) -> Result<(Value, &[u8]), Damaged> {
    decode_nested(code, WALK_DEPTH_MAX)
}

/// As [`decode_key`] for codes that may be undefined.
pub fn decode_key_optional(code: &[u8]) -> Result<(Option<Value>, &[u8]), Damaged> {
    match code.split_first() {
        Some((&UNDEFINED, rest)) => Ok((None, rest)),
        Some(_) | None => decode_key(code).map(|(value, rest)| (Some(value), rest)),
    }
}

/// Decodes the output of [`encode_key_descending`].
pub fn decode_key_descending(code: &[u8]) -> Result<(Option<Value>, &[u8]), Damaged> {
    let mut ascending = code.to_vec();
    complement(&mut ascending);
    let (value, rest) = decode_key_optional(&ascending)?;
    Ok((value, &code[code.len() - rest.len()..]))
}

/// The first bytes of the codes of a kind. All kinds of numbers share theirs.
pub fn key_kind_bytes(kind: Kind) -> RangeInclusive<u8> {
    match kind {
        Kind::Null => NULL..=NULL,
        Kind::Bool => FALSE..=TRUE,
        Kind::Int32 | Kind::Int64 | Kind::Double | Kind::Decimal => NAN..=NUMBER,
        Kind::String => STRING..=STRING,
        Kind::Date => DATE..=DATE,
        Kind::Ticks => TICKS..=TICKS,
        Kind::Guid => GUID..=GUID,
        Kind::ObjectId => OBJECT_ID..=OBJECT_ID,
        Kind::Binary => BINARY..=BINARY,
        Kind::Array => ARRAY..=ARRAY,
        Kind::Object => OBJECT..=OBJECT,
    }
}

fn encode_nested(value: ValueRef<'_>, levels_left: usize, out: &mut Vec<u8>) {
    match value.decode_within(levels_left) {
        Decoded::Null => out.push(NULL),
        Decoded::Bool(value) => out.push(if value { TRUE } else { FALSE }),
        Decoded::Int32(value) => encode_any_number(DecodedNumber::Integer(i64::from(value)), out),
        Decoded::Int64(value) => encode_any_number(DecodedNumber::Integer(value), out),
        Decoded::Double(value) => encode_any_number(DecodedNumber::Double(value), out),
        Decoded::Decimal(value) => encode_any_number(DecodedNumber::Decimal(value), out),
        Decoded::String(value) => encode_string(value, out),
        Decoded::Date(value) => {
            out.push(DATE);
            out.extend_from_slice(&(value ^ i64::MIN).to_be_bytes());
        }
        Decoded::Ticks(value) => {
            out.push(TICKS);
            out.extend_from_slice(&(value ^ i64::MIN).to_be_bytes());
        }
        Decoded::Guid(value) => {
            out.push(GUID);
            out.extend_from_slice(&value);
        }
        Decoded::ObjectId(value) => {
            out.push(OBJECT_ID);
            out.extend_from_slice(&value);
        }
        Decoded::Binary { subtype, bytes } => {
            out.extend_from_slice(&[BINARY, subtype]);
            encode_bytes(bytes, out);
        }
        Decoded::Array(elements) => {
            out.push(ARRAY);
            for element in elements {
                encode_nested(element, levels_left - 1, out);
            }
            out.push(END);
        }
        Decoded::Object(members) => {
            out.push(OBJECT);
            for (name, member) in sorted_members(members) {
                encode_string(name, out);
                encode_nested(member, levels_left - 1, out);
            }
            out.push(END);
        }
    }
}

fn encode_any_number(number: DecodedNumber, out: &mut Vec<u8>) {
    if number.is_nan() {
        return out.push(NAN);
    }
    out.push(NUMBER);
    encode_number(number, out);
}

fn encode_string(text: &str, out: &mut Vec<u8>) {
    out.push(STRING);
    encode_bytes(text.as_bytes(), out);
}

fn encode_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    if !bytes.contains(&0) {
        // The common case, checked many bytes at a time.
        out.extend_from_slice(bytes);
        return out.extend_from_slice(&[0, TEXT_END]);
    }
    for (index, piece) in bytes.split(|byte| *byte == 0).enumerate() {
        if index > 0 {
            out.extend_from_slice(&[0, ZERO_ESCAPED]);
        }
        out.extend_from_slice(piece);
    }
    out.extend_from_slice(&[0, TEXT_END]);
}

fn decode_nested(code: &[u8], levels_left: usize) -> Result<(Value, &[u8]), Damaged> {
    let (tag, rest) = code.split_first().ok_or(Damaged)?;
    Ok(match *tag {
        NULL => (Value::Null, rest),
        FALSE => (Value::Bool(false), rest),
        TRUE => (Value::Bool(true), rest),
        NAN => (Value::Double(f64::NAN), rest),
        NUMBER => decode_number(rest)?,
        STRING => {
            let (text, rest) = decode_text(rest)?;
            (Value::String(text), rest)
        }
        DATE => {
            let (bytes, rest) = rest.split_first_chunk::<8>().ok_or(Damaged)?;
            (Value::Date(i64::from_be_bytes(*bytes) ^ i64::MIN), rest)
        }
        TICKS => {
            let (bytes, rest) = rest.split_first_chunk::<8>().ok_or(Damaged)?;
            (Value::Ticks(i64::from_be_bytes(*bytes) ^ i64::MIN), rest)
        }
        GUID => {
            let (bytes, rest) = rest.split_first_chunk::<16>().ok_or(Damaged)?;
            (Value::Guid(*bytes), rest)
        }
        OBJECT_ID => {
            let (bytes, rest) = rest.split_first_chunk::<12>().ok_or(Damaged)?;
            (Value::ObjectId(*bytes), rest)
        }
        BINARY => {
            let (subtype, rest) = rest.split_first().ok_or(Damaged)?;
            let (bytes, rest) = decode_bytes(rest)?;
            (Value::Binary { subtype: *subtype, bytes }, rest)
        }
        ARRAY => decode_array(rest, levels_left.checked_sub(1).ok_or(Damaged)?)?,
        OBJECT => decode_object(rest, levels_left.checked_sub(1).ok_or(Damaged)?)?,
        _ => return Err(Damaged),
    })
}

fn decode_array(mut code: &[u8], levels_left: usize) -> Result<(Value, &[u8]), Damaged> {
    let mut elements = Vec::new();
    loop {
        match code.split_first() {
            Some((&END, rest)) => return Ok((Value::Array(elements), rest)),
            Some(_) => {
                let (element, rest) = decode_nested(code, levels_left)?;
                elements.push(element);
                code = rest;
            }
            None => return Err(Damaged),
        }
    }
}

fn decode_object(mut code: &[u8], levels_left: usize) -> Result<(Value, &[u8]), Damaged> {
    let mut members = Vec::new();
    loop {
        match code.split_first() {
            Some((&END, rest)) => return Ok((Value::Object(members), rest)),
            Some((&STRING, rest)) => {
                let (name, rest) = decode_text(rest)?;
                let (member, rest) = decode_nested(rest, levels_left)?;
                members.push((name, member));
                code = rest;
            }
            Some(_) | None => return Err(Damaged),
        }
    }
}

fn decode_text(code: &[u8]) -> Result<(String, &[u8]), Damaged> {
    let (bytes, rest) = decode_bytes(code)?;
    Ok((String::from_utf8(bytes).map_err(|_| Damaged)?, rest))
}

fn decode_bytes(mut code: &[u8]) -> Result<(Vec<u8>, &[u8]), Damaged> {
    let mut bytes = Vec::new();
    loop {
        let zero = code.iter().position(|byte| *byte == 0).ok_or(Damaged)?;
        bytes.extend_from_slice(&code[..zero]);
        let (mark, rest) = code.get(zero + 1..).and_then(<[u8]>::split_first).ok_or(Damaged)?;
        match *mark {
            ZERO_ESCAPED => bytes.push(0),
            TEXT_END => return Ok((bytes, rest)),
            _ => return Err(Damaged),
        }
        code = rest;
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::*;
    use crate::compare;

    fn text(text: &str) -> Value {
        Value::String(text.to_owned())
    }

    fn json(text: &str) -> Value {
        Value::from_json(text.as_bytes()).unwrap()
    }

    fn key(value: &Value) -> Vec<u8> {
        let mut out = Vec::new();
        encode_key_value(value, &mut out);
        out
    }

    /// Values of all kinds, each greater than the one before.
    fn ladder() -> Vec<Value> {
        vec![
            Value::Null,
            Value::Bool(false),
            Value::Bool(true),
            Value::Double(f64::NAN),
            Value::Double(f64::NEG_INFINITY),
            Value::Int64(-5),
            Value::Double(-4.5),
            Value::Int32(0),
            Value::Int64(7),
            text(""),
            text("\0"),
            text("\0\0"),
            text("\0\u{1}"),
            text("\u{1}"),
            text("a"),
            text("a\0"),
            text("a\0b"),
            text("ab"),
            text("b"),
            text("é"),
            text("\u{ffff}"),
            text("😀"),
            Value::Date(i64::MIN),
            Value::Date(-1),
            Value::Date(0),
            Value::Date(i64::MAX),
            Value::Ticks(i64::MIN),
            Value::Ticks(-1),
            Value::Ticks(0),
            Value::Ticks(i64::MAX),
            Value::Guid([1; 16]),
            Value::Guid([0xff; 16]),
            Value::ObjectId([0; 12]),
            Value::Binary { subtype: 0, bytes: vec![] },
            Value::Binary { subtype: 0, bytes: vec![0, 0xff] },
            Value::Binary { subtype: 0, bytes: vec![0xff] },
            Value::Binary { subtype: 1, bytes: vec![] },
            json("[]"),
            json("[null]"),
            json("[null,null]"),
            json("[1]"),
            json("[1,[]]"),
            json("[[]]"),
            json("{}"),
            json(r#"{"a":1}"#),
            json(r#"{"b":0,"a":1}"#),
            json(r#"{"b":1,"a":1}"#),
            json(r#"{"a":2}"#),
            json(r#"{"b":0}"#),
        ]
    }

    #[test]
    fn bytes_sort_as_values_both_ways() {
        let ladder = ladder();
        for (low, first) in ladder.iter().enumerate() {
            for (high, second) in ladder.iter().enumerate() {
                let expected = low.cmp(&high);
                assert_eq!(key(first).cmp(&key(second)), expected, "{first:?} {second:?}");
                assert_eq!(compare(first.into(), second.into()), expected, "{first:?} {second:?}");
                let descending = |value: &Value| {
                    let mut out = Vec::new();
                    encode_key_descending(Some(value.into()), &mut out);
                    out
                };
                assert_eq!(descending(first).cmp(&descending(second)), expected.reverse());
            }
            assert!(key_kind_bytes(first.kind()).contains(&key(first)[0]), "{first:?}");
        }
    }

    #[test]
    fn undefined_comes_first() {
        let mut undefined = Vec::new();
        encode_undefined(&mut undefined);
        assert!(undefined < key(&Value::Null));
        assert_eq!(decode_key_optional(&undefined), Ok((None, [].as_slice())));
        assert_eq!(decode_key(&undefined), Err(Damaged));
        let mut descending = Vec::new();
        encode_key_descending(None, &mut descending);
        assert_eq!(decode_key_descending(&descending), Ok((None, [].as_slice())));
    }

    #[test]
    fn joined_codes_come_apart() {
        let ladder = ladder();
        let joined: Vec<u8> = ladder.iter().flat_map(key).collect();
        let mut rest = joined.as_slice();
        for value in &ladder {
            let decoded;
            (decoded, rest) = decode_key(rest).unwrap();
            assert_eq!(compare(value.into(), (&decoded).into()), Ordering::Equal);
        }
        assert!(rest.is_empty());
    }

    #[test]
    fn member_order_does_not_matter() {
        assert_eq!(key(&json(r#"{"a":1,"b":[2.0]}"#)), key(&json(r#"{"b":[2],"a":1.0}"#)));
    }

    #[test]
    fn endless_nesting_is_refused() {
        assert_eq!(decode_key(&[ARRAY; 1_000_000]), Err(Damaged));
    }
}
