//! The only writer of encoded values: a stack of open containers over one growing byte string.
//!
//! Callers add values in document order; nothing is written twice unless an object repeats a name. The caller bounds
//! the depth.

use crate::format::{self, Tag, Width};
use crate::{Decimal128, Decoded, ValueRef};

/// Up to this many members, names with equal hashes are compared pairwise; above, all names are sorted.
const PAIRWISE_MEMBERS_MAX: usize = 32;

/// A container exceeds the four bytes of a table field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLarge;

/// Why a value cannot be encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EncodeError {
    TooLarge,
    TooDeep,
}

impl From<TooLarge> for EncodeError {
    fn from(_: TooLarge) -> EncodeError {
        EncodeError::TooLarge
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContainerKind {
    Array,
    Object,
}

/// A container that has not ended yet.
struct Open {
    container: ContainerKind,
    /// Position of its tag in `out`.
    tag_position: usize,
    /// Index of its first entry in the list shared by all open containers.
    entries_first: usize,
}

/// An entry of an open container.
#[derive(Clone, Copy)]
struct OpenEntry {
    /// Position in `out`.
    start: usize,
    /// Hash of the name; zero in arrays.
    hash: u8,
}

/// Writes one value and its content.
pub(crate) struct ValueEncoder {
    out: Vec<u8>,
    open: Vec<Open>,
    entries: Vec<OpenEntry>,
}

impl ValueEncoder {
    /// Creates an encoder with a capacity of about `size` bytes.
    pub(crate) fn with_capacity(size: usize) -> ValueEncoder {
        ValueEncoder {
            out: Vec::with_capacity(size),
            open: Vec::with_capacity(8),
            entries: Vec::with_capacity(64),
        }
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    /// Number of open containers.
    #[inline]
    pub(crate) fn depth(&self) -> usize {
        self.open.len()
    }

    /// The container of the next value.
    #[inline]
    pub(crate) fn innermost(&self) -> Option<ContainerKind> {
        self.open.last().map(|open| open.container)
    }

    /// Begins a member of the innermost object; its value must follow.
    #[inline]
    pub(crate) fn name(&mut self, name: &str) {
        self.entries.push(OpenEntry { start: self.out.len(), hash: format::name_hash(name.as_bytes()) });
        format::write_name(name, &mut self.out);
    }

    /// Removes the last member of the innermost object.
    pub(crate) fn drop_last_member(&mut self) {
        if let Some(entry) = self.entries.pop() {
            self.out.truncate(entry.start);
        }
    }

    #[inline]
    pub(crate) fn null(&mut self) {
        self.tag(Tag::Null);
    }

    #[inline]
    pub(crate) fn bool(&mut self, value: bool) {
        self.tag(if value { Tag::True } else { Tag::False });
    }

    pub(crate) fn int32(&mut self, value: i32) {
        self.tag(Tag::Int32);
        self.narrow(i64::from(value));
    }

    #[inline]
    pub(crate) fn int64(&mut self, value: i64) {
        self.tag(Tag::Int64);
        self.narrow(value);
    }

    #[inline]
    pub(crate) fn double(&mut self, value: f64) {
        self.tag(Tag::Double);
        #[allow(clippy::cast_possible_truncation)] // Used only when it loses nothing.
        let single = value as f32;
        if f64::from(single).to_bits() == value.to_bits() {
            self.out.extend_from_slice(&single.to_le_bytes());
        } else {
            self.out.extend_from_slice(&value.to_le_bytes());
        }
    }

    #[inline]
    pub(crate) fn string(&mut self, value: &str) {
        self.tag(Tag::String);
        self.out.extend_from_slice(value.as_bytes());
    }

    /// Begins a string whose pieces the caller appends; together they must be UTF-8.
    #[inline]
    pub(crate) fn begin_string(&mut self) -> &mut Vec<u8> {
        self.tag(Tag::String);
        &mut self.out
    }

    /// Appends an encoded value.
    pub(crate) fn encoded(&mut self, value: &[u8]) {
        self.begin_value();
        self.out.extend_from_slice(value);
    }

    pub(crate) fn decimal(&mut self, value: Decimal128) {
        self.tag(Tag::Decimal);
        self.out.extend_from_slice(&value.0);
    }

    fn binary(&mut self, subtype: u8, bytes: &[u8]) {
        self.tag(Tag::Binary);
        self.out.push(subtype);
        self.out.extend_from_slice(bytes);
    }

    /// Begins an array or object; its entries follow, then [`end`](Self::end).
    #[inline]
    pub(crate) fn begin(&mut self, container: ContainerKind) {
        // The width is not known yet; `end` writes the final tag.
        let tag = match container {
            ContainerKind::Array => Tag::Array(Width::One),
            ContainerKind::Object => Tag::Object(Width::One),
        };
        self.tag(tag);
        let tag_position = self.out.len() - 1;
        self.open.push(Open { container, tag_position, entries_first: self.entries.len() });
    }

    /// Whether the innermost container is an object that has a name twice.
    pub(crate) fn repeats_name(&self) -> bool {
        self.open.last().is_some_and(|open| {
            open.container == ContainerKind::Object && self.has_repeated_name(open.entries_first)
        })
    }

    /// Ends the innermost container by writing its table.
    pub(crate) fn end(&mut self) -> Result<(), TooLarge> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let body_start = open.tag_position + 1;
        if open.container == ContainerKind::Object && self.has_repeated_name(open.entries_first) {
            self.merge_repeated_names(open.entries_first, body_start);
        }
        let body_end = self.out.len();
        let width = Width::for_body(body_end - body_start).ok_or(TooLarge)?;
        let tag = match open.container {
            ContainerKind::Array => Tag::Array(width),
            ContainerKind::Object => Tag::Object(width),
        };
        self.out[open.tag_position] = tag.to_byte();
        let entries = &self.entries[open.entries_first..];
        if open.container == ContainerKind::Object {
            self.out.extend(entries.iter().map(|entry| entry.hash));
        }
        // An entry ends where the next begins, the last one with the body; an empty container has no ends.
        let ends = entries.iter().skip(1).map(|entry| entry.start).chain([body_end]).take(entries.len());
        width.write_all(ends.map(|end| end - body_start), &mut self.out);
        width.write_all([entries.len()].into_iter(), &mut self.out);
        self.entries.truncate(open.entries_first);
        Ok(())
    }

    /// Appends a value with its content, at most `levels_left` containers deep.
    pub(crate) fn value(&mut self, value: ValueRef<'_>, levels_left: usize) -> Result<(), EncodeError> {
        match value.decode() {
            Decoded::Null => self.null(),
            Decoded::Bool(value) => self.bool(value),
            Decoded::Int32(value) => self.int32(value),
            Decoded::Int64(value) => self.int64(value),
            Decoded::Double(value) => self.double(value),
            Decoded::Decimal(value) => self.decimal(value),
            Decoded::String(value) => self.string(value),
            Decoded::Binary { subtype, bytes } => self.binary(subtype, bytes),
            Decoded::Date(value) => self.fixed(Tag::Date, &value.to_le_bytes()),
            Decoded::Ticks(value) => self.fixed(Tag::Ticks, &value.to_le_bytes()),
            Decoded::Guid(value) => self.fixed(Tag::Guid, &value),
            Decoded::ObjectId(value) => self.fixed(Tag::ObjectId, &value),
            Decoded::Array(elements) => {
                let levels_left = levels_left.checked_sub(1).ok_or(EncodeError::TooDeep)?;
                self.begin(ContainerKind::Array);
                for element in elements {
                    self.value(element, levels_left)?;
                }
                self.end()?;
            }
            Decoded::Object(members) => {
                let levels_left = levels_left.checked_sub(1).ok_or(EncodeError::TooDeep)?;
                self.begin(ContainerKind::Object);
                for (name, member) in members {
                    self.name(name);
                    self.value(member, levels_left)?;
                }
                self.end()?;
            }
        }
        Ok(())
    }

    #[inline]
    fn tag(&mut self, tag: Tag) {
        self.begin_value();
        self.out.push(tag.to_byte());
    }

    /// Records the start of an element. A member was begun by its name.
    #[inline]
    fn begin_value(&mut self) {
        if self.innermost() == Some(ContainerKind::Array) {
            self.entries.push(OpenEntry { start: self.out.len(), hash: 0 });
        }
    }

    fn fixed(&mut self, tag: Tag, payload: &[u8]) {
        self.tag(tag);
        self.out.extend_from_slice(payload);
    }

    fn narrow(&mut self, value: i64) {
        if let Ok(value) = i8::try_from(value) {
            self.out.extend_from_slice(&value.to_le_bytes());
        } else if let Ok(value) = i16::try_from(value) {
            self.out.extend_from_slice(&value.to_le_bytes());
        } else if let Ok(value) = i32::try_from(value) {
            self.out.extend_from_slice(&value.to_le_bytes());
        } else {
            self.out.extend_from_slice(&value.to_le_bytes());
        }
    }

    /// The name of an entry of the innermost object.
    fn entry_name(&self, entry: OpenEntry) -> &[u8] {
        self.out.get(entry.start..).and_then(format::split_member).map_or(&[], |(name, _)| name)
    }

    fn has_repeated_name(&self, entries_first: usize) -> bool {
        let entries = &self.entries[entries_first..];
        if !has_repeated_hash(entries) {
            return false;
        }
        if entries.len() <= PAIRWISE_MEMBERS_MAX {
            return entries.iter().enumerate().any(|(index, entry)| {
                let is_same = |earlier: &OpenEntry| {
                    earlier.hash == entry.hash && self.entry_name(*earlier) == self.entry_name(*entry)
                };
                entries[..index].iter().any(is_same)
            });
        }
        // Names are sorted, not hashes: chosen names with equal hashes cannot make this quadratic.
        let mut names: Vec<&[u8]> = entries.iter().map(|entry| self.entry_name(*entry)).collect();
        names.sort_unstable();
        names.windows(2).any(|pair| pair[0] == pair[1])
    }

    /// Rewrites the innermost object so that each name occurs once: at its first position, with its last value.
    fn merge_repeated_names(&mut self, entries_first: usize, body_start: usize) {
        let old_body = self.out.split_off(body_start);
        let old_entries = self.entries.split_off(entries_first);
        let ends = old_entries.iter().skip(1).map(|entry| entry.start - body_start).chain([old_body.len()]);
        let members = old_entries
            .iter()
            .zip(ends)
            .map(|(entry, end)| (*entry, &old_body[entry.start - body_start..end]));
        let mut places = std::collections::HashMap::new();
        let mut kept: Vec<(OpenEntry, &[u8])> = Vec::with_capacity(old_entries.len());
        for (entry, member) in members {
            let name = format::split_member(member).map(|(name, _)| name);
            let place = *places.entry(name).or_insert(kept.len());
            match kept.get_mut(place) {
                Some(earlier) => earlier.1 = member,
                None => kept.push((entry, member)),
            }
        }
        for (entry, member) in kept {
            self.entries.push(OpenEntry { start: self.out.len(), hash: entry.hash });
            self.out.extend_from_slice(member);
        }
    }
}

/// Whether two entries have equal hashes; otherwise no name is repeated.
fn has_repeated_hash(entries: &[OpenEntry]) -> bool {
    let mut seen = [0u64; 4];
    entries.iter().any(|entry| {
        let (word, bit) = (usize::from(entry.hash >> 6), 1u64 << (entry.hash & 63));
        let repeated = seen[word] & bit != 0;
        seen[word] |= bit;
        repeated
    })
}
