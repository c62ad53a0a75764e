//! The texts of faults of scripts, in the form that clients of the service know.

use crate::wire::json;
use engine::script::{ScriptFault, Thrown};
use model::UserFunctionFault;

/// Longest text of what a script has thrown, and of its stack, in characters.
const PART_CHARS_MAX: usize = 4096;

/// The text of a fault of a procedure or trigger.
pub(super) fn of_script(fault: &ScriptFault) -> String {
    match fault {
        ScriptFault::Thrown(Thrown { text, stack, .. }) => thrown("function", text, stack),
        ScriptFault::Syntax(syntax) => errors(&format!(
            "Encountered exception while compiling function. Exception = SyntaxError: {syntax}"
        )),
        ScriptFault::TimeExceeded { .. }
        | ScriptFault::MemoryExceeded { .. }
        | ScriptFault::Result(_)
        | ScriptFault::InputTooLarge { .. }
        | ScriptFault::Crashed { .. }
        | ScriptFault::Busy
        | ScriptFault::Unavailable { .. } => errors(&fault.to_string()),
    }
}

/// The text of a fault of a user-defined function.
pub(super) fn of_function(name: &str, fault: &UserFunctionFault) -> String {
    match fault {
        UserFunctionFault::NotFound => {
            format!("the query calls the function 'udf.{name}', which does not exist")
        }
        UserFunctionFault::NotExecuted => {
            format!("the function 'udf.{name}' cannot be called here")
        }
        UserFunctionFault::Failed { message, stack } if stack.is_empty() => errors(&format!(
            "Encountered exception while executing function 'udf.{name}'. Exception = {message}"
        )),
        UserFunctionFault::Failed { message, stack } => {
            thrown(&format!("function 'udf.{name}'"), message, stack)
        }
    }
}

fn thrown(what: &str, text: &str, stack: &str) -> String {
    let (text, stack) = (shortened(text), shortened(stack));
    errors(&format!(
        "Encountered exception while executing {what}. Exception = {text}\r\nStack trace: {text}\n{stack}"
    ))
}

fn shortened(text: &str) -> &str {
    text.char_indices().nth(PART_CHARS_MAX).map_or(text, |(end, _)| &text[..end])
}

fn errors(text: &str) -> String {
    let mut out = br#"Message: {"Errors":["#.to_vec();
    json::push_string(text, &mut out);
    out.extend_from_slice(b"]}");
    String::from_utf8_lossy(&out).into_owned()
}
