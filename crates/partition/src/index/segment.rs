//! A segment: the terms of some document versions in memory, immutable.
//!
//! Terms are sorted by path, then by code. The terms of a path are contiguous, so the path is stored once. The
//! documents of a term are ranks in the segment's universe, its sorted document numbers; an empty list means all of
//! them.
//!
//! The terms are computed when a reader needs them. Small segments are usually merged before that, so that the
//! documents of all of them are processed once.

use crate::index::code::{CodeRange, PRESENT};
use crate::index::path::LOGICAL_PATH;
use crate::index::ranks::Posting;
use crate::index::rules::Rules;
use crate::index::terms::{DocumentVersion, TermWalker};
use model::DocumentNumber;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Maximum number of documents of a segment. A rank has 16 bits, and the greatest value means "none" during a merge.
pub(crate) const SEGMENT_DOCUMENTS_MAX: usize = u16::MAX as usize;

/// An immutable piece of the index in memory, with terms that are computed on demand.
#[derive(Debug)]
pub(crate) struct Segment {
    numbers: Box<[DocumentNumber]>,
    body: OnceLock<Body>,
    /// The versions, until the terms are computed.
    pending: Mutex<Option<PendingVersions>>,
    /// Bytes of the versions.
    pending_bytes: usize,
}

/// Versions whose terms are not computed yet, in number order.
#[derive(Debug)]
struct PendingVersions {
    rules: Arc<Rules>,
    versions: Vec<DocumentVersion>,
}

/// The terms of a segment.
#[derive(Debug, Default)]
pub(crate) struct Body {
    fields: Box<[Field]>,
    paths: Box<[u8]>,
    terms: Box<[Term]>,
    codes: Box<[u8]>,
    ranks: Box<[u16]>,
}

/// The ends of the bytes and terms of a path; they start at the ends of the previous path.
#[derive(Clone, Copy, Debug)]
struct Field {
    path_end: u32,
    term_end: u32,
}

/// The ends of the code and ranks of a term.
#[derive(Clone, Copy, Debug)]
struct Term {
    code_end: u32,
    rank_end: u32,
}

impl Segment {
    /// A segment of versions in number order, with distinct numbers, at most [`SEGMENT_DOCUMENTS_MAX`].
    pub(crate) fn pending(rules: Arc<Rules>, versions: Vec<DocumentVersion>) -> Segment {
        assert!(versions.len() <= SEGMENT_DOCUMENTS_MAX, "documents without a rank would be lost");
        debug_assert!(versions.is_sorted_by_key(|version| version.number));
        let size = |version: &DocumentVersion| version.document.bytes().len() + size_of::<DocumentVersion>();
        Segment {
            numbers: versions.iter().map(|version| version.number).collect(),
            body: OnceLock::new(),
            pending_bytes: versions.iter().map(size).sum(),
            pending: Mutex::new(Some(PendingVersions { rules, versions })),
        }
    }

    /// The versions, unless their terms are computed.
    pub(crate) fn versions(&self) -> Option<(Arc<Rules>, Vec<DocumentVersion>)> {
        let pending = self.lock();
        pending.as_ref().map(|pending| (Arc::clone(&pending.rules), pending.versions.clone()))
    }

    /// Computes the terms, if that was not done before.
    pub(crate) fn compute_terms(&self) {
        self.body();
    }

    /// The terms, computed by the first call.
    pub(crate) fn body(&self) -> &Body {
        self.body.get_or_init(|| {
            let pending = self.lock().take();
            pending
                .map(|PendingVersions { rules, versions }| build_body(&rules, &versions))
                .unwrap_or_default()
        })
    }

    fn lock(&self) -> MutexGuard<'_, Option<PendingVersions>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The universe: document numbers, ascending.
    pub(crate) fn numbers(&self) -> &[DocumentNumber] {
        &self.numbers
    }

    pub(crate) fn size_bytes(&self) -> usize {
        let body = self.body.get().map_or(self.pending_bytes, Body::size_bytes);
        size_of::<Segment>() + size_of_val(&*self.numbers) + body
    }

    pub(crate) fn field_count(&self) -> usize {
        self.body().field_count()
    }

    pub(crate) fn path(&self, field: usize) -> &[u8] {
        self.body().path(field)
    }

    /// The terms of a field.
    pub(crate) fn terms(&self, field: usize) -> Range<usize> {
        self.body().terms_of(field)
    }

    pub(crate) fn code(&self, term: usize) -> &[u8] {
        self.body().code(term)
    }

    pub(crate) fn posting(&self, term: usize) -> Posting<'_> {
        self.body().posting(term)
    }

    /// Documents of a term.
    pub(crate) fn posting_count(&self, term: usize) -> usize {
        let ranks = self.body().ranks_of(term);
        if ranks.is_empty() { self.numbers.len() } else { ranks.len() }
    }

    /// The terms of `path`, including the presence mark; empty if it has no field. `field` is where the path was found
    /// in another segment and is set to where it is in this one: most documents of a container have the same paths,
    /// and so have its segments.
    pub(crate) fn find_path(&self, path: &[u8], field: &mut usize) -> Range<usize> {
        let body = self.body();
        body.find_field(path, field).map_or(0..0, |found| body.terms_of(found))
    }

    /// The term of `path` with this code; `field` as in [`Segment::find_path`].
    pub(crate) fn find_term(&self, path: &[u8], code: &[u8], field: &mut usize) -> Option<usize> {
        let body = self.body();
        let terms = body.terms_of(body.find_field(path, field)?);
        let code_head = head(code);
        let order = |here: &[u8]| head(here).cmp(&code_head).then_with(|| here.cmp(code));
        let first = body.partition(terms.clone(), |here| order(here).is_lt());
        (first < terms.end && body.code(first) == code).then_some(first)
    }

    /// The terms of `path` in a range of codes; `field` as in [`Segment::find_path`].
    pub(crate) fn find_range(&self, path: &[u8], range: &CodeRange, field: &mut usize) -> Range<usize> {
        let body = self.body();
        let terms = self.find_path(path, field);
        let start = body.partition(terms.clone(), |code| range.is_before(code));
        let end = body.partition(start..terms.end, |code| !range.is_after(code));
        start..end
    }
}

impl Body {
    pub(crate) fn field_count(&self) -> usize {
        self.fields.len()
    }

    pub(crate) fn path(&self, field: usize) -> &[u8] {
        let start = field.checked_sub(1).map_or(0, |before| self.fields[before].path_end);
        &self.paths[start as usize..self.fields[field].path_end as usize]
    }

    pub(crate) fn terms_of(&self, field: usize) -> Range<usize> {
        let start = field.checked_sub(1).map_or(0, |before| self.fields[before].term_end);
        start as usize..self.fields[field].term_end as usize
    }

    pub(crate) fn code(&self, term: usize) -> &[u8] {
        let start = term.checked_sub(1).map_or(0, |before| self.terms[before].code_end);
        &self.codes[start as usize..self.terms[term].code_end as usize]
    }

    pub(crate) fn posting(&self, term: usize) -> Posting<'_> {
        let ranks = self.ranks_of(term);
        if ranks.is_empty() { Posting::Full } else { Posting::Short(&self.ranks[ranks]) }
    }

    fn ranks_of(&self, term: usize) -> Range<usize> {
        let start = term.checked_sub(1).map_or(0, |before| self.terms[before].rank_end);
        start as usize..self.terms[term].rank_end as usize
    }

    /// The field of a path. `probable` is tried first and set to the result.
    fn find_field(&self, path: &[u8], probable: &mut usize) -> Option<usize> {
        if *probable < self.fields.len() && self.path(*probable) == path {
            return Some(*probable);
        }
        let (mut low, mut high) = (0, self.fields.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.path(middle).cmp(path) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => {
                    *probable = middle;
                    return Some(middle);
                }
            }
        }
        None
    }

    /// The first of `terms` for which `is_before` is false.
    fn partition(&self, terms: Range<usize>, is_before: impl Fn(&[u8]) -> bool) -> usize {
        let (mut low, mut high) = (terms.start, terms.end);
        while low < high {
            let middle = low.midpoint(high);
            if is_before(self.code(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    fn size_bytes(&self) -> usize {
        size_of_val(&*self.fields)
            + self.paths.len()
            + size_of_val(&*self.terms)
            + self.codes.len()
            + size_of_val(&*self.ranks)
    }
}

/// Builds a segment from terms in order.
#[derive(Default)]
pub(crate) struct SegmentWriter {
    numbers: Vec<DocumentNumber>,
    fields: Vec<Field>,
    paths: Vec<u8>,
    terms: Vec<Term>,
    codes: Vec<u8>,
    ranks: Vec<u16>,
}

impl SegmentWriter {
    pub(crate) fn new(numbers: Vec<DocumentNumber>) -> SegmentWriter {
        debug_assert!(numbers.len() <= SEGMENT_DOCUMENTS_MAX && numbers.is_sorted());
        SegmentWriter { numbers, ..SegmentWriter::default() }
    }

    /// Adds a term of the path that the next [`SegmentWriter::end_path`] ends. A term without documents is left out.
    pub(crate) fn term(&mut self, code: &[u8], ranks: &[u16]) {
        if ranks.is_empty() {
            return;
        }
        self.codes.extend_from_slice(code);
        if ranks.len() < self.numbers.len() {
            self.ranks.extend_from_slice(ranks);
        }
        self.terms.push(Term { code_end: end(self.codes.len()), rank_end: end(self.ranks.len()) });
    }

    pub(crate) fn end_path(&mut self, path: &[u8]) {
        let term_end = end(self.terms.len());
        if self.fields.last().map_or(0, |field| field.term_end) == term_end {
            return;
        }
        self.paths.extend_from_slice(path);
        self.fields.push(Field { path_end: end(self.paths.len()), term_end });
    }

    pub(crate) fn finish(mut self) -> Segment {
        let numbers = std::mem::take(&mut self.numbers).into();
        Segment { numbers, body: self.body().into(), pending: Mutex::default(), pending_bytes: 0 }
    }

    fn body(self) -> Body {
        Body {
            fields: self.fields.into(),
            paths: self.paths.into(),
            terms: self.terms.into(),
            codes: self.codes.into(),
            ranks: self.ranks.into(),
        }
    }
}

/// Offsets in a segment fit in 32 bits: 65,536 documents of 2 MB could exceed them, but a batch is closed at a few
/// megabytes, and segments are merged and flushed by bytes too.
fn end(length: usize) -> u32 {
    debug_assert!(u32::try_from(length).is_ok());
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// A term of one document in a segment that is being built.
struct FieldTerm {
    /// The first bytes of the code after the common prefix of all codes of the path; they decide most comparisons.
    head: u64,
    start: u32,
    end: u32,
    rank: u16,
}

struct FieldBuilder {
    path: Vec<u8>,
    entries: Vec<FieldTerm>,
    present: Vec<u16>,
    /// Length of the common prefix of all codes.
    prefix_len: usize,
}

impl FieldBuilder {
    fn new(path: &[u8], documents: usize) -> FieldBuilder {
        FieldBuilder {
            path: path.to_vec(),
            entries: Vec::with_capacity(documents),
            present: Vec::with_capacity(documents),
            prefix_len: usize::MAX,
        }
    }

    /// Adds the term of a document whose code is at the end of `codes`.
    fn push(&mut self, codes: &[u8], start: usize, rank: u16) {
        let code = &codes[start..];
        self.prefix_len = match self.entries.first() {
            Some(first) => {
                let first = &codes[first.start as usize..first.end as usize];
                common_length(&first[..self.prefix_len.min(first.len())], code)
            }
            None => code.len(),
        };
        self.entries.push(FieldTerm { head: 0, start: end(start), end: end(codes.len()), rank });
        if self.present.last() != Some(&rank) {
            self.present.push(rank);
        }
    }
}

type Fields = HashMap<Vec<u8>, usize, foldhash::fast::RandomState>;

/// The index of the builder of a path, created at its first term.
fn find_field(fields: &mut Fields, builders: &mut Vec<FieldBuilder>, path: &[u8], documents: usize) -> usize {
    if let Some(field) = fields.get(path) {
        return *field;
    }
    builders.push(FieldBuilder::new(path, documents));
    fields.insert(path.to_vec(), builders.len() - 1);
    builders.len() - 1
}

/// Computes the terms of versions.
fn build_body(rules: &Rules, versions: &[DocumentVersion]) -> Body {
    // Codes are about as long as the documents.
    let mut codes = Vec::with_capacity(versions.iter().map(|version| version.document.bytes().len()).sum());
    let mut fields = Fields::default();
    let mut builders: Vec<FieldBuilder> = Vec::new();
    let mut walker = TermWalker::new(rules);
    // Most documents of a container have the same paths: the next path is probably the one that came next in the
    // previous document.
    let mut sequence: Vec<usize> = Vec::new();
    for (rank, version) in (0..=u16::MAX).zip(versions) {
        let mut position = 0;
        walker.walk(version, |path, code| {
            let field = match sequence.get(position) {
                Some(probable) if builders[*probable].path == path => *probable,
                Some(_) | None => find_field(&mut fields, &mut builders, path, versions.len()),
            };
            match sequence.get_mut(position) {
                Some(probable) => *probable = field,
                None => sequence.push(field),
            }
            position += 1;
            let start = codes.len();
            codes.extend_from_slice(code);
            builders[field].push(&codes, start, rank);
        });
    }
    builders.sort_unstable_by(|left, right| left.path.cmp(&right.path));
    let mut writer = SegmentWriter::new(versions.iter().map(|version| version.number).collect());
    for builder in builders {
        write_field(builder, &codes, &mut writer);
    }
    writer.body()
}

fn write_field(mut builder: FieldBuilder, codes: &[u8], writer: &mut SegmentWriter) {
    let prefix_len = builder.prefix_len;
    let code = |entry: &FieldTerm| &codes[entry.start as usize..entry.end as usize];
    for entry in &mut builder.entries {
        entry.head = head(&codes[entry.start as usize + prefix_len..entry.end as usize]);
    }
    // The rest of codes with equal heads.
    let tail =
        |entry: &FieldTerm| codes.get(entry.start as usize + prefix_len + HEAD_BYTES..entry.end as usize);
    let length = |entry: &FieldTerm| entry.end - entry.start;
    builder.entries.sort_unstable_by(|left, right| {
        left.head
            .cmp(&right.head)
            .then_with(|| tail(left).cmp(&tail(right)))
            .then_with(|| length(left).cmp(&length(right)))
            .then_with(|| left.rank.cmp(&right.rank))
    });
    if builder.path != LOGICAL_PATH {
        writer.term(PRESENT, &builder.present);
    }
    let is_same = |left: &FieldTerm, right: &FieldTerm| {
        left.head == right.head && length(left) == length(right) && tail(left) == tail(right)
    };
    let mut ranks = Vec::with_capacity(builder.entries.len());
    for group in builder.entries.chunk_by(is_same) {
        ranks.clear();
        ranks.extend(group.iter().map(|entry| entry.rank));
        ranks.dedup();
        writer.term(code(&group[0]), &ranks);
    }
    writer.end_path(&builder.path);
}

/// Bytes of a code in its head.
const HEAD_BYTES: usize = 8;

/// The first bytes as a number with the same order.
pub(crate) fn head(code: &[u8]) -> u64 {
    match code.first_chunk::<HEAD_BYTES>() {
        Some(first) => u64::from_be_bytes(*first),
        None => {
            let mut padded = [0; HEAD_BYTES];
            padded[..code.len()].copy_from_slice(code);
            u64::from_be_bytes(padded)
        }
    }
}

/// Length of the common prefix of both.
pub(crate) fn common_length(left: &[u8], right: &[u8]) -> usize {
    let mut length = 0;
    for (left, right) in left.chunks_exact(HEAD_BYTES).zip(right.chunks_exact(HEAD_BYTES)) {
        let difference = head(left) ^ head(right);
        if difference != 0 {
            return length + difference.leading_zeros() as usize / 8;
        }
        length += HEAD_BYTES;
    }
    let rest = left[length..].iter().zip(&right[length..]);
    length + rest.take_while(|(left, right)| left == right).count()
}

#[test]
fn a_term_is_found_wherever_its_field_was_before() {
    let numbers = (1..=3).filter_map(DocumentNumber::from_raw).collect();
    let mut writer = SegmentWriter::new(numbers);
    let paths: [&[u8]; 3] = [b"a", b"b", b"d"];
    let codes: [&[u8]; 4] = [b"", b"1", b"12345678", b"123456789"];
    for path in paths {
        codes.iter().for_each(|code| writer.term(code, &[0, 2]));
        writer.end_path(path);
    }
    let segment = writer.finish();
    for before in 0..5 {
        for (index, path) in paths.iter().enumerate() {
            for (term, code) in codes.iter().enumerate() {
                let mut field = before;
                let found = segment.find_term(path, code, &mut field);
                assert_eq!((found, field), (Some(index * codes.len() + term), index));
            }
            assert_eq!(segment.find_term(path, b"12345679", &mut before.clone()), None);
            assert_eq!(segment.find_path(path, &mut before.clone()).len(), codes.len());
        }
        assert_eq!(segment.find_term(b"c", b"1", &mut before.clone()), None);
    }
}

/// Codes of a path are sorted whatever prefix they share, and each is one term.
#[test]
fn terms_are_sorted_whatever_their_codes_have_in_common() {
    let tails: [&[u8]; 7] =
        [b"b", b"", b"\0", b"\0\0\0\0\0\0\0\0", b"\0\0\0\0\0\0\0", b"abcdefghij", b"abcdefghi"];
    for prefix_len in [0, 1, 7, 8, 9, 30] {
        for seed in 0..7_usize.pow(4) {
            let mut builder = FieldBuilder::new(b"p", 4);
            let mut codes = Vec::new();
            let mut expected: std::collections::BTreeMap<Vec<u8>, Vec<u16>> = Default::default();
            for rank in 0..4_u16 {
                let tail = tails[seed / 7_usize.pow(u32::from(rank)) % 7];
                let code = [&vec![7; prefix_len], tail].concat();
                let start = codes.len();
                codes.extend_from_slice(&code);
                builder.push(&codes, start, rank);
                expected.entry(code).or_default().push(rank);
            }
            let mut writer = SegmentWriter::new((1..=5).filter_map(DocumentNumber::from_raw).collect());
            write_field(builder, &codes, &mut writer);
            let segment = writer.finish();
            // After the presence mark.
            let found = segment.terms(0).skip(1).map(|term| {
                let mut ranks = Vec::new();
                segment.posting(term).for_each(5, |rank| ranks.push(u16::try_from(rank).unwrap_or(u16::MAX)));
                (segment.code(term).to_vec(), ranks)
            });
            assert!(found.eq(expected), "{prefix_len} {seed}");
        }
    }
}
