//! The words of a text for the full-text functions, with and without an index.
//!
//! Words by the rules of Unicode (so `1,977` and `don't` are one each), lower case, without stop words (English only,
//! as in the service), Snowball stems. Knows nothing of policies: the caller passes the language.

use std::collections::HashSet;
use std::sync::LazyLock;

use rust_stemmers::{Algorithm, Stemmer};
use unicode_segmentation::UnicodeSegmentation;

/// Incremented with every change of the analysis: an index built by another version must be rebuilt.
pub const ANALYSIS_VERSION: u32 = 1;

/// The list documented by the service.
static STOP_WORDS_ENGLISH: LazyLock<HashSet<&str>> =
    LazyLock::new(|| include_str!("stop_words_english.txt").split_whitespace().collect());

/// The languages of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[allow(missing_docs)] // each is named after itself
pub enum Language {
    #[default]
    English,
    German,
    Spanish,
    French,
    Italian,
    Portuguese,
}

impl Language {
    /// The language of a tag such as `de-DE`; regions are ignored.
    pub fn find(tag: &str) -> Option<Language> {
        let language = tag.split('-').next().unwrap_or_default().to_ascii_lowercase();
        match language.as_str() {
            // Some SDKs use this number for en-US.
            "en" | "1033" => Some(Language::English),
            "de" => Some(Language::German),
            "es" => Some(Language::Spanish),
            "fr" => Some(Language::French),
            "it" => Some(Language::Italian),
            "pt" => Some(Language::Portuguese),
            _ => None,
        }
    }

    fn stemmer(self) -> Stemmer {
        Stemmer::create(match self {
            Language::English => Algorithm::English,
            Language::German => Algorithm::German,
            Language::Spanish => Algorithm::Spanish,
            Language::French => Algorithm::French,
            Language::Italian => Algorithm::Italian,
            Language::Portuguese => Algorithm::Portuguese,
        })
    }

    fn is_stop_word(self, word: &str) -> bool {
        match self {
            Language::English => STOP_WORDS_ENGLISH.contains(word),
            Language::German
            | Language::Spanish
            | Language::French
            | Language::Italian
            | Language::Portuguese => false,
        }
    }
}

/// The words of a text in order, as stems.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Terms {
    words: Vec<String>,
    length: usize,
}

impl Terms {
    /// The stems in order.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Number of words of the text, stop words included: longer texts score lower.
    ///
    /// Own decision: without stop words, texts tie that the service ranks one after the other.
    pub fn length(&self) -> usize {
        self.length
    }

    /// How often the words of a phrase occur consecutively. A phrase without words never occurs.
    pub fn count_phrase(&self, phrase: &Terms) -> usize {
        if phrase.words.is_empty() {
            return 0;
        }
        self.words.windows(phrase.words.len()).filter(|window| *window == phrase.words).count()
    }
}

/// Splits a text into its words. Stop words leave no gap: the words around them count as adjacent.
pub fn analyse(text: &str, language: Language) -> Terms {
    let stemmer = language.stemmer();
    let mut length = 0;
    let words = text
        .unicode_words()
        .inspect(|_| length += 1)
        .map(|word| word.to_lowercase().replace('’', "'"))
        .filter(|word| !language.is_stop_word(word))
        .map(|word| stemmer.stem(&word).into_owned())
        .collect();
    Terms { words, length }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, language: Language, expected: &[&str]) {
        assert_eq!(analyse(text, language).words, expected);
    }

    #[test]
    fn words_of_texts() {
        check("", Language::English, &[]);
        check("The quick brown FOXES are jumping!", Language::English, &["quick", "brown", "fox", "jump"]);
        check("1,977 people don't care — 5 do", Language::English, &["1,977", "peopl", "care"]);
        check("Die Häuser der Städte", Language::German, &["die", "haus", "der", "stadt"]);
        check("state of the art", Language::English, &["state", "art"]);
    }

    #[test]
    fn stop_words_count_for_the_length() {
        assert_eq!(analyse("The quick brown fox", Language::English).length(), 4);
        assert_eq!(analyse("", Language::English).length(), 0);
    }

    #[test]
    fn phrases_are_adjacent_words() {
        let text = analyse("red bicycles and blue bicycles, red bicycle", Language::English);
        let count = |phrase| text.count_phrase(&analyse(phrase, Language::English));
        assert_eq!((count("red bicycle"), count("blue"), count("bicycle blue"), count("the")), (2, 1, 1, 0));
    }

    #[test]
    fn languages_by_tag() {
        assert_eq!(Language::find("pt-BR"), Some(Language::Portuguese));
        assert_eq!(Language::find("EN-us"), Some(Language::English));
        assert_eq!(Language::find("xx"), None);
    }
}
