//! The outline of the text of a script: where it begins, and the functions that it declares outside of all brackets.
//!
//! The text is split into words and marks without comments and literals. A regular expression with a bracket or a quote
//! may mislead it, so nothing is refused for its outline alone.

/// A place in a text. Both numbers count from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) line: u32,
    pub(super) column: u32,
}

impl Default for Place {
    fn default() -> Place {
        Place { line: 1, column: 1 }
    }
}

/// A function outside of all brackets.
#[derive(Debug, PartialEq, Eq)]
struct Declared<'s> {
    name: Option<&'s str>,
    place: Place,
}

/// What a script has outside of all brackets.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Outline<'s> {
    /// The first token that is no comment and no semicolon.
    pub(super) start: Option<Place>,
    functions: Vec<Declared<'s>>,
}

impl<'s> Outline<'s> {
    pub(super) fn of(source: &'s str) -> Outline<'s> {
        let mut outline = Outline { start: None, functions: Vec::new() };
        let (mut depth, mut at) = (0_usize, 0);
        // Whether the last function may still get its name.
        let mut is_nameless = false;
        while let Some(first) = source[at..].chars().next() {
            let rest = &source[at..];
            let mut is_token = true;
            let length = match first {
                '/' if rest.starts_with("//") => {
                    is_token = false;
                    rest.find('\n').unwrap_or(rest.len())
                }
                '/' if rest.starts_with("/*") => {
                    is_token = false;
                    rest.find("*/").map_or(rest.len(), |end| end + 2)
                }
                '"' | '\'' | '`' => quoted(rest, first),
                '(' | '[' | '{' => {
                    depth += 1;
                    is_nameless = false;
                    1
                }
                ')' | ']' | '}' => {
                    depth = depth.saturating_sub(1);
                    1
                }
                _ if is_word(first) => {
                    let length = rest.find(|character| !is_word(character)).unwrap_or(rest.len());
                    let word = &rest[..length];
                    if is_nameless && let Some(function) = outline.functions.last_mut() {
                        function.name = Some(word);
                    }
                    is_nameless = !is_nameless && depth == 0 && word == "function";
                    if is_nameless {
                        outline.functions.push(Declared { name: None, place: place(source, at) });
                    }
                    length
                }
                _ => {
                    is_token = !(first.is_whitespace() || first == ';' || first == '\u{feff}');
                    first.len_utf8()
                }
            };
            if is_token && outline.start.is_none() {
                outline.start = Some(place(source, at));
            }
            at += length;
        }
        outline
    }

    /// The name of the first function that has one.
    pub(super) fn first_name(&self) -> Option<&'s str> {
        self.functions.iter().find_map(|function| function.name)
    }

    /// The function without a name that begins on this line, if the script has several functions.
    pub(super) fn unnamed_among_several(&self, line: u32) -> Option<Place> {
        if self.functions.len() < 2 {
            return None;
        }
        let is_it = |function: &&Declared<'_>| function.name.is_none() && function.place.line == line;
        self.functions.iter().find(is_it).map(|function| function.place)
    }
}

/// The place of the first U+0000, which no text of a script may have.
pub(super) fn place_of_null(source: &str) -> Option<Place> {
    source.find('\0').map(|at| place(source, at))
}

fn place(source: &str, at: usize) -> Place {
    let number = |count: usize| u32::try_from(count + 1).unwrap_or(u32::MAX);
    let before = &source[..at];
    let line_begin = before.rfind('\n').map_or(0, |end| end + 1);
    Place {
        line: number(before.bytes().filter(|byte| *byte == b'\n').count()),
        column: number(before[line_begin..].chars().count()),
    }
}

/// The length of a string literal at the start of `text`.
fn quoted(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        if character == quote && !is_escaped {
            return at + character.len_utf8();
        }
        is_escaped = character == '\\' && !is_escaped;
    }
    text.len()
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_' || character == '$'
}

#[cfg(test)]
mod tests {
    use super::{Outline, Place};

    #[test]
    fn the_first_function_with_a_name_is_found() {
        for (source, name) in [
            ("function a() {} function b() {}", Some("a")),
            ("// function x() {}\n/* function y() {} */ async function a() {}", Some("a")),
            ("var text = 'function x() {}'; function $a_1() {}", Some("$a_1")),
            ("var other = function () { function inner() {} }; function * a() {}", Some("a")),
            ("function () {}", None),
            ("(a) => { function inner() {} }", None),
            ("'unterminated \\' function a", None),
            ("", None),
        ] {
            assert_eq!(Outline::of(source).first_name(), name, "{source}");
        }
    }

    #[test]
    fn the_start_is_the_first_token() {
        let start = |source| Outline::of(source).start.map(|Place { line, column }| (line, column));
        assert_eq!(start("\u{feff}\n /* ä\n */ ; 5"), Some((3, 7)));
        assert_eq!(start("'text'"), Some((1, 1)));
        for empty in ["", " \n\t", "// function f() {}", "/* open", ";;\n"] {
            assert_eq!(start(empty), None, "{empty}");
        }
    }

    #[test]
    fn a_function_without_a_name_is_found_among_several() {
        let place = |source, line| {
            Outline::of(source).unnamed_among_several(line).map(|Place { line, column }| (line, column))
        };
        assert_eq!(place("function () {}\n function () {}", 2), Some((2, 2)));
        assert_eq!(place("function () {}\nfunction b() {}", 1), Some((1, 1)));
        assert_eq!(place("function a() {}\nfunction b() {}", 2), None);
        assert_eq!(place("function () {\nfunction () {} }", 2), None);
    }
}
