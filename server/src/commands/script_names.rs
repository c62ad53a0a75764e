//! The names that the text of a script uses without declaring them.
//!
//! The text is split into words and marks, without comments, literals and names of properties. A name that is declared
//! anywhere, or that looks like a parameter or a part of a pattern, counts as declared: a warning that is wrong is worse
//! than none.

use std::collections::HashSet;

/// Words that are no names.
const KEYWORDS: [&str; 47] = [
    "arguments",
    "as",
    "async",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "debugger",
    "default",
    "delete",
    "do",
    "else",
    "export",
    "extends",
    "false",
    "finally",
    "for",
    "from",
    "function",
    "get",
    "if",
    "in",
    "instanceof",
    "let",
    "new",
    "null",
    "of",
    "return",
    "set",
    "static",
    "super",
    "switch",
    "this",
    "throw",
    "true",
    "try",
    "typeof",
    "undefined",
    "var",
    "void",
    "while",
    "with",
    "yield",
    "enum",
];

/// Keywords behind which a name is declared.
const DECLARING: [&str; 6] = ["var", "let", "const", "function", "class", "catch"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    Word { text: &'a str, line: usize },
    Mark(char),
    Literal,
}

/// The names that are used and neither declared nor known, with the lines of their first use.
pub(super) fn unknown<'a>(source: &'a str, known: &HashSet<String>) -> Vec<(usize, &'a str)> {
    let tokens = tokens(source);
    let at = |index: usize| tokens.get(index).copied();
    let before = |index: usize| index.checked_sub(1).and_then(at);
    let mut declared = HashSet::new();
    let mut used = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        let Token::Word { text, line } = *token else { continue };
        if KEYWORDS.contains(&text) || text.starts_with(|first: char| first.is_ascii_digit()) {
            continue;
        }
        let is_property = before(index) == Some(Token::Mark('.')) || at(index + 1) == Some(Token::Mark(':'));
        if is_declaration(before(index), at(index + 1)) {
            declared.insert(text);
        } else if !is_property {
            used.push((line, text));
        }
    }
    let mut seen = HashSet::new();
    used.retain(|(_, name)| !declared.contains(name) && !known.contains(*name) && seen.insert(*name));
    used
}

fn is_declaration(before: Option<Token<'_>>, after: Option<Token<'_>>) -> bool {
    match (before, after) {
        (Some(Token::Word { text, .. }), _) if DECLARING.contains(&text) => true,
        (Some(Token::Mark('*')), Some(Token::Mark('('))) => true,
        // A parameter, or a part of a pattern.
        (Some(Token::Mark(',' | '(' | '[' | '{' | '.')), Some(Token::Mark(',' | ')' | ']' | '}' | '='))) => {
            true
        }
        // A renamed part of a pattern.
        (Some(Token::Mark(':')), Some(Token::Mark(',' | '}' | '='))) => true,
        // The parameter of an arrow function.
        (_, Some(Token::Mark('>'))) => true,
        _ => false,
    }
}

fn tokens(source: &str) -> Vec<Token<'_>> {
    let (mut tokens, mut rest, mut line) = (Vec::new(), source, 1);
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '"' | '\'' | '`' => literal(&mut tokens, quoted(rest, first)),
            '/' if begins_pattern(tokens.last()) => literal(&mut tokens, pattern(rest)),
            // An arrow is one mark.
            '=' if rest.starts_with("=>") => {
                tokens.push(Token::Mark('>'));
                2
            }
            _ if is_part(first) => {
                let length = rest.find(|character| !is_part(character)).unwrap_or(rest.len());
                tokens.push(Token::Word { text: &rest[..length], line });
                length
            }
            _ if first.is_whitespace() => first.len_utf8(),
            '>' => {
                tokens.push(Token::Literal);
                1
            }
            _ => {
                tokens.push(Token::Mark(first));
                first.len_utf8()
            }
        };
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    tokens
}

fn literal(tokens: &mut Vec<Token<'_>>, length: usize) -> usize {
    tokens.push(Token::Literal);
    length
}

/// Whether a slash after this token begins a regular expression and not a division.
fn begins_pattern(last: Option<&Token<'_>>) -> bool {
    match last {
        None => true,
        Some(Token::Mark(mark)) => !matches!(mark, ')' | ']' | '}'),
        Some(Token::Word { text, .. }) => ["return", "typeof", "case", "in", "of"].contains(text),
        Some(Token::Literal) => false,
    }
}

/// The length of a string or template at the start of `text`.
fn quoted(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        if character == quote && !is_escaped {
            return at + 1;
        }
        is_escaped = character == '\\' && !is_escaped;
    }
    text.len()
}

/// The length of a regular expression with its flags at the start of `text`.
fn pattern(text: &str) -> usize {
    let (mut is_escaped, mut in_class) = (false, false);
    for (at, character) in text.char_indices().skip(1) {
        match character {
            '/' if !is_escaped && !in_class => {
                let flags = text[at + 1..].find(|character| !is_part(character));
                return flags.map_or(text.len(), |flags| at + 1 + flags);
            }
            '\n' => return at,
            '[' if !is_escaped => in_class = true,
            ']' if !is_escaped => in_class = false,
            _ => {}
        }
        is_escaped = character == '\\' && !is_escaped;
    }
    text.len()
}

fn is_part(character: char) -> bool {
    character.is_alphanumeric() || character == '_' || character == '$'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &str, expected: &[(usize, &str)]) {
        let known = ["Math", "getContext", "__", "JSON"].map(str::to_owned).into();
        assert_eq!(unknown(source, &known), expected, "{source}");
    }

    #[test]
    fn names_that_scripts_do_not_have_are_found() {
        check(
            "function () {\n  var fs = require('fs');\n  setTimeout(f, 1);\n}",
            &[(2, "require"), (3, "setTimeout")],
        );
        check("function () { return process.env.x + Math.max(1); }", &[(1, "process")]);
        check("async function () { await fetch('x'); fetch('y'); }", &[(1, "fetch")]);
    }

    #[test]
    fn declared_names_literals_and_properties_are_not() {
        check(
            "function (a, { b, c: d }, ...e) { return a + b + d + e.require + { process: 1 }.process; }",
            &[],
        );
        check("function f(items) { const [g, h] = items; items.map(i => i * g); return f(h) / 2; }", &[]);
        check(
            "function () { var a = 1, b = 2; // process\n /* require */ return a / b + 'fetch' + `fetch`; }",
            &[],
        );
        check("function () { try { JSON.parse(''); } catch (error) { throw error; } }", &[]);
        check("function () { return /require[/]process/g.test('x') && __.filter(p => p.fetch); }", &[]);
        check(
            "function () { function* each() { yield 1; } class A extends Object_ {} return new A(each()); }",
            &[(1, "Object_")],
        );
    }
}
