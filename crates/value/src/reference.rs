//! One read interface over encoded bytes and owned trees.
//!
//! Order, key code, JSON text and encoding are implemented once, against [`ValueRef`]. Reading an encoded value touches
//! only the bytes it needs. Malformed bytes read as null or as missing, never as a panic; the caller's checksum and
//! `Document::validate` detect damage.

use std::fmt;

use crate::decoded::{DecodedNumber, decode_bytes, decode_tree, double_to_i64_exact};
use crate::format::{self, ContainerFrame, Tag};
use crate::json::write;
use crate::{Decoded, Elements, Kind, Members, Value, WALK_DEPTH_MAX};

/// A borrowed value.
#[derive(Clone, Copy)]
pub struct ValueRef<'a> {
    source: Representation<'a>,
}

#[derive(Clone, Copy)]
enum Representation<'a> {
    /// Exactly the bytes of one encoded value.
    Encoded(&'a [u8]),
    Tree(&'a Value),
}

impl<'a> ValueRef<'a> {
    pub(crate) fn encoded(bytes: &'a [u8]) -> ValueRef<'a> {
        ValueRef { source: Representation::Encoded(bytes) }
    }

    pub(crate) fn tree(value: &'a Value) -> ValueRef<'a> {
        ValueRef { source: Representation::Tree(value) }
    }

    /// The encoded bytes, if this value is encoded.
    pub(crate) fn encoded_bytes(self) -> Option<&'a [u8]> {
        match self.source {
            Representation::Encoded(bytes) => Some(bytes),
            Representation::Tree(_) => None,
        }
    }

    /// Kind of the value.
    pub fn kind(self) -> Kind {
        match self.source {
            Representation::Encoded(bytes) => match bytes.first().and_then(|byte| Tag::from_byte(*byte)) {
                None | Some(Tag::Null) => Kind::Null,
                Some(Tag::False | Tag::True) => Kind::Bool,
                Some(Tag::Int32) => Kind::Int32,
                Some(Tag::Int64) => Kind::Int64,
                Some(Tag::Double) => Kind::Double,
                Some(Tag::Decimal) => Kind::Decimal,
                Some(Tag::Date) => Kind::Date,
                Some(Tag::Ticks) => Kind::Ticks,
                Some(Tag::Guid) => Kind::Guid,
                Some(Tag::ObjectId) => Kind::ObjectId,
                Some(Tag::String) => Kind::String,
                Some(Tag::Binary) => Kind::Binary,
                Some(Tag::Array(_)) => Kind::Array,
                Some(Tag::Object(_)) => Kind::Object,
            },
            Representation::Tree(value) => match value {
                Value::Null => Kind::Null,
                Value::Bool(_) => Kind::Bool,
                Value::Int32(_) => Kind::Int32,
                Value::Int64(_) => Kind::Int64,
                Value::Double(_) => Kind::Double,
                Value::Decimal(_) => Kind::Decimal,
                Value::String(_) => Kind::String,
                Value::Binary { .. } => Kind::Binary,
                Value::Date(_) => Kind::Date,
                Value::Ticks(_) => Kind::Ticks,
                Value::Guid(_) => Kind::Guid,
                Value::ObjectId(_) => Kind::ObjectId,
                Value::Array(_) => Kind::Array,
                Value::Object(_) => Kind::Object,
            },
        }
    }

    /// Decodes the value one level, for a match over all kinds.
    #[inline]
    pub fn decode(self) -> Decoded<'a> {
        match self.source {
            Representation::Encoded(bytes) => decode_bytes(bytes).unwrap_or(Decoded::Null),
            Representation::Tree(value) => decode_tree(value),
        }
    }

    /// As [`decode`](Self::decode), but a container reads as null if the traversal may go no deeper.
    #[inline]
    pub(crate) fn decode_within(self, levels_left: usize) -> Decoded<'a> {
        // The kind is checked first because moving the result of `decode` costs more.
        if levels_left == 0 && matches!(self.kind(), Kind::Array | Kind::Object) {
            return Decoded::Null;
        }
        self.decode()
    }

    /// Whether this is null.
    pub fn is_null(self) -> bool {
        self.kind() == Kind::Null
    }

    /// The bytes of the text, if this is a string. Encoded text was valid UTF-8 when it was encoded.
    #[inline]
    pub(crate) fn text_bytes(self) -> Option<&'a [u8]> {
        match self.source {
            Representation::Encoded([tag, text @ ..]) if *tag == Tag::String.to_byte() => Some(text),
            Representation::Tree(Value::String(text)) => Some(text.as_bytes()),
            Representation::Encoded(_) | Representation::Tree(_) => None,
        }
    }

    /// The text, if this is a string.
    pub fn as_str(self) -> Option<&'a str> {
        match self.source {
            Representation::Encoded([tag, text @ ..]) if *tag == Tag::String.to_byte() => {
                str::from_utf8(text).ok()
            }
            Representation::Tree(Value::String(text)) => Some(text),
            Representation::Encoded(_) | Representation::Tree(_) => None,
        }
    }

    /// The boolean, if this is one.
    pub fn as_bool(self) -> Option<bool> {
        match self.source {
            Representation::Encoded([tag]) if *tag == Tag::True.to_byte() => Some(true),
            Representation::Encoded([tag]) if *tag == Tag::False.to_byte() => Some(false),
            Representation::Tree(Value::Bool(value)) => Some(*value),
            Representation::Encoded(_) | Representation::Tree(_) => None,
        }
    }

    /// The integer, if this is a number of any kind that equals one: `3.0` gives 3, `3.5` gives `None`.
    pub fn as_i64(self) -> Option<i64> {
        match self.number()? {
            DecodedNumber::Integer(value) => Some(value),
            DecodedNumber::Double(value) => double_to_i64_exact(value),
            DecodedNumber::Decimal(value) => value.to_i64_exact(),
        }
    }

    /// The nearest double, if this is a number of any kind.
    pub fn as_f64(self) -> Option<f64> {
        match self.number()? {
            #[allow(clippy::cast_precision_loss)] // The nearest double is what was asked for.
            DecodedNumber::Integer(value) => Some(value as f64),
            DecodedNumber::Double(value) => Some(value),
            DecodedNumber::Decimal(value) => Some(value.to_f64()),
        }
    }

    /// The number, if this is one of the four numeric kinds.
    pub(crate) fn number(self) -> Option<DecodedNumber> {
        self.decode().number()
    }

    /// The member `name`, if this is an object that has it.
    pub fn member(self, name: &str) -> Option<ValueRef<'a>> {
        self.member_hashed(name, format::name_hash(name.as_bytes()))
    }

    /// As [`member`](Self::member), for callers that store the hash of the name.
    #[inline]
    pub(crate) fn member_hashed(self, name: &str, hash: u8) -> Option<ValueRef<'a>> {
        match self.source {
            Representation::Encoded(bytes) => {
                ContainerFrame::object(bytes)?.member(name.as_bytes(), hash).map(ValueRef::encoded)
            }
            Representation::Tree(value) => value.member(name).map(ValueRef::tree),
        }
    }

    /// The element at `index`, if this is an array that long.
    pub fn element(self, index: usize) -> Option<ValueRef<'a>> {
        match self.source {
            Representation::Encoded(bytes) => {
                let frame = ContainerFrame::array(bytes)?;
                if index < frame.count() { frame.entry(index).map(ValueRef::encoded) } else { None }
            }
            Representation::Tree(Value::Array(elements)) => elements.get(index).map(ValueRef::tree),
            Representation::Tree(_) => None,
        }
    }

    /// The members in document order; none unless this is an object.
    pub fn members(self) -> Members<'a> {
        match self.source {
            Representation::Encoded(bytes) => Members::encoded(ContainerFrame::object(bytes)),
            Representation::Tree(Value::Object(members)) => Members::tree(members),
            Representation::Tree(_) => Members::tree(&[]),
        }
    }

    /// The elements in order; none unless this is an array.
    pub fn elements(self) -> Elements<'a> {
        match self.source {
            Representation::Encoded(bytes) => Elements::encoded(ContainerFrame::array(bytes)),
            Representation::Tree(Value::Array(elements)) => Elements::tree(elements),
            Representation::Tree(_) => Elements::tree(&[]),
        }
    }

    /// Number of elements or members; zero for scalars.
    pub fn len(self) -> usize {
        match self.source {
            Representation::Encoded(bytes) => ContainerFrame::object(bytes)
                .or_else(|| ContainerFrame::array(bytes))
                .map_or(0, |frame| frame.count()),
            Representation::Tree(Value::Array(elements)) => elements.len(),
            Representation::Tree(Value::Object(members)) => members.len(),
            Representation::Tree(_) => 0,
        }
    }

    /// Whether [`len`](Self::len) is zero.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Approximate size for cost accounting, in constant time: the bytes of an encoded value or of a text, the parts of
    /// a tree.
    #[inline]
    pub fn extent(self) -> usize {
        match self.source {
            Representation::Encoded(bytes) => bytes.len(),
            Representation::Tree(Value::String(text)) => text.len(),
            Representation::Tree(Value::Array(elements)) => elements.len().saturating_mul(size_of::<Value>()),
            Representation::Tree(Value::Object(members)) => members.len().saturating_mul(size_of::<Value>()),
            Representation::Tree(_) => 0,
        }
    }

    /// The owned tree of this value.
    pub fn to_value(self) -> Value {
        to_value(self, WALK_DEPTH_MAX)
    }

    /// Appends the JSON text of the value.
    ///
    /// Integers are digits. A double is the shortest text that parses to the same bits and always has a point or an
    /// exponent, so that it parses as a double. Values that JSON lacks are written as follows:
    ///
    /// | value | text |
    /// |---|---|
    /// | NaN, infinities (double, decimal) | `"NaN"`, `"Infinity"`, `"-Infinity"` |
    /// | decimal | a number with all its digits; a string if no double is that large |
    /// | date | `"2024-02-29T12:00:00.000Z"`; years with more than four digits as `"+012345-…"` |
    /// | ticks | `"2024-02-29T12:00:00.0000000Z"`, years as above |
    /// | guid | `"00112233-4455-6677-8899-aabbccddeeff"` |
    /// | object id | 24 hexadecimal digits |
    /// | binary | base64 with padding, without the subtype |
    pub fn write_json(self, out: &mut Vec<u8>) {
        write::write_value(self, out);
    }
}

impl<'a> From<&'a Value> for ValueRef<'a> {
    fn from(value: &'a Value) -> ValueRef<'a> {
        ValueRef::tree(value)
    }
}

impl fmt::Debug for ValueRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::new();
        self.write_json(&mut text);
        f.write_str(&String::from_utf8_lossy(&text))
    }
}

fn to_value(value: ValueRef<'_>, levels_left: usize) -> Value {
    match value.decode_within(levels_left) {
        Decoded::Null => Value::Null,
        Decoded::Bool(value) => Value::Bool(value),
        Decoded::Int32(value) => Value::Int32(value),
        Decoded::Int64(value) => Value::Int64(value),
        Decoded::Double(value) => Value::Double(value),
        Decoded::Decimal(value) => Value::Decimal(value),
        Decoded::String(value) => Value::String(value.to_owned()),
        Decoded::Binary { subtype, bytes } => Value::Binary { subtype, bytes: bytes.to_vec() },
        Decoded::Date(value) => Value::Date(value),
        Decoded::Ticks(value) => Value::Ticks(value),
        Decoded::Guid(value) => Value::Guid(value),
        Decoded::ObjectId(value) => Value::ObjectId(value),
        Decoded::Array(elements) => {
            Value::Array(elements.map(|element| to_value(element, levels_left - 1)).collect())
        }
        Decoded::Object(members) => Value::Object(
            members.map(|(name, member)| (name.to_owned(), to_value(member, levels_left - 1))).collect(),
        ),
    }
}
