//! Patterns made ready: each is read once, however many documents it is compared with.
//!
//! Patterns are found by their text, so one that is computed and is the same for many documents is kept as well.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::EvalFault;
use crate::functions::Pattern;
use crate::like::LikeMatcher;

/// Texts kept at a time; a query rarely has more than a few.
const TEXTS_MAX: usize = 64;
/// Ways to read one text that are kept: modifiers, escape characters.
const READINGS_MAX: usize = 8;

/// The patterns of a query, shared by all who work for it.
#[derive(Debug, Default)]
pub struct Patterns {
    /// By text and modifiers; those that are none as well.
    regexes: Mutex<Kept<String, Option<Arc<Pattern>>>>,
    /// By text and escape character.
    likes: Mutex<Kept<Option<char>, Arc<LikeMatcher>>>,
}

impl Patterns {
    /// A regular expression; nothing if the text is none. `charge` counts the steps that it takes to make one ready.
    pub(crate) fn regex(
        &self,
        text: &str,
        modifiers: &str,
        charge: impl FnOnce(usize) -> Result<(), EvalFault>,
    ) -> Result<Option<Arc<Pattern>>, EvalFault> {
        let mut kept = self.regexes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(regex) = kept.get(text, |known| known == modifiers) {
            return Ok(regex);
        }
        charge(compilation_steps(text))?;
        let regex = Pattern::new(text, modifiers).map(Arc::new);
        kept.put(text, modifiers.to_owned(), regex.clone());
        Ok(regex)
    }

    /// The pattern of a LIKE.
    pub(crate) fn like(&self, text: &str, escape: Option<char>) -> Result<Arc<LikeMatcher>, EvalFault> {
        let mut kept = self.likes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(matcher) = kept.get(text, |known| *known == escape) {
            return Ok(matcher);
        }
        let matcher = Arc::new(LikeMatcher::new(text, escape)?);
        kept.put(text, escape, Arc::clone(&matcher));
        Ok(matcher)
    }
}

/// Steps to make a short and plain regular expression ready.
const COMPILATION_STEPS: usize = 2_000;
/// Steps for each byte of a longer one.
const COMPILATION_STEPS_PER_BYTE: usize = 100;
/// Steps for a repetition with a count or a class of characters: what it repeats is not known before.
const EXPANSION_STEPS: usize = 20_000;

/// What it takes to make a regular expression ready, roughly; some letters of it can stand for thousands of states.
fn compilation_steps(text: &str) -> usize {
    let expansions = text.bytes().filter(|byte| matches!(byte, b'{' | b'\\' | b'[')).count();
    let expanded = expansions.saturating_mul(EXPANSION_STEPS);
    text.len().saturating_mul(COMPILATION_STEPS_PER_BYTE).saturating_add(expanded).max(COMPILATION_STEPS)
}

/// Readings of texts.
#[derive(Debug)]
struct Kept<W, R> {
    by_text: HashMap<Box<str>, Vec<(W, R)>>,
}

impl<W, R> Default for Kept<W, R> {
    fn default() -> Kept<W, R> {
        Kept { by_text: HashMap::new() }
    }
}

impl<W, R: Clone> Kept<W, R> {
    fn get(&self, text: &str, is_wanted: impl Fn(&W) -> bool) -> Option<R> {
        let readings = self.by_text.get(text)?;
        readings.iter().find(|(way, _)| is_wanted(way)).map(|(_, reading)| reading.clone())
    }

    fn put(&mut self, text: &str, way: W, reading: R) {
        if self.by_text.len() >= TEXTS_MAX {
            // Patterns that change with every document: there is no good choice of what to keep.
            self.by_text.clear();
        }
        let readings = self.by_text.entry(text.into()).or_default();
        if readings.len() >= READINGS_MAX {
            readings.clear();
        }
        readings.push((way, reading));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_read_once_for_each_way_to_read_it() {
        let patterns = Patterns::default();
        let one = patterns.like("a!%", Some('!')).unwrap();
        assert!(Arc::ptr_eq(&one, &patterns.like("a!%", Some('!')).unwrap()));
        let other = patterns.like("a!%", None).unwrap();
        assert!(one.matches("a%") && !one.matches("a!b"));
        assert!(!other.matches("a%") && other.matches("a!b"));
        let read = |text: &str, modifiers: &str| patterns.regex(text, modifiers, |_| Ok(())).unwrap();
        let one = read("^A", "").unwrap();
        let other = read("^A", "i").unwrap();
        assert!(!one.regex.is_match("abc") && other.regex.is_match("abc"));
        assert!(Arc::ptr_eq(&other, &read("^A", "i").unwrap()));
        assert!(read("(", "").is_none() && read("(", "").is_none());
        // What is known costs nothing.
        let refused = |_| Err(EvalFault::BrokenOff);
        assert!(patterns.regex("^A", "i", refused).is_ok());
        assert!(matches!(patterns.regex("^B", "i", refused), Err(EvalFault::BrokenOff)));
    }

    #[test]
    fn many_patterns_do_not_pile_up() {
        let patterns = Patterns::default();
        for number in 0..1000 {
            let text = format!("{number}%");
            assert!(patterns.like(&text, None).unwrap().matches(&format!("{number} things")));
            let same = patterns.regex("same", &"i".repeat(number), |_| Ok(()));
            assert!(same.unwrap().is_some());
        }
        let likes = patterns.likes.lock().unwrap();
        assert!(likes.by_text.len() <= TEXTS_MAX);
        let regexes = patterns.regexes.lock().unwrap();
        assert!(regexes.by_text.values().all(|readings| readings.len() <= READINGS_MAX));
    }
}
