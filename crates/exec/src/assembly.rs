//! Assembles a page: results to skip, results to return, and where the next page continues.

use kv::KeyRange;
use model::EffectiveRange;

use crate::found::{FoundRow, QueryRow};
use crate::ranges;
use crate::resume::{ANCHORS_MAX, After, POSITION_BYTES_MAX, Resume};

/// Rows for which space is reserved in advance.
const ROWS_EXPECTED: usize = 16;

/// A page in progress: its rows so far and the position reached.
pub(crate) struct Assembly {
    pub(crate) rows: Vec<QueryRow>,
    /// Bytes of the rows.
    pub(crate) size: usize,
    items_max: usize,
    bytes_max: usize,
    resume: Resume,
    /// The keys of the range that is read, if the previous page did not end in it.
    keys: Option<KeyRange>,
    /// The last position that was returned or skipped; preceded by earlier ones if it is too long to be kept.
    last: Vec<Vec<u8>>,
    /// The truncated position at which the page began, with the rows that it named.
    begun_at: Option<After>,
    has_more: bool,
}

impl Assembly {
    pub(crate) fn new(resume: Resume, items_max: usize, bytes_max: usize) -> Assembly {
        // A page without space for a row would never end.
        let items_max = items_max.max(1);
        let rows = Vec::with_capacity(items_max.min(ROWS_EXPECTED));
        let (keys, last, begun_at) = (None, Vec::new(), None);
        Assembly { rows, size: 0, items_max, bytes_max, resume, keys, last, begun_at, has_more: true }
    }

    /// The range in which the previous page ended.
    pub(crate) fn range(&self) -> Option<&EffectiveRange> {
        self.resume.range.as_ref()
    }

    /// Marks all ranges before this one as exhausted; positions now refer to rows of this range. `keys` are those that
    /// a continuation names, for a range in which the previous page did not end.
    pub(crate) fn enter(&mut self, keys: Option<KeyRange>, is_resumed: bool) {
        if !is_resumed {
            self.last.clear();
            self.resume.after = After::Position(Vec::new());
            self.resume.range = None;
        }
        if self.resume.range.is_none() {
            self.keys = keys;
        }
    }

    /// Results still to be skipped.
    pub(crate) fn offset(&self) -> u64 {
        self.resume.offset
    }

    /// Number of results that still fit on the page.
    pub(crate) fn room(&self) -> usize {
        let limit = self.resume.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        self.items_max.saturating_sub(self.rows.len()).min(limit)
    }

    /// Bytes that still fit on the page before its last row.
    pub(crate) fn room_bytes(&self) -> usize {
        self.bytes_max.saturating_sub(self.size).max(1)
    }

    /// Whether no further result is wanted.
    pub(crate) fn is_full(&self) -> bool {
        self.room() == 0 || self.size >= self.bytes_max
    }

    /// The position after which results are wanted; truncated only before the first result.
    pub(crate) fn after(&self) -> After {
        match self.last.last() {
            Some(last) => After::Position(last.clone()),
            None => self.resume.after.clone(),
        }
    }

    /// Sets the resolved position after which results are wanted.
    pub(crate) fn start_after(&mut self, position: Vec<u8>) {
        let begun_at = std::mem::replace(&mut self.resume.after, After::Position(position));
        self.begun_at = Some(begun_at);
    }

    /// Adds the next result.
    pub(crate) fn push(&mut self, found: FoundRow) {
        debug_assert!(
            self.last.last().is_none_or(|last| *last < found.position),
            "a row comes twice or out of order"
        );
        self.reach(found.position);
        if self.resume.offset > 0 {
            self.resume.offset -= 1;
            return;
        }
        if let Some(limit) = &mut self.resume.limit {
            *limit -= 1;
        }
        self.size = self.size.saturating_add(found.size);
        self.rows.push(found.row);
    }

    /// Records that nothing up to this position is missing.
    pub(crate) fn reach(&mut self, position: Vec<u8>) {
        if self.last.last().is_some_and(|last| *last >= position) {
            return;
        }
        if position.len() <= POSITION_BYTES_MAX {
            // A position that is kept whole needs no anchors.
            self.last.clear();
        } else if self.last.len() >= ANCHORS_MAX {
            self.last.remove(0);
        }
        self.last.push(position);
    }

    /// Records that there are no further results.
    pub(crate) fn end(&mut self) {
        self.has_more = false;
    }

    /// The rows, and where to continue.
    pub(crate) fn finish(self) -> (Vec<QueryRow>, Option<Resume>) {
        let is_done = !self.has_more || self.resume.limit == Some(0);
        if is_done {
            return (self.rows, None);
        }
        let mut after = match (self.last.is_empty(), self.resume.after) {
            (false, _) => After::last_of(&self.last),
            (true, After::Position(position)) => After::last_of(&[position]),
            (true, cut @ After::Cut { .. }) => cut,
        };
        if let Some(begun_at) = self.begun_at {
            after.name_rows_of(begun_at);
        }
        let range = self.keys.as_ref().map(ranges::bounds).or(self.resume.range);
        (self.rows, Some(Resume { after, range, ..self.resume }))
    }
}
