//! Whether the calls of a script may share a sealed runtime: the rows of a query for functions, the calls of a procedure
//! or trigger.
//!
//! In a sealed runtime a script is compiled in strict mode, and everything shared is frozen: code that would change
//! something shared throws. It is then called again in a runtime of its own, as it is written, also if the error does not
//! leave the function: the runtime reports errors when they are made (`prelude/seal.js`). Code whose result differs without
//! an error is recognised before it is called by the words and declarations that it cannot do without, and while it is
//! called by what it reads.
//!
//! Words that hide errors count too. So one that is not reported, for want of stack or memory, can only be hidden while
//! another one is thrown.
//!
//! Texts and comments are no code (`code_of`). Where it is not clear what is code, all of it counts: the script is then
//! only slower.

use std::iter::Peekable;
use std::str::CharIndices;

/// Words of code that may behave differently in strict mode, or that may hide a throw.
const WORDS: [&str; 11] = [
    // Have another value, or another effect, in strict mode.
    "this",
    "super",
    "arguments",
    "eval",
    // Hide an error, also one for want of stack or memory, which may not be reported.
    "catch",
    "finally",
    "then",
    "async",
    "await",
    "import",
    "using",
];

/// Global names that cost a second call when a script reads them in a sealed runtime.
const READ_ONCE: [&str; 9] = [
    "globalThis",
    "Function",
    "Reflect",
    "Promise",
    // What it reports of a frozen object is checked against that.
    "Proxy",
    "AggregateError",
    "WeakRef",
    "FinalizationRegistry",
    "queueMicrotask",
];

/// Whether all calls get the results that calls with runtimes of their own would have.
pub(super) fn is_sealable(source: &str) -> bool {
    // A name may be written with escapes.
    if source.contains("\\u") {
        return false;
    }
    match code_of(source) {
        Some(code) => has_no_words(&code) && !declares_in_block(&code),
        None => has_no_words(source) && !may_declare_in_block(source),
    }
}

fn has_no_words(code: &str) -> bool {
    !words(code).any(|word| WORDS.contains(&word) || READ_ONCE.contains(&word))
}

fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|it: char| !is_part_of_word(it)).filter(|word| !word.is_empty())
}

fn is_part_of_word(it: char) -> bool {
    it.is_alphanumeric() || it == '_' || it == '$'
}

/// Whether a function is declared in a block: outside strict mode its name is visible around the block. Curly brackets
/// that are not sure to be those of a function count as a block.
fn declares_in_block(code: &str) -> bool {
    let mut open = Vec::new();
    let mut blocks = 0_usize;
    let mut head = Head::None;
    let mut before = ' ';
    let mut rest = code;
    while let Some(it) = rest.chars().next() {
        let length = rest.find(|it: char| !is_part_of_word(it)).unwrap_or(rest.len()).max(it.len_utf8());
        let (token, after) = rest.split_at(length);
        rest = after;
        if it.is_whitespace() {
            continue;
        }
        head = match (token, head) {
            ("function", _) if !matches!(before, '.' | '#') => Head::Function,
            ("*", Head::Function) => Head::Function,
            ("(", Head::Function | Head::Named) => {
                open.push(Bracket::Parameters);
                Head::None
            }
            ("(", _) => {
                open.push(Bracket::Other);
                Head::None
            }
            (")", _) => match open.pop() {
                Some(Bracket::Parameters) => Head::Complete,
                Some(Bracket::Other) => Head::None,
                Some(Bracket::Block | Bracket::Body) | None => return true,
            },
            (">", _) if before == '=' => Head::Complete,
            ("{", Head::Complete) => {
                open.push(Bracket::Body);
                Head::None
            }
            ("{", _) => {
                open.push(Bracket::Block);
                blocks += 1;
                Head::None
            }
            ("}", _) => match open.pop() {
                Some(Bracket::Block) => {
                    blocks -= 1;
                    Head::None
                }
                Some(Bracket::Body) => Head::None,
                Some(Bracket::Parameters | Bracket::Other) | None => return true,
            },
            (_, Head::Function) if blocks > 0 => return true,
            (_, Head::Function) => Head::Named,
            _ => Head::None,
        };
        before = it;
    }
    false
}

/// What is before a place: most of it is the head of a function.
#[derive(Clone, Copy)]
enum Head {
    None,
    /// Its keyword.
    Function,
    /// Also its name.
    Named,
    /// All of it.
    Complete,
}

enum Bracket {
    /// Round brackets around the parameters of a function.
    Parameters,
    /// Other round brackets.
    Other,
    /// Curly brackets around the statements of a function.
    Body,
    /// Other curly brackets.
    Block,
}

/// The same where it is not clear what is code: no bracket is sure to be one.
fn may_declare_in_block(source: &str) -> bool {
    let first_block = source.find('{').unwrap_or(source.len());
    places(source, "function").any(|(before, after)| {
        let name = after.trim_start_matches(|it: char| it.is_whitespace() || it == '*');
        before.len() > first_block && !name.starts_with('(')
    })
}

/// What is before and after each place of a word.
fn places<'a>(source: &'a str, word: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
    source
        .match_indices(word)
        .map(move |(position, _)| (&source[..position], &source[position + word.len()..]))
        .filter(|(before, after)| !before.ends_with(is_part_of_word) && !after.starts_with(is_part_of_word))
}

/// The text without comments, strings and regular expressions; `None` if it is not clear where they are.
fn code_of(source: &str) -> Option<String> {
    let mut code = String::with_capacity(source.len());
    let mut rest = source.char_indices().peekable();
    while let Some((position, it)) = rest.next() {
        let next = rest.peek().map(|(_, next)| *next);
        match it {
            '/' if next == Some('/') => skip_line(&mut rest),
            '/' if next == Some('*') => {
                let end = source[position + 2..].find("*/")? + position + 4;
                while rest.next_if(|(at, _)| *at < end).is_some() {}
                // A comment separates words.
                code.push(' ');
            }
            '/' => match before_slash(&code) {
                Before::Operand => code.push('/'),
                Before::Operator => {
                    skip_expression(&mut rest)?;
                    code.push_str("\"\"");
                }
                Before::Unclear => {
                    // An expression ends on its line.
                    let line = source[position + 1..].lines().next().unwrap_or_default();
                    if line.contains(['/', '"', '\'', '`', '{', '}']) {
                        return None;
                    }
                    code.push('/');
                }
            },
            '"' | '\'' => {
                skip_string(&mut rest, it)?;
                code.push_str("\"\"");
            }
            // What a template contains is code or may look like it.
            '`' => return None,
            // A comment as in HTML.
            '<' if source[position..].starts_with("<!--") => return None,
            '-' if source[position..].starts_with("-->") => return None,
            // It may belong to a word or separate words.
            it if !it.is_ascii() => return None,
            it => code.push(it),
        }
    }
    Some(code)
}

fn skip_line(rest: &mut Peekable<CharIndices<'_>>) {
    while rest.next_if(|(_, it)| !is_line_end(*it)).is_some() {}
}

fn is_line_end(it: char) -> bool {
    matches!(it, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}

fn skip_string(rest: &mut Peekable<CharIndices<'_>>, quote: char) -> Option<()> {
    loop {
        match rest.next()?.1 {
            '\\' => _ = rest.next()?,
            it if it == quote => return Some(()),
            '\n' | '\r' => return None,
            _ => {}
        }
    }
}

fn skip_expression(rest: &mut Peekable<CharIndices<'_>>) -> Option<()> {
    let mut is_in_class = false;
    loop {
        match rest.next()?.1 {
            '\\' => _ = rest.next()?,
            '[' => is_in_class = true,
            ']' => is_in_class = false,
            '/' if !is_in_class => return Some(()),
            it if is_line_end(it) => return None,
            _ => {}
        }
    }
}

/// What is before a slash, which decides whether it divides or begins a regular expression.
enum Before {
    Operand,
    Operator,
    Unclear,
}

fn before_slash(code: &str) -> Before {
    const OPERATORS: [&str; 12] = [
        "return",
        "typeof",
        "case",
        "in",
        "delete",
        "void",
        "throw",
        "new",
        "else",
        "do",
        "instanceof",
        "extends",
    ];
    // Either names, or words after which an expression or another statement begins.
    const UNCLEAR: [&str; 5] = ["of", "yield", "continue", "break", "debugger"];
    let code = code.trim_end();
    match code.chars().next_back() {
        None => Before::Operator,
        Some(it) if is_part_of_word(it) => {
            let before = code.trim_end_matches(is_part_of_word);
            let word = &code[before.len()..];
            let is_operator = OPERATORS.contains(&word);
            // After these a property has the name of an operator.
            if UNCLEAR.contains(&word) || is_operator && before.trim_end().ends_with(['.', '#']) {
                Before::Unclear
            } else if is_operator {
                Before::Operator
            } else {
                Before::Operand
            }
        }
        Some('"' | ']') => Before::Operand,
        // The end of a group, of a condition or of a block; a number or a property.
        Some(')' | '}' | '.') => Before::Unclear,
        Some('+' | '-') if code.ends_with("++") || code.ends_with("--") => Before::Unclear,
        Some(_) => Before::Operator,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_functions_are_sealable() {
        for source in [
            "function (score) { return score > 5000; }",
            "function f(x) { function double(y) { return 2 * y; } return double(x); }",
            "function f(x) { if (x == undefined) throw 'no input'; return x.map(function (y) { return y + 1; }); }",
            "function f(x) { return g(x); } function g(x) { return /a+/.test(x) ? x : Math.max(x, 1); }",
            "function f(x) { return `${x}` + /a+/.test(x); }",
            "x => ({ thisOne: x, myFunction: 1 })",
            "x => { function double(y) { return 2 * y; } return double(x); }",
            "function f(x = {}) { return x.map(function g(y) { function h() { return y; } return h(); }); }",
            "(function () { function* f() { yield 1; } return function (x) { if (x) { return f(); } }; })()",
            "function (x) { // this function is only called\n /* to catch\n errors */ return 'await ' + \"then\"; }",
            "function (x) { var a = '}'; function half(x) { return (x + 1) / 2;\n }\n return x / 3; }",
            r#"function (x) { var quote = /[/"]'{/g; function f() {} return x / 2 / 3; }"#,
            "function (x) { /* über */ var a = 'à', r = /é/; return (x + 1) / 2;\n }",
            "function (x) { if (x) { return (x); } else return(-x); }",
        ] {
            assert!(is_sealable(source), "{source}");
        }
    }

    #[test]
    fn functions_that_may_differ_are_not() {
        for source in [
            "function (x) { return this ? x : -x; }",
            "function (x) { try { z = x; return 1; } catch (e) { return 2; } }",
            "function (x) { try { z = x; } finally { return 2; } }",
            "function (x) { { function f() { return 1; } } return typeof f; }",
            "function (x) { var brace = '}'; { function f() { return 1; } } return typeof f; }",
            "function (x) { var brace = /}/; { function f() { return 1; } } return typeof f; }",
            "function (x) { var brace = `}`; { function f() { return 1; } } return typeof f; }",
            "function (x) { /* } */ { function f() { return 1; } } return typeof f; }",
            "function (x) { if (x) /}/.test(x); { function f() { return 1; } } return typeof f; }",
            "function (x) { return /\"/.test(x) ? this : /\"/; }",
            "function (x) { return x++ / 2 + this.x / 3; }",
            "function (x) { return `${this}`; }",
            "function (x) { if (x) { function *f() {} } return typeof f; }",
            // In a block that is outside of all functions.
            "function f(x) { return g(x); } function g() { return 1; } if (true) { function g() { return 2; } }",
            "function f(x) { return g(x); } var o = { g: function g() { return 2; } };",
            "function f(x) { return g(x); } { function g() { return 2; } }",
            "function f(x) { return g(x); } o.function(x) { function g() { return 2; } }",
            "function f(x) { return g(x); } for (;;) { function* g() { return 2; } }",
            "function f(x) { return `${g(x)}`; } if (true) { function g() { return 2; } }",
            "function (x) { return ev\\u0061l('x'); }",
            "function (x) { return Reflect.set(globalThis, 'z', 1); }",
            "async function (x) { return 1; }",
            "function (x) { x = 2; return arguments[0]; }",
            "function (x) { return '\\'' + this + '\\''; }",
            "function (x) { var o = { m() { return super.toString(); } }, m = o.m; return m(); }",
            // A slash that divides may look like the begin of an expression, and the other way round.
            "function (x) { var r = x?. of / 2; try { w = 1; } catch (e) { return 2; } return 1 / 2; }",
            "function (x) { var r = x. in / 2; try { w = 1; } catch (e) { return 2; } return 1 / 2; }",
            "function (x) { var of = 4, r = of / 2; try { q = 1; } catch (e) { return 2; } return 1 / 2; }",
            "function (x) { var yield = 4, r = yield / 2; try { q = 1; } catch (e) { } return 1 / 2; }",
            "function (x) { while (x--) { if (x) continue\n/'/.test(x); try { q = 1; } catch (e) {} x = /'/; } }",
            "function (x) { while (x--) { if (x) break\n/'/.test(x); try { q = 1; } catch (e) {} x = /'/; } }",
            "function (x) { { function\u{feff}inner() {} } return typeof inner; }",
            "function (x) { { function \u{2118}inner() {} } return typeof \u{2118}inner; }",
            "function (x) { function* g() { using r = x; yield 1; } return [...g()]; }",
        ] {
            assert!(!is_sealable(source), "{source}");
        }
    }
}
