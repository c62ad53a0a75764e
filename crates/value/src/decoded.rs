//! A value decoded one level: its kind, and iterators over its content.
//!
//! Damaged bytes yield `None` or end an iterator early.

use std::slice;

use crate::format::{self, ContainerFrame, Entries, Tag};
use crate::{Decimal128, DecimalParts, Value, ValueRef};

/// A value decoded one level: scalars as they are, containers as iterators.
#[allow(missing_docs)] // Each variant is the one of `Value` with the same name.
pub enum Decoded<'a> {
    Null,
    Bool(bool),
    Int32(i32),
    Int64(i64),
    Double(f64),
    Decimal(Decimal128),
    String(&'a str),
    Binary { subtype: u8, bytes: &'a [u8] },
    Date(i64),
    Ticks(i64),
    Guid([u8; 16]),
    ObjectId([u8; 12]),
    Array(Elements<'a>),
    Object(Members<'a>),
}

impl Decoded<'_> {
    /// The number, if this is one of the four numeric kinds.
    pub(crate) fn number(&self) -> Option<DecodedNumber> {
        match self {
            Decoded::Int32(value) => Some(DecodedNumber::Integer(i64::from(*value))),
            Decoded::Int64(value) => Some(DecodedNumber::Integer(*value)),
            Decoded::Double(value) => Some(DecodedNumber::Double(*value)),
            Decoded::Decimal(value) => Some(DecodedNumber::Decimal(*value)),
            Decoded::Null
            | Decoded::Bool(_)
            | Decoded::String(_)
            | Decoded::Binary { .. }
            | Decoded::Date(_)
            | Decoded::Ticks(_)
            | Decoded::Guid(_)
            | Decoded::ObjectId(_)
            | Decoded::Array(_)
            | Decoded::Object(_) => None,
        }
    }
}

/// Decodes an encoded value; `None` if its bytes are malformed.
#[inline]
pub(crate) fn decode_bytes(bytes: &[u8]) -> Option<Decoded<'_>> {
    let (tag, payload) = bytes.split_first()?;
    Some(match Tag::from_byte(*tag)? {
        Tag::Null => Decoded::Null,
        Tag::False => Decoded::Bool(false),
        Tag::True => Decoded::Bool(true),
        Tag::Int32 => Decoded::Int32(i32::try_from(read_integer(payload)?).ok()?),
        Tag::Int64 => Decoded::Int64(read_integer(payload)?),
        Tag::Double => Decoded::Double(read_double(payload)?),
        Tag::Decimal => Decoded::Decimal(Decimal128(payload.try_into().ok()?)),
        Tag::Date => Decoded::Date(i64::from_le_bytes(payload.try_into().ok()?)),
        Tag::Ticks => Decoded::Ticks(i64::from_le_bytes(payload.try_into().ok()?)),
        Tag::Guid => Decoded::Guid(payload.try_into().ok()?),
        Tag::ObjectId => Decoded::ObjectId(payload.try_into().ok()?),
        Tag::String => Decoded::String(str::from_utf8(payload).ok()?),
        Tag::Binary => {
            let (subtype, bytes) = payload.split_first()?;
            Decoded::Binary { subtype: *subtype, bytes }
        }
        Tag::Array(_) => Decoded::Array(Elements::encoded(Some(ContainerFrame::array(bytes)?))),
        Tag::Object(_) => Decoded::Object(Members::encoded(Some(ContainerFrame::object(bytes)?))),
    })
}

fn read_integer(payload: &[u8]) -> Option<i64> {
    Some(match *payload {
        [byte] => i64::from(i8::from_le_bytes([byte])),
        [a, b] => i64::from(i16::from_le_bytes([a, b])),
        [a, b, c, d] => i64::from(i32::from_le_bytes([a, b, c, d])),
        _ => i64::from_le_bytes(payload.try_into().ok()?),
    })
}

fn read_double(payload: &[u8]) -> Option<f64> {
    Some(match *payload {
        [a, b, c, d] => f64::from(f32::from_le_bytes([a, b, c, d])),
        _ => f64::from_le_bytes(payload.try_into().ok()?),
    })
}

pub(crate) fn decode_tree(value: &Value) -> Decoded<'_> {
    match value {
        Value::Null => Decoded::Null,
        Value::Bool(value) => Decoded::Bool(*value),
        Value::Int32(value) => Decoded::Int32(*value),
        Value::Int64(value) => Decoded::Int64(*value),
        Value::Double(value) => Decoded::Double(*value),
        Value::Decimal(value) => Decoded::Decimal(*value),
        Value::String(value) => Decoded::String(value),
        Value::Binary { subtype, bytes } => Decoded::Binary { subtype: *subtype, bytes },
        Value::Date(value) => Decoded::Date(*value),
        Value::Ticks(value) => Decoded::Ticks(*value),
        Value::Guid(value) => Decoded::Guid(*value),
        Value::ObjectId(value) => Decoded::ObjectId(*value),
        Value::Array(elements) => Decoded::Array(Elements::tree(elements)),
        Value::Object(members) => Decoded::Object(Members::tree(members)),
    }
}

/// Members of an object; see [`ValueRef::members`].
#[derive(Clone)]
pub struct Members<'a> {
    source: MembersSource<'a>,
}

#[derive(Clone)]
enum MembersSource<'a> {
    Encoded(Entries<'a>),
    Tree(slice::Iter<'a, (String, Value)>),
}

impl<'a> Members<'a> {
    /// Members of an encoded object; none without a frame.
    #[inline]
    pub(crate) fn encoded(frame: Option<ContainerFrame<'a>>) -> Members<'a> {
        frame.map_or(Members::tree(&[]), |frame| Members { source: MembersSource::Encoded(frame.entries()) })
    }

    /// The next member, without checking its name for UTF-8.
    #[inline]
    pub(crate) fn next_bytes(&mut self) -> Option<(&'a [u8], ValueRef<'a>)> {
        match &mut self.source {
            MembersSource::Encoded(entries) => {
                let (name, value) = format::split_member(entries.next()?)?;
                Some((name, ValueRef::encoded(value)))
            }
            MembersSource::Tree(members) => {
                members.next().map(|(name, value)| (name.as_bytes(), ValueRef::tree(value)))
            }
        }
    }

    pub(crate) fn tree(members: &'a [(String, Value)]) -> Members<'a> {
        Members { source: MembersSource::Tree(members.iter()) }
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a str, ValueRef<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.next_bytes()?;
        Some((str::from_utf8(name).ok()?, value))
    }
}

/// Elements of an array; see [`ValueRef::elements`].
#[derive(Clone)]
pub struct Elements<'a> {
    source: ElementsSource<'a>,
}

#[derive(Clone)]
enum ElementsSource<'a> {
    Encoded(Entries<'a>),
    Tree(slice::Iter<'a, Value>),
}

impl<'a> Elements<'a> {
    /// Elements of an encoded array; none without a frame.
    #[inline]
    pub(crate) fn encoded(frame: Option<ContainerFrame<'a>>) -> Elements<'a> {
        frame.map_or(Elements::tree(&[]), |frame| Elements {
            source: ElementsSource::Encoded(frame.entries()),
        })
    }

    pub(crate) fn tree(elements: &'a [Value]) -> Elements<'a> {
        Elements { source: ElementsSource::Tree(elements.iter()) }
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = ValueRef<'a>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.source {
            ElementsSource::Encoded(entries) => entries.next().map(ValueRef::encoded),
            ElementsSource::Tree(elements) => elements.next().map(ValueRef::tree),
        }
    }
}

/// A number of any numeric kind.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DecodedNumber {
    Integer(i64),
    Double(f64),
    Decimal(Decimal128),
}

impl DecodedNumber {
    pub(crate) fn is_nan(self) -> bool {
        match self {
            DecodedNumber::Integer(_) => false,
            DecodedNumber::Double(value) => value.is_nan(),
            DecodedNumber::Decimal(value) => value.parts() == DecimalParts::NaN,
        }
    }
}

/// The double as an integer, if it is one and fits.
pub(crate) fn double_to_i64_exact(value: f64) -> Option<i64> {
    // 2^63 itself is a double and does not fit.
    let in_range = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&value);
    #[allow(clippy::cast_possible_truncation)] // Integral and in range, so nothing is cut off.
    let integer = value as i64;
    (in_range && value.fract() == 0.0).then_some(integer)
}
