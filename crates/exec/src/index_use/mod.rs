//! Which indexes a query uses, and which ones it could use if the policy had them.
//!
//! The used indexes are taken from the access path: what it requests from the index, and what it would request with
//! more or other documents, so that the same query under the same policy always gets the same answer. The possible
//! indexes are derived from the shape of the query alone. The form of the answer is not known here.

mod composites;
mod shape;

use eval::Meter;
use model::Fault;
use model::policy::{CompositeIndex, IndexSegment, IndexingPolicy};
use partition::index::{Coverage, IndexPath, IndexReader, IndexStep, Lookup};
use plan::SYSTEM_PROPERTIES;
use plan::query::{Order, SortKey};
use std::sync::Arc;
use value::PropertyPath;

use crate::access_path::{self, AccessPath, Use};
use crate::program::{Layer, LayerInput, Program, Shape};
use crate::task::{OpenPart, Part, PartScope};
use shape::{Compared, compared};

/// Maximum depth of a lookup; an index accepts no deeper ones.
const LOOKUP_LEVELS_MAX: usize = 512;

/// Maximum number of paths that are reported; a longer list would be of no use.
const SINGLES_MAX: usize = 64;

/// Indexes that a query uses, and those that it could use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexUse {
    /// Indexes that exist and are used.
    pub used: Indexes,
    /// Indexes that do not exist and might help.
    pub missing: Indexes,
}

/// Some indexes of a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Indexes {
    /// Single-path indexes, without duplicates, the first ones.
    pub singles: Vec<SingleIndex>,
    /// Composite indexes, without duplicates.
    pub composites: Vec<CompositeIndex>,
}

/// The index of one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SingleIndex {
    /// The steps from the document to the values.
    pub path: Vec<IndexSegment>,
    /// Its impact, estimated from the shape of the query.
    pub impact: Impact,
}

/// How much an index helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Impact {
    /// Most documents remain.
    Low,
    /// It selects documents.
    High,
}

impl Indexes {
    /// Adds the index of a path; the larger impact counts.
    fn add(&mut self, path: Vec<IndexSegment>, impact: Impact) {
        let is_full = self.singles.len() >= SINGLES_MAX;
        match self.singles.iter_mut().find(|single| single.path == path) {
            Some(known) => known.impact = known.impact.max(impact),
            None if is_full => {}
            None => self.singles.push(SingleIndex { path, impact }),
        }
    }
}

/// Which indexes a query over parts of partitions uses, based on the index of the first part. `key` are the paths of
/// the partition key.
pub async fn index_use(
    program: &Program,
    parts: &[Part],
    policy: &IndexingPolicy,
    key: &[PropertyPath],
    meter: Arc<Meter>,
) -> Result<IndexUse, Fault> {
    let (Some(layer), Some(part)) = (program.layers.first(), parts.first()) else {
        return Ok(IndexUse::default());
    };
    let open = Arc::new(OpenPart::for_inspection(part, false, meter).await?);
    let Some(index) = open.view.index().filter(|_| layer.input == LayerInput::Documents) else {
        return Ok(IndexUse::default());
    };
    let mut found = IndexUse::default();
    let goal = access_path::goal(program, 0, 1);
    let paths = access_path::choose(layer, std::slice::from_ref(&open), goal).await?;
    for used in paths.iter().flat_map(AccessPath::uses) {
        match used {
            Use::Filter(lookup) => add_used(lookup, Impact::High, LOOKUP_LEVELS_MAX, &mut found.used),
            Use::Values(lookup) => {
                // All values are walked: the index makes this cheap.
                let mut used = Indexes::default();
                add_used(&lookup, Impact::High, LOOKUP_LEVELS_MAX, &mut used);
                used.singles.into_iter().for_each(|single| found.used.add(single.path, Impact::High));
            }
            Use::Order(request) => match request.path.segments() {
                Some(path) => found.used.add(path, Impact::High),
                None => found.used.composites.extend(index.composite(&request.path)),
            },
        }
    }
    let keys = sort_keys(program, layer);
    if matches!(open.part.scope, PartScope::Logical(_)) {
        key.iter().for_each(|path| found.used.add(names(path), Impact::High));
    }
    let compared = compared(&layer.query);
    add_missing(&compared, keys, index, &mut found.missing);
    found.missing.composites = composites::missing(&compared, keys, &policy.composite);
    Ok(found)
}

/// The keys of an order that an index could provide.
fn sort_keys<'p>(program: &Program, layer: &'p Layer) -> &'p [SortKey] {
    match &layer.query.order {
        Order::Keys(keys) if layer.shape == Shape::Rows && program.layers.len() == 1 => keys,
        Order::Keys(_) | Order::None | Order::Rank(_) => &[],
    }
}

fn names(path: &PropertyPath) -> Vec<IndexSegment> {
    path.segments().map(|name| IndexSegment::Name(name.to_owned())).collect()
}

/// Adds the paths whose terms a lookup requests.
fn add_used(lookup: &Lookup, impact: Impact, levels_left: usize, used: &mut Indexes) {
    let Some(levels_left) = levels_left.checked_sub(1) else {
        return;
    };
    let (path, impact) = match lookup {
        Lookup::Present(path) => (path, Impact::Low),
        Lookup::Term { path, .. } | Lookup::Range { path, .. } | Lookup::Tested { path, .. } => {
            (path, impact)
        }
        Lookup::And(parts) | Lookup::Or(parts) => {
            return parts.iter().for_each(|part| add_used(part, impact, levels_left, used));
        }
        Lookup::Without(part) => return add_used(part, Impact::Low, levels_left, used),
        Lookup::All | Lookup::Logical(_) | Lookup::Effective(_) => return,
    };
    if let Some(path) = path.segments() {
        used.add(path, impact);
    }
}

/// Adds the paths that the query compares or orders by and that the policy excludes.
fn add_missing(compared: &[Compared], keys: &[SortKey], index: &IndexReader, missing: &mut Indexes) {
    let ordered = match keys {
        [key] => key.path.as_ref().map(|path| (names(path), Impact::High)),
        _ => None,
    };
    let compared = compared.iter().map(|place| (place.path.clone(), place.kind.impact()));
    for (path, impact) in compared.chain(ordered) {
        let steps = path.iter().map(|step| match step {
            IndexSegment::Name(name) => IndexStep::Name(name),
            IndexSegment::Elements => IndexStep::Elements,
        });
        let is_covered = index.covers(&IndexPath::property(steps)) == Coverage::Whole;
        if !is_covered && can_be_indexed(&path) {
            missing.add(path, impact);
        }
    }
}

/// Whether a policy could include the path: system properties are indexed always or never.
fn can_be_indexed(path: &[IndexSegment]) -> bool {
    let Some(IndexSegment::Name(first)) = path.first() else {
        return false;
    };
    !SYSTEM_PROPERTIES.contains(&first.as_str())
}
