//! The tokens of JSON text: white space, strings, numbers, literals.
//!
//! Strict RFC 8259. The text is known to be UTF-8; `read` decides which token is allowed where.

use super::{JsonError, JsonErrorKind};

/// A number as the document stores it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum JsonNumber {
    /// Without point and exponent, and within 64 bits.
    Integer(i64),
    /// Likewise, above the largest signed integer.
    Unsigned(u64),
    /// Any other: the nearest double. `-0` is one, because no integer is a negative zero.
    Double(f64),
}

/// A position in the text.
pub(super) struct TextCursor<'a> {
    text: &'a str,
    pub(super) position: usize,
}

impl<'a> TextCursor<'a> {
    pub(super) fn new(text: &'a str) -> TextCursor<'a> {
        TextCursor { text, position: 0 }
    }

    /// Reads a string after its opening quote, including its closing one; `joined` is a buffer for one with escapes.
    #[inline]
    pub(super) fn text<'b>(&mut self, joined: &'b mut Vec<u8>) -> Result<&'b str, JsonError>
    where
        'a: 'b,
    {
        let start = self.position;
        let end = start + plain_run(self.rest());
        if self.bytes().get(end) == Some(&b'"') {
            self.position = end + 1;
            return Ok(&self.text[start..end]);
        }
        joined.clear();
        self.unescape(joined)?;
        str::from_utf8(joined).map_err(|_| JsonError { kind: JsonErrorKind::InvalidUtf8, offset: start })
    }

    /// Appends a string's characters; reads from after its opening quote to after its closing one.
    #[inline]
    pub(super) fn unescape(&mut self, out: &mut Vec<u8>) -> Result<(), JsonError> {
        loop {
            let rest = self.rest();
            let run = plain_run(rest);
            out.extend_from_slice(&rest[..run]);
            self.position += run;
            match self.peek() {
                Some(b'"') => {
                    self.position += 1;
                    return Ok(());
                }
                Some(b'\\') => self.escape(out)?,
                Some(_) => return Err(self.error(JsonErrorKind::ControlCharacter)),
                None => return Err(self.error(JsonErrorKind::UnexpectedEnd)),
            }
        }
    }

    fn escape(&mut self, out: &mut Vec<u8>) -> Result<(), JsonError> {
        let byte = match self.bytes().get(self.position + 1) {
            Some(b'u') => return self.unicode_escape(out),
            Some(byte @ (b'"' | b'\\' | b'/')) => *byte,
            Some(b'b') => 0x08,
            Some(b'f') => 0x0c,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(_) => return Err(self.error(JsonErrorKind::InvalidEscape)),
            None => {
                return Err(JsonError { kind: JsonErrorKind::UnexpectedEnd, offset: self.text.len() });
            }
        };
        out.push(byte);
        self.position += 2;
        Ok(())
    }

    /// Reads `\uXXXX`, or two of them that form a surrogate pair.
    fn unicode_escape(&mut self, out: &mut Vec<u8>) -> Result<(), JsonError> {
        let first = self.code_unit(self.position)?;
        let (code_point, size) = match first {
            0xd800..=0xdbff => {
                let second = match self.bytes().get(self.position + 6..self.position + 8) {
                    Some(b"\\u") => self.code_unit(self.position + 6)?,
                    _ => 0,
                };
                if !(0xdc00..=0xdfff).contains(&second) {
                    return Err(self.error(JsonErrorKind::LoneSurrogate));
                }
                (0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00), 12)
            }
            _ => (first, 6),
        };
        // Only a low surrogate in first position has no character.
        let Some(character) = char::from_u32(code_point) else {
            return Err(self.error(JsonErrorKind::LoneSurrogate));
        };
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        self.position += size;
        Ok(())
    }

    /// The four hexadecimal digits of the `\u` that begins at `start`.
    fn code_unit(&self, start: usize) -> Result<u32, JsonError> {
        let invalid = JsonError { kind: JsonErrorKind::InvalidEscape, offset: start };
        let digits = self.bytes().get(start + 2..start + 6).ok_or_else(|| invalid.clone())?;
        digits.iter().try_fold(0, |acc, digit| {
            let digit = char::from(*digit).to_digit(16).ok_or_else(|| invalid.clone())?;
            Ok(acc << 4 | digit)
        })
    }

    pub(super) fn number(&mut self) -> Result<JsonNumber, JsonError> {
        let start = self.position;
        let negative = self.peek() == Some(b'-');
        self.position += usize::from(negative);
        let (magnitude, fits) = self.integer_digits()?;
        let fraction = self.peek() == Some(b'.');
        if fraction {
            self.position += 1;
            self.digits()?;
        }
        let exponent = matches!(self.peek(), Some(b'e' | b'E'));
        if exponent {
            self.position += 1;
            self.position += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.digits()?;
        }
        if !fraction && !exponent && fits {
            let integer =
                if negative { 0i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() };
            // Only a double has a negative zero.
            if let Some(integer) = integer.filter(|integer| !negative || *integer != 0) {
                return Ok(JsonNumber::Integer(integer));
            }
            if !negative {
                return Ok(JsonNumber::Unsigned(magnitude));
            }
        }
        // The standard parser rounds to the nearest double, ties to even, whatever the length.
        let double: f64 = self.text[start..self.position]
            .parse()
            .map_err(|_| JsonError { kind: JsonErrorKind::InvalidNumber, offset: start })?;
        if double.is_infinite() {
            return Err(JsonError { kind: JsonErrorKind::NumberOutOfRange, offset: start });
        }
        Ok(JsonNumber::Double(double))
    }

    /// Reads the digits before the point: the number, and whether it fits 64 bits.
    fn integer_digits(&mut self) -> Result<(u64, bool), JsonError> {
        let start = self.position;
        let mut magnitude = 0u64;
        let mut fits = true;
        while let Some(byte @ b'0'..=b'9') = self.peek() {
            let next = magnitude.checked_mul(10).and_then(|tens| tens.checked_add(u64::from(byte - b'0')));
            fits &= next.is_some();
            magnitude = next.unwrap_or(0);
            self.position += 1;
        }
        let count = self.position - start;
        if count == 0 || (count > 1 && self.bytes()[start] == b'0') {
            return Err(JsonError { kind: JsonErrorKind::InvalidNumber, offset: start });
        }
        Ok((magnitude, fits))
    }

    /// Skips one or more digits.
    fn digits(&mut self) -> Result<(), JsonError> {
        let count = self.rest().iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 {
            return Err(self.error(JsonErrorKind::InvalidNumber));
        }
        self.position += count;
        Ok(())
    }

    pub(super) fn literal(&mut self, literal: &[u8]) -> Result<(), JsonError> {
        if !self.rest().starts_with(literal) {
            return Err(self.expected("a value"));
        }
        self.position += literal.len();
        Ok(())
    }

    #[inline]
    pub(super) fn skip_white_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.position += 1;
        }
    }

    #[inline]
    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes().get(self.position).copied()
    }

    #[inline]
    fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    #[inline]
    fn rest(&self) -> &'a [u8] {
        self.bytes().get(self.position..).unwrap_or_default()
    }

    pub(super) fn error(&self, kind: JsonErrorKind) -> JsonError {
        JsonError { kind, offset: self.position }
    }

    pub(super) fn expected(&self, expected: &'static str) -> JsonError {
        self.error(JsonErrorKind::Unexpected { expected })
    }
}

/// Number of bytes before the first that must be escaped in a JSON string: quote, backslash, control.
#[inline]
pub(super) fn plain_run(bytes: &[u8]) -> usize {
    let (words, tail) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        if let Some(place) = first_special(*word) {
            return index * 8 + place;
        }
    }
    // The last word may overlap the previous one, whose bytes are known to be plain.
    match bytes.last_chunk::<8>() {
        Some(word) => first_special(*word).map_or(bytes.len(), |place| bytes.len() - 8 + place),
        None => tail.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20)).unwrap_or(tail.len()),
    }
}

/// Whether a JSON string can hold all bytes without escapes. Computes less than [`plain_run`] and is faster.
#[inline]
pub(super) fn is_plain(bytes: &[u8]) -> bool {
    let marks = if let Some(last) = bytes.last_chunk::<8>() {
        // The last word may overlap the previous one.
        let words = bytes.as_chunks::<8>().0.iter();
        words.fold(special_marks(*last), |marks, word| marks | special_marks(*word))
    } else if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        let both = u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32;
        special_marks(both.to_le_bytes())
    } else {
        let few = bytes.iter().fold(u64::from_ne_bytes([b' '; 8]), |few, byte| few << 8 | u64::from(*byte));
        special_marks(few.to_le_bytes())
    };
    marks == 0
}

/// Index of the first special byte of eight.
#[inline]
fn first_special(word: [u8; 8]) -> Option<usize> {
    let marks = special_marks(word);
    (marks != 0).then(|| marks.trailing_zeros() as usize / 8)
}

/// The high bit of the first special byte of eight, if there is one, and possibly others above it.
///
/// Each subtraction marks the high bit of bytes that match. A borrow can mark a byte wrongly only above a true match.
#[inline]
fn special_marks(word: [u8; 8]) -> u64 {
    const ONES: u64 = u64::from_ne_bytes([0x01; 8]);
    const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);
    let word = u64::from_le_bytes(word);
    // Without its second bit a quote is a space, and no control character exceeds that.
    let quote_or_control = (word ^ (ONES * 0x02)).wrapping_sub(ONES * 0x21);
    let backslash = (word ^ (ONES * u64::from(b'\\'))).wrapping_sub(ONES);
    (quote_or_control | backslash) & !word & HIGHS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_runs_end_at_the_first_special_byte() {
        for size in 0..80 {
            for place in 0..=size {
                for special in [b'"', b'\\', 0, 0x1f, b'\n'] {
                    let mut bytes = vec![0xc3; size];
                    bytes.iter_mut().skip(place).for_each(|byte| *byte = special);
                    assert_eq!(plain_run(&bytes), place, "{bytes:?}");
                    assert_eq!(is_plain(&bytes), place == size, "{bytes:?}");
                }
            }
        }
        let plain: Vec<u8> = (0x20..=0xff).filter(|byte| !matches!(byte, b'"' | b'\\')).collect();
        assert_eq!(plain_run(&plain), plain.len());
        assert!(is_plain(&plain));
    }
}
