//! The code of a value inside a term: its key code, cut when it is long, and a mark for arrays and objects.
//!
//! A cut code is a prefix of the real one. Order is kept: a whole code is never the beginning of another, so it
//! differs from a cut one before the cut. What the cut hides must be looked up in the document.
//!
//! A tuple of a composite index is the codes of its members, those of descending ones turned, up to and with the
//! first that is cut, since what follows it cannot be in order; then a byte that says whether one was.
//!
//! The code of a cell says only that some of a geometry is near: everything that is found by it is in doubt.

use crate::index::path::IndexPath;
use std::borrow::Cow;
use std::ops::Bound;
use value::{Kind, ValueRef, encode_key_prefix, encode_undefined, key_kind_bytes};

/// Bytes of a code that are kept of a longer one.
pub(crate) const CODE_BYTES_MAX: usize = 200;
/// Follows a code that was cut.
const CUT: u8 = 0xff;

/// The code of the term that every document with any value at a path has; sorts before the codes of values.
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
        | Kind::Guid
        | Kind::ObjectId => {
            let start = out.len();
            encode_key_prefix(value, CODE_BYTES_MAX, out);
            if out.len() - start > CODE_BYTES_MAX {
                out.truncate(start + CODE_BYTES_MAX);
                out.push(CUT);
            }
        }
    }
}

/// Last byte of a tuple that has all its members.
pub(crate) const TUPLE_WHOLE: u8 = 0;
/// Last byte of a tuple that ends with a member that was cut.
pub(crate) const TUPLE_CUT: u8 = 1;

/// Writes the code of one member of a tuple, `None` for a missing value; tells whether it was cut, in which case it
/// must be the last one.
pub fn write_tuple_member(value: Option<ValueRef<'_>>, descending: bool, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    match value {
        Some(value) => write_code(value, value.kind(), out),
        None => encode_undefined(out),
    }
    let cut = is_cut_value(&out[start..]);
    if descending {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
    cut
}

/// A code as terms have it, and whether something of it was lost.
pub(crate) fn shorten(code: &[u8]) -> (Cow<'_, [u8]>, bool) {
    if is_container(code) && code.len() > 1 {
        return (Cow::Borrowed(&code[..1]), true);
    }
    if code.len() <= CODE_BYTES_MAX {
        return (Cow::Borrowed(code), false);
    }
    let mut cut = code[..CODE_BYTES_MAX].to_vec();
    cut.push(CUT);
    (Cow::Owned(cut), true)
}

/// The code of a value as the terms of a path have it, and whether they have it for other values too.
pub(crate) fn term_code<'c>(path: &IndexPath, code: &'c [u8]) -> (Cow<'c, [u8]>, bool) {
    if path.is_property() { shorten(code) } else { (Cow::Borrowed(code), path.is_spatial()) }
}

/// Whether a term's code is only the beginning of the real one.
pub(crate) fn is_cut(path: &IndexPath, code: &[u8]) -> bool {
    if path.is_property() {
        is_cut_value(code)
    } else {
        path.is_composite() && code.last() == Some(&TUPLE_CUT)
    }
}

fn is_cut_value(code: &[u8]) -> bool {
    code.len() > CODE_BYTES_MAX || is_container(code)
}

fn is_container(code: &[u8]) -> bool {
    let starts = |kind| code.first().is_some_and(|first| key_kind_bytes(kind).contains(first));
    starts(Kind::Array) || starts(Kind::Object)
}

/// An interval of codes as terms have them.
pub(crate) struct CodeRange {
    pub(crate) low: Bound<Vec<u8>>,
    pub(crate) high: Bound<Vec<u8>>,
    /// Codes at the ends that stand for values inside and outside.
    doubtful: Vec<Vec<u8>>,
    /// Whether all codes stand for both.
    is_all_doubtful: bool,
}

impl CodeRange {
    /// Codes as terms have them, taken as they are.
    pub(crate) fn raw(low: Bound<Vec<u8>>, high: Bound<Vec<u8>>) -> CodeRange {
        CodeRange { low, high, doubtful: Vec::new(), is_all_doubtful: false }
    }

    /// The one code of the interval, if it is said to have one.
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
            return CodeRange { is_all_doubtful: true, ..cells };
        }
        let mut doubtful = Vec::new();
        let mut shortened = |bound: &Bound<Vec<u8>>| match bound {
            Bound::Unbounded => Bound::Unbounded,
            Bound::Included(code) | Bound::Excluded(code) => match shorten(code) {
                (short, true) => {
                    let short = short.into_owned();
                    doubtful.push(short.clone());
                    Bound::Included(short)
                }
                (_, false) => bound.clone(),
            },
        };
        let (low, high) = (shortened(low), shortened(high));
        CodeRange { low: without_present(low), high, doubtful, is_all_doubtful: false }
    }

    /// Bytes that all codes of the interval begin with alike: those that its ends do.
    pub(crate) fn alike(&self) -> usize {
        match (&self.low, &self.high) {
            (Bound::Included(low) | Bound::Excluded(low), Bound::Included(high) | Bound::Excluded(high)) => {
                low.iter().zip(high).take_while(|(low, high)| low == high).count()
            }
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => 0,
        }
    }

    /// Whether a code of the interval may stand for values outside.
    pub(crate) fn is_doubtful(&self, code: &[u8]) -> bool {
        self.is_all_doubtful || self.doubtful.iter().any(|doubtful| doubtful == code)
    }

    pub(crate) fn is_before(&self, code: &[u8]) -> bool {
        match &self.low {
            Bound::Included(low) => code < low.as_slice(),
            Bound::Excluded(low) => code <= low.as_slice(),
            Bound::Unbounded => false,
        }
    }

    pub(crate) fn is_behind(&self, code: &[u8]) -> bool {
        match &self.high {
            Bound::Included(high) => code > high.as_slice(),
            Bound::Excluded(high) => code >= high.as_slice(),
            Bound::Unbounded => false,
        }
    }
}

/// A value's code is never empty: this leaves the mark of presence out.
fn without_present(low: Bound<Vec<u8>>) -> Bound<Vec<u8>> {
    match low {
        Bound::Unbounded => Bound::Excluded(PRESENT.to_vec()),
        Bound::Included(code) if code.is_empty() => Bound::Excluded(code),
        Bound::Included(_) | Bound::Excluded(_) => low,
    }
}
