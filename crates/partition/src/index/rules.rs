//! Which values of a document are indexed: the indexing policy, made ready for walking documents.
//!
//! The more precise path of a policy wins: a deeper one over a shallower one, `/?` over `/*` at the same place. What
//! holds for a scalar at a place holds for the mark of an array or object there too, so that an indexed path knows
//! of every document that has any value at it. Knows nothing of terms or where they are kept.

use crate::index::manifest::Fingerprint;
use crate::index::path::{IndexPath, PATH_BYTES_MAX};
use crate::index::spatial;
use model::policy::{CompositeIndex, IndexEnd, IndexSegment, IndexingMode, IndexingPolicy, SpatialIndex};
use plan::SYSTEM_PROPERTIES;
use sha2::{Digest, Sha256};
use std::collections::HashMap;

/// To be raised when a document gives other terms than before: all indexes are made anew then.
const TERMS_FORMAT: u32 = 1;
/// System properties that are indexed whatever the policy says.
const ALWAYS: [&str; 2] = ["id", TIME];
/// Time of the last write, the one system property with terms.
pub(crate) const TIME: &str = "_ts";

/// See the file's head.
#[derive(Debug)]
pub(crate) struct Rules {
    nodes: Vec<Node>,
    indexes: bool,
    composites: Vec<(IndexPath, CompositeIndex)>,
    spatial: Vec<SpatialIndex>,
    fingerprint: Fingerprint,
}

#[derive(Debug, Default)]
struct Node {
    /// What `/?` says here.
    scalar: Option<bool>,
    /// What `/*` says here.
    below: Option<bool>,
    names: HashMap<Box<str>, usize, foldhash::fast::RandomState>,
    elements: Option<usize>,
}

/// A place in documents, as far as the policy tells it from others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    node: Option<usize>,
    /// What the nearest `/*` above or here says.
    below: bool,
}

const ROOT: usize = 0;

impl Rules {
    pub(crate) fn new(policy: &IndexingPolicy) -> Rules {
        let indexes = match policy.mode {
            IndexingMode::Consistent | IndexingMode::Lazy => true,
            IndexingMode::None => false,
        };
        let mut rules = Rules {
            nodes: vec![Node::default()],
            indexes,
            composites: Vec::new(),
            spatial: Vec::new(),
            fingerprint: fingerprint(policy, indexes),
        };
        if !indexes {
            return rules;
        }
        let included = policy.included.iter().map(|included| (&included.path, true));
        for (path, verdict) in included.chain(policy.excluded.iter().map(|path| (path, false))) {
            let node = rules.node_of(&path.segments);
            match path.end {
                IndexEnd::Scalar => rules.nodes[node].scalar = Some(verdict),
                IndexEnd::Below => rules.nodes[node].below = Some(verdict),
            }
        }
        for name in SYSTEM_PROPERTIES.into_iter().chain(ALWAYS) {
            let node = rules.node_of(&[IndexSegment::Name(name.to_owned())]);
            let verdict = ALWAYS.contains(&name);
            rules.nodes[node] = Node { scalar: Some(verdict), below: Some(verdict), ..Node::default() };
        }
        rules.composites =
            policy.composite.iter().map(|index| (IndexPath::composite(index), index.clone())).collect();
        rules.spatial = policy.spatial.clone();
        rules
    }

    fn node_of(&mut self, segments: &[IndexSegment]) -> usize {
        segments.iter().fold(ROOT, |node, segment| {
            let next = self.nodes.len();
            let child = match segment {
                IndexSegment::Name(name) => {
                    *self.nodes[node].names.entry(name.as_str().into()).or_insert(next)
                }
                IndexSegment::Elements => *self.nodes[node].elements.get_or_insert(next),
            };
            if child == next {
                self.nodes.push(Node::default());
            }
            child
        })
    }

    /// The same for policies that make the same terms of every document.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Whether documents are indexed at all beyond their logical key.
    pub(crate) fn indexes(&self) -> bool {
        self.indexes
    }

    pub(crate) fn composites(&self) -> &[(IndexPath, CompositeIndex)] {
        &self.composites
    }

    pub(crate) fn spatial(&self) -> &[SpatialIndex] {
        &self.spatial
    }

    pub(crate) fn root(&self) -> Place {
        self.place(Some(ROOT), false)
    }

    pub(crate) fn member(&self, place: Place, name: &str) -> Place {
        let node = place.node.and_then(|node| self.nodes[node].names.get(name).copied());
        self.place(node, place.below)
    }

    pub(crate) fn elements(&self, place: Place) -> Place {
        let node = place.node.and_then(|node| self.nodes[node].elements);
        self.place(node, place.below)
    }

    fn place(&self, node: Option<usize>, above: bool) -> Place {
        let here = node.and_then(|node| self.nodes[node].below);
        Place { node, below: here.unwrap_or(above) }
    }

    /// Whether a value at the place is indexed.
    pub(crate) fn is_indexed(&self, place: Place) -> bool {
        place.node.and_then(|node| self.nodes[node].scalar).unwrap_or(place.below)
    }

    /// Whether something below the place may be indexed.
    pub(crate) fn leads_on(&self, place: Place) -> bool {
        let has_children =
            |node: usize| !self.nodes[node].names.is_empty() || self.nodes[node].elements.is_some();
        place.below || place.node.is_some_and(has_children)
    }

    /// Whether every document with a value at `path` has a term for it.
    pub(crate) fn covers(&self, path: &IndexPath) -> bool {
        if !self.indexes || path.code().len() > PATH_BYTES_MAX {
            return false;
        }
        if path.is_spatial() {
            return self.spatial.iter().any(|index| spatial::is_at(index, path));
        }
        let mut place = self.root();
        let mut steps = 0;
        let is_property = path.visit_steps(|step| {
            steps += 1;
            place = match step {
                Some(name) => self.member(place, name),
                None => self.elements(place),
            }
        });
        if is_property {
            return steps > 0 && self.is_indexed(place);
        }
        self.composites.iter().any(|(composite, _)| composite == path)
    }
}

fn fingerprint(policy: &IndexingPolicy, indexes: bool) -> Fingerprint {
    let mut lines = vec![format!("terms {TERMS_FORMAT} {indexes}")];
    let included = policy.included.iter().map(|included| (&included.path, '+'));
    for (path, verdict) in included.chain(policy.excluded.iter().map(|path| (path, '-'))) {
        lines.push(format!("{verdict} {:?} {:?}", path.segments, path.end));
    }
    lines.extend(policy.composite.iter().map(|index| format!("{:?}", IndexPath::composite(index).code())));
    lines.extend(policy.spatial.iter().map(spatial::fingerprint));
    lines.sort();
    let digest = Sha256::digest(lines.join("\n"));
    let mut fingerprint = Fingerprint::default();
    fingerprint.copy_from_slice(&digest[..size_of::<Fingerprint>()]);
    fingerprint
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::path::PathStep;
    use model::ContainerDefinition;
    use serde_json::json;

    #[track_caller]
    fn check(policy: serde_json::Value, expected: &[(&str, bool)]) {
        let body = json!({ "id": "c", "partitionKey": { "paths": ["/pk"] }, "indexingPolicy": policy });
        let definition = ContainerDefinition::from_json(&body).unwrap();
        let rules = Rules::new(&definition.policies.indexing);
        for (path, covered) in expected {
            let steps = path.split('/').skip(1);
            let steps =
                steps.map(|step| if step == "[]" { PathStep::Elements } else { PathStep::Name(step) });
            assert_eq!(rules.covers(&IndexPath::property(steps)), *covered, "{path}");
        }
    }

    #[test]
    fn the_more_precise_path_wins() {
        let paths = |list: &[&str]| list.iter().map(|path| json!({ "path": path })).collect::<Vec<_>>();
        check(
            json!({}),
            &[("/a", true), ("/a/b/[]/c", true), ("/_etag", false), ("/id", true), ("/_rid", false)],
        );
        check(
            json!({ "includedPaths": paths(&["/*", "/a/b/?"]), "excludedPaths": paths(&["/a/*", "/c/?"]) }),
            &[
                ("/a", false),
                ("/a/b", true),
                ("/a/b/x", false),
                ("/a/x", false),
                ("/c", false),
                ("/c/d", true),
            ],
        );
        check(
            json!({ "includedPaths": paths(&["/a/?", "/t/[]/*"]), "excludedPaths": paths(&["/*", "/a/*"]) }),
            &[
                ("/a", true),
                ("/a/b", false),
                ("/t", false),
                ("/t/[]", true),
                ("/t/[]/x", true),
                ("/id", true),
            ],
        );
        check(json!({ "excludedPaths": paths(&["/*"]) }), &[("/a", false), ("/id", true), ("/_ts", true)]);
        check(json!({ "indexingMode": "none" }), &[("/a", false), ("/id", false), ("/_ts", false)]);
        let mixed = json!({ "includedPaths": paths(&["/*"]), "excludedPaths": paths(&["/_ts/?", "/id/?"]) });
        check(mixed, &[("/id", true), ("/_ts", true)]);
    }

    #[test]
    fn what_makes_other_terms_has_another_fingerprint() {
        let fingerprint = |policy: serde_json::Value| {
            let body = json!({ "id": "c", "partitionKey": { "paths": ["/pk"] }, "indexingPolicy": policy });
            Rules::new(&ContainerDefinition::from_json(&body).unwrap().policies.indexing).fingerprint()
        };
        let spatial = |path: &str, types: &[&str]| {
            fingerprint(json!({ "spatialIndexes": [{ "path": path, "types": types }] }))
        };
        let all = [
            fingerprint(json!({})),
            spatial("/a/*", &["Point"]),
            spatial("/a/?", &["Point"]),
            spatial("/a/*", &["Point", "Polygon"]),
        ];
        assert!((0..all.len()).all(|one| (0..one).all(|other| all[one] != all[other])));
        assert_eq!(all[3], spatial("/a/*", &["Polygon", "Point"]));
    }
}
