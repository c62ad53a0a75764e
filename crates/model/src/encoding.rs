//! The binary encoding of definitions: stored in catalog rows, hashed in fingerprints and digests.
//!
//! Every field is written in a fixed order, so equal values have equal bytes and different values different bytes.
//!
//! ```text
//! byte, tag   1 byte
//! number      LEB128, 1 to 10 bytes
//! fixed       8 bytes, big-endian: two's complement of an i64, IEEE 754 bits of an f64
//! text, bytes number of bytes · the bytes; text is UTF-8
//! option      tag 0, or tag 1 · the value
//! list        number of items · the items
//! opaque      tag 0 null, 1 false, 2 true, 3 i64, 4 u64, 5 f64, 6 text, 7 list, 8 members (text · opaque each)
//! ```
//!
//! The decoder accepts any bytes: it returns a fault and never panics. Versions belong to the rows, not to this file.

use thiserror::Error;
use value::PropertyPath;

/// Most bytes of an encoded number.
const NUMBER_BYTES_MAX: usize = 10;

/// Appends encoded values to a buffer.
#[derive(Debug, Default)]
pub struct Encoder {
    bytes: Vec<u8>,
}

impl Encoder {
    /// The encoded bytes.
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }

    /// One byte, such as a version or the tag of an enum.
    pub fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    /// A boolean.
    pub fn flag(&mut self, flag: bool) {
        self.byte(u8::from(flag));
    }

    /// An unsigned number.
    pub fn number(&mut self, number: impl Into<u64>) {
        let mut rest = number.into();
        loop {
            let low = (rest & 0x7f) as u8;
            rest >>= 7;
            if rest == 0 {
                return self.byte(low);
            }
            self.byte(low | 0x80);
        }
    }

    fn length(&mut self, length: usize) {
        self.number(length as u64);
    }

    /// A signed number.
    pub fn signed(&mut self, number: i64) {
        self.raw(&number.to_be_bytes());
    }

    /// A double, by its bits.
    pub fn double(&mut self, number: f64) {
        self.raw(&number.to_bits().to_be_bytes());
    }

    /// Bytes whose length the reader knows.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// A byte string.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.length(bytes.len());
        self.raw(bytes);
    }

    /// A text.
    pub fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// A value that may be absent.
    pub fn option<T>(&mut self, value: Option<T>, encode: impl FnOnce(&mut Encoder, T)) {
        self.flag(value.is_some());
        if let Some(value) = value {
            encode(self, value);
        }
    }

    /// A list.
    pub fn list<'a, T: 'a>(&mut self, items: &'a [T], encode: impl Fn(&mut Encoder, &'a T)) {
        self.length(items.len());
        items.iter().for_each(|item| encode(self, item));
    }

    /// A property path, by its names.
    pub fn path(&mut self, path: &PropertyPath) {
        let segments = path.segments();
        self.length(segments.len());
        segments.for_each(|name| self.text(name));
    }
}

/// The bytes are not an encoding of the expected value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DecodeFault {
    /// The bytes end too early.
    #[error("the bytes end inside {what}, at byte {at}")]
    Truncated {
        /// What was being read.
        what: &'static str,
        /// Offset of the value.
        at: usize,
    },
    /// A tag, version or name that is not defined.
    #[error("unknown {what} {found} before byte {at}")]
    Unknown {
        /// What was being read.
        what: &'static str,
        /// What was found.
        found: String,
        /// Offset after the value.
        at: usize,
    },
    /// A value out of bounds.
    #[error("{what} before byte {at} is invalid")]
    Invalid {
        /// What was being read.
        what: &'static str,
        /// Offset after the value.
        at: usize,
    },
    /// Bytes follow the last field.
    #[error("{bytes} bytes follow the last field")]
    Trailing {
        /// The number of bytes.
        bytes: usize,
    },
}

/// Reads encoded values from the start of some bytes.
#[derive(Clone, Debug)]
pub struct Decoder<'a> {
    rest: &'a [u8],
    length: usize,
}

impl<'a> Decoder<'a> {
    /// Starts at the beginning of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Decoder<'a> {
        Decoder { rest: bytes, length: bytes.len() }
    }

    /// Ends the decoding; fails if bytes are left.
    pub fn finish(self) -> Result<(), DecodeFault> {
        match self.rest.len() {
            0 => Ok(()),
            bytes => Err(DecodeFault::Trailing { bytes }),
        }
    }

    fn offset(&self) -> usize {
        self.length - self.rest.len()
    }

    /// The fault for a decoded value that is out of bounds.
    pub fn invalid(&self, what: &'static str) -> DecodeFault {
        DecodeFault::Invalid { what, at: self.offset() }
    }

    /// The fault for a decoded tag, version or name that is not defined.
    pub fn unknown(&self, what: &'static str, found: impl ToString) -> DecodeFault {
        DecodeFault::Unknown { what, found: found.to_string(), at: self.offset() }
    }

    fn take(&mut self, count: usize, what: &'static str) -> Result<&'a [u8], DecodeFault> {
        let at = self.offset();
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(DecodeFault::Truncated { what, at })?;
        self.rest = rest;
        Ok(taken)
    }

    /// Bytes of known length.
    pub fn raw<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], DecodeFault> {
        let mut raw = [0; N];
        raw.copy_from_slice(self.take(N, what)?);
        Ok(raw)
    }

    /// One byte.
    pub fn byte(&mut self, what: &'static str) -> Result<u8, DecodeFault> {
        self.raw::<1>(what).map(|[byte]| byte)
    }

    /// The version of a row, which must be `known`.
    pub fn version(&mut self, known: u8) -> Result<(), DecodeFault> {
        match self.byte("version")? {
            version if version == known => Ok(()),
            version => Err(self.unknown("version", version)),
        }
    }

    /// A boolean.
    pub fn flag(&mut self, what: &'static str) -> Result<bool, DecodeFault> {
        match self.byte(what)? {
            0 => Ok(false),
            1 => Ok(true),
            tag => Err(self.unknown(what, tag)),
        }
    }

    /// An unsigned number of a type that may be narrower than 64 bits.
    pub fn number<T: TryFrom<u64>>(&mut self, what: &'static str) -> Result<T, DecodeFault> {
        let mut number = 0_u64;
        for position in 0..NUMBER_BYTES_MAX {
            let byte = self.byte(what)?;
            let bits = u64::from(byte & 0x7f);
            let shifted = bits << (7 * position);
            if shifted >> (7 * position) != bits {
                return Err(self.invalid(what));
            }
            number |= shifted;
            if byte & 0x80 == 0 {
                return T::try_from(number).map_err(|_| self.invalid(what));
            }
        }
        Err(self.invalid(what))
    }

    /// A signed number.
    pub(crate) fn signed(&mut self, what: &'static str) -> Result<i64, DecodeFault> {
        self.raw(what).map(i64::from_be_bytes)
    }

    /// A double.
    pub(crate) fn double(&mut self, what: &'static str) -> Result<f64, DecodeFault> {
        self.raw(what).map(u64::from_be_bytes).map(f64::from_bits)
    }

    /// A byte string.
    pub fn bytes(&mut self, what: &'static str) -> Result<&'a [u8], DecodeFault> {
        let length = self.number(what)?;
        self.take(length, what)
    }

    /// A text, borrowed.
    pub fn borrowed_text(&mut self, what: &'static str) -> Result<&'a str, DecodeFault> {
        str::from_utf8(self.bytes(what)?).map_err(|_| self.invalid(what))
    }

    /// A text.
    pub fn text(&mut self, what: &'static str) -> Result<String, DecodeFault> {
        self.borrowed_text(what).map(str::to_owned)
    }

    /// A member of a closed set, encoded by its tag.
    pub fn choice<T: Copy>(
        &mut self,
        what: &'static str,
        members: impl IntoIterator<Item = T>,
        tag: impl Fn(T) -> u8,
    ) -> Result<T, DecodeFault> {
        let found = self.byte(what)?;
        members.into_iter().find(|member| tag(*member) == found).ok_or_else(|| self.unknown(what, found))
    }

    /// A member of a closed set, encoded by its name.
    pub(crate) fn name<T: Copy>(
        &mut self,
        what: &'static str,
        members: impl IntoIterator<Item = T>,
        name: impl Fn(T) -> &'static str,
    ) -> Result<T, DecodeFault> {
        let found = self.borrowed_text(what)?;
        members.into_iter().find(|member| name(*member) == found).ok_or_else(|| self.unknown(what, found))
    }

    /// A value that may be absent.
    pub fn option<T>(
        &mut self,
        what: &'static str,
        decode: impl FnOnce(&mut Decoder<'a>) -> Result<T, DecodeFault>,
    ) -> Result<Option<T>, DecodeFault> {
        if self.flag(what)? { decode(self).map(Some) } else { Ok(None) }
    }

    /// A list. Every item has at least one byte, so a damaged length fails at the end of the bytes.
    pub fn list<T>(
        &mut self,
        what: &'static str,
        decode: impl Fn(&mut Decoder<'a>) -> Result<T, DecodeFault>,
    ) -> Result<Vec<T>, DecodeFault> {
        let length: usize = self.number(what)?;
        let mut items = Vec::with_capacity(length.min(self.rest.len() / size_of::<T>().max(1)));
        for _ in 0..length {
            items.push(decode(self)?);
        }
        Ok(items)
    }

    /// A property path.
    pub(crate) fn path(&mut self, what: &'static str) -> Result<PropertyPath, DecodeFault> {
        let names = self.list(what, |input| input.borrowed_text(what))?;
        PropertyPath::from_names(names).ok_or_else(|| self.invalid(what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_sizes_round_trip() {
        for number in [0, 1, 127, 128, 1 << 35, u64::MAX - 1, u64::MAX] {
            let mut encoder = Encoder::default();
            encoder.number(number);
            let bytes = encoder.finish();
            let mut decoder = Decoder::new(&bytes);
            assert_eq!(decoder.number(""), Ok(number));
            decoder.finish().unwrap();
        }
        let fault =
            Decoder::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02]).number::<u64>("n");
        assert_eq!(fault, Err(DecodeFault::Invalid { what: "n", at: 10 }));
        assert_eq!(
            Decoder::new(&[0x80, 0x02]).number::<u8>("n"),
            Err(DecodeFault::Invalid { what: "n", at: 2 })
        );
    }

    #[test]
    fn a_damaged_length_takes_no_memory() {
        let bytes = [0xff, 0xff, 0xff, 0xff, 0x7f];
        assert_eq!(
            Decoder::new(&bytes).list("l", |input| input.text("t")),
            Err(DecodeFault::Truncated { what: "t", at: 5 })
        );
        assert_eq!(Decoder::new(&bytes).bytes("b"), Err(DecodeFault::Truncated { what: "b", at: 5 }));
    }

    #[test]
    fn what_follows_the_last_field_is_a_fault() {
        let mut decoder = Decoder::new(&[1, 2, 3]);
        decoder.version(1).unwrap();
        assert_eq!(decoder.clone().finish(), Err(DecodeFault::Trailing { bytes: 2 }));
        let unknown = DecodeFault::Unknown { what: "version", found: "2".to_owned(), at: 2 };
        assert_eq!(decoder.version(1), Err(unknown));
    }
}
