//! Words and phrases in texts, without an index; what a word is, `text_analysis` says.
//!
//! Decided here: a text that is no string holds nothing, so the answer is false; a term that is no string makes it
//! undefined; a term of stop words only is found nowhere. The language is English: the policy of a path is not known
//! here.

use plan::query::Function;
use value::{Kind, Value, ValueRef};

use super::Call;
use crate::expression::{Outcome, defined};
use crate::number::double_value;
use crate::text_analysis::{Language, Terms, analyse};
use crate::{EvalFault, operators};

/// Most edits between a word and a fuzzy term.
const DISTANCE_MAX: usize = 2;

/// Something to look for.
enum Term {
    Phrase(Terms),
    Fuzzy { words: Terms, distance: usize },
}

impl Term {
    /// A string, or an object with a term and a distance.
    fn read(value: ValueRef<'_>) -> Option<Term> {
        if value.kind() != Kind::Object {
            return value.as_str().map(|text| Term::Phrase(analyse(text, Language::English)));
        }
        let words = analyse(value.member("term")?.as_str()?, Language::English);
        let distance = value.member("distance").map_or(Some(0), ValueRef::as_i64)?;
        let distance = usize::try_from(distance).ok().filter(|distance| *distance <= DISTANCE_MAX)?;
        Some(Term::Fuzzy { words, distance })
    }

    /// How often it stands in a text.
    fn occurrences(&self, text: &Terms) -> usize {
        match self {
            Term::Phrase(phrase) => text.count_phrase(phrase),
            Term::Fuzzy { words, .. } if words.words().is_empty() => 0,
            Term::Fuzzy { words, distance } => {
                let is_here = |window: &&[String]| {
                    window.iter().zip(words.words()).all(|(found, word)| is_near(found, word, *distance))
                };
                text.words().windows(words.words().len()).filter(is_here).count()
            }
        }
    }
}

pub(super) fn contains(call: Call<'_>) -> Outcome<'_> {
    contains_all(call)
}

pub(super) fn contains_all(call: Call<'_>) -> Outcome<'_> {
    fold(call, Some(true), operators::and)
}

pub(super) fn contains_any(call: Call<'_>) -> Outcome<'_> {
    fold(call, Some(false), operators::or)
}

fn fold(
    call: Call<'_>,
    start: Option<bool>,
    join: fn(Option<bool>, Option<bool>) -> Option<bool>,
) -> Outcome<'_> {
    let text = defined!(call.value(0).map(|value| Some(value.and_then(|value| value.into_text()))));
    let text = text.map(|text| analyse(&text, Language::English)).unwrap_or_default();
    let mut known = start;
    for index in 1..call.arguments.len() {
        let term = call.value(index)?.and_then(|value| Term::read(value.as_ref()));
        known = join(known, term.map(|term| term.occurrences(&text) > 0));
    }
    Ok(known.map(Into::into))
}

/// Number of words of a text; 0 where there is none.
pub(super) fn word_count(call: Call<'_>) -> Outcome<'_> {
    let words = call.text(0)?.map_or(0, |text| analyse(&text, Language::English).words().len());
    Ok(Some(Value::Int64(i64::try_from(words).unwrap_or(i64::MAX)).into()))
}

/// `_FullTextScore(text, [terms], documents, words, [documents with each term])`: how well a text answers terms, given
/// statistics of all documents. Rewritten queries of clients that rank for themselves have it.
pub(super) fn score(call: Call<'_>) -> Outcome<'_> {
    let terms = defined!(call.array(1));
    let documents = defined!(call.number(2)).double();
    let words = defined!(call.number(3)).double();
    let hits = defined!(call.array(4));
    let text = call.text(0)?.map(|text| analyse(&text, Language::English)).unwrap_or_default();
    let statistics = Statistics { documents, words };
    let mut score = 0.0;
    for (term, hits) in terms.as_ref().elements().zip(hits.as_ref().elements()) {
        let (Some(term), Some(hits)) = (Term::read(term), hits.as_f64()) else {
            return Ok(None);
        };
        score += statistics.weight(term.occurrences(&text), text.words().len(), hits);
    }
    Ok(Some(double_value(score).into()))
}

/// What ranking must know of all documents.
struct Statistics {
    documents: f64,
    words: f64,
}

/// How soon further occurrences of a term stop to count.
const SATURATION: f64 = 1.2;
/// How much a long text is held to be less about each of its words.
const LENGTH_WEIGHT: f64 = 0.75;

impl Statistics {
    /// BM25 of one term that occurs so often in a text of so many words and stands in `hits` documents.
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

/// Scores depend on all documents and exist only where results are ranked.
pub(super) fn outside_rank<'a>(function: Function) -> Outcome<'a> {
    Err(EvalFault::ScoreOutsideRank { function: function.signature().name })
}

/// Whether one word becomes the other by at most so many insertions, removals and replacements of characters.
fn is_near(left: &str, right: &str, distance: usize) -> bool {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    if left.len().abs_diff(right.len()) > distance {
        return false;
    }
    // One row of the table of distances between prefixes at a time.
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (above, left) in left.iter().enumerate() {
        let mut diagonal = above;
        if let Some(first) = row.first_mut() {
            *first = above + 1;
        }
        for (column, right) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(left != right);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
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
