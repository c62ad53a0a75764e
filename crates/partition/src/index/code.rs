//! The code of a value inside a term: its key code, truncated if it is long, and a mark for arrays and objects.
//!
//! A truncated code is a prefix of the real one. Order is preserved: a complete code is never a prefix of another, so
//! it differs from a truncated one before the cut. What is cut off must be read from the document.
//!
//! A tuple of a composite index consists of the codes of its members, inverted for descending ones, up to and
//! including the first truncated one, because what follows it cannot be in order. A last byte says whether one was
//! truncated.
//!
//! The code of a cell only says that a part of a geometry is near: every match is inexact.

use crate::index::path::IndexPath;
use std::borrow::Cow;
use std::ops::Bound;
use value::{Kind, ValueRef, encode_key_prefix, encode_undefined, key_kind_bytes};

/// Bytes of a code that are kept when it is truncated.
pub const CODE_BYTES_MAX: usize = 200;
/// Follows a truncated code.
const TRUNCATED: u8 = 0xff;

/// The code of the presence mark, a term of every document with any value at a path; sorts before the codes of values.
pub(crate) const PRESENT: &[u8] = &[];

/// Writes the code of a scalar, or the mark of an array or object.
pub(crate) fn write_code(value: ValueRef<'_>, kind: Kind, out: &mut Vec<u8>) {
    match kind {
        Kind::Array | Kind::Object => out.push(*key_kind_bytes(kind).start()),
        Kind::Null
        | Kind::Bool
        | Kind::Int32
        | Kind::Int64
        | Kind::Double
        | Kind::Decimal
        | Kind::String
        | Kind::Binary
        | Kind::Date
        | Kind::Ticks
        | Kind::Guid
        | Kind::ObjectId => {
            let start = out.len();
            encode_key_prefix(value, CODE_BYTES_MAX, out);
            if out.len() - start > CODE_BYTES_MAX {
                out.truncate(start + CODE_BYTES_MAX);
                out.push(TRUNCATED);
            }
        }
    }
}

/// Last byte of a tuple with all its members.
pub(crate) const TUPLE_WHOLE: u8 = 0;
/// Last byte of a tuple that ends with a truncated member.
pub(crate) const TUPLE_TRUNCATED: u8 = 1;

/// Writes the code of one member of a tuple, `None` for a missing value. Returns whether it was truncated; it must
/// then be the last one.
pub fn write_tuple_member(value: Option<ValueRef<'_>>, descending: bool, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    match value {
        Some(value) => write_code(value, value.kind(), out),
        None => encode_undefined(out),
    }
    let truncated = is_truncated_value(&out[start..]);
    if descending {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
    truncated
}

/// The code as it is in terms, and whether it was truncated.
pub(crate) fn shorten(code: &[u8]) -> (Cow<'_, [u8]>, bool) {
    if is_container(code) && code.len() > 1 {
        return (Cow::Borrowed(&code[..1]), true);
    }
    if code.len() <= CODE_BYTES_MAX {
        return (Cow::Borrowed(code), false);
    }
    let mut truncated = code[..CODE_BYTES_MAX].to_vec();
    truncated.push(TRUNCATED);
    (Cow::Owned(truncated), true)
}

/// The code of a value as it is in the terms of a path, and whether other values have the same one.
pub(crate) fn term_code<'c>(path: &IndexPath, code: &'c [u8]) -> (Cow<'c, [u8]>, bool) {
    if path.is_property() { shorten(code) } else { (Cow::Borrowed(code), path.is_spatial()) }
}

/// Whether a term's code is truncated.
pub(crate) fn is_truncated(path: &IndexPath, code: &[u8]) -> bool {
    if path.is_property() {
        is_truncated_value(code)
    } else {
        path.is_composite() && code.last() == Some(&TUPLE_TRUNCATED)
    }
}

fn is_truncated_value(code: &[u8]) -> bool {
    code.len() > CODE_BYTES_MAX || is_container(code)
}

fn is_container(code: &[u8]) -> bool {
    let starts = |kind| code.first().is_some_and(|first| key_kind_bytes(kind).contains(first));
    starts(Kind::Array) || starts(Kind::Object)
}

/// A range of codes as they are in terms.
pub(crate) struct CodeRange {
    pub(crate) low: Bound<Vec<u8>>,
    pub(crate) high: Bound<Vec<u8>>,
    /// Codes at the ends that stand for values both inside and outside.
    inexact: Vec<Vec<u8>>,
    /// Whether all codes stand for values both inside and outside.
    is_all_inexact: bool,
}

impl CodeRange {
    /// A range of codes that are already as in terms.
    pub(crate) fn raw(low: Bound<Vec<u8>>, high: Bound<Vec<u8>>) -> CodeRange {
        CodeRange { low, high, inexact: Vec::new(), is_all_inexact: false }
    }

    /// The only code of the range, if it has one by definition.
    pub(crate) fn as_point(&self) -> Option<&[u8]> {
        match (&self.low, &self.high) {
            (Bound::Included(low), Bound::Included(high)) if low == high => Some(low),
            _ => None,
        }
    }

    pub(crate) fn new(path: &IndexPath, low: &Bound<Vec<u8>>, high: &Bound<Vec<u8>>) -> CodeRange {
        if path.is_logical() {
            return CodeRange::raw(low.clone(), high.clone());
        }
        if path.is_composite() {
            return CodeRange::raw(without_present(low.clone()), high.clone());
        }
        if path.is_spatial() {
            let cells = CodeRange::raw(without_present(low.clone()), high.clone());
            return CodeRange { is_all_inexact: true, ..cells };
        }
        let mut inexact = Vec::new();
        let mut shortened = |bound: &Bound<Vec<u8>>| match bound {
            Bound::Unbounded => Bound::Unbounded,
            Bound::Included(code) | Bound::Excluded(code) => match shorten(code) {
                (short, true) => {
                    let short = short.into_owned();
                    inexact.push(short.clone());
                    Bound::Included(short)
                }
                (_, false) => bound.clone(),
            },
        };
        let (low, high) = (shortened(low), shortened(high));
        CodeRange { low: without_present(low), high, inexact, is_all_inexact: false }
    }

    /// Length of the common prefix of all codes of the range, which is that of its ends.
    pub(crate) fn prefix_len(&self) -> usize {
        match (&self.low, &self.high) {
            (Bound::Included(low) | Bound::Excluded(low), Bound::Included(high) | Bound::Excluded(high)) => {
                low.iter().zip(high).take_while(|(low, high)| low == high).count()
            }
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => 0,
        }
    }

    /// Whether a code of the range may stand for values outside.
    pub(crate) fn is_inexact(&self, code: &[u8]) -> bool {
        self.is_all_inexact || self.inexact.iter().any(|inexact| inexact == code)
    }

    pub(crate) fn is_before(&self, code: &[u8]) -> bool {
        match &self.low {
            Bound::Included(low) => code < low.as_slice(),
            Bound::Excluded(low) => code <= low.as_slice(),
            Bound::Unbounded => false,
        }
    }

    pub(crate) fn is_after(&self, code: &[u8]) -> bool {
        match &self.high {
            Bound::Included(high) => code > high.as_slice(),
            Bound::Excluded(high) => code >= high.as_slice(),
            Bound::Unbounded => false,
        }
    }
}

/// A value's code is never empty: this excludes the presence mark.
fn without_present(low: Bound<Vec<u8>>) -> Bound<Vec<u8>> {
    match low {
        Bound::Unbounded => Bound::Excluded(PRESENT.to_vec()),
        Bound::Included(code) if code.is_empty() => Bound::Excluded(code),
        Bound::Included(_) | Bound::Excluded(_) => low,
    }
}
