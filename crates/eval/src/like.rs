//! LIKE: whole-string patterns with `%`, `_`, `[set]`, `[^set]` and an escape character.
//!
//! A pattern is split at its `%` into pieces; each piece is searched after the previous one, leftmost first, which is
//! correct because a piece has a fixed length. Pieces of plain letters are found in linear time; the others take text ×
//! piece steps in the worst case, so their length is bounded.

use crate::EvalFault;

/// Most elements of a piece between two `%` that contains `_` or sets.
const LIKE_PIECE_MAX: usize = 1_000;

/// One element of a pattern, which matches one character.
#[derive(Debug, PartialEq)]
enum PatternElement {
    Literal(char),
    Any,
    Set { negated: bool, ranges: Vec<(char, char)> },
}

impl PatternElement {
    fn matches(&self, character: char) -> bool {
        match self {
            PatternElement::Literal(literal) => *literal == character,
            PatternElement::Any => true,
            PatternElement::Set { negated, ranges } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&character)) != *negated
            }
        }
    }
}

/// The part of a pattern between two `%`.
#[derive(Debug)]
enum PatternPiece {
    Literal(String),
    Places(Vec<PatternElement>),
}

impl PatternPiece {
    fn new(places: Vec<PatternElement>) -> Result<PatternPiece, EvalFault> {
        let literal = places.iter().map(|place| match place {
            PatternElement::Literal(letter) => Some(*letter),
            PatternElement::Any | PatternElement::Set { .. } => None,
        });
        match literal.collect() {
            Some(literal) => Ok(PatternPiece::Literal(literal)),
            None if places.len() <= LIKE_PIECE_MAX => Ok(PatternPiece::Places(places)),
            None => Err(EvalFault::PatternTooLarge { characters_max: LIKE_PIECE_MAX }),
        }
    }

    /// The text after the piece, if it starts with it.
    fn strip_from_start<'t>(&self, text: &'t str) -> Option<&'t str> {
        match self {
            PatternPiece::Literal(literal) => text.strip_prefix(literal.as_str()),
            PatternPiece::Places(places) => {
                let mut characters = text.chars();
                let all =
                    places.iter().all(|place| characters.next().is_some_and(|found| place.matches(found)));
                all.then_some(characters.as_str())
            }
        }
    }

    /// The text before the piece, if it ends with it.
    fn strip_from_end<'t>(&self, text: &'t str) -> Option<&'t str> {
        match self {
            PatternPiece::Literal(literal) => text.strip_suffix(literal.as_str()),
            PatternPiece::Places(places) => {
                let mut characters = text.chars();
                let all = places
                    .iter()
                    .rev()
                    .all(|place| characters.next_back().is_some_and(|found| place.matches(found)));
                all.then_some(characters.as_str())
            }
        }
    }

    /// The text after the first occurrence of the piece.
    fn strip_from_first<'t>(&self, text: &'t str) -> Option<&'t str> {
        match self {
            PatternPiece::Literal(literal) => {
                text.find(literal.as_str()).map(|at| &text[at + literal.len()..])
            }
            PatternPiece::Places(_) => {
                text.char_indices().find_map(|(at, _)| self.strip_from_start(&text[at..]))
            }
        }
    }
}

/// What may follow the literal prefix of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LikeRest {
    /// Nothing: the pattern is the prefix.
    Nothing,
    /// Anything: only a `%` follows.
    Anything,
    /// The rest of the pattern.
    Pattern,
}

/// The literal prefix of a pattern and what may follow it; `None` for an invalid pattern.
pub fn like_prefix(pattern: &str, escape: Option<char>) -> Option<(String, LikeRest)> {
    let pieces = pieces(pattern, escape).ok()?;
    match &pieces[..] {
        [PatternPiece::Literal(letters)] => Some((letters.clone(), LikeRest::Nothing)),
        [PatternPiece::Literal(letters), PatternPiece::Literal(rest)] if rest.is_empty() => {
            Some((letters.clone(), LikeRest::Anything))
        }
        [PatternPiece::Literal(letters), ..] => Some((letters.clone(), LikeRest::Pattern)),
        [PatternPiece::Places(places), ..] => {
            let letter = |place: &PatternElement| match place {
                PatternElement::Literal(letter) => Some(*letter),
                PatternElement::Any | PatternElement::Set { .. } => None,
            };
            Some((places.iter().map_while(letter).collect(), LikeRest::Pattern))
        }
        [] => None,
    }
}

/// The pieces between the `%`s of a pattern, at least one.
fn pieces(pattern: &str, escape: Option<char>) -> Result<Vec<PatternPiece>, EvalFault> {
    let mut pieces = Vec::new();
    let mut piece = Vec::new();
    let mut rest = pattern;
    while let Some(character) = rest.chars().next() {
        rest = &rest[character.len_utf8()..];
        piece.push(match character {
            // An escape at the very end is a literal.
            _ if Some(character) == escape => match rest.chars().next() {
                Some(escaped) => {
                    rest = &rest[escaped.len_utf8()..];
                    PatternElement::Literal(escaped)
                }
                None => PatternElement::Literal(character),
            },
            '%' => {
                pieces.push(PatternPiece::new(std::mem::take(&mut piece))?);
                continue;
            }
            '_' => PatternElement::Any,
            '[' => match set(rest) {
                Some((place, after)) => {
                    rest = after;
                    place
                }
                // A bracket that is not closed is a literal.
                None => PatternElement::Literal('['),
            },
            _ => PatternElement::Literal(character),
        });
    }
    pieces.push(PatternPiece::new(piece)?);
    Ok(pieces)
}

/// Parses a set after its opening bracket, and returns what follows it.
fn set(text: &str) -> Option<(PatternElement, &str)> {
    let (negated, body) = match text.strip_prefix('^') {
        Some(body) => (true, body),
        None => (false, text),
    };
    // A closing bracket in the first position is a member of the set.
    let first = body.chars().next()?;
    let end = body[first.len_utf8()..].find(']')? + first.len_utf8();
    let members: Vec<char> = body[..end].chars().collect();
    let mut ranges = Vec::new();
    let mut rest = members.as_slice();
    while let [low, after @ ..] = rest {
        rest = match after {
            ['-', high, after @ ..] => {
                ranges.push((*low, *high));
                after
            }
            _ => {
                ranges.push((*low, *low));
                after
            }
        };
    }
    Some((PatternElement::Set { negated, ranges }, &body[end + 1..]))
}

/// A parsed pattern.
#[derive(Debug)]
pub(crate) struct LikeMatcher {
    pieces: Vec<PatternPiece>,
}

impl LikeMatcher {
    pub(crate) fn new(pattern: &str, escape: Option<char>) -> Result<LikeMatcher, EvalFault> {
        Ok(LikeMatcher { pieces: pieces(pattern, escape)? })
    }

    /// Approximate number of bytes compared in the worst case.
    pub(crate) fn bytes_compared(&self, text: &str) -> usize {
        let places = |piece: &PatternPiece| match piece {
            PatternPiece::Literal(_) => 1,
            PatternPiece::Places(places) => places.len(),
        };
        // The first and the last piece have one position each; those between them are searched.
        let longest = self.pieces.iter().skip(1).map(places).max().unwrap_or(1);
        text.len().saturating_mul(longest)
    }

    /// Whether the whole text matches the pattern.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let Some((first, after)) = self.pieces.split_first() else {
            return text.is_empty();
        };
        let rest = first.strip_from_start(text);
        let Some((last, middle)) = after.split_last() else {
            return rest.is_some_and(str::is_empty);
        };
        let rest = rest.and_then(|rest| last.strip_from_end(rest));
        rest.and_then(|rest| middle.iter().try_fold(rest, |rest, piece| piece.strip_from_first(rest)))
            .is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes() {
        let check = |pattern: &str, letters: &str, rest: LikeRest| {
            assert_eq!(like_prefix(pattern, Some('!')), Some((letters.to_owned(), rest)), "{pattern}");
        };
        check("", "", LikeRest::Nothing);
        check("abc", "abc", LikeRest::Nothing);
        check("a!%c", "a%c", LikeRest::Nothing);
        check("ab%", "ab", LikeRest::Anything);
        check("%", "", LikeRest::Anything);
        check("ab%%", "ab", LikeRest::Pattern);
        check("ab%c", "ab", LikeRest::Pattern);
        check("%c", "", LikeRest::Pattern);
        check("ab_d", "ab", LikeRest::Pattern);
        check("a[bc]%", "a", LikeRest::Pattern);
        assert_eq!(like_prefix(&"_".repeat(LIKE_PIECE_MAX + 1), None), None);
    }

    fn like(text: &str, pattern: &str, escape: Option<char>) -> Result<bool, EvalFault> {
        LikeMatcher::new(pattern, escape).map(|matcher| matcher.matches(text))
    }

    #[track_caller]
    fn check(pattern: &str, yes: &[&str], no: &[&str]) {
        for text in yes {
            assert!(like(text, pattern, Some('!')).unwrap(), "{text:?} is LIKE {pattern:?}");
        }
        for text in no {
            assert!(!like(text, pattern, Some('!')).unwrap(), "{text:?} is not LIKE {pattern:?}");
        }
    }

    #[test]
    fn patterns() {
        check("", &[""], &["a"]);
        check("abc", &["abc"], &["ABC", "abcd", "ab", ""]);
        check("%", &["", "a", "abc"], &[]);
        check("a%", &["a", "abc"], &["ba", ""]);
        check("%c", &["c", "abc"], &["cb"]);
        check("%b%", &["b", "abc", "bb"], &["ac", ""]);
        check("a%a", &["aa", "aba"], &["a", "ab"]);
        check("a%b%c", &["abc", "a1b2c", "abbc"], &["acb", "ac", "ab"]);
        check("_", &["a", "é", "😀"], &["", "ab"]);
        check("a_c%", &["abc", "axcd"], &["ac"]);
        check("%ab_d%", &["ababcdx"], &["ababc"]);
        check("[a-f]x", &["ax", "fx"], &["gx", "x"]);
        check("[abc]", &["a", "b", "c"], &["d", "-"]);
        check("[^a-c]", &["d", "^"], &["a", ""]);
        check("[a-]", &["a", "-"], &["b"]);
        check("[]]", &["]"], &["a", "[]]"]);
    }

    #[test]
    fn wildcards_as_letters() {
        check("[%]", &["%"], &["a", "[%]"]);
        check("[_]b", &["_b"], &["ab"]);
        check("[[]", &["["], &["[[]"]);
        check("100!%", &["100%"], &["1000"]);
        check("a!_b", &["a_b"], &["axb"]);
        check("a!!", &["a!"], &["a"]);
        check("a!", &["a!"], &["a"]);
        check("[ab", &["[ab"], &["a"]);
    }

    #[test]
    fn hostile_patterns_end() {
        let text = "a".repeat(5_000);
        assert!(!like(&text, &"%a%b".repeat(2_000), None).unwrap());
        assert!(like(&text, &"%a".repeat(2_000), None).unwrap());
        assert!(like(&text, &format!("%{}%", "_".repeat(LIKE_PIECE_MAX)), None).unwrap());
        let over = like(&text, &format!("%{}%", "_".repeat(LIKE_PIECE_MAX + 1)), None);
        assert_eq!(over, Err(EvalFault::PatternTooLarge { characters_max: LIKE_PIECE_MAX }));
    }
}
