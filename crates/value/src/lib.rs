//! Documents and values: encoding, JSON, order, key code, paths, patch.
//!
//! Pure: no I/O, no time, no knowledge of containers, partitions or the protocol a document came in by.
//! Nothing here panics or overflows the stack on any input: every nesting is bounded by a named constant.
//!
//! | file | holds |
//! |---|---|
//! | `value` | [`Value`], the owned tree, and [`Kind`] |
//! | `decimal` | [`Decimal128`], its parts and its text |
//! | `format` | the bytes of an encoded value, drawn, and how to find an entry in them |
//! | `reserved` | bytes that are kept free for kinds of values of other APIs |
//! | `encode` | the one writer of those bytes |
//! | `reference` | [`ValueRef`], one read interface over encoded bytes and trees |
//! | `decoded` | [`Decoded`], a value opened one level |
//! | `document` | [`Document`] and [`DocumentBuilder`] |
//! | `json` | text in, text out |
//! | `binary_json` | the service's binary form of JSON in |
//! | `order`, `keycode`, `numbercode` | the order of values, and the same order as bytes |
//! | `path`, `pointer` | property paths of definitions, JSON pointers of patches |
//! | `patch`, `patch_parse` | changes to parts of a document |

mod binary_json;
mod decimal;
mod decoded;
mod document;
mod encode;
mod format;
mod json;
mod keycode;
mod numbercode;
mod order;
mod patch;
mod patch_parse;
mod path;
mod pointer;
mod reference;
mod reserved;
mod value;

pub use binary_json::BINARY_JSON_MARK;
pub use decimal::{Decimal128, DecimalParts};
pub use decoded::{Decoded, Elements, Members};
pub use document::{Damaged, Document, DocumentBuilder, DocumentError};
pub use json::{JsonError, JsonErrorKind};
pub use keycode::{
    decode_key, decode_key_descending, decode_key_optional, encode_key, encode_key_beginning,
    encode_key_descending, encode_key_str, encode_key_value, encode_undefined, key_kind_bytes,
};
pub use order::compare;
pub use patch::{PATCH_OPERATIONS_MAX, PatchCause, PatchError, PatchOperation, apply};
pub use patch_parse::{PatchParseCause, PatchParseError};
pub use path::{PathError, PathErrorKind, PropertyPath};
pub use pointer::Pointer;
pub use reference::ValueRef;
pub use value::{Kind, Value};

/// Most levels of arrays and objects in a stored document or in JSON text; the root counts as one.
pub const JSON_DEPTH_MAX: usize = 128;

/// Most levels any walk over a value follows; what lies deeper reads as null.
///
/// Stored documents end at [`JSON_DEPTH_MAX`]. Results of queries may wrap a document in a few levels of
/// their own, hence the larger figure; it is small enough for the stack of a worker thread.
pub const WALK_DEPTH_MAX: usize = 512;
