//! The full-text policy: where text is and in which language.

use super::reader::{Reader, bad, repeated};
use crate::{DecodeFault, Decoder, Encoder, RequestFault};
use serde_json::{Map, Value as Json};
use value::PropertyPath;

const POLICY: &str = "fullTextPolicy";

/// Languages that text can be in; the number is the first one's old name.
const LANGUAGES: [(&str, &str); 8] = [
    ("en-US", "en-US"),
    ("de-DE", "de-DE"),
    ("es-ES", "es-ES"),
    ("fr-FR", "fr-FR"),
    ("it-IT", "it-IT"),
    ("pt-BR", "pt-BR"),
    ("pt-PT", "pt-PT"),
    ("1033", "1033"),
];

/// Where text is.
#[derive(Clone, Debug, PartialEq)]
pub struct FullTextPolicy {
    /// The language of paths that name none.
    pub default_language: &'static str,
    /// One entry for each path.
    pub paths: Vec<FullTextPath>,
    /// Settings of newer clients, kept and not acted on.
    others: Map<String, Json>,
}

/// The text at one path.
#[derive(Clone, Debug, PartialEq)]
pub struct FullTextPath {
    /// Where it is.
    pub path: PropertyPath,
    /// Its language, if it is another than the default.
    pub language: Option<&'static str>,
    others: Map<String, Json>,
}

impl FullTextPolicy {
    pub(super) fn from_json(json: &Json) -> Result<FullTextPolicy, RequestFault> {
        let reader = Reader::new(POLICY, "it", json)?;
        let paths = reader.list("fullTextPaths")?.iter().map(FullTextPath::from_json);
        let paths: Vec<FullTextPath> = paths.collect::<Result<_, _>>()?;
        let places: Vec<_> = paths.iter().map(|path| &path.path).collect();
        if let Some(path) = repeated(&places) {
            return Err(bad(POLICY, format!("the path \"{path}\" is given twice")));
        }
        Ok(FullTextPolicy {
            default_language: reader.choice("defaultLanguage", &LANGUAGES)?.unwrap_or("en-US"),
            paths,
            others: reader.others(&["defaultLanguage", "fullTextPaths"]),
        })
    }

    pub(super) fn to_json(&self) -> Json {
        let mut json = Map::new();
        json.insert("defaultLanguage".to_owned(), self.default_language.into());
        json.insert("fullTextPaths".to_owned(), self.paths.iter().map(FullTextPath::to_json).collect());
        json.extend(self.others.clone());
        json.into()
    }
}

impl FullTextPath {
    fn from_json(json: &Json) -> Result<FullTextPath, RequestFault> {
        let reader = Reader::new(POLICY, "a full-text path", json)?;
        Ok(FullTextPath {
            path: reader.path("path")?,
            language: reader.choice("language", &LANGUAGES)?,
            others: reader.others(&["path", "language"]),
        })
    }

    fn to_json(&self) -> Json {
        let mut json = Map::new();
        json.insert("path".to_owned(), self.path.to_string().into());
        if let Some(language) = self.language {
            json.insert("language".to_owned(), language.into());
        }
        json.extend(self.others.clone());
        json.into()
    }
}

impl FullTextPolicy {
    pub(super) fn encode(&self, out: &mut Encoder) {
        out.text(self.default_language);
        out.list(&self.paths, |out, path| path.encode(out));
        out.json_members(&self.others);
    }

    pub(super) fn decode(input: &mut Decoder<'_>) -> Result<FullTextPolicy, DecodeFault> {
        Ok(FullTextPolicy {
            default_language: input.name("language", &LANGUAGES)?,
            paths: input.list("full-text paths", FullTextPath::decode)?,
            others: input.json_members("settings of the full-text policy")?,
        })
    }
}

impl FullTextPath {
    fn encode(&self, out: &mut Encoder) {
        out.path(&self.path);
        out.option(self.language, Encoder::text);
        out.json_members(&self.others);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<FullTextPath, DecodeFault> {
        Ok(FullTextPath {
            path: input.path("full-text path")?,
            language: input.option("language", |input| input.name("language", &LANGUAGES))?,
            others: input.json_members("settings of a full-text path")?,
        })
    }
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
        assert_eq!(FullTextPolicy::from_json(&json).unwrap().to_json(), json);
        assert_eq!(FullTextPolicy::from_json(&json!({})).unwrap().default_language, "en-US");
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
            assert!(FullTextPolicy::from_json(&bad).is_err(), "{bad}");
        }
    }
}
