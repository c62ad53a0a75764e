//! Arguments and results of user-defined functions.
//!
//! A tag and its payload. Arrays and objects are JSON text. Integers beyond 2⁵³ become doubles, since JavaScript has
//! no others; kinds of values that JSON has not are written as JSON writes them.

use super::Malformed;
use super::bytes::{Fields, PutFields};
use bytes::Bytes;
use value::{Kind, Value, ValueRef};

const UNDEFINED: u8 = 0;
const NULL: u8 = 1;
const FALSE: u8 = 2;
const TRUE: u8 = 3;
const INTEGER: u8 = 4;
const DOUBLE: u8 = 5;
const TEXT: u8 = 6;
const JSON: u8 = 7;

/// A value on its way to or from a function.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Scalar {
    Undefined,
    Null,
    Bool(bool),
    Integer(i32),
    Double(f64),
    /// UTF-8.
    Text(Bytes),
    /// JSON text of an array or object.
    Json(Bytes),
}

/// Appends an argument.
pub(crate) fn encode(argument: Option<ValueRef<'_>>, out: &mut Vec<u8>) {
    let Some(value) = argument else { return out.push(UNDEFINED) };
    match value.kind() {
        Kind::Null => out.push(NULL),
        Kind::Bool => out.push(if value.as_bool() == Some(true) { TRUE } else { FALSE }),
        // A double stays one: the sign of zero matters.
        Kind::Double => put_double(out, value.as_f64().unwrap_or(f64::NAN)),
        Kind::Int32 | Kind::Int64 => match value.as_i64().map(i32::try_from) {
            Some(Ok(integer)) => put_integer(out, integer),
            Some(Err(_)) | None => put_double(out, value.as_f64().unwrap_or(f64::NAN)),
        },
        Kind::String => put_text(out, value.as_str().unwrap_or_default()),
        Kind::Decimal
        | Kind::Binary
        | Kind::Date
        | Kind::Ticks
        | Kind::Guid
        | Kind::ObjectId
        | Kind::Array
        | Kind::Object => {
            let mut text = Vec::new();
            value.write_json(&mut text);
            put_json(out, &text);
        }
    }
}

pub(crate) fn put_undefined(out: &mut Vec<u8>) {
    out.push(UNDEFINED);
}

pub(crate) fn put_null(out: &mut Vec<u8>) {
    out.push(NULL);
}

pub(crate) fn put_bool(out: &mut Vec<u8>, flag: bool) {
    out.push(if flag { TRUE } else { FALSE });
}

pub(crate) fn put_integer(out: &mut Vec<u8>, integer: i32) {
    out.push(INTEGER);
    out.extend_from_slice(&integer.to_le_bytes());
}

pub(crate) fn put_double(out: &mut Vec<u8>, double: f64) {
    out.push(DOUBLE);
    out.put_u64(double.to_bits());
}

pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    out.push(TEXT);
    out.put_bytes(text.as_bytes());
}

pub(crate) fn put_json(out: &mut Vec<u8>, json: &[u8]) {
    out.push(JSON);
    out.put_bytes(json);
}

/// Reads a value of either side.
pub(crate) fn scalar(fields: &mut Fields) -> Result<Scalar, Malformed> {
    Ok(match fields.u8()? {
        UNDEFINED => Scalar::Undefined,
        NULL => Scalar::Null,
        FALSE => Scalar::Bool(false),
        TRUE => Scalar::Bool(true),
        INTEGER => Scalar::Integer(fields.u32()?.cast_signed()),
        DOUBLE => Scalar::Double(f64::from_bits(fields.u64()?)),
        TEXT => Scalar::Text(fields.text_bytes()?),
        JSON => Scalar::Json(fields.bytes()?),
        _ => return Err(Malformed),
    })
}

/// Reads a result. Numbers that JSON cannot write are null, as `JSON.stringify` makes them.
pub(crate) fn result(fields: &mut Fields) -> Result<Option<Value>, Malformed> {
    Ok(Some(match scalar(fields)? {
        Scalar::Undefined => return Ok(None),
        Scalar::Null => Value::Null,
        Scalar::Bool(flag) => Value::Bool(flag),
        Scalar::Integer(integer) => Value::Int64(i64::from(integer)),
        Scalar::Double(double) => number(double),
        Scalar::Text(text) => Value::String(String::from_utf8(text.to_vec()).map_err(|_| Malformed)?),
        Scalar::Json(text) => Value::from_json(&text).map_err(|_| Malformed)?,
    }))
}

/// A number of JavaScript as the JSON text of it would be read: whole numbers are integers, as far as doubles count.
fn number(double: f64) -> Value {
    const LIMIT: f64 = 9_007_199_254_740_992.0;
    let is_negative_zero = double == 0.0 && double.is_sign_negative();
    if !double.is_finite() {
        Value::Null
    } else if double.fract() == 0.0 && double.abs() < LIMIT && !is_negative_zero {
        #[expect(clippy::cast_possible_truncation, reason = "whole and within 2^53")]
        let integer = double as i64;
        Value::Int64(integer)
    } else {
        Value::Double(double)
    }
}
