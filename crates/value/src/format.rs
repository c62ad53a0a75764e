//! The bytes of an encoded value, and how an entry is found in them.
//!
//! ```text
//! value    tag                                               null, false, true
//!          tag  little-endian integer of 1, 2, 4 or 8 bytes   int32, int64
//!          tag  IEEE bits, 4 bytes when they lose nothing     double
//!          tag  8 / 8 / 16 / 16 / 12 bytes                    date, ticks, decimal, guid, object id
//!          tag  UTF-8                                         string
//!          tag  subtype  bytes                                binary
//!
//!          tag  element … element            end … end  count         array
//!          tag  member … member  hash … hash  end … end  count         object
//!               └────── body ──┘             └ width bytes each ┘
//!
//! member   name size (1 byte, or 255 and 4 bytes)  name  value
//! ```
//!
//! `end` is the end of an entry, relative to the start of the body; the next entry begins there, and the last `end` is
//! the size of the body. The container's tag says whether ends and count take 1, 2 or 4 bytes. A value does not store
//! its own size: its container knows where it ends, and the root fills the document. A value contains no references to
//! outside, so its bytes can be copied into another container unchanged.
//!
//! The table follows the body because a streaming writer knows it only then. A lookup compares one hash byte per member
//! and reads names only if the hash is equal.
//!
//! Reading trusts nothing: any byte string can be read, and damage yields `None`.

/// The kind of a value; for containers also the width of table fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tag {
    Null,
    False,
    True,
    Int32,
    Int64,
    Double,
    Decimal,
    Date,
    Ticks,
    Guid,
    ObjectId,
    String,
    Binary,
    Array(Width),
    Object(Width),
}

impl Tag {
    /// Zero is unused: damaged or unwritten pages are often filled with it.
    pub(crate) const fn to_byte(self) -> u8 {
        match self {
            Tag::Null => 0x01,
            Tag::False => 0x02,
            Tag::True => 0x03,
            Tag::Int32 => 0x04,
            Tag::Int64 => 0x05,
            Tag::Double => 0x06,
            Tag::Decimal => 0x07,
            Tag::Date => 0x08,
            Tag::Guid => 0x09,
            Tag::ObjectId => 0x0a,
            Tag::String => 0x0b,
            Tag::Binary => 0x0c,
            Tag::Array(width) => 0x10 | width.to_bits(),
            Tag::Object(width) => 0x20 | width.to_bits(),
            Tag::Ticks => 0x39,
        }
    }

    pub(crate) const fn from_byte(byte: u8) -> Option<Tag> {
        Some(match byte {
            0x01 => Tag::Null,
            0x02 => Tag::False,
            0x03 => Tag::True,
            0x04 => Tag::Int32,
            0x05 => Tag::Int64,
            0x06 => Tag::Double,
            0x07 => Tag::Decimal,
            0x08 => Tag::Date,
            0x09 => Tag::Guid,
            0x0a => Tag::ObjectId,
            0x0b => Tag::String,
            0x0c => Tag::Binary,
            0x10 => Tag::Array(Width::One),
            0x11 => Tag::Array(Width::Two),
            0x12 => Tag::Array(Width::Four),
            0x20 => Tag::Object(Width::One),
            0x21 => Tag::Object(Width::Two),
            0x22 => Tag::Object(Width::Four),
            0x39 => Tag::Ticks,
            _ => return None,
        })
    }
}

/// Bytes of one table field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    One,
    Two,
    Four,
}

impl Width {
    const fn to_bits(self) -> u8 {
        match self {
            Width::One => 0,
            Width::Two => 1,
            Width::Four => 2,
        }
    }

    /// The narrowest width for a body of this size; `None` above 4 GiB.
    pub(crate) fn for_body(body_size: usize) -> Option<Width> {
        match body_size {
            0..=0xff => Some(Width::One),
            0x100..=0xffff => Some(Width::Two),
            0x1_0000..=0xffff_ffff => Some(Width::Four),
            _ => None,
        }
    }

    const fn size(self) -> usize {
        match self {
            Width::One => 1,
            Width::Two => 2,
            Width::Four => 4,
        }
    }

    /// Appends fields; their numbers fit because the width was chosen for the size of the body.
    #[allow(clippy::cast_possible_truncation)]
    pub(crate) fn write_all(self, numbers: impl Iterator<Item = usize>, out: &mut Vec<u8>) {
        match self {
            Width::One => out.extend(numbers.map(|number| number as u8)),
            Width::Two => numbers.for_each(|number| out.extend_from_slice(&(number as u16).to_le_bytes())),
            Width::Four => numbers.for_each(|number| out.extend_from_slice(&(number as u32).to_le_bytes())),
        }
    }

    /// The field that begins at `start`.
    #[inline]
    fn read(self, bytes: &[u8], start: usize) -> Option<usize> {
        match self {
            Width::One => bytes.get(start).map(|byte| usize::from(*byte)),
            Width::Two => {
                let field = bytes.get(start..)?.first_chunk::<2>()?;
                Some(usize::from(u16::from_le_bytes(*field)))
            }
            Width::Four => {
                let field = bytes.get(start..)?.first_chunk::<4>()?;
                usize::try_from(u32::from_le_bytes(*field)).ok()
            }
        }
    }
}

/// The first byte of a name's size that is followed by four more.
const NAME_SIZE_LONG: u8 = 255;

/// Appends the size and the bytes of a member's name.
pub(crate) fn write_name(name: &str, out: &mut Vec<u8>) {
    match u8::try_from(name.len()) {
        Ok(size) if size != NAME_SIZE_LONG => out.push(size),
        _ => {
            out.push(NAME_SIZE_LONG);
            // A name above 4 GiB makes its object too large, which is refused when the object ends.
            out.extend_from_slice(&u32::try_from(name.len()).unwrap_or(u32::MAX).to_le_bytes());
        }
    }
    out.extend_from_slice(name.as_bytes());
}

/// Splits a member into the bytes of its name and its value.
#[inline]
pub(crate) fn split_member(member: &[u8]) -> Option<(&[u8], &[u8])> {
    let (first, rest) = member.split_first()?;
    if *first != NAME_SIZE_LONG {
        return rest.split_at_checked(usize::from(*first));
    }
    let (size, rest) = rest.split_first_chunk::<4>()?;
    rest.split_at_checked(usize::try_from(u32::from_le_bytes(*size)).ok()?)
}

/// One byte that distinguishes most names without reading them. Part of the stored format: never change it.
#[inline]
pub(crate) fn name_hash(name: &[u8]) -> u8 {
    // Both ends of the name are hashed, since siblings often share a prefix or a suffix.
    let (head, tail) = if let (Some(head), Some(tail)) = (name.first_chunk(), name.last_chunk()) {
        (u64::from_le_bytes(*head), u64::from_le_bytes(*tail))
    } else if let (Some(head), Some(tail)) = (name.first_chunk(), name.last_chunk()) {
        (u64::from(u32::from_le_bytes(*head)), u64::from(u32::from_le_bytes(*tail)))
    } else {
        (name.iter().fold(0, |acc, byte| (acc << 8) | u64::from(*byte)), 0)
    };
    let mixed = head.rotate_left(29) ^ tail ^ (name.len() as u64);
    mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[0]
}

/// A container split into body and table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ContainerFrame<'a> {
    body: &'a [u8],
    /// One byte per member; empty for arrays.
    hashes: &'a [u8],
    ends: &'a [u8],
    width: Width,
    count: usize,
}

impl<'a> ContainerFrame<'a> {
    /// Splits an encoded array.
    #[inline]
    pub(crate) fn array(value: &'a [u8]) -> Option<ContainerFrame<'a>> {
        let Tag::Array(width) = Tag::from_byte(*value.first()?)? else {
            return None;
        };
        ContainerFrame::cut(value, width, 0)
    }

    /// Splits an encoded object.
    #[inline]
    pub(crate) fn object(value: &'a [u8]) -> Option<ContainerFrame<'a>> {
        let Tag::Object(width) = Tag::from_byte(*value.first()?)? else {
            return None;
        };
        ContainerFrame::cut(value, width, 1)
    }

    #[inline]
    fn cut(value: &'a [u8], width: Width, hash_size: usize) -> Option<ContainerFrame<'a>> {
        let rest = value.get(1..)?;
        let (rest, count) = rest.split_at_checked(rest.len().checked_sub(width.size())?)?;
        let count = width.read(count, 0)?;
        let (rest, ends) =
            rest.split_at_checked(rest.len().checked_sub(count.checked_mul(width.size())?)?)?;
        let (body, hashes) = rest.split_at_checked(rest.len().checked_sub(count.checked_mul(hash_size)?)?)?;
        Some(ContainerFrame { body, hashes, ends, width, count })
    }

    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Whether the last entry ends where the body does.
    pub(crate) fn is_filled(&self) -> bool {
        let end = match self.count.checked_sub(1) {
            Some(last) => self.end(last),
            None => Some(0),
        };
        end == Some(self.body.len())
    }

    #[inline]
    fn end(&self, index: usize) -> Option<usize> {
        self.width.read(self.ends, index.checked_mul(self.width.size())?)
    }

    /// The bytes of an entry: an element's value, or a member with its name.
    #[inline]
    pub(crate) fn entry(&self, index: usize) -> Option<&'a [u8]> {
        let start = match index.checked_sub(1) {
            Some(previous) => self.end(previous)?,
            None => 0,
        };
        self.body.get(start..self.end(index)?)
    }

    /// All entries in order, up to the first malformed one.
    #[inline]
    pub(crate) fn entries(&self) -> Entries<'a> {
        Entries { body: self.body, ends: self.ends, width: self.width, start: 0 }
    }

    /// The value of a member whose name is UTF-8 and matches its hash in the table.
    pub(crate) fn checked_member(&self, index: usize) -> Option<&'a [u8]> {
        let (name, value) = split_member(self.entry(index)?)?;
        str::from_utf8(name).ok()?;
        (self.hashes.get(index) == Some(&name_hash(name))).then_some(value)
    }

    /// The value of the member `name` with the given hash.
    #[inline]
    pub(crate) fn member(&self, name: &[u8], hash: u8) -> Option<&'a [u8]> {
        let mut next = 0;
        while let Some(step) = self.hashes.get(next..)?.iter().position(|candidate| *candidate == hash) {
            let (found, value) = split_member(self.entry(next + step)?)?;
            if found == name {
                return Some(value);
            }
            next += step + 1;
        }
        None
    }
}

/// The remaining entries of a container; see [`ContainerFrame::entries`].
#[derive(Debug, Clone)]
pub(crate) struct Entries<'a> {
    body: &'a [u8],
    /// Starts with the end of the next entry.
    ends: &'a [u8],
    width: Width,
    /// Start of the next entry, which is the end of the previous one.
    start: usize,
}

impl<'a> Iterator for Entries<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let end = self.width.read(self.ends, 0)?;
        let entry = self.body.get(self.start..end)?;
        self.ends = self.ends.get(self.width.size()..)?;
        self.start = end;
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tag_reads_back() {
        for byte in 0..=u8::MAX {
            if let Some(tag) = Tag::from_byte(byte) {
                assert_eq!(tag.to_byte(), byte);
            }
        }
    }

    #[test]
    fn hashes_are_part_of_the_stored_form() {
        let names = [b"".as_slice(), b"id", b"city", b"customerName"];
        assert_eq!(names.map(name_hash), [0, 165, 28, 223]);
    }

    #[test]
    fn long_names_keep_their_size() {
        for size in [0, 1, 254, 255, 256, 70_000] {
            let name = "n".repeat(size);
            let mut member = Vec::new();
            write_name(&name, &mut member);
            member.push(Tag::Null.to_byte());
            assert_eq!(split_member(&member), Some((name.as_bytes(), [0x01].as_slice())));
        }
    }
}
