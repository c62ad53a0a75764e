//! The indexing policy: the indexed paths, and the composite, spatial, vector and full-text indexes.

use super::check::repeated;
use super::index_path::PolicyPath;
use super::special_indexes::{CompositeIndex, SpatialIndex, VectorIndex};
use crate::{
    DecodeFault, Decoder, DefinitionList, DefinitionPart, DefinitionRule, Encoder, IndexRule, Opaque,
    RequestFault,
};
use std::collections::HashSet;
use value::PropertyPath;

const PART: DefinitionPart = DefinitionPart::Indexing;
/// Most composite indexes of a container.
const COMPOSITE_INDEXES_MAX: usize = 100;
/// Most entries of each other list of the policy. Assumed to be the service's limit for paths; not verified.
const PATHS_MAX: usize = 1500;

/// Whether and when documents are indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexingMode {
    /// On every write.
    Consistent,
    /// Never.
    None,
}

/// The indexing policy of a container.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexingPolicy {
    /// Whether and when documents are indexed.
    pub mode: IndexingMode,
    /// Whether documents are indexed by default.
    pub automatic: bool,
    /// Paths that are indexed unless a longer path excludes them.
    pub included: Vec<IndexedPath>,
    /// Paths that are not indexed unless a longer path includes them.
    pub excluded: Vec<PolicyPath>,
    /// Composite indexes.
    pub composite: Vec<CompositeIndex>,
    /// Spatial indexes.
    pub spatial: Vec<SpatialIndex>,
    /// Vector indexes.
    pub vectors: Vec<VectorIndex>,
    /// Full-text indexes.
    pub full_texts: Vec<PropertyPath>,
}

/// An included path.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexedPath {
    /// The path.
    pub path: PolicyPath,
}

impl Default for IndexingPolicy {
    /// Everything but `_etag`.
    fn default() -> IndexingPolicy {
        IndexingPolicy::by_paths(Vec::new(), Vec::new())
    }
}

impl IndexingPolicy {
    /// Consistent indexing of these paths. As in the service, the root is included unless a list contains it, and the
    /// ETag is excluded unless a list contains it.
    pub fn by_paths(included: Vec<IndexedPath>, excluded: Vec<PolicyPath>) -> IndexingPolicy {
        let mut policy =
            IndexingPolicy { mode: IndexingMode::Consistent, included, excluded, ..IndexingPolicy::none() };
        policy.automatic = true;
        policy.complete_paths();
        policy
    }

    /// The same, from the texts of the paths.
    pub fn by_texts(included: &[&str], excluded: &[&str]) -> Result<IndexingPolicy, RequestFault> {
        let parse = |text: &&str| PolicyPath::parse(text);
        let included = included.iter().map(|text| Ok(IndexedPath { path: parse(text)? }));
        let included = included.collect::<Result<_, RequestFault>>()?;
        let excluded = excluded.iter().map(parse).collect::<Result<_, _>>()?;
        Ok(IndexingPolicy::by_paths(included, excluded))
    }

    /// No index.
    pub fn none() -> IndexingPolicy {
        IndexingPolicy {
            mode: IndexingMode::None,
            automatic: false,
            included: Vec::new(),
            excluded: Vec::new(),
            composite: Vec::new(),
            spatial: Vec::new(),
            vectors: Vec::new(),
            full_texts: Vec::new(),
        }
    }

    /// Adds the root and the ETag to one of the lists, if the policy indexes anything.
    pub fn complete_paths(&mut self) {
        if self.mode == IndexingMode::None {
            return;
        }
        let root = PolicyPath::root();
        if !self.names(&root) {
            self.included.push(IndexedPath { path: root });
        }
        // It changes with every write, and queries do not search for it.
        let etag = PolicyPath::etag();
        if !self.names(&etag) {
            self.excluded.push(etag);
        }
    }

    fn paths(&self) -> impl Iterator<Item = &PolicyPath> {
        self.included.iter().map(|included| &included.path).chain(&self.excluded)
    }

    fn names(&self, wanted: &PolicyPath) -> bool {
        self.paths().any(|path| path.is_same_place(wanted))
    }

    /// Refuses `count` entries in a list if there are too many.
    pub fn check_count(list: DefinitionList, count: usize) -> Result<(), RequestFault> {
        match count > PATHS_MAX {
            true => Err(PART.violates(DefinitionRule::Count { list, given: count, max: PATHS_MAX })),
            false => Ok(()),
        }
    }

    /// Refuses `count` composite indexes if there are too many.
    pub fn check_composite_count(count: usize) -> Result<(), RequestFault> {
        if count <= COMPOSITE_INDEXES_MAX {
            return Ok(());
        }
        Err(PART.violates(DefinitionRule::Count {
            list: DefinitionList::CompositeIndexes,
            given: count,
            max: COMPOSITE_INDEXES_MAX,
        }))
    }

    /// Refuses lists that are too long, paths that contradict the mode, and duplicates.
    pub fn check(&self) -> Result<(), RequestFault> {
        self.check_paths()?;
        IndexingPolicy::check_composite_count(self.composite.len())?;
        self.composite.iter().try_for_each(CompositeIndex::check)?;
        IndexingPolicy::check_count(DefinitionList::SpatialIndexes, self.spatial.len())?;
        self.spatial.iter().try_for_each(SpatialIndex::check)?;
        IndexingPolicy::check_count(DefinitionList::VectorIndexes, self.vectors.len())?;
        self.vectors.iter().try_for_each(VectorIndex::check)?;
        IndexingPolicy::check_count(DefinitionList::FullTextIndexes, self.full_texts.len())?;
        if self.mode == IndexingMode::None && self.automatic {
            return Err(PART.violates(IndexRule::AutomaticWithoutIndexing));
        }
        let vectors: Vec<_> = self.vectors.iter().map(|index| &index.path).collect();
        if let Some(path) = repeated(&vectors).copied().or_else(|| repeated(&self.full_texts)) {
            return Err(PART.violates(IndexRule::RepeatedIndex(path.to_string())));
        }
        if repeated(&self.composite).is_some() {
            return Err(PART.violates(IndexRule::RepeatedComposite));
        }
        Ok(())
    }

    /// Refuses paths that contradict the mode, and duplicates.
    pub fn check_paths(&self) -> Result<(), RequestFault> {
        if self.mode == IndexingMode::None && self.paths().next().is_some() {
            return Err(PART.violates(IndexRule::PathsWithoutIndexing));
        }
        // The root and the ETag may have been added to full lists.
        IndexingPolicy::check_count(DefinitionList::IncludedPaths, self.included.len().saturating_sub(1))?;
        IndexingPolicy::check_count(DefinitionList::ExcludedPaths, self.excluded.len().saturating_sub(1))?;
        let mut places = HashSet::new();
        match self.paths().find(|path| !places.insert(path.place())) {
            Some(path) => Err(PART.violates(DefinitionRule::RepeatedPath(path.to_string()))),
            None => Ok(()),
        }
    }
}

impl IndexingPolicy {
    /// Writes the policy, for a stored row.
    pub fn encode(&self, out: &mut Encoder) {
        out.byte(self.mode.tag());
        out.flag(self.automatic);
        out.list(&self.included, |out, path| path.encode(out));
        out.list(&self.excluded, |out, path| path.encode(out));
        out.list(&self.composite, |out, index| index.encode(out));
        out.list(&self.spatial, |out, index| index.encode(out));
        out.list(&self.vectors, |out, index| index.encode(out));
        out.list(&self.full_texts, Encoder::path);
    }

    /// Reads what [`IndexingPolicy::encode`] wrote.
    pub fn decode(input: &mut Decoder<'_>) -> Result<IndexingPolicy, DecodeFault> {
        Ok(IndexingPolicy {
            mode: IndexingMode::decode(input)?,
            automatic: input.flag("automatic indexing")?,
            included: input.list("included paths", IndexedPath::decode)?,
            excluded: input.list("excluded paths", PolicyPath::decode)?,
            composite: input.list("composite indexes", CompositeIndex::decode)?,
            spatial: input.list("spatial indexes", SpatialIndex::decode)?,
            vectors: input.list("vector indexes", VectorIndex::decode)?,
            full_texts: input.list("full-text indexes", |input| input.path("full-text index"))?,
        })
    }
}

impl IndexingMode {
    fn tag(self) -> u8 {
        match self {
            IndexingMode::Consistent => 0,
            IndexingMode::None => 2,
        }
    }

    /// Older rows also have the tag 1 for lazy indexing, which was never different.
    fn decode(input: &mut Decoder<'_>) -> Result<IndexingMode, DecodeFault> {
        match input.byte("indexing mode")? {
            0 | 1 => Ok(IndexingMode::Consistent),
            2 => Ok(IndexingMode::None),
            tag => Err(input.unknown("indexing mode", tag)),
        }
    }
}

impl IndexedPath {
    fn encode(&self, out: &mut Encoder) {
        self.path.encode(out);
        out.option(None, |out, legacy: &Opaque| legacy.encode(out));
    }

    /// Older rows also have the kinds and precisions that old clients sent.
    fn decode(input: &mut Decoder<'_>) -> Result<IndexedPath, DecodeFault> {
        let path = PolicyPath::decode(input)?;
        input.option("indexes of an included path", |input| {
            Opaque::decode(input, "indexes of an included path")
        })?;
        Ok(IndexedPath { path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(policy: &IndexingPolicy) -> [Vec<String>; 2] {
        let included = policy.included.iter().map(|included| included.path.to_string());
        [included.collect(), policy.excluded.iter().map(ToString::to_string).collect()]
    }

    #[test]
    fn the_root_and_the_etag_are_always_in_one_of_the_lists() {
        const ETAG_PATH: &str = "/\"_etag\"/?";
        let lists = |included: &[&str], excluded: &[&str]| {
            texts(&IndexingPolicy::by_texts(included, excluded).unwrap())
        };
        assert_eq!(texts(&IndexingPolicy::default()), [vec!["/*"], vec![ETAG_PATH]]);
        assert_eq!(lists(&["/*"], &[]), [vec!["/*"], vec![ETAG_PATH]]);
        assert_eq!(lists(&[], &["/*"]), [vec![], vec!["/*", ETAG_PATH]]);
        assert_eq!(lists(&["/a/?"], &[]), [vec!["/a/?", "/*"], vec![ETAG_PATH]]);
        assert_eq!(lists(&["/*", "/_etag/?"], &[]), [vec!["/*", "/_etag/?"], vec![]]);
        assert_eq!(texts(&IndexingPolicy::none()), [Vec::<String>::new(), vec![]]);
    }

    #[test]
    fn rows_with_lazy_indexing_and_old_kinds_are_read() {
        let mut out = Encoder::default();
        out.byte(1);
        out.flag(false);
        out.list(&[PolicyPath::root()], |out, path| {
            path.encode(out);
            out.option(Some(&Opaque::List(Vec::new())), |out, legacy| legacy.encode(out));
        });
        for _ in 0..5 {
            out.list(&[] as &[PolicyPath], |out, path| path.encode(out));
        }
        let bytes = out.finish();
        let mut input = Decoder::new(&bytes);
        let policy = IndexingPolicy::decode(&mut input).unwrap();
        assert_eq!(policy.mode, IndexingMode::Consistent);
        assert_eq!(texts(&policy), [vec!["/*"], vec![]]);
        input.finish().unwrap();
    }

    #[test]
    fn the_mode_decides_whether_there_are_paths() {
        let none = IndexingPolicy::none();
        assert!(none.check().is_ok());
        assert!(IndexingPolicy { automatic: true, ..none.clone() }.check().is_err());
        assert!(IndexingPolicy { excluded: vec![PolicyPath::root()], ..none }.check().is_err());
        assert!(IndexingPolicy { automatic: false, ..IndexingPolicy::default() }.check().is_ok());
    }

    #[test]
    fn nothing_is_given_twice() {
        let check = |included: &[&str], excluded: &[&str]| {
            IndexingPolicy::by_texts(included, excluded).unwrap().check().is_ok()
        };
        assert!(check(&["/a/?", "/a/*"], &[]));
        assert!(!check(&["/*"], &["/*"]) && !check(&["/a/?", "/\"a\"/?"], &[]));
        let index = CompositeIndex::over(&[("/a", false), ("/b", true)]).unwrap();
        let twice = IndexingPolicy { composite: vec![index.clone(), index], ..IndexingPolicy::default() };
        assert!(twice.check().is_err());
    }
}
