//! `fullTextPolicy`

use super::opaque;
use super::reader::Reader;
use crate::faults::NosqlFault;
use model::policy::{FullTextPath, FullTextPolicy, Language};
use serde_json::{Map, Value as Json};

const POLICY: &str = "fullTextPolicy";

pub(super) fn read(json: &Json) -> Result<FullTextPolicy, NosqlFault> {
    let reader = Reader::new(POLICY, "it", json)?;
    let paths = reader.list("fullTextPaths")?.iter().map(read_path).collect::<Result<_, _>>()?;
    let mut policy = FullTextPolicy { paths, ..FullTextPolicy::default() };
    policy.check()?;
    policy.default_language = language(&reader, "defaultLanguage")?.unwrap_or_default();
    policy.others = reader.others(&["defaultLanguage", "fullTextPaths"]);
    Ok(policy)
}

fn read_path(json: &Json) -> Result<FullTextPath, NosqlFault> {
    let reader = Reader::new(POLICY, "a full-text path", json)?;
    Ok(FullTextPath {
        path: reader.path("path").map_err(|fault| {
            let path = reader.text("path").ok().flatten().unwrap_or_default();
            reader.bad(format!("The Full Text Policy contains an invalid Path: {path}. ({fault})"))
        })?,
        language: language(&reader, "language")?,
        others: reader.others(&["path", "language"]),
    })
}

fn language(reader: &Reader<'_>, name: &str) -> Result<Option<Language>, NosqlFault> {
    let Some(text) = reader.text(name)? else { return Ok(None) };
    let known = Language::ALL.map(|language| (language.name(), language));
    let found = reader.chosen(name, text, &known);
    found.map(Some).map_err(|_| {
        let names: Vec<String> = known.iter().map(|(name, _)| format!("\"{name}\"")).collect();
        let names = names.join(", ");
        reader.bad(format!(
            "The Full Text Policy contains an unsupported language {text}. Supported languages are: {names}"
        ))
    })
}

pub(super) fn write(policy: &FullTextPolicy) -> Json {
    let mut json = Map::new();
    json.insert("defaultLanguage".to_owned(), policy.default_language.name().into());
    json.insert("fullTextPaths".to_owned(), policy.paths.iter().map(write_path).collect());
    json.extend(opaque::write_members(&policy.others));
    json.into()
}

fn write_path(path: &FullTextPath) -> Json {
    let mut json = Map::new();
    json.insert("path".to_owned(), path.path.to_string().into());
    if let Some(language) = path.language {
        json.insert("language".to_owned(), language.name().into());
    }
    json.extend(opaque::write_members(&path.others));
    json.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_wire_form_round_trips_with_what_is_not_known() {
        let json = json!({
            "defaultLanguage": "de-DE",
            "fullTextPaths": [{ "path": "/text", "language": "en-US", "tokenizer": "word" }],
            "package": "standard",
        });
        assert_eq!(write(&read(&json).unwrap()), json);
        assert_eq!(read(&json!({})).unwrap().default_language, Language::English);
    }

    #[test]
    fn unknown_languages_and_wild_paths_are_refused() {
        for bad in [
            json!([]),
            json!({ "defaultLanguage": "tlh" }),
            json!({ "fullTextPaths": 1 }),
            json!({ "fullTextPaths": [{ "path": "/a/*" }] }),
            json!({ "fullTextPaths": [{ "path": "/a", "language": "xx" }] }),
            json!({ "fullTextPaths": [{ "path": "/a" }, { "path": "/a" }] }),
        ] {
            assert!(read(&bad).is_err(), "{bad}");
        }
    }
}
