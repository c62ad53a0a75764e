//! Documents and values: encoding, JSON, order, key code, paths, patch.
//!
//! Pure: no I/O, no time, no knowledge of containers, partitions or the protocol of a document. Nothing here panics or
//! overflows the stack on any input: all nesting is bounded by named constants.
//!
//! | file | holds |
//! |---|---|
//! | `value` | [`Value`], the owned tree, and [`Kind`] |
//! | `decimal` | [`Decimal128`], its parts and its text |
//! | `format` | the bytes of an encoded value, and how to find an entry in them |
//! | `reserved` | bytes reserved for kinds of values of other APIs |
//! | `encode` | the only writer of those bytes |
//! | `reference` | [`ValueRef`], one read interface over encoded bytes and trees |
//! | `decoded` | [`Decoded`], a value decoded one level |
//! | `document` | [`Document`] and [`DocumentBuilder`] |
//! | `json` | JSON text: reader and writer |
//! | `binary_json` | reader of the service's binary form of JSON |
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
mod kept_text;
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
pub use json::{JsonError, JsonErrorKind, write_json_string};
pub use keycode::{
    decode_key, decode_key_descending, decode_key_optional, encode_key, encode_key_descending,
    encode_key_prefix, encode_key_str, encode_key_value, encode_undefined, key_kind_bytes,
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

/// Most levels that any traversal of a value follows; deeper values read as null.
///
/// Stored documents are limited to [`JSON_DEPTH_MAX`]. Query results may wrap a document in a few more levels, hence
/// the larger limit; it is small enough for the stack of a worker thread.
pub const WALK_DEPTH_MAX: usize = 512;
