//! From the text of a script to its function.
//!
//! A script is one function expression, or several declarations of which the first function is the script. Either is
//! put into the body of a declared function that returns it. The statement before the declaration throws that function,
//! so nothing after it is executed: a text that closes the added brackets and goes on is parsed, never run. The outer
//! `let` keeps the declaration from becoming a global, and the parameter hides it from the script. The added text before the script stays on its first line;
//! columns of that line are corrected.

use super::outcome;
use super::realm::Realm;
use crate::SyntaxFault;
use crate::wire::from_worker::Failure;
use rquickjs::context::EvalOptions;
use rquickjs::{Ctx, Function, Value};

/// Before an expression.
const EXPRESSION: &str = "{let $script;{throw $script;function $script($script){return (";
/// Before declarations; as long as [`EXPRESSION`].
const DECLARATIONS: &str = "{let $script;{throw $script;function $script($script){        ";

/// The name of the declared function, as stack traces show it.
pub(super) const DECLARED_NAME: &str = "$script";

/// Columns that the added text takes on the first line.
pub(super) const SHIFT: u32 = 62;

const _: () = assert!(EXPRESSION.len() == SHIFT as usize && DECLARATIONS.len() == SHIFT as usize);

/// Whether the text is strict even if it does not say so. Strict code throws where other code does nothing, such as an
/// assignment to what cannot be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strictness {
    AsWritten,
    Strict,
}

/// Compiles a script to a function that returns the script's function. Executes nothing of the text.
pub(super) fn compile<'js>(ctx: &Ctx<'js>, name: &str, source: &str) -> Result<Function<'js>, Failure> {
    compile_as(ctx, name, source, Strictness::AsWritten)
}

/// The same with a choice of strictness.
pub(super) fn compile_as<'js>(
    ctx: &Ctx<'js>,
    name: &str,
    source: &str,
    strictness: Strictness,
) -> Result<Function<'js>, Failure> {
    let declare = |text: String| declare(ctx, name, text, strictness);
    let expression = source.trim_end_matches(|last: char| last.is_whitespace() || last == ';');
    let first = match declare(format!("{EXPRESSION}{expression}\n)}}}}}}")) {
        Ok(script) => return Ok(script),
        Err(failure) => failure,
    };
    let Some(function) = first_declared(source) else { return Err(within(first, source)) };
    declare(format!("{DECLARATIONS}{source}\n;return {function}}}}}}}"))
        .map_err(|failure| within(failure, source))
}

/// Moves the place of a failure in the added text to the end of the script.
fn within(mut failure: Failure, source: &str) -> Failure {
    let lines = source.trim_end().lines();
    let (count, last) = lines.fold((0, ""), |(count, _), line| (count + 1, line));
    if let Failure::Syntax(fault) = &mut failure
        && fault.line > count
    {
        fault.line = count.max(1);
        fault.column = u32::try_from(last.chars().count() + 1).unwrap_or(u32::MAX);
    }
    failure
}

/// Calls what [`compile`] has returned, which evaluates the text of the script but not its function.
pub(super) fn function_of<'js>(
    realm: &Realm,
    ctx: &Ctx<'js>,
    script: &Function<'js>,
) -> Result<Function<'js>, Failure> {
    let value: Value = script.call(()).map_err(|error| outcome::failure(realm, ctx, error))?;
    value.into_function().ok_or_else(|| syntax("the script is not a function", 1, 1))
}

/// Parses the text and takes the function that it throws.
fn declare<'js>(
    ctx: &Ctx<'js>,
    name: &str,
    text: String,
    strictness: Strictness,
) -> Result<Function<'js>, Failure> {
    let mut options = EvalOptions::default();
    options.strict = strictness == Strictness::Strict;
    options.filename = Some(name.replace(['\0', '\n'], " "));
    match ctx.eval_with_options::<Value, _>(text, options) {
        Ok(_) => Err(syntax("the script is not a function", 1, 1)),
        Err(rquickjs::Error::Exception) => {
            let thrown = ctx.catch();
            thrown.clone().into_function().ok_or_else(|| syntax_failure(&thrown))
        }
        Err(rquickjs::Error::InvalidString(_)) => Err(syntax("unexpected character U+0000", 1, 1)),
        Err(error) => Err(syntax(&error.to_string(), 1, 1)),
    }
}

/// The error of the parser, with the place that its stack trace ends with: `name:line:column`.
fn syntax_failure(error: &Value<'_>) -> Failure {
    let property = |name: &str| -> Option<String> { error.as_object()?.get(name).ok() };
    let Some(message) = property("message") else { return Failure::MemoryExceeded };
    if outcome::is_memory_message(&message) {
        return Failure::MemoryExceeded;
    }
    let stack = property("stack").unwrap_or_default();
    let mut numbers =
        stack.lines().next().unwrap_or_default().rsplit(':').map(|text| text.trim().parse::<u32>());
    let (column, line) = match (numbers.next(), numbers.next()) {
        (Some(Ok(column)), Some(Ok(line))) => (column, line),
        _ => (1, 1),
    };
    let column = if line == 1 { column.saturating_sub(SHIFT).max(1) } else { column };
    syntax(&message, line, column)
}

fn syntax(message: &str, line: u32, column: u32) -> Failure {
    Failure::Syntax(SyntaxFault { message: message.to_owned(), line, column })
}

/// The name of the first function that is declared outside of all brackets.
fn first_declared(source: &str) -> Option<&str> {
    let mut depth = 0_usize;
    let mut rest = source;
    let mut after_function = false;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '"' | '\'' | '`' => quoted(rest, first),
            '(' | '[' | '{' => {
                depth += 1;
                after_function = false;
                1
            }
            ')' | ']' | '}' => {
                depth = depth.saturating_sub(1);
                1
            }
            _ if is_word(first) => {
                let length = rest.find(|character| !is_word(character)).unwrap_or(rest.len());
                let word = &rest[..length];
                if after_function {
                    return Some(word);
                }
                after_function = depth == 0 && word == "function";
                length
            }
            _ => first.len_utf8(),
        };
        rest = &rest[length..];
    }
    None
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
    use super::first_declared;

    #[test]
    fn the_first_declared_function_is_found() {
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
            assert_eq!(first_declared(source), name, "{source}");
        }
    }
}
