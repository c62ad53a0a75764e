//! Words and phrases in texts, without an index; what a word is, `text_analysis` says.
//!
//! Decided here: a text that is no string holds nothing, so the answer is false; a term that is no string makes it
//! undefined; a term of stop words only is found nowhere. The language is English: the policy of a path is not known
//! here.

use plan::query::Function;
use value::{Kind, ValueRef};

use super::Call;
use crate::expression::{Outcome, defined};
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

    fn stands_in(&self, text: &Terms) -> bool {
        match self {
            Term::Phrase(phrase) => text.count_phrase(phrase) > 0,
            Term::Fuzzy { words, distance } => {
                let size = words.words().len();
                size > 0
                    && text.words().windows(size).any(|window| {
                        window.iter().zip(words.words()).all(|(found, word)| is_near(found, word, *distance))
                    })
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
        known = join(known, term.map(|term| term.stands_in(&text)));
    }
    Ok(known.map(Into::into))
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
