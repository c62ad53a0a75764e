//! Reader of Cosmos binary JSON, the compact form in which some SDKs send items.
//!
//! There is no writer: every client that understands this form also accepts text responses. A buffer is the byte
//! [`BINARY_JSON_MARK`], which cannot start a text, and one value. A value is a marker and its payload; numbers and
//! lengths are little-endian.
//!
//! ```text
//! 00..1F  the integer itself              C0..C2  string after a length of 1, 2, 4 bytes
//! 20..3F  string of the system's table    C3..C6  string at an earlier offset
//! 40..67  string of a table that only     C7..CE  numbers: u64 u8 i16 i32 i64 f64 f32 f64
//!         the service has                 D0..D2  null, false, true
//! 71..74  base64                          D3      GUID
//! 75..77  GUID as text                    D7..DC  numbers: u8 i8 i16 i32 i64 u32
//! 78..7A  two characters a byte           DD..DF  bytes after a length of 1, 2, 4 bytes
//! 7B..7F  characters of 4, 5, 6, 7 bits   E0..E7  array: empty, of one, by length, by length and count
//! 80..BF  string of that many bytes       E8..EF  object, likewise
//!                                         F0..F3  array of numbers of one kind; array of such arrays
//! ```

pub(crate) mod read;
mod strings;

/// The first byte of a value in binary form. No JSON text and no UTF-8 starts with it.
pub const BINARY_JSON_MARK: u8 = 0x80;
