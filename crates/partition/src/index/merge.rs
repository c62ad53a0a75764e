//! Merges segments into one, without dead documents.
//!
//! Field by field; within a field by repeatedly taking the smallest next code of all inputs. Yields to the runtime
//! regularly, so that a large merge can run concurrently with other tasks.

use crate::index::code::PRESENT;
use crate::index::piece::SegmentPiece;
use crate::index::segment::{Body, SEGMENT_DOCUMENTS_MAX, Segment, SegmentWriter, common_length, head};
use model::DocumentNumber;
use std::ops::Range;

/// Segments that one pass merges; more are merged in several passes, the smallest first.
pub(crate) const FAN_IN: usize = 8;
/// Terms between two yields: about the time of a few requests, so that tasks on the same core wait little.
pub(crate) const TERMS_PER_TURN: usize = 1024;
/// Rank of a document that is left out.
const GONE: u16 = u16::MAX;

/// Merges all inputs into one segment. They have at most [`SEGMENT_DOCUMENTS_MAX`] live documents together.
pub(crate) async fn merge_all(mut inputs: Vec<SegmentPiece>) -> Segment {
    loop {
        // Largest first: the smallest are at the end.
        inputs.sort_by_key(|input| std::cmp::Reverse(input.segment.numbers().len()));
        let mut rest = inputs.split_off(inputs.len().saturating_sub(FAN_IN));
        // Sorted by their documents: the documents of a term are then in order too, if nothing was replaced.
        rest.sort_by_key(|input| input.segment.numbers().first().copied());
        let merged = merge(&rest).await;
        if inputs.is_empty() {
            return merged;
        }
        inputs.push(SegmentPiece::new(merged));
    }
}

/// Merges the inputs in one pass.
async fn merge(inputs: &[SegmentPiece]) -> Segment {
    let (numbers, ranks) = merged_universe(inputs);
    let mut merge = SegmentMerge {
        writer: SegmentWriter::new(numbers),
        inputs: inputs
            .iter()
            .zip(ranks)
            .map(|(input, ranks)| MergeInput::new(&input.segment, ranks))
            .collect(),
        prefix_len: 0,
        found: Vec::new(),
    };
    let mut terms = 0;
    while let Some(path) = merge.next_path() {
        while merge.next_term() {
            terms += 1;
            if terms % TERMS_PER_TURN == 0 {
                tokio::task::yield_now().await;
            }
        }
        merge.writer.end_path(path);
    }
    merge.writer.finish()
}

/// The live numbers of all inputs, and for each input the new rank of every old one.
fn merged_universe(inputs: &[SegmentPiece]) -> (Vec<DocumentNumber>, Vec<Vec<u16>>) {
    let mut all: Vec<(DocumentNumber, usize, usize)> = Vec::new();
    let mut ranks: Vec<Vec<u16>> = Vec::new();
    for (index, input) in inputs.iter().enumerate() {
        let numbers = input.segment.numbers();
        ranks.push(vec![GONE; numbers.len()]);
        let live = (0_u32..).zip(numbers).filter(|(rank, _)| !input.dead.contains(*rank));
        all.extend(live.map(|(rank, number)| (*number, index, rank as usize)));
    }
    // Segments follow each other in time, so most of this is sorted already.
    all.sort();
    assert!(all.len() <= SEGMENT_DOCUMENTS_MAX, "documents without a rank would be lost");
    for (rank, (_, input, old)) in (0..GONE).zip(&all) {
        ranks[*input][*old] = rank;
    }
    (all.into_iter().map(|(number, ..)| number).collect(), ranks)
}

struct SegmentMerge<'a> {
    writer: SegmentWriter,
    inputs: Vec<MergeInput<'a>>,
    /// Length of the common prefix of all codes of the path, except the presence mark.
    prefix_len: usize,
    found: Vec<u16>,
}

struct MergeInput<'a> {
    body: &'a Body,
    /// The new rank of every old one.
    ranks: Vec<u16>,
    field: usize,
    /// Remaining terms of the current field.
    terms: Range<usize>,
    /// The code of the next term, and its first bytes after the common prefix of all codes of the path.
    code: &'a [u8],
    head: u64,
}

impl<'a> MergeInput<'a> {
    fn new(segment: &'a Segment, ranks: Vec<u16>) -> MergeInput<'a> {
        MergeInput { body: segment.body(), ranks, field: 0, terms: 0..0, code: &[], head: 0 }
    }

    fn next_path(&self) -> Option<&'a [u8]> {
        (self.field < self.body.field_count()).then(|| self.body.path(self.field))
    }

    fn enter_field(&mut self) {
        self.terms = self.body.terms_of(self.field);
        self.field += 1;
        self.read(0);
    }

    /// Advances to the next term.
    fn advance(&mut self, prefix_len: usize) {
        self.terms.start += 1;
        self.read(prefix_len);
    }

    fn read(&mut self, prefix_len: usize) {
        if !self.terms.is_empty() {
            self.code = self.body.code(self.terms.start);
            self.head = self.code.get(prefix_len..).map_or(0, head);
        }
    }

    /// The last code of the field.
    fn last_code(&self) -> &'a [u8] {
        self.body.code(self.terms.end - 1)
    }

    /// Whether its next term comes before that of another input.
    fn is_before(&self, other: &MergeInput<'_>) -> bool {
        self.head < other.head || self.head == other.head && self.code < other.code
    }
}

impl<'a> SegmentMerge<'a> {
    /// Advances to the next path in order and returns it.
    fn next_path(&mut self) -> Option<&'a [u8]> {
        let path = self.inputs.iter().filter_map(MergeInput::next_path).min()?;
        self.prefix_len = 0;
        for input in &mut self.inputs {
            if input.next_path() == Some(path) {
                input.enter_field();
            }
        }
        // The presence mark, which is a prefix of every code.
        if self.inputs.iter().any(|input| !input.terms.is_empty() && input.code == PRESENT) {
            self.next_term();
        }
        self.find_common_prefix();
        Some(path)
    }

    /// Finds the common prefix of all codes of the path: in each input it is that of the first and the last code.
    fn find_common_prefix(&mut self) {
        let mut inputs = self.inputs.iter().filter(|input| !input.terms.is_empty());
        let Some(first) = inputs.next() else { return };
        let mut prefix_len = common_length(first.code, first.last_code());
        for input in inputs {
            for code in [input.code, input.last_code()] {
                prefix_len = common_length(&first.code[..prefix_len], code);
            }
        }
        self.prefix_len = prefix_len;
        self.inputs.iter_mut().for_each(|input| input.read(prefix_len));
    }

    /// Writes the next term of the path; `false` at its end.
    fn next_term(&mut self) -> bool {
        let SegmentMerge { writer, inputs, prefix_len, found } = self;
        let with_terms = inputs.iter().filter(|input| !input.terms.is_empty());
        let Some(least) =
            with_terms.reduce(|least, input| if input.is_before(least) { input } else { least })
        else {
            return false;
        };
        let (code, code_head) = (least.code, least.head);
        found.clear();
        for input in inputs.iter_mut() {
            if input.terms.is_empty() || input.head != code_head || input.code != code {
                continue;
            }
            let old = input.body.posting(input.terms.start);
            old.for_each(input.ranks.len(), |rank| {
                let rank = input.ranks[rank as usize];
                if rank != GONE {
                    found.push(rank);
                }
            });
            input.advance(*prefix_len);
        }
        if !found.is_sorted() {
            found.sort_unstable();
        }
        writer.term(code, found);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Terms of one path by their codes, with the ranks of their documents.
    type Terms = BTreeMap<Vec<u8>, Vec<u16>>;

    /// Codes with common prefixes, codes that are prefixes of others, and codes that differ only in trailing zeros.
    fn codes(prefix_len: usize, seed: usize) -> Vec<Vec<u8>> {
        let common = vec![7; prefix_len];
        let tails: [&[u8]; 7] =
            [b"", b"\0", b"\0\0", b"\0\0\0\0\0\0\0\0", b"\0\0\0\0\0\0\0\0\0", b"a", b"abcdefghij"];
        let is_taken = |index: &usize| (seed >> index) & 1 == 1;
        let taken = (0..tails.len()).filter(is_taken).map(|index| [&common, tails[index]].concat());
        taken.filter(|code| !code.is_empty()).collect()
    }

    fn segment(first: u64, terms: &Terms, path: &[u8]) -> SegmentPiece {
        let numbers = (first..first + 4).filter_map(DocumentNumber::from_raw).collect();
        let mut writer = SegmentWriter::new(numbers);
        writer.term(PRESENT, &[0, 1, 2, 3]);
        terms.iter().for_each(|(code, ranks)| writer.term(code, ranks));
        writer.end_path(path);
        SegmentPiece::new(writer.finish())
    }

    /// Whatever prefix the codes of a path share, all terms come in order, each once, with all its documents.
    #[tokio::test]
    async fn terms_come_in_order_whatever_their_codes_have_in_common() {
        let path: &[u8] = b"p";
        for seed in 0..1 << 12 {
            let prefix_len = [0, 1, 8, 9][seed & 3];
            let mut expected = Terms::new();
            let mut inputs = Vec::new();
            // The second comes first: the documents of a term are out of order in the inputs.
            for (index, seed) in [(1, seed >> 2), (0, seed >> 5)] {
                let rank = u16::try_from(seed & 3).unwrap();
                let terms: Terms =
                    codes(prefix_len, seed & 127).into_iter().map(|code| (code, vec![rank])).collect();
                inputs.push(segment(1 + index * 4, &terms, path));
                for (code, ranks) in terms {
                    let merged = ranks.into_iter().map(|rank| rank + u16::try_from(index).unwrap() * 4);
                    expected.entry(code).or_default().extend(merged);
                }
            }
            expected.values_mut().for_each(|ranks| ranks.sort_unstable());
            let merged = merge_all(inputs).await;
            let found = merged.terms(0).map(|term| {
                let mut ranks = Vec::new();
                merged.posting(term).for_each(8, |rank| ranks.push(u16::try_from(rank).unwrap()));
                (merged.code(term).to_vec(), ranks)
            });
            let all = std::iter::once((PRESENT.to_vec(), (0..8).collect())).chain(expected);
            assert!(found.eq(all), "seed {seed}");
        }
    }
}
