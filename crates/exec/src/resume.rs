//! Where a query continues: the content of a continuation.
//!
//! ```text
//! version:1 = 2 · fixed time:8 · results to skip:8 · results to return:8 (all bits set for no limit)
//!   · length:1 · lower bound of hashes · length:1 · upper bound (both empty: positions are not of one range)
//!   · kind:1 · position                       kind 0: rows after this position
//!   · kind:1 · anchors:1 · anchor:20 … · cut  kind 1: the position was too long; `cut` is its beginning
//! anchor = end of a position:12 · digest of the position:8
//! ```
//!
//! The fixed time is that of the `…Static` functions, the same for all pages of a query. `position` and `ranges` define
//! positions; they contain no access path, no partition and no state of one, so a continuation survives restarts,
//! splits and writes.
//!
//! A position contains sort keys, which can be as large as a document, and a continuation must be small. So a long one
//! is truncated, and resolved again by its last bytes: the number and row of a document, or the hash of a group. A
//! document may change or be deleted between two pages; therefore the last few rows are named, the last one first, those
//! of an earlier page included. The query continues after the first of them that is unchanged. The rows between that one and the end of
//! the page are those that have changed, so no other row is repeated. Only if all of them have changed does the query
//! continue at the first row that shares the truncated position: then no row is lost, but some may be repeated.

use model::{ContinuationFault, EffectiveKey, EffectiveRange, RequestFault};
use sha2::{Digest, Sha256};

const VERSION: u8 = 2;
/// Longest position that is kept whole. A continuation has 1 KB of text with what an API writes around it.
pub(crate) const POSITION_BYTES_MAX: usize = 256;
/// Maximum number of rows that are named next to a truncated position.
pub(crate) const ANCHORS_MAX: usize = 4;
const TAIL_BYTES: usize = 12;
const DIGEST_BYTES: usize = 8;
const NO_LIMIT: u64 = u64::MAX;

/// Where a query continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resume {
    /// Milliseconds since 1970 that the `…Static` functions see.
    pub(crate) now_static_ms: u64,
    /// Results still to be skipped.
    pub(crate) offset: u64,
    /// Results still to be returned.
    pub(crate) limit: Option<u64>,
    /// The range of hashes that the position belongs to: all documents before it were returned, none of those after it.
    /// `None` if positions are compared over all ranges.
    pub(crate) range: Option<EffectiveRange>,
    pub(crate) after: After,
}

/// The row after which a query continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// The row at this position; an empty position is before all rows.
    Position(Vec<u8>),
    /// A row whose position began like this.
    Cut { beginning: Vec<u8>, anchors: Vec<Anchor> },
}

/// A row that was returned, identified by the end of its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Anchor {
    tail: [u8; TAIL_BYTES],
    digest: [u8; DIGEST_BYTES],
}

impl Anchor {
    pub(crate) fn of(position: &[u8]) -> Anchor {
        let mut anchor = Anchor { tail: [0; TAIL_BYTES], digest: [0; DIGEST_BYTES] };
        let tail = &position[position.len().saturating_sub(TAIL_BYTES)..];
        anchor.tail[TAIL_BYTES - tail.len()..].copy_from_slice(tail);
        anchor.digest.copy_from_slice(&Sha256::digest(position)[..DIGEST_BYTES]);
        anchor
    }

    /// The number of the document, for a position in the order of rows.
    pub(crate) fn number(&self, is_backwards: bool) -> u64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.tail[..8]);
        let number = u64::from_be_bytes(bytes);
        if is_backwards { !number } else { number }
    }
}

impl After {
    /// After the last of some positions that were returned, in their order.
    pub(crate) fn last_of(positions: &[Vec<u8>]) -> After {
        match positions.last() {
            None => After::Position(Vec::new()),
            Some(last) if last.len() <= POSITION_BYTES_MAX => After::Position(last.clone()),
            Some(last) => {
                let beginning = last[..POSITION_BYTES_MAX].to_vec();
                let sharing = positions.iter().rev().take_while(|position| position.starts_with(&beginning));
                let anchors = sharing.take(ANCHORS_MAX).map(|position| Anchor::of(position)).collect();
                After::Cut { beginning, anchors }
            }
        }
    }

    /// Names the rows of an earlier position too, as far as there is space: a small page has few rows of its own.
    pub(crate) fn name_rows_of(&mut self, earlier: After) {
        if let After::Cut { beginning, anchors } = self
            && let After::Cut { beginning: earlier, anchors: more } = earlier
            && *beginning == earlier
        {
            for anchor in more {
                if anchors.len() < ANCHORS_MAX && !anchors.contains(&anchor) {
                    anchors.push(anchor);
                }
            }
        }
    }

    /// The exact position, resolved by the named rows that still exist; `found` returns the positions that were found
    /// again.
    pub(crate) fn resolved(self, found: impl Fn(&Anchor) -> Option<Vec<u8>>) -> Vec<u8> {
        match self {
            After::Position(position) => position,
            After::Cut { beginning, anchors } => {
                let whole = anchors
                    .iter()
                    .find_map(|anchor| found(anchor).filter(|position| Anchor::of(position) == *anchor));
                whole.unwrap_or(beginning)
            }
        }
    }
}

impl Resume {
    pub(crate) fn encode_into(&self, out: &mut Vec<u8>) {
        out.push(VERSION);
        out.extend_from_slice(&self.now_static_ms.to_be_bytes());
        out.extend_from_slice(&self.offset.to_be_bytes());
        out.extend_from_slice(&self.limit.unwrap_or(NO_LIMIT).to_be_bytes());
        let none = [&[][..], &[]];
        let bounds = self.range.as_ref().map_or(none, |range| [range.min.as_bytes(), range.max.as_bytes()]);
        for bound in bounds {
            out.push(u8::try_from(bound.len()).unwrap_or(u8::MAX));
            out.extend(bound.iter().take(usize::from(u8::MAX)));
        }
        match &self.after {
            After::Position(position) => {
                out.push(0);
                out.extend_from_slice(position);
            }
            After::Cut { beginning, anchors } => {
                out.push(1);
                out.push(u8::try_from(anchors.len()).unwrap_or(u8::MAX));
                for anchor in anchors {
                    out.extend_from_slice(&anchor.tail);
                    out.extend_from_slice(&anchor.digest);
                }
                out.extend_from_slice(beginning);
            }
        }
    }

    /// Whether the position was too long, so that the named rows are needed to find it.
    pub fn is_cut(&self) -> bool {
        matches!(self.after, After::Cut { .. })
    }

    /// The bytes for a continuation.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.encode_into(&mut bytes);
        bytes
    }

    /// Reads what [`encode`](Self::encode) wrote.
    pub fn decode(bytes: &[u8]) -> Result<Resume, RequestFault> {
        read(bytes).ok_or(RequestFault::BadContinuation(ContinuationFault::Form))
    }
}

fn read(bytes: &[u8]) -> Option<Resume> {
    let (version, bytes) = bytes.split_first()?;
    if *version != VERSION {
        return None;
    }
    let (now_static_ms, bytes) = read_number(bytes)?;
    let (offset, bytes) = read_number(bytes)?;
    let (limit, bytes) = read_number(bytes)?;
    let (min, bytes) = read_bound(bytes)?;
    let (max, bytes) = read_bound(bytes)?;
    // An upper bound is never empty.
    let range = (!max.as_bytes().is_empty()).then_some(EffectiveRange { min, max });
    let (kind, bytes) = bytes.split_first()?;
    let after = match kind {
        0 => After::Position(bytes.to_vec()),
        1 => {
            let (count, mut bytes) = bytes.split_first()?;
            let mut anchors = Vec::new();
            for _ in 0..*count {
                let (tail, rest) = bytes.split_first_chunk::<TAIL_BYTES>()?;
                let (digest, rest) = rest.split_first_chunk::<DIGEST_BYTES>()?;
                anchors.push(Anchor { tail: *tail, digest: *digest });
                bytes = rest;
            }
            After::Cut { beginning: bytes.to_vec(), anchors }
        }
        _ => return None,
    };
    Some(Resume { now_static_ms, offset, limit: (limit != NO_LIMIT).then_some(limit), range, after })
}

fn read_bound(bytes: &[u8]) -> Option<(EffectiveKey, &[u8])> {
    let (length, bytes) = bytes.split_first()?;
    let (bound, rest) = bytes.split_at_checked(usize::from(*length))?;
    Some((EffectiveKey::from_bytes(bound), rest))
}

fn read_number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*number), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Leaves space for the scope, the code and what an API writes around it, in 1 KB of text.
    const RESUME_BYTES_MAX: usize = 460;

    fn resume(after: After, limit: Option<u64>) -> Resume {
        let range = limit.map(|_| EffectiveRange::point(EffectiveKey::from_bytes(&[7; 30])));
        Resume { now_static_ms: 7, offset: 3, limit, range, after }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let long = vec![7; 5000];
        let positions: Vec<Vec<u8>> = (0..20u8).map(|last| [&long[..], &[last; 12]].concat()).collect();
        for after in [After::last_of(&[]), After::last_of(&[vec![1, 2]]), After::last_of(&positions)] {
            for limit in [None, Some(0), Some(9)] {
                let resume = resume(after.clone(), limit);
                let bytes = resume.encode();
                assert!(bytes.len() <= RESUME_BYTES_MAX, "{} bytes", bytes.len());
                assert_eq!(Resume::decode(&bytes).unwrap(), resume);
            }
        }
        let whole = resume(After::last_of(&[]), Some(1)).encode();
        for length in 0..whole.len() {
            assert!(Resume::decode(&whole[..length]).is_err());
        }
    }

    #[test]
    fn a_cut_position_is_resolved_by_the_last_row_that_is_still_there() {
        let positions: Vec<Vec<u8>> = (0..20u8).map(|last| [&[7; 5000][..], &[last; 12]].concat()).collect();
        let after = After::last_of(&positions);
        let find = |lost: &[usize]| {
            let there: Vec<_> = positions.iter().enumerate().filter(|(at, _)| !lost.contains(at)).collect();
            after.clone().resolved(|anchor| {
                there
                    .iter()
                    .find(|(_, position)| Anchor::of(position) == *anchor)
                    .map(|(_, one)| (*one).clone())
            })
        };
        assert_eq!(find(&[]), positions[19]);
        assert_eq!(find(&[19, 18]), positions[17]);
        assert_eq!(find(&(12..20).collect::<Vec<_>>()), vec![7; POSITION_BYTES_MAX]);
    }
}
