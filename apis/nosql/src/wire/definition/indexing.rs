//! `indexingPolicy`

use super::name_in;
use super::reader::Reader;
use super::special_indexes::{
    read_composite, read_full_text, read_spatial, read_vector, write_composite, write_spatial, write_vector,
};
use crate::faults::NosqlFault;
use model::DefinitionList;
use model::policy::{IndexedPath, IndexingMode, IndexingPolicy, PolicyPath};
use serde_json::{Map, Value as Json, json};

const POLICY: &str = "indexingPolicy";

/// The lists whose entries are paths or contain one.
const PATH_LISTS: [(&str, DefinitionList); 5] = [
    ("includedPaths", DefinitionList::IncludedPaths),
    ("excludedPaths", DefinitionList::ExcludedPaths),
    ("spatialIndexes", DefinitionList::SpatialIndexes),
    ("vectorIndexes", DefinitionList::VectorIndexes),
    ("fullTextIndexes", DefinitionList::FullTextIndexes),
];

/// The service makes lazy indexing consistent.
const MODES: [(&str, IndexingMode); 3] = [
    ("consistent", IndexingMode::Consistent),
    ("lazy", IndexingMode::Consistent),
    ("none", IndexingMode::None),
];

/// Index kinds that old clients send for an included path; the service drops them.
const LEGACY_KINDS: [(&str, ()); 3] = [("Range", ()), ("Hash", ()), ("Spatial", ())];
const LEGACY_TYPES: [(&str, ()); 6] = [
    ("String", ()),
    ("Number", ()),
    ("Point", ()),
    ("Polygon", ()),
    ("LineString", ()),
    ("MultiPolygon", ()),
];

/// Absent means everything but `_etag`.
pub(super) fn read(json: Option<&Json>) -> Result<IndexingPolicy, NosqlFault> {
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
    for (name, list) in PATH_LISTS {
        IndexingPolicy::check_count(list, reader.list(name)?.len())?;
    }
    let mode = reader.choice("indexingMode", &MODES)?.unwrap_or(IndexingMode::Consistent);
    // The service indexes automatically unless it does not index at all.
    let automatic = reader.flag("automatic")?.unwrap_or(false) || mode != IndexingMode::None;
    let mut policy = IndexingPolicy { mode, automatic, ..IndexingPolicy::none() };
    policy.included = list(&reader, "includedPaths", included_path)?;
    policy.excluded = list(&reader, "excludedPaths", excluded_path)?;
    policy.complete_paths();
    policy.check_paths()?;
    IndexingPolicy::check_composite_count(reader.list("compositeIndexes")?.len())?;
    policy.composite = list(&reader, "compositeIndexes", read_composite)?;
    policy.spatial = list(&reader, "spatialIndexes", read_spatial)?;
    policy.vectors = list(&reader, "vectorIndexes", read_vector)?;
    policy.full_texts = list(&reader, "fullTextIndexes", read_full_text)?;
    policy.check()?;
    Ok(policy)
}

fn list<T>(
    reader: &Reader<'_>,
    name: &str,
    read: impl Fn(&Json) -> Result<T, NosqlFault>,
) -> Result<Vec<T>, NosqlFault> {
    reader.list(name)?.iter().map(read).collect()
}

fn included_path(json: &Json) -> Result<IndexedPath, NosqlFault> {
    let reader = Reader::new(POLICY, "an included path", json)?;
    reader.only(&["path", "indexes"])?;
    let path = PolicyPath::parse(reader.required_text("path")?)?;
    for index in reader.list("indexes")? {
        let index = Reader::new(POLICY, "an index of an included path", index)?;
        index.only(&["kind", "dataType", "precision"])?;
        index.choice("kind", &LEGACY_KINDS)?;
        index.choice("dataType", &LEGACY_TYPES)?;
        if index.get("precision").is_some_and(|precision| !precision.is_i64()) {
            return Err(index.bad("\"precision\" must be a whole number"));
        }
    }
    Ok(IndexedPath { path })
}

fn excluded_path(json: &Json) -> Result<PolicyPath, NosqlFault> {
    let reader = Reader::new(POLICY, "an excluded path", json)?;
    reader.only(&["path"])?;
    Ok(PolicyPath::parse(reader.required_text("path")?)?)
}

pub(super) fn write(policy: &IndexingPolicy) -> Json {
    let excluded: Vec<Json> =
        policy.excluded.iter().map(|path| json!({ "path": path.to_string() })).collect();
    let mut json = json!({
        "indexingMode": name_in(&MODES, &policy.mode),
        "automatic": policy.automatic,
        "includedPaths": policy.included.iter().map(write_included).collect::<Vec<_>>(),
        "excludedPaths": excluded,
    });
    let mut put = |name: &str, list: Vec<Json>| {
        if !list.is_empty() {
            json[name] = list.into();
        }
    };
    put("compositeIndexes", policy.composite.iter().map(write_composite).collect());
    put("spatialIndexes", policy.spatial.iter().map(write_spatial).collect());
    put("vectorIndexes", policy.vectors.iter().map(write_vector).collect());
    let full_text = |path: &value::PropertyPath| json!({ "path": path.to_string() });
    put("fullTextIndexes", policy.full_texts.iter().map(full_text).collect());
    json
}

fn write_included(included: &IndexedPath) -> Json {
    json!({ "path": included.path.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &Json) -> Result<Json, String> {
        super::read(Some(json)).map(|policy| write(&policy)).map_err(|fault| crate::faults::text(&fault))
    }

    #[test]
    fn absent_and_empty_policies_are_the_default() {
        let default = json!({
            "indexingMode": "consistent",
            "automatic": true,
            "includedPaths": [{ "path": "/*" }],
            "excludedPaths": [{ "path": "/\"_etag\"/?" }],
        });
        assert_eq!(write(&super::read(None).unwrap()), default);
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
        // The default of the Java SDK.
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
            assert!(read(&json!({ list: entries(1500) })).is_ok(), "{list}");
            let fault = read(&json!({ list: entries(1501) })).unwrap_err();
            assert!(fault.contains("1501") && fault.contains(list), "{fault}");
        }
    }

    #[test]
    fn what_the_service_normalises_comes_back_normal() {
        let path =
            json!({ "path": "/*", "indexes": [{ "kind": "Range", "dataType": "Number", "precision": -1 }] });
        let policy = read(&json!({ "includedPaths": [path] })).unwrap();
        assert_eq!(policy["includedPaths"], json!([{ "path": "/*" }]));
        for policy in [json!({ "indexingMode": "Lazy" }), json!({ "automatic": false }), json!({})] {
            let policy = read(&policy).unwrap();
            assert_eq!((&policy["indexingMode"], &policy["automatic"]), (&json!("consistent"), &json!(true)));
        }
        let odd = json!({ "path": "/*", "indexes": [{ "kind": "Tree" }] });
        assert!(read(&json!({ "includedPaths": [odd] })).is_err());
    }

    #[test]
    fn members_nobody_knows_are_refused_unless_they_are_empty() {
        assert!(read(&json!({ "futureIndexes": [], "x": null })).is_ok());
        assert!(read(&json!({ "futureIndexes": [1] })).unwrap_err().contains("futureIndexes"));
    }
}
