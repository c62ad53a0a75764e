//! Checks in bounded time whether a pattern is slow on a text.
//!
//! The regular expression library is linear in the text on any pattern, but the factor can be a thousand. It runs a
//! lazy DFA and, if that has too many states, falls back to a method that checks every position of the pattern for
//! every byte. The lazy DFA here has the same limits and stops where the fallback would begin.

use regex_automata::hybrid::dfa::DFA;
use regex_automata::nfa::thompson;
use regex_automata::util::syntax;
use regex_automata::{Input, MatchErrorKind};

use super::PATTERN_SIZE_MAX;

/// Bytes of the DFA's states, and how often it may clear them: as in the library.
const STATES_BYTES: usize = 2 << 20;
const CLEARS_MAX: usize = 3;
const BYTES_PER_STATE_MIN: usize = 10;

/// Pattern positions times text bytes that the slow method processes in less than a hundred milliseconds.
const SLOW_WORK_MAX: usize = 10_000_000;
/// The same for patterns with word boundaries, which are common: a second in the worst case.
const WORDS_WORK_MAX: usize = 200_000_000;

/// Checks whether one pattern is slow on a text.
#[derive(Debug)]
pub(crate) struct Probe {
    /// Positions of the pattern; without a DFA, its bytes.
    places: usize,
    automaton: Option<DFA>,
}

impl Probe {
    /// For a pattern that the library has accepted.
    pub(super) fn new(pattern: &str, modifiers: &str) -> Probe {
        let has = |modifier: char| modifiers.contains(modifier);
        let syntax = syntax::Config::new()
            .case_insensitive(has('i'))
            .multi_line(has('m'))
            .dot_matches_new_line(has('s'))
            .ignore_whitespace(has('x'));
        let config = DFA::config()
            .unicode_word_boundary(true)
            .cache_capacity(STATES_BYTES)
            .skip_cache_capacity_check(true)
            .minimum_cache_clear_count(Some(CLEARS_MAX))
            .minimum_bytes_per_state(Some(BYTES_PER_STATE_MIN));
        let places = thompson::Config::new().nfa_size_limit(Some(PATTERN_SIZE_MAX));
        let built = DFA::builder().configure(config).syntax(syntax).thompson(places).build(pattern);
        // The library has compiled the pattern, possibly without this DFA.
        let automaton = built.ok();
        let places = automaton.as_ref().map_or(pattern.len(), |automaton| automaton.get_nfa().states().len());
        Probe { places, automaton }
    }

    /// Whether the library would use the slow method for long.
    pub(super) fn is_slow(&self, text: &str) -> bool {
        let work = self.places.saturating_mul(text.len());
        if work <= SLOW_WORK_MAX {
            return false;
        }
        let Some(automaton) = &self.automaton else { return true };
        let searched = automaton.try_search_fwd(&mut automaton.create_cache(), &Input::new(text));
        searched.is_err_and(|error| {
            // The DFA does not support Unicode word boundaries in non-ASCII texts; the library uses the slow method
            // there too.
            let is_about_words = matches!(error.kind(), MatchErrorKind::Quit { .. });
            !is_about_words || work > WORDS_WORK_MAX
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_slow(pattern: &str, modifiers: &str, text: &str) -> bool {
        Probe::new(pattern, modifiers).is_slow(text)
    }

    #[test]
    fn only_patterns_that_need_many_states_are_slow() {
        let text = "ab".repeat(400_000);
        for pattern in ["a", "[ab]+$", "(ab)*c", "^b", "a.{3}b", "\\w+@\\w+", "ba{2,5}", "(?:abab){8}c"] {
            assert!(!is_slow(pattern, "", &text), "{pattern}");
        }
        let mut state = 1_u64;
        let random: String = (0..800_000)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                if state & 1 == 0 { 'a' } else { 'b' }
            })
            .collect();
        assert!(is_slow("[ab]*a[ab]{100}c", "", &random));
        assert!(is_slow("[AB]*A[AB]{200}C", "i", &random));
        assert!(!is_slow("[ab]*a[ab]{100}c", "", &random[..20_000]));
        let words = "größe und länge ".repeat(100_000);
        assert!(!is_slow("\\bhöhe\\b", "", &words));
        assert!(is_slow("\\b\\w{500}\\b", "", &words));
    }
}
