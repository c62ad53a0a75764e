//! The owned tree of a value: the result of computations and the input of patches.
//!
//! Knows nothing of bytes; `encode` and `reference` convert between trees and bytes.

use crate::json::read;
use crate::{Decimal128, JsonError, ValueRef};

/// One value of any of the supported protocols.
///
/// `PartialEq` compares the trees exactly: `Int64(1)` differs from `Double(1.0)`, and members must be in the same
/// order. [`compare`](crate::compare) is the order in which 1 and 1.0 are equal. "Undefined" is a result of evaluation
/// and has no variant here.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// JSON null.
    Null,
    /// True or false.
    Bool(bool),
    /// A 32-bit integer; JSON text never yields one.
    Int32(i32),
    /// A 64-bit integer; every JSON integer that fits is one.
    Int64(i64),
    /// A double; may be NaN or infinite if it does not come from JSON.
    Double(f64),
    /// A decimal of up to 34 digits.
    Decimal(Decimal128),
    /// Text.
    String(String),
    /// Bytes with the subtype of BSON.
    Binary {
        /// Subtype as in BSON; zero if there is none.
        subtype: u8,
        /// The bytes themselves.
        bytes: Vec<u8>,
    },
    /// Milliseconds since 1970-01-01 UTC.
    Date(i64),
    /// Ticks of 100 ns since 1970-01-01 UTC.
    Ticks(i64),
    /// A UUID, bytes in the order of its text.
    Guid([u8; 16]),
    /// An object id of BSON.
    ObjectId([u8; 12]),
    /// Values in order.
    Array(Vec<Value>),
    /// Named values in the order they were given.
    Object(Vec<(String, Value)>),
}

/// The kinds of [`Value`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // Each variant is the one of `Value` with the same name.
pub enum Kind {
    Null,
    Bool,
    Int32,
    Int64,
    Double,
    Decimal,
    String,
    Binary,
    Date,
    Ticks,
    Guid,
    ObjectId,
    Array,
    Object,
}

impl Kind {
    /// Whether values of this kind compare as numbers.
    pub fn is_number(self) -> bool {
        matches!(self, Kind::Int32 | Kind::Int64 | Kind::Double | Kind::Decimal)
    }
}

impl Value {
    /// Reads JSON text of any value.
    pub fn from_json(text: &[u8]) -> Result<Value, JsonError> {
        let encoded = read::encode_value(text)?;
        Ok(ValueRef::encoded(&encoded).to_value())
    }

    /// JSON text of the value; see [`ValueRef::write_json`] for values without a JSON text.
    pub fn to_json(&self) -> String {
        let mut text = Vec::new();
        self.as_ref().write_json(&mut text);
        // The writer copies only `str`s and ASCII, so nothing is ever replaced.
        String::from_utf8(text).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }

    /// The value as a [`ValueRef`].
    pub fn as_ref(&self) -> ValueRef<'_> {
        ValueRef::tree(self)
    }

    /// Kind of the value.
    pub fn kind(&self) -> Kind {
        self.as_ref().kind()
    }

    /// The member `name`, if this is an object that has it.
    pub fn member(&self, name: &str) -> Option<&Value> {
        match self {
            // The last of equal names counts, as in an encoded object.
            Value::Object(members) => members.iter().rfind(|member| member.0 == name).map(|member| &member.1),
            Value::Null
            | Value::Bool(_)
            | Value::Int32(_)
            | Value::Int64(_)
            | Value::Double(_)
            | Value::Decimal(_)
            | Value::String(_)
            | Value::Binary { .. }
            | Value::Date(_)
            | Value::Ticks(_)
            | Value::Guid(_)
            | Value::ObjectId(_)
            | Value::Array(_) => None,
        }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Bool(value)
    }
}

impl From<i32> for Value {
    /// JSON integers are [`Value::Int64`], whatever their size; so are Rust integers.
    fn from(value: i32) -> Value {
        Value::Int64(i64::from(value))
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Value {
        Value::Int64(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        Value::Double(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Value {
        Value::String(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Value {
        Value::String(value)
    }
}

impl From<Vec<Value>> for Value {
    fn from(elements: Vec<Value>) -> Value {
        Value::Array(elements)
    }
}
