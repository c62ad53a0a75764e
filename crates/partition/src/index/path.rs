//! Paths of terms and their codes: values at a path in documents, the logical key, a composite index, or geometries at
//! a path.
//!
//! ```text
//! logical key   10
//! property      20  for each step: 02 name, 00 written as 00 ff, 00 01 | 03 for any element of an array   01
//!                   the first step to a computed property: 04 instead of 02
//! composite     30  for each member: its property path as above, then 02 ascending or 03 descending       01
//! geometries    40  the property path as above
//! ```
//!
//! No code is a prefix of another, so a path and the code of a value can be concatenated, and all paths below a path
//! start with the same bytes.

use bytes::Bytes;
use model::policy::IndexSegment;

/// Maximum length of the code of a path; longer ones are not indexed.
pub(crate) const PATH_BYTES_MAX: usize = 4096;

/// Initial capacity of the code of a path.
const PATH_BYTES_EXPECTED: usize = 48;

const LOGICAL: u8 = 0x10;
const PROPERTY: u8 = 0x20;
const COMPOSITE: u8 = 0x30;
const SPATIAL: u8 = 0x40;
const END: u8 = 0x01;
const NAME: u8 = 0x02;
const ELEMENTS: u8 = 0x03;
const COMPUTED: u8 = 0x04;
const ASCENDING: u8 = 0x02;
const DESCENDING: u8 = 0x03;
const NAME_END: [u8; 2] = [0x00, 0x01];
const ZERO_ESCAPED: [u8; 2] = [0x00, 0xff];

/// The code of the path of logical keys.
pub(crate) const LOGICAL_PATH: &[u8] = &[LOGICAL];
/// The path of logical keys.
pub(crate) static LOGICAL_KEYS: IndexPath = IndexPath { code: Bytes::from_static(LOGICAL_PATH) };

/// One step of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexStep<'a> {
    /// To a property.
    Name(&'a str),
    /// To any element of an array.
    Elements,
    /// To a computed property, whatever the document has under its name; only as the first step.
    Computed(&'a str),
}

/// The path of a term.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IndexPath {
    code: Bytes,
}

impl IndexPath {
    /// The values that the steps lead to.
    pub fn property<'a>(steps: impl IntoIterator<Item = IndexStep<'a>>) -> IndexPath {
        let mut code = PathCode::default();
        for step in steps {
            match step {
                IndexStep::Name(name) => code.enter_name(name),
                IndexStep::Elements => code.enter_elements(),
                IndexStep::Computed(name) => code.enter_computed(name),
            };
        }
        code.closed();
        IndexPath { code: code.bytes.into() }
    }

    /// The tuples of a composite index: the path of each member, and whether it is descending.
    pub fn composite(members: impl IntoIterator<Item = (IndexPath, bool)>) -> IndexPath {
        let mut code = vec![COMPOSITE];
        for (path, descending) in members {
            code.extend_from_slice(&path.code);
            code.push(if descending { DESCENDING } else { ASCENDING });
        }
        code.push(END);
        IndexPath { code: code.into() }
    }

    /// The steps of a path of values.
    pub fn segments(&self) -> Option<Vec<IndexSegment>> {
        let mut segments = Vec::new();
        let is_property = self.visit_steps(|step| {
            segments.push(match step {
                IndexStep::Name(name) | IndexStep::Computed(name) => IndexSegment::Name(name.to_owned()),
                IndexStep::Elements => IndexSegment::Elements,
            });
        });
        is_property.then_some(segments)
    }

    /// The cells of the geometries that the steps lead to.
    pub fn spatial<'a>(steps: impl IntoIterator<Item = IndexStep<'a>>) -> IndexPath {
        let path = IndexPath::property(steps);
        IndexPath { code: [&[SPATIAL][..], &path.code].concat().into() }
    }

    pub(crate) fn code(&self) -> &[u8] {
        &self.code
    }

    /// A key after all that start with this path.
    pub(crate) fn end_code(&self) -> Vec<u8> {
        let mut key = self.code.to_vec();
        if let Some(last) = key.last_mut() {
            // No path ends with the greatest byte.
            *last = last.saturating_add(1);
        }
        key
    }

    pub(crate) fn is_property(&self) -> bool {
        self.code.first() == Some(&PROPERTY)
    }

    /// Whether a document can have several values at the path.
    pub(crate) fn has_elements(&self) -> bool {
        let mut has_elements = false;
        let is_property = self.visit_steps(|step| has_elements |= step == IndexStep::Elements);
        has_elements || !is_property || self.is_spatial()
    }

    pub(crate) fn is_logical(&self) -> bool {
        self.code.first() == Some(&LOGICAL)
    }

    pub(crate) fn is_composite(&self) -> bool {
        self.code.first() == Some(&COMPOSITE)
    }

    pub(crate) fn is_spatial(&self) -> bool {
        self.code.first() == Some(&SPATIAL)
    }

    /// Calls `visit` with the steps of a path of values or geometries; `false` for other paths.
    pub(crate) fn visit_steps(&self, mut visit: impl FnMut(IndexStep<'_>)) -> bool {
        let code = self.code.strip_prefix(&[SPATIAL]).unwrap_or(&self.code);
        let Some((&PROPERTY, mut rest)) = code.split_first() else {
            return false;
        };
        let mut name = Vec::new();
        while let Some((&tag, tail)) = rest.split_first() {
            rest = tail;
            if tag == ELEMENTS {
                visit(IndexStep::Elements);
            } else if tag == NAME || tag == COMPUTED {
                name.clear();
                while let Some(zero) = rest.iter().position(|byte| *byte == 0) {
                    name.extend_from_slice(&rest[..zero]);
                    let ends = rest[zero..].starts_with(&NAME_END);
                    rest = rest.get(zero + 2..).unwrap_or_default();
                    if ends {
                        break;
                    }
                    name.push(0);
                }
                let name = std::str::from_utf8(&name).unwrap_or_default();
                visit(if tag == NAME { IndexStep::Name(name) } else { IndexStep::Computed(name) });
            }
        }
        true
    }
}

/// The steps to the values, as `/name/[]/name`.
impl std::fmt::Display for IndexPath {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for segment in self.segments().unwrap_or_default() {
            match segment {
                IndexSegment::Name(name) => write!(formatter, "/{name}")?,
                IndexSegment::Elements => formatter.write_str("/[]")?,
            }
        }
        Ok(())
    }
}

/// Length of the path at the start of a term key.
pub(crate) fn path_length(key: &[u8]) -> Option<usize> {
    match *key.first()? {
        LOGICAL => Some(1),
        PROPERTY => property_length(key),
        SPATIAL => Some(1 + property_length(key.get(1..)?)?),
        COMPOSITE => {
            let mut length = 1;
            while *key.get(length)? != END {
                length += property_length(key.get(length..)?)? + 1;
            }
            Some(length + 1)
        }
        _ => None,
    }
}

fn property_length(key: &[u8]) -> Option<usize> {
    let mut length = 1;
    loop {
        match *key.get(length)? {
            END => return Some(length + 1),
            ELEMENTS => length += 1,
            NAME | COMPUTED => {
                let name = key.get(length + 1..)?;
                length += 1 + name.windows(2).position(|pair| pair == NAME_END)? + 2;
            }
            _ => return None,
        }
    }
}

/// The code of a path that grows and shrinks while a document is walked.
pub(crate) struct PathCode {
    /// The steps; after `length` there may be an end mark.
    bytes: Vec<u8>,
    length: usize,
}

impl Default for PathCode {
    fn default() -> PathCode {
        let mut bytes = Vec::with_capacity(PATH_BYTES_EXPECTED);
        bytes.push(PROPERTY);
        PathCode { bytes, length: 1 }
    }
}

impl PathCode {
    /// Appends a property. Returns the length to go back to.
    pub(crate) fn enter_name(&mut self, name: &str) -> usize {
        self.enter(NAME, name)
    }

    /// Appends a computed property. Returns the length to go back to.
    pub(crate) fn enter_computed(&mut self, name: &str) -> usize {
        self.enter(COMPUTED, name)
    }

    fn enter(&mut self, tag: u8, name: &str) -> usize {
        let back = self.open();
        self.bytes.push(tag);
        if name.as_bytes().contains(&0) {
            for (index, piece) in name.as_bytes().split(|byte| *byte == 0).enumerate() {
                if index > 0 {
                    self.bytes.extend_from_slice(&ZERO_ESCAPED);
                }
                self.bytes.extend_from_slice(piece);
            }
        } else {
            self.bytes.extend_from_slice(name.as_bytes());
        }
        self.bytes.extend_from_slice(&NAME_END);
        self.length = self.bytes.len();
        back
    }

    /// Appends the elements of an array. Returns the length to go back to.
    pub(crate) fn enter_elements(&mut self) -> usize {
        let back = self.open();
        self.bytes.push(ELEMENTS);
        self.length = self.bytes.len();
        back
    }

    pub(crate) fn leave(&mut self, back: usize) {
        self.length = back;
    }

    /// The code of the current path.
    pub(crate) fn closed(&mut self) -> &[u8] {
        self.open();
        self.bytes.push(END);
        &self.bytes
    }

    pub(crate) fn is_too_long(&self) -> bool {
        self.length >= PATH_BYTES_MAX
    }

    fn open(&mut self) -> usize {
        self.bytes.truncate(self.length);
        self.length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_come_back_and_no_code_begins_another() {
        use IndexStep::{Computed, Elements, Name};
        let paths: Vec<Vec<IndexStep<'_>>> = vec![
            vec![Name("a")],
            vec![Name("a"), Elements],
            vec![Name("a"), Elements, Name("b")],
            vec![Name("a\0"), Name("")],
            vec![Name("a"), Name("\0\u{1}")],
            vec![Name("ab")],
            vec![Computed("a")],
            vec![Computed("a"), Elements, Name("b")],
            vec![],
        ];
        assert_eq!(IndexPath::property(paths[2].clone()).to_string(), "/a/[]/b");
        let codes: Vec<IndexPath> = paths.iter().map(|steps| IndexPath::property(steps.clone())).collect();
        for (index, code) in codes.iter().enumerate() {
            let seen = |path: &IndexPath| {
                let mut seen = Vec::new();
                assert!(path.visit_steps(|step| seen.push(format!("{step:?}"))));
                seen
            };
            let expected: Vec<String> = paths[index].iter().map(|step| format!("{step:?}")).collect();
            assert_eq!(seen(code), expected);
            let others = codes.iter().enumerate().filter(|(other, _)| *other != index);
            assert!(others.into_iter().all(|(_, other)| !other.code.starts_with(&code.code)));
            let term = [&code.code[..], &[1, 2, 3]].concat();
            assert_eq!(path_length(&term), Some(code.code.len()));
            let spatial = IndexPath::spatial(paths[index].clone());
            assert_eq!((seen(&spatial), path_length(&spatial.code)), (expected, Some(spatial.code.len())));
        }
    }
}
