//! Full-text search without an index; `text_analysis` defines words.
//!
//! Own decisions: a text that is not a string contains nothing, so the result is false; a term that is not a string
//! makes it undefined; a term of stop words only is never found. The language is English: the policy of a path is not
//! known here.

use plan::query::Function;
use value::{Kind, Value, ValueRef};

use super::Call;
use crate::expression::{EvalResult, defined};
use crate::number::double_value;
use crate::text_analysis::{Language, Terms, analyse};
use crate::{EvalFault, operators};

/// Most edits between a word and a fuzzy term.
const DISTANCE_MAX: usize = 2;

/// More edits than any two words need.
const FAR: usize = usize::MAX / 2;
/// Steps to compare two words that may differ.
const FUZZY_STEPS: usize = 32;

/// The words of a text; each byte takes a step.
fn analysed(call: Call<'_>, text: &str) -> Result<Terms, EvalFault> {
    call.charge(text.len())?;
    Ok(analyse(text, Language::English))
}

enum SearchTerm {
    Phrase(Terms),
    Fuzzy { words: Terms, distance: usize },
}

impl SearchTerm {
    /// A string, or an object with a term and a distance.
    fn read(value: ValueRef<'_>) -> Option<SearchTerm> {
        if value.kind() != Kind::Object {
            return value.as_str().map(|text| SearchTerm::Phrase(analyse(text, Language::English)));
        }
        let words = analyse(value.member("term")?.as_str()?, Language::English);
        let distance = value.member("distance").map_or(Some(0), ValueRef::as_i64)?;
        let distance = usize::try_from(distance).ok().filter(|distance| *distance <= DISTANCE_MAX)?;
        Some(SearchTerm::Fuzzy { words, distance })
    }

    /// Approximate steps to search it in a text.
    fn steps(&self, text: &Terms) -> usize {
        let (words, steps_per_word) = match self {
            SearchTerm::Phrase(phrase) => (phrase, 1),
            SearchTerm::Fuzzy { words, .. } => (words, FUZZY_STEPS),
        };
        text.words().len().saturating_mul(words.words().len()).saturating_mul(steps_per_word)
    }

    /// Number of occurrences in a text.
    fn occurrences(&self, text: &Terms) -> usize {
        match self {
            SearchTerm::Phrase(phrase) => text.count_phrase(phrase),
            SearchTerm::Fuzzy { words, .. } if words.words().is_empty() => 0,
            SearchTerm::Fuzzy { words, distance } => {
                let is_here = |window: &&[String]| {
                    window.iter().zip(words.words()).all(|(found, word)| is_near(found, word, *distance))
                };
                text.words().windows(words.words().len()).filter(is_here).count()
            }
        }
    }
}

pub(super) fn contains(call: Call<'_>) -> EvalResult<'_> {
    contains_all(call)
}

pub(super) fn contains_all(call: Call<'_>) -> EvalResult<'_> {
    fold(call, Some(true), operators::and)
}

pub(super) fn contains_any(call: Call<'_>) -> EvalResult<'_> {
    fold(call, Some(false), operators::or)
}

fn fold(
    call: Call<'_>,
    start: Option<bool>,
    join: fn(Option<bool>, Option<bool>) -> Option<bool>,
) -> EvalResult<'_> {
    let text = defined!(call.value(0).map(|value| Some(value.and_then(|value| value.into_text()))));
    let text = text.map(|text| analysed(call, &text)).transpose()?.unwrap_or_default();
    let mut known = start;
    for index in 1..call.arguments.len() {
        let term = call.value(index)?.and_then(|value| SearchTerm::read(value.as_ref()));
        call.charge(term.as_ref().map_or(0, |term| term.steps(&text)))?;
        known = join(known, term.map(|term| term.occurrences(&text) > 0));
    }
    Ok(known.map(Into::into))
}

/// Number of words of a text, stop words included; 0 for anything else.
pub(super) fn word_count(call: Call<'_>) -> EvalResult<'_> {
    let text = call.text(0)?.map(|text| analysed(call, &text)).transpose()?;
    let words = text.map_or(0, |text| text.length());
    Ok(Some(Value::Int64(i64::try_from(words).unwrap_or(i64::MAX)).into()))
}

/// `_FullTextScore(text, [terms], documents, words, [documents with each term])`: the score of a text, given statistics
/// of all documents. Used in rewritten queries of clients that rank by themselves.
pub(super) fn score(call: Call<'_>) -> EvalResult<'_> {
    let terms = defined!(call.array(1));
    let documents = defined!(call.number(2)).double();
    let words = defined!(call.number(3)).double();
    let hits = defined!(call.array(4));
    let text = call.text(0)?.map(|text| analysed(call, &text)).transpose()?.unwrap_or_default();
    let statistics = CorpusStatistics { documents, words };
    let mut score = 0.0;
    for (term, hits) in terms.as_ref().elements().zip(hits.as_ref().elements()) {
        let (Some(term), Some(hits)) = (SearchTerm::read(term), hits.as_f64()) else {
            return Ok(None);
        };
        call.charge(term.steps(&text))?;
        score += statistics.weight(term.occurrences(&text), text.length(), hits);
    }
    Ok(Some(double_value(score).into()))
}

/// Statistics of all documents, needed for ranking.
struct CorpusStatistics {
    documents: f64,
    words: f64,
}

/// BM25 k1: how fast further occurrences of a term lose weight.
const SATURATION: f64 = 1.2;
/// BM25 b: how much the length of a text reduces the weight of its words.
const LENGTH_WEIGHT: f64 = 0.75;

impl CorpusStatistics {
    /// BM25 of a term with `occurrences` in a text of `length` words that occurs in `hits` documents.
    fn weight(&self, occurrences: usize, length: usize, hits: f64) -> f64 {
        if occurrences == 0 || self.documents <= 0.0 || self.words <= 0.0 {
            return 0.0;
        }
        let rarity = (1.0 + (self.documents - hits + 0.5).max(0.0) / (hits.max(0.0) + 0.5)).ln();
        let occurrences = occurrences as f64;
        let length = length as f64 * self.documents / self.words;
        rarity * occurrences * (SATURATION + 1.0)
            / (occurrences + SATURATION * (1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * length))
    }
}

/// Scores depend on all documents and are defined only in a ranked order.
pub(super) fn outside_rank<'a>(function: Function) -> EvalResult<'a> {
    Err(EvalFault::ScoreOutsideRank { function: function.signature().name })
}

/// Whether the edit distance of two words is at most `distance`.
fn is_near(left: &str, right: &str, distance: usize) -> bool {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    if left.len().abs_diff(right.len()) > distance {
        return false;
    }
    // Computes the table of prefix distances row by row, and only the cells near the diagonal: all others exceed the
    // distance.
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (above, left) in left.iter().enumerate() {
        let first = above.saturating_sub(distance);
        let end = right.len().min(above + distance + 1);
        let mut diagonal = row[first];
        row[first] = if first == 0 { above + 1 } else { FAR };
        for column in first..end {
            let replaced = diagonal + usize::from(*left != right[column]);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
        if let Some(after) = row.get_mut(end + 1) {
            *after = FAR;
        }
    }
    row.last().is_some_and(|found| *found <= distance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        assert!(is_near("bicycl", "bycycl", 1));
        assert!(!is_near("bicycl", "bycycl", 0));
        assert!(is_near("kitten", "sittin", 2));
        assert!(!is_near("kitten", "sitting", 2));
        assert!(is_near("", "ab", 2));
        assert!(!is_near("", "abc", 2));
    }
}
