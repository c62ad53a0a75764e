//! From the text of a script to its function.
//!
//! A script is one function expression, or several declarations of which the first function is the script. Either is
//! put into the body of a declared function that returns it. The statement before the declaration throws that function,
//! so nothing after it is executed: a text that closes the added brackets and goes on is parsed, never run. The outer
//! `let` keeps the declaration from becoming a global, and the parameter hides it from the script. The added text before the script stays on its first line;
//! columns of that line are corrected.

use super::outcome;
use super::outline::{self, Outline, Place};
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
    if let Some(place) = outline::place_of_null(source) {
        return Err(syntax("unexpected character U+0000", place));
    }
    let declare = |text: String| declare(ctx, name, text, strictness);
    let expression = source.trim_end_matches(|last: char| last.is_whitespace() || last == ';');
    let first = match declare(format!("{EXPRESSION}{expression}\n)}}}}}}")) {
        Ok(script) => return Ok(script),
        Err(failure) => failure,
    };
    if matches!(first, Failure::MemoryExceeded) {
        return Err(first);
    }
    let outline = Outline::of(source);
    let Some(start) = outline.start else {
        return Err(syntax("the script is empty, a function is expected", Place::default()));
    };
    let declarations = |function: &str| declare(format!("{DECLARATIONS}{source}\n;return {function}}}}}}}"));
    let Some(function) = outline.first_name() else {
        // An expression, or statements that declare no function.
        return Err(match declarations("undefined") {
            Ok(_) => syntax("the script declares no function", start),
            Err(Failure::MemoryExceeded) => Failure::MemoryExceeded,
            Err(_) => explained(first, source, &outline),
        });
    };
    declarations(function).map_err(|failure| explained(failure, source, &outline))
}

/// A failure of the parser in words of the script, which does not know the added text.
fn explained(failure: Failure, source: &str, outline: &Outline<'_>) -> Failure {
    let Failure::Syntax(fault) = failure else { return failure };
    let (line, last) = source.trim_end().lines().fold((0, ""), |(count, _), line| (count + 1, line));
    if fault.line > line {
        let column = u32::try_from(last.chars().count() + 1).unwrap_or(u32::MAX);
        return syntax("unexpected end of the script, or unbalanced brackets", Place { line, column });
    }
    let is_of_function = ["function", "async"].iter().any(|word| fault.message.contains(word));
    match outline.unnamed_among_several(fault.line) {
        Some(place) if is_of_function => {
            syntax("function without a name; in a script of several functions each needs one", place)
        }
        Some(_) | None => Failure::Syntax(fault),
    }
}

/// Calls what [`compile`] has returned, which evaluates the text of the script but not its function.
pub(super) fn function_of<'js>(
    realm: &Realm,
    ctx: &Ctx<'js>,
    script: &Function<'js>,
    source: &str,
) -> Result<Function<'js>, Failure> {
    let value: Value = script.call(()).map_err(|error| outcome::failure(realm, ctx, error))?;
    let kind = kind(&value);
    value.into_function().ok_or_else(|| no_function(kind, source))
}

/// The failure of a script that is something else than a function.
pub(super) fn no_function(kind: &str, source: &str) -> Failure {
    let start = Outline::of(source).start.unwrap_or_default();
    syntax(&format!("the script is {kind}, not a function"), start)
}

/// A value in words.
fn kind(value: &Value<'_>) -> &'static str {
    match value.type_name() {
        "undefined" => "undefined",
        "null" => "null",
        "bool" => "a boolean",
        "int" | "float" => "a number",
        "big_int" => "a BigInt",
        "string" => "a string",
        "symbol" => "a symbol",
        "array" => "an array",
        _ => "an object",
    }
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
        Ok(_) => Err(syntax("the script is not a function", Place::default())),
        Err(rquickjs::Error::Exception) => {
            let thrown = ctx.catch();
            thrown.clone().into_function().ok_or_else(|| syntax_failure(&thrown))
        }
        Err(rquickjs::Error::InvalidString(_)) => {
            Err(syntax("unexpected character U+0000", Place::default()))
        }
        Err(error) => Err(syntax(&error.to_string(), Place::default())),
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
    syntax(&message, Place { line, column })
}

fn syntax(message: &str, Place { line, column }: Place) -> Failure {
    Failure::Syntax(SyntaxFault { message: message.to_owned(), line, column })
}
