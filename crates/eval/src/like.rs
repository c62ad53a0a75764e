//! LIKE: whole-string patterns with `%`, `_`, `[set]`, `[^set]` and an escape character.
//!
//! A pattern is cut at its `%` into pieces; each piece is looked for behind the one before, leftmost first, which is
//! right because a piece has a fixed length. Pieces of plain letters are found in linear time; the others take text ×
//! piece steps at worst, so their length has a bound.

use crate::EvalFault;

/// Most places of a stretch between two `%` that holds `_` or sets.
pub const LIKE_PIECE_MAX: usize = 1_000;

/// One place of a pattern.
#[derive(Debug, PartialEq)]
enum Place {
    Literal(char),
    Any,
    Set { negated: bool, ranges: Vec<(char, char)> },
}

impl Place {
    fn matches(&self, character: char) -> bool {
        match self {
            Place::Literal(literal) => *literal == character,
            Place::Any => true,
            Place::Set { negated, ranges } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&character)) != *negated
            }
        }
    }
}

/// A stretch between two `%`.
#[derive(Debug)]
enum Piece {
    Literal(String),
    Places(Vec<Place>),
}

impl Piece {
    fn new(places: Vec<Place>) -> Result<Piece, EvalFault> {
        let literal = places.iter().map(|place| match place {
            Place::Literal(letter) => Some(*letter),
            Place::Any | Place::Set { .. } => None,
        });
        match literal.collect() {
            Some(literal) => Ok(Piece::Literal(literal)),
            None if places.len() <= LIKE_PIECE_MAX => Ok(Piece::Places(places)),
            None => Err(EvalFault::PatternTooLarge { places_max: LIKE_PIECE_MAX }),
        }
    }

    /// The text behind the piece, if it begins with it.
    fn strip_from_start<'t>(&self, text: &'t str) -> Option<&'t str> {
        match self {
            Piece::Literal(literal) => text.strip_prefix(literal.as_str()),
            Piece::Places(places) => {
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
            Piece::Literal(literal) => text.strip_suffix(literal.as_str()),
            Piece::Places(places) => {
                let mut characters = text.chars();
                let all = places
                    .iter()
                    .rev()
                    .all(|place| characters.next_back().is_some_and(|found| place.matches(found)));
                all.then_some(characters.as_str())
            }
        }
    }

    /// The text behind the first place where the piece stands.
    fn strip_from_first<'t>(&self, text: &'t str) -> Option<&'t str> {
        match self {
            Piece::Literal(literal) => text.find(literal.as_str()).map(|at| &text[at + literal.len()..]),
            Piece::Places(_) => text.char_indices().find_map(|(at, _)| self.strip_from_start(&text[at..])),
        }
    }
}

/// What may follow the letters that a pattern begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LikeRest {
    /// Nothing: the pattern is these letters.
    Nothing,
    /// Anything: a `%` is all that follows.
    Anything,
    /// What the rest of the pattern says.
    Pattern,
}

/// The letters that every text begins with that is like a pattern, and what may follow them; nothing for a pattern that
/// is refused.
pub fn like_beginning(pattern: &str, escape: Option<char>) -> Option<(String, LikeRest)> {
    let pieces = pieces(pattern, escape).ok()?;
    match &pieces[..] {
        [Piece::Literal(letters)] => Some((letters.clone(), LikeRest::Nothing)),
        [Piece::Literal(letters), Piece::Literal(rest)] if rest.is_empty() => {
            Some((letters.clone(), LikeRest::Anything))
        }
        [Piece::Literal(letters), ..] => Some((letters.clone(), LikeRest::Pattern)),
        [Piece::Places(places), ..] => {
            let letter = |place: &Place| match place {
                Place::Literal(letter) => Some(*letter),
                Place::Any | Place::Set { .. } => None,
            };
            Some((places.iter().map_while(letter).collect(), LikeRest::Pattern))
        }
        [] => None,
    }
}

/// The stretches between the `%`s of a pattern, at least one.
fn pieces(pattern: &str, escape: Option<char>) -> Result<Vec<Piece>, EvalFault> {
    let mut pieces = Vec::new();
    let mut piece = Vec::new();
    let mut rest = pattern;
    while let Some(character) = rest.chars().next() {
        rest = &rest[character.len_utf8()..];
        piece.push(match character {
            // An escape at the very end stands for itself.
            _ if Some(character) == escape => match rest.chars().next() {
                Some(escaped) => {
                    rest = &rest[escaped.len_utf8()..];
                    Place::Literal(escaped)
                }
                None => Place::Literal(character),
            },
            '%' => {
                pieces.push(Piece::new(std::mem::take(&mut piece))?);
                continue;
            }
            '_' => Place::Any,
            '[' => match set(rest) {
                Some((place, behind)) => {
                    rest = behind;
                    place
                }
                // A bracket that nothing closes stands for itself.
                None => Place::Literal('['),
            },
            _ => Place::Literal(character),
        });
    }
    pieces.push(Piece::new(piece)?);
    Ok(pieces)
}

/// Reads a set from behind its opening bracket, and gives back what follows it.
fn set(text: &str) -> Option<(Place, &str)> {
    let (negated, body) = match text.strip_prefix('^') {
        Some(body) => (true, body),
        None => (false, text),
    };
    // A closing bracket in the first place is a member of the set.
    let first = body.chars().next()?;
    let end = body[first.len_utf8()..].find(']')? + first.len_utf8();
    let members: Vec<char> = body[..end].chars().collect();
    let mut ranges = Vec::new();
    let mut rest = members.as_slice();
    while let [low, behind @ ..] = rest {
        rest = match behind {
            ['-', high, behind @ ..] => {
                ranges.push((*low, *high));
                behind
            }
            _ => {
                ranges.push((*low, *low));
                behind
            }
        };
    }
    Some((Place::Set { negated, ranges }, &body[end + 1..]))
}

/// A pattern made ready.
#[derive(Debug)]
pub(crate) struct LikeMatcher {
    pieces: Vec<Piece>,
}

impl LikeMatcher {
    pub(crate) fn new(pattern: &str, escape: Option<char>) -> Result<LikeMatcher, EvalFault> {
        Ok(LikeMatcher { pieces: pieces(pattern, escape)? })
    }

    /// Bytes that are compared at worst, roughly.
    pub(crate) fn bytes_compared(&self, text: &str) -> usize {
        let places = |piece: &Piece| match piece {
            Piece::Literal(_) => 1,
            Piece::Places(places) => places.len(),
        };
        // The first and the last piece have one place each; those between them are looked for.
        let longest = self.pieces.iter().skip(1).map(places).max().unwrap_or(1);
        text.len().saturating_mul(longest)
    }

    /// Whether the whole text is as the pattern says.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let Some((first, behind)) = self.pieces.split_first() else {
            return text.is_empty();
        };
        let rest = first.strip_from_start(text);
        let Some((last, middle)) = behind.split_last() else {
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
    fn beginnings() {
        let check = |pattern: &str, letters: &str, rest: LikeRest| {
            assert_eq!(like_beginning(pattern, Some('!')), Some((letters.to_owned(), rest)), "{pattern}");
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
        assert_eq!(like_beginning(&"_".repeat(LIKE_PIECE_MAX + 1), None), None);
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
        assert_eq!(over, Err(EvalFault::PatternTooLarge { places_max: LIKE_PIECE_MAX }));
    }
}
