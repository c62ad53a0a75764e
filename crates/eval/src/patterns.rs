//! Cache of compiled patterns: each is compiled once, however many documents it is matched with.
//!
//! Patterns are found by their text, so a computed one that is the same for many documents is cached as well.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::EvalFault;
use crate::functions::Pattern;
use crate::like::LikeMatcher;

/// Most texts in the cache; a query rarely has more than a few.
const TEXTS_MAX: usize = 64;
/// Most variants of one text in the cache: modifiers, escape characters.
const VARIANTS_MAX: usize = 8;

/// The compiled patterns of a query, shared by all its threads.
#[derive(Debug, Default)]
pub struct Patterns {
    /// By text and modifiers; `None` for invalid patterns.
    regexes: Mutex<PatternCache<String, Option<Arc<Pattern>>>>,
    /// By text and escape character.
    likes: Mutex<PatternCache<Option<char>, Arc<LikeMatcher>>>,
}

impl Patterns {
    /// A regular expression; `None` if the text is invalid. `charge` counts the steps to compile it.
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

    /// The compiled pattern of a LIKE.
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

/// Steps to compile a short and plain regular expression.
const COMPILATION_STEPS: usize = 2_000;
/// Steps per byte of a longer one.
const COMPILATION_STEPS_PER_BYTE: usize = 100;
/// Steps for a counted repetition or a character class: the size of what it repeats is not known yet.
const EXPANSION_STEPS: usize = 20_000;

/// Approximate steps to compile a regular expression; some of its letters can expand to thousands of states.
fn compilation_steps(text: &str) -> usize {
    let expansions = text.bytes().filter(|byte| matches!(byte, b'{' | b'\\' | b'[')).count();
    let expanded = expansions.saturating_mul(EXPANSION_STEPS);
    text.len().saturating_mul(COMPILATION_STEPS_PER_BYTE).saturating_add(expanded).max(COMPILATION_STEPS)
}

/// Compiled variants by text.
#[derive(Debug)]
struct PatternCache<W, R> {
    by_text: HashMap<Box<str>, Vec<(W, R)>>,
}

impl<W, R> Default for PatternCache<W, R> {
    fn default() -> PatternCache<W, R> {
        PatternCache { by_text: HashMap::new() }
    }
}

impl<W, R: Clone> PatternCache<W, R> {
    fn get(&self, text: &str, is_wanted: impl Fn(&W) -> bool) -> Option<R> {
        let readings = self.by_text.get(text)?;
        readings.iter().find(|(way, _)| is_wanted(way)).map(|(_, reading)| reading.clone())
    }

    fn put(&mut self, text: &str, way: W, reading: R) {
        if self.by_text.len() >= TEXTS_MAX {
            // Patterns that change with every document: no choice of what to keep is good.
            self.by_text.clear();
        }
        let readings = self.by_text.entry(text.into()).or_default();
        if readings.len() >= VARIANTS_MAX {
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
        // A cache hit costs nothing.
        let refused = |_| Err(EvalFault::Preempted);
        assert!(patterns.regex("^A", "i", refused).is_ok());
        assert!(matches!(patterns.regex("^B", "i", refused), Err(EvalFault::Preempted)));
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
        assert!(regexes.by_text.values().all(|readings| readings.len() <= VARIANTS_MAX));
    }
}
