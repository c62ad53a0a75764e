//! Several segments into one, without the documents that are dead.
//!
//! Field by field, and inside a field by repeatedly taking the smallest code at the heads of all inputs. Gives the
//! runtime its turn now and then, so that a large merge may run beside other tasks.

use crate::index::piece::SegmentPiece;
use crate::index::segment::{SEGMENT_DOCUMENTS_MAX, Segment, SegmentWriter, head};
use model::DocumentNumber;
use std::ops::Range;

/// Segments that one pass merges; more are merged in several passes, the smallest first.
pub(crate) const FAN_IN: usize = 8;
/// Terms between two turns of others.
pub(crate) const TERMS_PER_TURN: usize = 4096;
/// Rank of a document that is not taken over.
const GONE: u16 = u16::MAX;

/// Merges all inputs into one segment. They hold at most [`SEGMENT_DOCUMENTS_MAX`] live documents together.
pub(crate) async fn merge_all(mut inputs: Vec<SegmentPiece>) -> Segment {
    loop {
        // Largest first: the smallest are at the end.
        inputs.sort_by_key(|input| std::cmp::Reverse(input.segment.numbers().len()));
        let rest = inputs.split_off(inputs.len().saturating_sub(FAN_IN));
        let merged = merge(&rest).await;
        if inputs.is_empty() {
            return merged;
        }
        inputs.push(SegmentPiece::new(merged));
    }
}

/// One pass.
async fn merge(inputs: &[SegmentPiece]) -> Segment {
    let (numbers, ranks) = merged_universe(inputs);
    let mut merge = Merge {
        writer: SegmentWriter::new(numbers),
        inputs: inputs
            .iter()
            .zip(ranks)
            .map(|(input, ranks)| Input { segment: &input.segment, ranks, field: 0, terms: 0..0, head: 0 })
            .collect(),
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
        merge.writer.end_path(&path);
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
    // Segments follow each other in time, so that most of this is in order already.
    all.sort();
    assert!(all.len() <= SEGMENT_DOCUMENTS_MAX, "documents without a rank would be lost");
    for (rank, (_, input, old)) in (0..GONE).zip(&all) {
        ranks[*input][*old] = rank;
    }
    (all.into_iter().map(|(number, ..)| number).collect(), ranks)
}

struct Merge<'a> {
    writer: SegmentWriter,
    inputs: Vec<Input<'a>>,
    found: Vec<u16>,
}

struct Input<'a> {
    segment: &'a Segment,
    /// New rank of every old one.
    ranks: Vec<u16>,
    /// The next field.
    field: usize,
    /// Terms of the field before that are still to come.
    terms: Range<usize>,
    /// The first bytes of the next term's code.
    head: u64,
}

impl Input<'_> {
    fn next_path(&self) -> Option<&[u8]> {
        (self.field < self.segment.field_count()).then(|| self.segment.path(self.field))
    }

    fn enter_field(&mut self) {
        self.terms = self.segment.terms(self.field);
        self.field += 1;
        self.read_head();
    }

    fn read_head(&mut self) {
        if !self.terms.is_empty() {
            self.head = head(self.segment.code(self.terms.start));
        }
    }
}

impl Merge<'_> {
    /// Goes to the next path in order, and tells it.
    fn next_path(&mut self) -> Option<Vec<u8>> {
        let path = self.inputs.iter().filter_map(Input::next_path).min()?.to_vec();
        for input in &mut self.inputs {
            if input.next_path() == Some(&path) {
                input.enter_field();
            }
        }
        Some(path)
    }

    /// Writes the next term of the path; `false` at its end.
    fn next_term(&mut self) -> bool {
        let mut least: Option<usize> = None;
        for (index, input) in self.inputs.iter().enumerate() {
            if input.terms.is_empty() {
                continue;
            }
            let is_less = least.is_none_or(|least| {
                let least = &self.inputs[least];
                (input.head, input.segment.code(input.terms.start))
                    < (least.head, least.segment.code(least.terms.start))
            });
            if is_less {
                least = Some(index);
            }
        }
        let Some(least) = least else {
            return false;
        };
        let Merge { writer, inputs, found } = self;
        found.clear();
        let segment = inputs[least].segment;
        let code = segment.code(inputs[least].terms.start);
        let code_head = inputs[least].head;
        for input in inputs.iter_mut() {
            let term = input.terms.start;
            if input.terms.is_empty() || input.head != code_head || input.segment.code(term) != code {
                continue;
            }
            let old = input.segment.posting(term);
            old.for_each(input.ranks.len(), |rank| {
                let rank = input.ranks[rank as usize];
                if rank != GONE {
                    found.push(rank);
                }
            });
            input.terms.start += 1;
            input.read_head();
        }
        if !found.is_sorted() {
            found.sort_unstable();
        }
        writer.term(code, found);
        true
    }
}
