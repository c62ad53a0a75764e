//! Groups, and their results after all rows were seen.
//!
//! Groups in the order of hashes are limited to those of the page while they are collected. If groups are ordered by
//! their results, or their results must be distinct, all groups are kept, within the budget.

use eval::{Accumulator, Context, EvalFault, GroupRow, Groups, KeptGroups, KeyHash, MatchedRow, hash_of};
use plan::query::{Grouping, Order};
use std::collections::HashMap;
use value::encode_key;

use super::ResultWindow;
use crate::found::{FoundRow, FoundRows, QueryRow};
use crate::position::{self, RowSource};
use crate::program::{Layer, Shape};
use crate::resume::Anchor;

/// Groups by the hash of their keys, with their accumulators.
#[derive(Debug)]
pub(crate) struct CollectedGroups {
    window: ResultWindow,
    groups: Groups,
    origin: Vec<u8>,
}

/// A layer of groups has a grouping; this default is never used.
const NO_GROUPING: &Grouping = &Grouping { keys: Vec::new(), aggregates: Vec::new() };

impl CollectedGroups {
    pub(super) fn new(layer: &Layer, context: &Context<'_>, window: ResultWindow) -> CollectedGroups {
        let kept = (layer.shape == Shape::Groups).then(|| {
            let after: Option<KeyHash> = window.position().try_into().ok();
            KeptGroups { after, count: window.count }
        });
        let grouping = layer.query.grouping.as_ref().unwrap_or(NO_GROUPING);
        CollectedGroups { window, groups: Groups::new(grouping, context, kept), origin: Vec::new() }
    }

    pub(super) fn add(
        &mut self,
        layer: &Layer,
        row: MatchedRow<'_>,
        source: RowSource<'_>,
    ) -> Result<(), EvalFault> {
        let Some(grouping) = &layer.query.grouping else {
            return Ok(());
        };
        position::write_origin(row, source, &mut self.origin);
        self.groups.add(grouping, row, &self.origin)
    }

    pub(super) fn add_times(
        &mut self,
        layer: &Layer,
        row: MatchedRow<'_>,
        source: RowSource<'_>,
        times: u64,
    ) -> Result<(), EvalFault> {
        let Some(grouping) = &layer.query.grouping else {
            return Ok(());
        };
        position::write_origin(row, source, &mut self.origin);
        self.groups.add_times(grouping, row, &self.origin, times)
    }

    pub(super) fn whole(&mut self, position: usize) -> Option<&mut Accumulator> {
        self.groups.whole(position)
    }

    pub(super) fn is_in_doubt(&self) -> bool {
        self.groups.is_in_doubt()
    }

    pub(super) fn number_origins(&self) -> Vec<&[u8]> {
        self.groups.number_origins()
    }

    pub(super) fn show_as(
        &mut self,
        layer: &Layer,
        row: MatchedRow<'_>,
        source: RowSource<'_>,
    ) -> Result<(), EvalFault> {
        let Some(grouping) = &layer.query.grouping else {
            return Ok(());
        };
        position::write_origin(row, source, &mut self.origin);
        self.groups.show_as(grouping, row, &self.origin)
    }

    pub(super) fn merge(&mut self, other: CollectedGroups) {
        self.groups.merge(other.groups);
    }

    pub(super) fn end(self) -> EndedGroups {
        let has_left_out = self.groups.has_left_out();
        EndedGroups { window: self.window, has_left_out, groups: self.groups.finish_by_hash() }
    }
}

/// Groups after all rows were seen.
#[derive(Debug)]
pub(crate) struct EndedGroups {
    window: ResultWindow,
    has_left_out: bool,
    /// In the order of their hashes.
    groups: Vec<(KeyHash, GroupRow)>,
}

impl EndedGroups {
    /// The number of groups.
    pub(crate) fn count(&self) -> usize {
        self.groups.len()
    }

    /// Evaluates the result of the group with this index.
    pub(crate) fn rehearse(
        &self,
        layer: &Layer,
        context: &Context<'_>,
        index: usize,
    ) -> Result<(), EvalFault> {
        match self.groups.get(index) {
            Some((hash, group)) => result(layer, context, hash, group).map(|_| ()),
            None => Ok(()),
        }
    }

    /// The results in their order.
    pub(crate) fn finish(self, layer: &Layer, context: &Context<'_>) -> Result<FoundRows, EvalFault> {
        let EndedGroups { window, has_left_out, groups } = self;
        let mut holding = context.budget.holding();
        let last = groups.last().map(|(hash, _)| hash.to_vec()).unwrap_or_default();
        let mut rows = Vec::new();
        let mut first_with: HashMap<KeyHash, usize> = HashMap::new();
        for (index, (hash, group)) in groups.iter().enumerate() {
            layer.turn_to(context, index);
            let Some(row) = result(layer, context, hash, group)? else {
                continue;
            };
            holding.add(row.row.weight()? + eval::allocated(row.position.len()) + size_of::<FoundRow>())?;
            if !layer.query.distinct {
                rows.push(row);
                continue;
            }
            let known = *first_with.entry(hash_of_result(&row)).or_insert(rows.len());
            match rows.get_mut(known) {
                None => rows.push(row),
                Some(known) if row.position < known.position => *known = row,
                Some(_) => {}
            }
        }
        if layer.shape == Shape::Groups {
            return Ok(FoundRows { rows, has_more: has_left_out, reached: last, holding });
        }
        rows.sort_by(|left, right| left.position.cmp(&right.position));
        let after = window.after.resolved(|anchor| {
            let row = rows.iter().find(|row| Anchor::of(&row.position) == *anchor);
            row.map(|row| row.position.clone())
        });
        rows.retain(|row| row.position > after);
        let has_more = rows.len() > window.count;
        rows.truncate(window.count);
        let reached = rows.last().map(|row| row.position.clone()).unwrap_or_default();
        Ok(FoundRows { rows, has_more, reached, holding })
    }
}

/// The result of a group, and its position.
fn result(
    layer: &Layer,
    context: &Context<'_>,
    hash: &KeyHash,
    group: &GroupRow,
) -> Result<Option<FoundRow>, EvalFault> {
    let row = MatchedRow::of_group(context, group);
    let Some(value) = row.project(&layer.query.projection)? else {
        return Ok(None);
    };
    let mut position = Vec::new();
    match &layer.query.order {
        Order::None if layer.query.distinct => {
            let mut code = Vec::new();
            encode_key(value.as_ref(), &mut code);
            position.extend_from_slice(&hash_of(&code));
        }
        Order::None => position.extend_from_slice(hash),
        Order::Keys(keys) => {
            position::write_keys(keys, row, &mut position)?;
            position.extend_from_slice(hash);
        }
        Order::Rank(_) => return Err(EvalFault::RankWithoutStatistics),
    }
    let row = QueryRow::Value(value.into_value());
    let size = row.size();
    Ok(Some(FoundRow { position, row, size }))
}

fn hash_of_result(row: &FoundRow) -> KeyHash {
    let mut code = Vec::new();
    if let QueryRow::Value(value) = &row.row {
        encode_key(value.as_ref(), &mut code);
    }
    hash_of(&code)
}
