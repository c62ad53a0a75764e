//! The indexing policy: which paths are indexed, and the indexes beyond the one on every path.

use super::index_path::{IndexEnd, IndexPath};
use super::reader::{Reader, bad, name_of, repeated};
use super::special_indexes::{CompositeIndex, SpatialIndex, VectorIndex, full_text_path};
use crate::{DecodeFault, Decoder, Encoder, RequestFault};
use serde_json::{Map, Value as Json, json};
use std::collections::HashSet;
use value::PropertyPath;

const POLICY: &str = "indexingPolicy";
/// Most composite indexes of a container.
const COMPOSITE_INDEXES_MAX: usize = 100;
/// Most entries of each other list of the policy. Believed to be the service's bound for paths, unverified.
const PATHS_MAX: usize = 1500;
/// The lists that it bounds.
const PATH_LISTS: [&str; 5] =
    ["includedPaths", "excludedPaths", "spatialIndexes", "vectorIndexes", "fullTextIndexes"];

/// Whether and when documents are indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexingMode {
    /// With every write.
    Consistent,
    /// Sometime; containers of old clients only.
    Lazy,
    /// Never.
    None,
}

const MODES: [(&str, IndexingMode); 3] =
    [("consistent", IndexingMode::Consistent), ("lazy", IndexingMode::Lazy), ("none", IndexingMode::None)];

/// What is indexed.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexingPolicy {
    /// Whether and when.
    pub mode: IndexingMode,
    /// Whether documents are indexed without asking for it.
    pub automatic: bool,
    /// What is indexed unless a longer path excludes it.
    pub included: Vec<IndexedPath>,
    /// What is not indexed unless a longer path includes it.
    pub excluded: Vec<IndexPath>,
    /// Orders over several properties.
    pub composite: Vec<CompositeIndex>,
    /// Places on earth or in a plane.
    pub spatial: Vec<SpatialIndex>,
    /// Nearest neighbours.
    pub vectors: Vec<VectorIndex>,
    /// Words.
    pub full_texts: Vec<PropertyPath>,
}

/// An included path.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexedPath {
    /// The path.
    pub path: IndexPath,
    /// What old clients say about kinds and precisions; kept and not acted on.
    legacy: Option<Json>,
}

impl IndexingPolicy {
    /// Reads the wire form; absent means everything but `_etag`.
    pub(super) fn from_json(json: Option<&Json>) -> Result<IndexingPolicy, RequestFault> {
        let nothing = Json::Object(Map::new());
        let reader = Reader::new(POLICY, "it", json.unwrap_or(&nothing))?;
        reader.only(&[
            "indexingMode",
            "automatic",
            "includedPaths",
            "excludedPaths",
            "compositeIndexes",
            "spatialIndexes",
            "vectorIndexes",
            "fullTextIndexes",
        ])?;
        for list in PATH_LISTS {
            let count = reader.list(list)?.len();
            if count > PATHS_MAX {
                return Err(bad(POLICY, format!("{count} entries of \"{list}\" given, {PATHS_MAX} allowed")));
            }
        }
        let mode = reader.choice("indexingMode", &MODES)?.unwrap_or(IndexingMode::Consistent);
        let automatic = reader.flag("automatic")?.unwrap_or(mode != IndexingMode::None);
        let (included, excluded) = paths(&reader, mode)?;
        let composite = reader.list("compositeIndexes")?;
        if composite.len() > COMPOSITE_INDEXES_MAX {
            let count = composite.len();
            return Err(bad(
                POLICY,
                format!("{count} composite indexes given, {COMPOSITE_INDEXES_MAX} allowed"),
            ));
        }
        let policy = IndexingPolicy {
            mode,
            automatic,
            included,
            excluded,
            composite: composite.iter().map(CompositeIndex::from_json).collect::<Result<_, _>>()?,
            spatial: reader
                .list("spatialIndexes")?
                .iter()
                .map(SpatialIndex::from_json)
                .collect::<Result<_, _>>()?,
            vectors: reader
                .list("vectorIndexes")?
                .iter()
                .map(VectorIndex::from_json)
                .collect::<Result<_, _>>()?,
            full_texts: reader
                .list("fullTextIndexes")?
                .iter()
                .map(full_text_path)
                .collect::<Result<_, _>>()?,
        };
        policy.check()?;
        Ok(policy)
    }

    fn check(&self) -> Result<(), RequestFault> {
        if self.mode == IndexingMode::None && self.automatic {
            return Err(bad(POLICY, "\"automatic\" must be false when the indexing mode is none"));
        }
        let vectors: Vec<_> = self.vectors.iter().map(|index| &index.path).collect();
        if let Some(path) = repeated(&vectors).copied().or_else(|| repeated(&self.full_texts)) {
            return Err(bad(POLICY, format!("the path \"{path}\" has two indexes of one kind")));
        }
        if repeated(&self.composite).is_some() {
            return Err(bad(POLICY, "a composite index is given twice"));
        }
        Ok(())
    }

    /// The wire form.
    pub(super) fn to_json(&self) -> Json {
        let excluded: Vec<Json> =
            self.excluded.iter().map(|path| json!({ "path": path.to_string() })).collect();
        let mut json = json!({
            "indexingMode": name_of(&MODES, &self.mode),
            "automatic": self.automatic,
            "includedPaths": self.included.iter().map(IndexedPath::to_json).collect::<Vec<_>>(),
            "excludedPaths": excluded,
        });
        let mut put = |name: &str, list: Vec<Json>| {
            if !list.is_empty() {
                json[name] = list.into();
            }
        };
        put("compositeIndexes", self.composite.iter().map(CompositeIndex::to_json).collect());
        put("spatialIndexes", self.spatial.iter().map(SpatialIndex::to_json).collect());
        put("vectorIndexes", self.vectors.iter().map(VectorIndex::to_json).collect());
        put(
            "fullTextIndexes",
            self.full_texts.iter().map(|path| json!({ "path": path.to_string() })).collect(),
        );
        json
    }
}

/// Both lists of paths. As the service does: the root is included unless a list names it, and the ETag excluded
/// unless a list names it.
fn paths(
    reader: &Reader<'_>,
    mode: IndexingMode,
) -> Result<(Vec<IndexedPath>, Vec<IndexPath>), RequestFault> {
    let included = reader.list("includedPaths")?.iter().map(IndexedPath::from_json);
    let mut included: Vec<IndexedPath> = included.collect::<Result<_, _>>()?;
    let excluded = reader.list("excludedPaths")?.iter().map(excluded_path);
    let mut excluded: Vec<IndexPath> = excluded.collect::<Result<_, _>>()?;
    if mode == IndexingMode::None {
        if !included.is_empty() || !excluded.is_empty() {
            return Err(reader.bad("there must be no paths when the indexing mode is none"));
        }
        return Ok((included, excluded));
    }
    let names = |wanted: &IndexPath, included: &[IndexedPath], excluded: &[IndexPath]| {
        let mut all = included.iter().map(|included| &included.path).chain(excluded);
        all.any(|path| path.is_same_place(wanted))
    };
    let root = IndexPath::root();
    if !names(&root, &included, &excluded) {
        included.push(IndexedPath { path: root, legacy: None });
    }
    // It changes with every write and nobody looks for it.
    let etag = IndexPath::etag();
    if !names(&etag, &included, &excluded) {
        excluded.push(etag);
    }
    let all = included.iter().map(|included| &included.path).chain(&excluded);
    let mut places = HashSet::new();
    for path in all {
        if !places.insert(path.place()) {
            return Err(reader.bad(format!("the path \"{path}\" is given twice")));
        }
    }
    Ok((included, excluded))
}

fn excluded_path(json: &Json) -> Result<IndexPath, RequestFault> {
    let reader = Reader::new(POLICY, "an excluded path", json)?;
    reader.only(&["path"])?;
    IndexPath::parse(reader.required_text("path")?).map_err(|reason| bad(POLICY, reason))
}

const LEGACY_KINDS: [(&str, ()); 3] = [("Range", ()), ("Hash", ()), ("Spatial", ())];
const LEGACY_TYPES: [(&str, ()); 6] = [
    ("String", ()),
    ("Number", ()),
    ("Point", ()),
    ("Polygon", ()),
    ("LineString", ()),
    ("MultiPolygon", ()),
];

impl IndexedPath {
    fn from_json(json: &Json) -> Result<IndexedPath, RequestFault> {
        let reader = Reader::new(POLICY, "an included path", json)?;
        reader.only(&["path", "indexes"])?;
        let path = IndexPath::parse(reader.required_text("path")?).map_err(|reason| bad(POLICY, reason))?;
        for index in reader.list("indexes")? {
            let index = Reader::new(POLICY, "an index of an included path", index)?;
            index.only(&["kind", "dataType", "precision"])?;
            index.choice("kind", &LEGACY_KINDS)?;
            index.choice("dataType", &LEGACY_TYPES)?;
            if index.get("precision").is_some_and(|precision| !precision.is_i64()) {
                return Err(index.bad("\"precision\" must be a whole number"));
            }
        }
        Ok(IndexedPath { path, legacy: reader.get("indexes").cloned() })
    }

    fn to_json(&self) -> Json {
        let mut json = json!({ "path": self.path.to_string() });
        if let Some(legacy) = &self.legacy {
            json["indexes"] = legacy.clone();
        }
        json
    }

    /// Whether only the scalar at the path is meant.
    pub fn is_scalar(&self) -> bool {
        self.path.end == IndexEnd::Scalar
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
            mode: input.choice("indexing mode", MODES.map(|(_, mode)| mode), IndexingMode::tag)?,
            automatic: input.flag("automatic indexing")?,
            included: input.list("included paths", IndexedPath::decode)?,
            excluded: input.list("excluded paths", IndexPath::decode)?,
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
            IndexingMode::Lazy => 1,
            IndexingMode::None => 2,
        }
    }
}

impl IndexedPath {
    fn encode(&self, out: &mut Encoder) {
        self.path.encode(out);
        out.option(self.legacy.as_ref(), Encoder::json);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<IndexedPath, DecodeFault> {
        Ok(IndexedPath {
            path: IndexPath::decode(input)?,
            legacy: input
                .option("indexes of an included path", |input| input.json("indexes of an included path"))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &Json) -> Result<Json, String> {
        IndexingPolicy::from_json(Some(json))
            .map(|policy| policy.to_json())
            .map_err(|fault| fault.to_string())
    }

    #[test]
    fn absent_and_empty_policies_are_the_default() {
        let default = json!({
            "indexingMode": "consistent",
            "automatic": true,
            "includedPaths": [{ "path": "/*" }],
            "excludedPaths": [{ "path": "/\"_etag\"/?" }],
        });
        assert_eq!(IndexingPolicy::from_json(None).unwrap().to_json(), default);
        assert_eq!(read(&json!({})).unwrap(), default);
        assert_eq!(read(&json!({ "indexingMode": "Consistent", "includedPaths": [] })).unwrap(), default);
        assert_eq!(read(&default).unwrap(), default);
    }

    #[test]
    fn no_indexing_means_no_paths() {
        let none =
            json!({ "indexingMode": "none", "automatic": false, "includedPaths": [], "excludedPaths": [] });
        assert_eq!(read(&json!({ "indexingMode": "None" })).unwrap(), none);
        assert!(read(&json!({ "indexingMode": "none", "automatic": true })).is_err());
        assert!(read(&json!({ "indexingMode": "none", "includedPaths": [{ "path": "/*" }] })).is_err());
    }

    #[test]
    fn the_root_and_the_etag_are_always_in_one_of_the_lists() {
        const ETAG_PATH: &str = "/\"_etag\"/?";
        let lists = |policy: Json| {
            let policy = read(&policy).unwrap();
            ["includedPaths", "excludedPaths"].map(|list| {
                let paths = policy[list].as_array().unwrap().iter();
                paths.map(|entry| entry["path"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
            })
        };
        let paths = |paths: &[&str]| paths.iter().map(|path| json!({ "path": path })).collect::<Vec<_>>();
        assert_eq!(lists(json!({})), [vec!["/*"], vec![ETAG_PATH]]);
        // What the Java SDK sends by default.
        let java = json!({ "includedPaths": paths(&["/*"]), "excludedPaths": [] });
        assert_eq!(lists(java), [vec!["/*"], vec![ETAG_PATH]]);
        let none = json!({ "excludedPaths": paths(&["/*"]) });
        assert_eq!(lists(none), [vec![], vec!["/*", ETAG_PATH]]);
        let some = json!({ "includedPaths": paths(&["/a/?"]) });
        assert_eq!(lists(some), [vec!["/a/?", "/*"], vec![ETAG_PATH]]);
        let etag = json!({ "includedPaths": paths(&["/*", "/_etag/?"]) });
        assert_eq!(lists(etag), [vec!["/*", "/_etag/?"], vec![]]);
        assert_eq!(lists(json!({ "indexingMode": "None" })), [Vec::<String>::new(), vec![]]);
    }

    #[test]
    fn no_path_is_given_twice() {
        let twice = json!({ "includedPaths": [{ "path": "/*" }], "excludedPaths": [{ "path": "/*" }] });
        assert!(read(&twice).unwrap_err().contains("twice"));
        let quoted = json!({ "includedPaths": [{ "path": "/a/?" }, { "path": "/\"a\"/?" }] });
        assert!(read(&quoted).unwrap_err().contains("twice"));
    }

    #[test]
    fn lists_of_paths_are_bounded() {
        let paths = |count: usize| {
            (0..count).map(|number| json!({ "path": format!("/p{number}/?") })).collect::<Vec<_>>()
        };
        for list in ["includedPaths", "excludedPaths", "fullTextIndexes"] {
            let entries = |count| match list {
                "fullTextIndexes" => {
                    (0..count).map(|number| json!({ "path": format!("/p{number}") })).collect()
                }
                _ => paths(count),
            };
            assert!(read(&json!({ list: entries(PATHS_MAX) })).is_ok(), "{list}");
            let fault = read(&json!({ list: entries(PATHS_MAX + 1) })).unwrap_err();
            assert!(fault.contains("1501") && fault.contains(list), "{fault}");
        }
    }

    #[test]
    fn legacy_kinds_come_back_as_they_were() {
        let path =
            json!({ "path": "/*", "indexes": [{ "kind": "Range", "dataType": "Number", "precision": -1 }] });
        assert_eq!(read(&json!({ "includedPaths": [path] })).unwrap()["includedPaths"], json!([path]));
        let odd = json!({ "path": "/*", "indexes": [{ "kind": "Tree" }] });
        assert!(read(&json!({ "includedPaths": [odd] })).is_err());
    }

    #[test]
    fn members_nobody_knows_are_refused_unless_they_are_empty() {
        assert!(read(&json!({ "futureIndexes": [], "x": null })).is_ok());
        assert!(read(&json!({ "futureIndexes": [1] })).unwrap_err().contains("futureIndexes"));
    }
}
