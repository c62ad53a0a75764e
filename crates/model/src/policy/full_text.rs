//! The full-text policy: the paths of texts and their languages.

use super::check::repeated;
use crate::{DecodeFault, Decoder, DefinitionPart, DefinitionRule, Encoder, OpaqueMembers, RequestFault};
use value::PropertyPath;

/// A language of texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    /// English.
    #[default]
    English,
    /// German.
    German,
    /// Spanish.
    Spanish,
    /// French.
    French,
    /// Italian.
    Italian,
    /// Portuguese of Brazil.
    PortugueseBrazil,
    /// Portuguese of Portugal.
    PortuguesePortugal,
    /// English, given by the number that old clients send; it is returned as that number.
    EnglishByNumber,
}

impl Language {
    /// All languages.
    pub const ALL: [Language; 8] = [
        Language::English,
        Language::German,
        Language::Spanish,
        Language::French,
        Language::Italian,
        Language::PortugueseBrazil,
        Language::PortuguesePortugal,
        Language::EnglishByNumber,
    ];

    /// Its name, as in definitions and in stored rows.
    pub fn name(self) -> &'static str {
        match self {
            Language::English => "en-US",
            Language::German => "de-DE",
            Language::Spanish => "es-ES",
            Language::French => "fr-FR",
            Language::Italian => "it-IT",
            Language::PortugueseBrazil => "pt-BR",
            Language::PortuguesePortugal => "pt-PT",
            Language::EnglishByNumber => "1033",
        }
    }
}

/// The paths of texts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FullTextPolicy {
    /// The language of paths without one.
    pub default_language: Language,
    /// One entry per path.
    pub paths: Vec<FullTextPath>,
    /// Settings of newer clients, stored but not used.
    pub others: OpaqueMembers,
}

/// The text at one path.
#[derive(Clone, Debug, PartialEq)]
pub struct FullTextPath {
    /// The path.
    pub path: PropertyPath,
    /// Its language, if it differs from the default.
    pub language: Option<Language>,
    /// Settings of newer clients, stored but not used.
    pub others: OpaqueMembers,
}

impl FullTextPolicy {
    /// Refuses a path that is given twice.
    pub fn check(&self) -> Result<(), RequestFault> {
        let places: Vec<_> = self.paths.iter().map(|path| &path.path).collect();
        match repeated(&places) {
            Some(path) => {
                Err(DefinitionPart::FullText.violates(DefinitionRule::RepeatedPath(path.to_string())))
            }
            None => Ok(()),
        }
    }

    pub(super) fn encode(&self, out: &mut Encoder) {
        out.text(self.default_language.name());
        out.list(&self.paths, |out, path| path.encode(out));
        self.others.encode(out);
    }

    pub(super) fn decode(input: &mut Decoder<'_>) -> Result<FullTextPolicy, DecodeFault> {
        Ok(FullTextPolicy {
            default_language: input.name("language", Language::ALL, Language::name)?,
            paths: input.list("full-text paths", FullTextPath::decode)?,
            others: OpaqueMembers::decode(input, "settings of the full-text policy")?,
        })
    }
}

impl FullTextPath {
    fn encode(&self, out: &mut Encoder) {
        out.path(&self.path);
        out.option(self.language.map(Language::name), Encoder::text);
        self.others.encode(out);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<FullTextPath, DecodeFault> {
        Ok(FullTextPath {
            path: input.path("full-text path")?,
            language: input
                .option("language", |input| input.name("language", Language::ALL, Language::name))?,
            others: OpaqueMembers::decode(input, "settings of a full-text path")?,
        })
    }
}
