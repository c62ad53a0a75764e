//! `$filter`: lexer, parser, and lowering to a query.
//!
//! A filter is true, false or unknown for an entity, and keeps it if it is true. A comparison is unknown if the entity
//! lacks the property or has it with another type, so `ne` and `not` do not match such entities either. Int32, Int64
//! and Double are compared by their numeric value, exactly, whatever their types. NaN equals nothing, `ne` is true for
//! it, and `lt`, `le`, `gt` and `ge` are unknown. Texts are compared by their UTF-8 bytes, GUIDs by the bytes of their
//! text, binary by its bytes.

mod fault;
mod keys;
mod lexer;
mod lower;
mod matching;
mod parser;
mod syntax;

pub use fault::FilterFault;
pub use keys::exact_keys;
pub use lower::{LoweredFilter, lower};
pub use parser::{FILTER_BYTES_MAX, FILTER_DEPTH_MAX, parse};
pub use syntax::Filter;

#[cfg(test)]
mod tests;
