//! Which values of a document are indexed: the indexing policy, prepared for walking documents.
//!
//! The more precise path of a policy wins: a deeper one over a shallower one, `/?` over `/*` at the same path. The
//! rule for a scalar at a path also applies to the mark of an array or object there, so that an indexed path has every
//! document with any value at it. A computed property is indexed only if the policy names it; `/*` covers stored
//! properties only. Knows nothing of terms or pieces.

use crate::index::computed::{ComputedReader, IndexableProperty, indexable, parse_computed};
use crate::index::manifest::Fingerprint;
use crate::index::path::{IndexPath, IndexStep, PATH_BYTES_MAX};
use crate::index::spatial;
use bytes::Bytes;
use model::policy::{
    CompositePath, ComputedProperty, IndexEnd, IndexSegment, IndexingMode, IndexingPolicy, SpatialIndex,
};
use model::{Decoder, Encoder};
use plan::SYSTEM_PROPERTIES;
use plan::query::Query;
use sha2::{Digest, Sha256};
use std::collections::HashMap;

/// To be raised when documents get other terms than before: all indexes are then rebuilt.
const TERMS_FORMAT: u32 = 1;
/// System properties that are indexed whatever the policy says.
const ALWAYS: [&str; 2] = ["id", TIME];
/// Time of the last write, the only system property with terms.
pub(crate) const TIME: &str = "_ts";

/// An indexing policy prepared for documents.
#[derive(Debug)]
pub(crate) struct Rules {
    nodes: Vec<RuleNode>,
    indexes: bool,
    /// Whether the policy names no paths but `/*`.
    indexes_everything: bool,
    composites: Vec<Composite>,
    /// The properties that the policy names, with their cursors.
    computed: Vec<(IndexableProperty, PolicyCursor)>,
    spatial: Vec<SpatialIndex>,
    fingerprint: Fingerprint,
    /// The encoded policy and computed properties that the rules are made from.
    definition: Bytes,
    computed_reader: ComputedReader,
}

#[derive(Debug)]
pub(crate) struct Composite {
    pub(crate) path: IndexPath,
    pub(crate) members: Vec<CompositeMember>,
}

#[derive(Debug)]
pub(crate) struct CompositeMember {
    pub(crate) path: CompositePath,
    /// The index of the computed property that the path starts with.
    pub(crate) computed: Option<usize>,
}

#[derive(Debug, Default)]
struct RuleNode {
    /// The rule of `/?` at this path.
    scalar: Option<bool>,
    /// The rule of `/*` at this path.
    below: Option<bool>,
    names: HashMap<Box<str>, usize, foldhash::fast::RandomState>,
    elements: Option<usize>,
}

/// A path in documents, as far as the policy distinguishes it from others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PolicyCursor {
    node: Option<usize>,
    /// The rule of the nearest `/*` at or above the path.
    below: bool,
}

const ROOT: usize = 0;
/// A path that the policy does not name.
const UNMATCHED: PolicyCursor = PolicyCursor { node: None, below: false };

impl Rules {
    /// The rules of a policy. Of the computed properties, those that it names are used. `reader` parses those of stored
    /// definitions.
    pub(crate) fn of(
        policy: &IndexingPolicy,
        (computed, queries): (&[ComputedProperty], &[Option<Query>]),
        reader: ComputedReader,
    ) -> Rules {
        let mut definition = Encoder::default();
        policy.encode(&mut definition);
        definition.list(computed, |out, property| property.encode(out));
        let definition = definition.finish().into();
        Rules { definition, computed_reader: reader, ..Rules::new(policy, indexable(computed, queries)) }
    }

    /// The rules of an index, from the definition that is stored with it. Returns `None` if they would not produce the
    /// terms that it has, for example after an update of the program.
    pub(crate) fn stored(&self, definition: &[u8], fingerprint: Fingerprint) -> Option<Rules> {
        let mut input = Decoder::new(definition);
        let policy = IndexingPolicy::decode(&mut input).ok()?;
        let computed = input.list("computed properties", ComputedProperty::decode).ok()?;
        input.finish().ok()?;
        let queries = parse_computed(&computed, self.computed_reader);
        Some(Rules::of(&policy, (&computed, &queries), self.computed_reader))
            .filter(|rules| rules.fingerprint == fingerprint)
    }

    /// The encoded definition that [`Rules::stored`] reads.
    pub(crate) fn definition(&self) -> &Bytes {
        &self.definition
    }

    /// Keeps the computed properties that the policy names.
    fn new(policy: &IndexingPolicy, computed: Vec<IndexableProperty>) -> Rules {
        let indexes = match policy.mode {
            IndexingMode::Consistent => true,
            IndexingMode::None => false,
        };
        let mut rules = Rules {
            nodes: vec![RuleNode::default()],
            indexes,
            indexes_everything: false,
            composites: Vec::new(),
            computed: Vec::new(),
            spatial: Vec::new(),
            fingerprint: Fingerprint::default(),
            definition: Bytes::new(),
            computed_reader: |_| None,
        };
        if indexes {
            rules.take(policy, computed);
        }
        rules.fingerprint = rules.fingerprint_of(policy);
        rules
    }

    fn take(&mut self, policy: &IndexingPolicy, computed: Vec<IndexableProperty>) {
        let included = policy.included.iter().map(|included| (&included.path, true));
        for (path, verdict) in included.chain(policy.excluded.iter().map(|path| (path, false))) {
            let node = self.node_of(&path.segments);
            match path.end {
                IndexEnd::Scalar => self.nodes[node].scalar = Some(verdict),
                IndexEnd::Below => self.nodes[node].below = Some(verdict),
            }
        }
        let root = &self.nodes[ROOT];
        let is_system = |name: &str| SYSTEM_PROPERTIES.contains(&name) || ALWAYS.contains(&name);
        self.indexes_everything = root.below == Some(true) && root.names.keys().all(|name| is_system(name));
        for name in SYSTEM_PROPERTIES.into_iter().chain(ALWAYS) {
            let node = self.node_of(&[IndexSegment::Name(name.to_owned())]);
            let verdict = ALWAYS.contains(&name);
            self.nodes[node] =
                RuleNode { scalar: Some(verdict), below: Some(verdict), ..RuleNode::default() };
        }
        for property in computed {
            let named = self.nodes[ROOT].names.get(property.name.as_str()).copied();
            let cursor = self.cursor(named, false);
            let is_member = |path: &CompositePath| top(path) == property.name;
            let is_in_composite = policy.composite.iter().any(|index| index.paths.iter().any(is_member));
            if self.is_indexed(cursor) || self.may_index_below(cursor) || is_in_composite {
                self.computed.push((property, cursor));
            }
        }
        self.composites = policy.composite.iter().map(|index| self.composite(&index.paths)).collect();
        self.spatial = policy.spatial.clone();
    }

    fn composite(&self, paths: &[CompositePath]) -> Composite {
        let member = |path: &CompositePath| {
            let computed = self.computed.iter().position(|(property, _)| property.name == top(path));
            CompositeMember { path: path.clone(), computed }
        };
        let members: Vec<CompositeMember> = paths.iter().map(member).collect();
        let path = IndexPath::composite(members.iter().map(|member| {
            let mut steps: Vec<IndexStep<'_>> = member.path.path.segments().map(IndexStep::Name).collect();
            if let (Some(first), Some(_)) = (steps.first_mut(), member.computed) {
                *first = IndexStep::Computed(top(&member.path));
            }
            (IndexPath::property(steps), member.path.descending)
        }));
        Composite { path, members }
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
                self.nodes.push(RuleNode::default());
            }
            child
        })
    }

    /// Equal for policies that produce the same terms for every document.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Whether documents have terms other than their logical key.
    pub(crate) fn indexes(&self) -> bool {
        self.indexes
    }

    /// Whether every value of a document is indexed, apart from its system properties.
    pub(crate) fn indexes_everything(&self) -> bool {
        self.indexes_everything
    }

    pub(crate) fn composites(&self) -> &[Composite] {
        &self.composites
    }

    /// The computed properties that have terms.
    pub(crate) fn computed(&self) -> &[(IndexableProperty, PolicyCursor)] {
        &self.computed
    }

    pub(crate) fn spatial(&self) -> &[SpatialIndex] {
        &self.spatial
    }

    pub(crate) fn root(&self) -> PolicyCursor {
        self.cursor(Some(ROOT), false)
    }

    pub(crate) fn member(&self, cursor: PolicyCursor, name: &str) -> PolicyCursor {
        let node = cursor.node.and_then(|node| self.nodes[node].names.get(name).copied());
        self.cursor(node, cursor.below)
    }

    pub(crate) fn elements(&self, cursor: PolicyCursor) -> PolicyCursor {
        let node = cursor.node.and_then(|node| self.nodes[node].elements);
        self.cursor(node, cursor.below)
    }

    fn cursor(&self, node: Option<usize>, above: bool) -> PolicyCursor {
        let here = node.and_then(|node| self.nodes[node].below);
        PolicyCursor { node, below: here.unwrap_or(above) }
    }

    /// Whether a value at the path is indexed.
    pub(crate) fn is_indexed(&self, cursor: PolicyCursor) -> bool {
        cursor.node.and_then(|node| self.nodes[node].scalar).unwrap_or(cursor.below)
    }

    /// Whether a value below the path may be indexed.
    pub(crate) fn may_index_below(&self, cursor: PolicyCursor) -> bool {
        let has_children =
            |node: usize| !self.nodes[node].names.is_empty() || self.nodes[node].elements.is_some();
        cursor.below || cursor.node.is_some_and(has_children)
    }

    /// Whether every document with a value at `path` has a term for it.
    pub(crate) fn covers(&self, path: &IndexPath) -> bool {
        if !self.indexes || path.code().len() > PATH_BYTES_MAX {
            return false;
        }
        if path.is_spatial() {
            return self.spatial.iter().any(|index| spatial::is_at(index, path));
        }
        let mut cursor = self.root();
        let mut steps = 0;
        let is_property = path.visit_steps(|step| {
            steps += 1;
            cursor = match step {
                IndexStep::Name(name) => self.member(cursor, name),
                IndexStep::Elements => self.elements(cursor),
                IndexStep::Computed(name) => {
                    let known = self.computed.iter().find(|(property, _)| property.name == name);
                    known.map_or(UNMATCHED, |(_, cursor)| *cursor)
                }
            }
        });
        if is_property {
            return steps > 0 && self.is_indexed(cursor);
        }
        self.composites.iter().any(|composite| composite.path == *path)
    }

    /// Hashes the parts that determine the terms of a document. Their order in the policy does not matter.
    fn fingerprint_of(&self, policy: &IndexingPolicy) -> Fingerprint {
        let mut parts = vec![part(PART_FORMAT, |out| {
            out.number(TERMS_FORMAT);
            out.flag(self.indexes);
        })];
        let included = policy.included.iter().map(|included| (PART_INCLUDED, &included.path));
        for (tag, path) in included.chain(policy.excluded.iter().map(|path| (PART_EXCLUDED, path))) {
            parts.push(part(tag, |out| path.encode_place(out)));
        }
        let composite = |index: &Composite| part(PART_COMPOSITE, |out| out.bytes(index.path.code()));
        parts.extend(self.composites.iter().map(composite));
        parts.extend(self.computed.iter().map(|(property, _)| {
            part(PART_COMPUTED, |out| {
                out.text(&property.name);
                property.value.encode(out);
            })
        }));
        let spatial = |index: &SpatialIndex| part(PART_SPATIAL, |out| spatial::encode_terms(index, out));
        parts.extend(self.spatial.iter().map(spatial));
        parts.sort();
        let mut all = Encoder::default();
        all.list(&parts, |out, part| out.bytes(part));
        let digest = Sha256::digest(all.finish());
        let mut fingerprint = Fingerprint::default();
        fingerprint.copy_from_slice(&digest[..size_of::<Fingerprint>()]);
        fingerprint
    }
}

// Tags of the parts of a fingerprint.
const PART_FORMAT: u8 = 0;
const PART_INCLUDED: u8 = 1;
const PART_EXCLUDED: u8 = 2;
const PART_COMPOSITE: u8 = 3;
const PART_COMPUTED: u8 = 4;
const PART_SPATIAL: u8 = 5;

fn part(tag: u8, fields: impl FnOnce(&mut Encoder)) -> Vec<u8> {
    let mut out = Encoder::default();
    out.byte(tag);
    fields(&mut out);
    out.finish()
}

/// The document property that a path of a composite index starts with.
fn top(path: &CompositePath) -> &str {
    path.path.segments().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::policy::{CompositeIndex, SpatialType};
    use plan::query::Expression;

    fn policy(included: &[&str], excluded: &[&str]) -> IndexingPolicy {
        IndexingPolicy::by_texts(included, excluded).unwrap()
    }

    #[track_caller]
    fn check(policy: IndexingPolicy, expected: &[(&str, bool)]) {
        policy.check().unwrap();
        let rules = Rules::new(&policy, Vec::new());
        for (path, covered) in expected {
            let steps = path.split('/').skip(1);
            let steps =
                steps.map(|step| if step == "[]" { IndexStep::Elements } else { IndexStep::Name(step) });
            assert_eq!(rules.covers(&IndexPath::property(steps)), *covered, "{path}");
        }
    }

    #[test]
    fn the_more_precise_path_wins() {
        check(
            policy(&[], &[]),
            &[("/a", true), ("/a/b/[]/c", true), ("/_etag", false), ("/id", true), ("/_rid", false)],
        );
        check(
            policy(&["/*", "/a/b/?"], &["/a/*", "/c/?"]),
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
            policy(&["/a/?", "/t/[]/*"], &["/*", "/a/*"]),
            &[
                ("/a", true),
                ("/a/b", false),
                ("/t", false),
                ("/t/[]", true),
                ("/t/[]/x", true),
                ("/id", true),
            ],
        );
        check(policy(&[], &["/*"]), &[("/a", false), ("/id", true), ("/_ts", true)]);
        check(IndexingPolicy::none(), &[("/a", false), ("/id", false), ("/_ts", false)]);
        let mixed = policy(&["/*"], &["/_ts/?", "/id/?"]);
        check(mixed, &[("/id", true), ("/_ts", true)]);
    }

    #[test]
    fn computed_properties_are_indexed_where_they_are_named() {
        let rules = |policy: IndexingPolicy, value: i64| {
            let value = Expression::Constant(value::Value::Int64(value));
            let property = IndexableProperty { name: "cp".to_owned(), value };
            Rules::new(&policy, vec![property])
        };
        let computed = IndexPath::property([IndexStep::Computed("cp")]);
        let stored = IndexPath::property([IndexStep::Name("cp")]);
        let below = IndexPath::property([IndexStep::Computed("cp"), IndexStep::Name("x")]);
        let all = rules(policy(&[], &[]), 1);
        assert!(!all.covers(&computed) && all.covers(&stored) && all.computed().is_empty());
        assert_eq!(all.fingerprint(), rules(policy(&[], &[]), 2).fingerprint());
        let here = policy(&["/*", "/cp/?"], &[]);
        assert!(rules(here.clone(), 1).covers(&computed) && !rules(here.clone(), 1).covers(&below));
        assert_ne!(rules(here.clone(), 1).fingerprint(), rules(here, 2).fingerprint());
        let tree = rules(policy(&["/cp/*"], &["/*"]), 1);
        assert!(tree.covers(&computed) && tree.covers(&below));
        let mut composite = policy(&[], &[]);
        composite.composite = vec![CompositeIndex::over(&[("/cp", false), ("/a", true)]).unwrap()];
        let tuple = |first: &IndexPath| {
            IndexPath::composite([
                (first.clone(), false),
                (IndexPath::property([IndexStep::Name("a")]), true),
            ])
        };
        let composite = rules(composite, 1);
        assert!(composite.covers(&tuple(&computed)) && !composite.covers(&tuple(&stored)));
        assert!(!composite.covers(&computed));
    }

    #[test]
    fn what_makes_other_terms_has_another_fingerprint() {
        let fingerprint = |policy: IndexingPolicy| Rules::new(&policy, Vec::new()).fingerprint();
        let spatial = |path: &str, types: &[SpatialType]| {
            let index = SpatialIndex::at(path, types).unwrap();
            fingerprint(IndexingPolicy { spatial: vec![index], ..IndexingPolicy::default() })
        };
        use SpatialType::{Point, Polygon};
        let all = [
            fingerprint(IndexingPolicy::default()),
            spatial("/a/*", &[Point]),
            spatial("/a/?", &[Point]),
            spatial("/a/*", &[Point, Polygon]),
        ];
        assert!((0..all.len()).all(|one| (0..one).all(|other| all[one] != all[other])));
        assert_eq!(all[3], spatial("/a/*", &[Polygon, Point]));
    }
}
