//! Composite indexes that a query could use, by its shape: equalities and an order, an order of several keys,
//! equalities and a range, several equalities.

use model::policy::{CompositeIndex, CompositePath, IndexSegment};
use plan::query::SortKey;
use value::PropertyPath;

use super::shape::{Compared, ComparisonKind};

/// Maximum number of paths of a composite index.
const PATHS_MAX: usize = 8;
/// Maximum number of proposed indexes.
const PROPOSALS_MAX: usize = 8;

/// The indexes that the query could use and that are not in `present`.
pub(super) fn missing(
    compared: &[Compared],
    keys: &[SortKey],
    present: &[CompositeIndex],
) -> Vec<CompositeIndex> {
    let equals = paths(compared, ComparisonKind::Equality);
    let proposals: Vec<Proposal> = if keys.is_empty() {
        let ranges = paths(compared, ComparisonKind::Range);
        let mut ranges: Vec<_> = ranges.into_iter().filter(|path| !equals.contains(path)).map(Some).collect();
        if ranges.is_empty() {
            ranges.push(None);
        }
        let rest = |range: Option<PropertyPath>| range.into_iter().map(ascending).collect();
        ranges
            .into_iter()
            .map(|range| Proposal { equals: equals.clone(), rest: rest(range), is_order: false })
            .collect()
    } else {
        let Some(rest) = keys.iter().map(ordered).collect::<Option<Vec<_>>>() else {
            return Vec::new();
        };
        let is_key = |path: &PropertyPath| rest.iter().any(|key| key.path == *path);
        let equals = equals.into_iter().filter(|path| !is_key(path)).collect();
        vec![Proposal { equals, rest, is_order: true }]
    };
    let fits = |proposal: &Proposal| (2..=PATHS_MAX).contains(&proposal.len());
    let proposals = proposals.into_iter().filter(fits).filter(|proposal| !proposal.is_met(present));
    proposals.map(Proposal::index).take(PROPOSALS_MAX).collect()
}

/// Paths with equalities in any order, then the others.
struct Proposal {
    equals: Vec<PropertyPath>,
    rest: Vec<CompositePath>,
    /// Whether the others are an order, whose directions matter.
    is_order: bool,
}

impl Proposal {
    fn len(&self) -> usize {
        self.equals.len() + self.rest.len()
    }

    fn is_met(&self, present: &[CompositeIndex]) -> bool {
        present.iter().any(|index| self.is_met_by(index))
    }

    fn is_met_by(&self, index: &CompositeIndex) -> bool {
        let Some((equals, rest)) = index.paths.split_at_checked(self.equals.len()) else {
            return false;
        };
        let is_turned = match (rest.first(), self.rest.first()) {
            (Some(index), Some(wanted)) => index.descending != wanted.descending,
            (Some(_) | None, Some(_) | None) => false,
        };
        let is_same = |(index, wanted): (&CompositePath, &CompositePath)| {
            let is_same_direction = (index.descending != wanted.descending) == is_turned;
            index.path == wanted.path && (is_same_direction || !self.is_order)
        };
        // An order needs the whole index, a filter its first paths.
        let is_long_enough =
            if self.is_order { rest.len() == self.rest.len() } else { rest.len() >= self.rest.len() };
        is_long_enough
            && equals.iter().all(|member| self.equals.contains(&member.path))
            && rest.iter().zip(&self.rest).all(is_same)
    }

    fn index(self) -> CompositeIndex {
        CompositeIndex { paths: self.equals.into_iter().map(ascending).chain(self.rest).collect() }
    }
}

fn ascending(path: PropertyPath) -> CompositePath {
    CompositePath { path, descending: false }
}

fn ordered(key: &SortKey) -> Option<CompositePath> {
    Some(CompositePath { path: key.path.clone()?, descending: key.descending })
}

/// The distinct paths that every result compares in this way.
fn paths(compared: &[Compared], kind: ComparisonKind) -> Vec<PropertyPath> {
    let mut found = Vec::new();
    let needed = compared.iter().filter(|place| place.is_needed && place.kind == kind);
    for path in needed.filter_map(|place| property(&place.path)) {
        if !found.contains(&path) {
            found.push(path);
        }
    }
    found
}

fn property(path: &[IndexSegment]) -> Option<PropertyPath> {
    let names = path.iter().map(|step| match step {
        IndexSegment::Name(name) => Some(name.as_str()),
        IndexSegment::Elements => None,
    });
    PropertyPath::from_names(names.collect::<Option<Vec<_>>>()?)
}
