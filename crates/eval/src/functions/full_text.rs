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

/// More edits than any two words need.
const FAR: usize = usize::MAX / 2;
/// Steps to compare two words that may differ.
const FUZZY_STEPS: usize = 32;

/// The words of a text; each of its bytes takes a step.
fn analysed(call: Call<'_>, text: &str) -> Result<Terms, EvalFault> {
    call.charge(text.len())?;
    Ok(analyse(text, Language::English))
}

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

    /// What it takes to look for it in a text, roughly.
    fn steps(&self, text: &Terms) -> usize {
        let (words, steps_per_word) = match self {
            Term::Phrase(phrase) => (phrase, 1),
            Term::Fuzzy { words, .. } => (words, FUZZY_STEPS),
        };
        text.words().len().saturating_mul(words.words().len()).saturating_mul(steps_per_word)
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
    let text = text.map(|text| analysed(call, &text)).transpose()?.unwrap_or_default();
    let mut known = start;
    for index in 1..call.arguments.len() {
        let term = call.value(index)?.and_then(|value| Term::read(value.as_ref()));
        call.charge(term.as_ref().map_or(0, |term| term.steps(&text)))?;
        known = join(known, term.map(|term| term.occurrences(&text) > 0));
    }
    Ok(known.map(Into::into))
}

/// Number of words of a text; 0 where there is none.
pub(super) fn word_count(call: Call<'_>) -> Outcome<'_> {
    let text = call.text(0)?.map(|text| analysed(call, &text)).transpose()?;
    let words = text.map_or(0, |text| text.words().len());
    Ok(Some(Value::Int64(i64::try_from(words).unwrap_or(i64::MAX)).into()))
}

/// `_FullTextScore(text, [terms], documents, words, [documents with each term])`: how well a text answers terms, given
/// statistics of all documents. Rewritten queries of clients that rank for themselves have it.
pub(super) fn score(call: Call<'_>) -> Outcome<'_> {
    let terms = defined!(call.array(1));
    let documents = defined!(call.number(2)).double();
    let words = defined!(call.number(3)).double();
    let hits = defined!(call.array(4));
    let text = call.text(0)?.map(|text| analysed(call, &text)).transpose()?.unwrap_or_default();
    let statistics = Statistics { documents, words };
    let mut score = 0.0;
    for (term, hits) in terms.as_ref().elements().zip(hits.as_ref().elements()) {
        let (Some(term), Some(hits)) = (Term::read(term), hits.as_f64()) else {
            return Ok(None);
        };
        call.charge(term.steps(&text))?;
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
    // One row of the table of distances between prefixes at a time, and of it only the places near the diagonal: what
    // lies further off is beyond the distance already.
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
        if let Some(behind) = row.get_mut(end + 1) {
            *behind = FAR;
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
