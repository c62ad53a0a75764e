//! How the work of a script ended: errors as data, results as JSON text within their limits.

use super::compile::{DECLARED_NAME, SHIFT};
use super::natives::Text;
use super::realm::{PRELUDE_NAME, Realm};
use crate::wire::from_worker::Failure;
use crate::{ResultFault, Thrown};
use rquickjs::{Array, Ctx, Value};
use value::JSON_DEPTH_MAX;

/// Most bytes of the text, and of the stack, of an error.
const ERROR_BYTES_MAX: usize = 64 << 10;

/// What the engine says when the memory of a script is used up.
pub(super) fn is_memory_message(message: &str) -> bool {
    message == "out of memory"
}

/// The failure behind an error of the engine; takes the exception from the context.
pub(super) fn failure(realm: &Realm, ctx: &Ctx<'_>, error: rquickjs::Error) -> Failure {
    if let rquickjs::Error::Exception = error {
        return thrown(realm, ctx, ctx.catch());
    }
    if let rquickjs::Error::Allocation = error {
        return Failure::MemoryExceeded;
    }
    Failure::Thrown(Thrown { text: error.to_string(), message: error.to_string(), ..Thrown::default() })
}

/// The failure for a thrown value. Describing it may execute code of the script.
pub(super) fn thrown<'js>(realm: &Realm, ctx: &Ctx<'js>, error: Value<'js>) -> Failure {
    if realm.state.is_late() {
        return Failure::TimeExceeded;
    }
    // Without memory for an error the engine throws null.
    if error.is_null() && realm.state.may_be_full() || is_memory_error(realm, ctx, &error) {
        return Failure::MemoryExceeded;
    }
    if realm.is_sealed && error.is_error() && !is_plain_error(realm, ctx, &error) {
        realm.state.may_be_of_sealing.set(true);
    }
    match describe(realm, ctx, error) {
        Ok(thrown) => Failure::Thrown(thrown),
        Err(_) if realm.state.is_late() => Failure::TimeExceeded,
        // The prelude catches what the script throws meanwhile, so there was no memory to describe the error.
        Err(_) => {
            ctx.catch();
            Failure::MemoryExceeded
        }
    }
}

/// Whether the engine has thrown this for want of memory. Errors of other classes with the same message are the script's.
fn is_memory_error<'js>(realm: &Realm, ctx: &Ctx<'js>, error: &Value<'js>) -> bool {
    // Neither the prototype nor the message of what is no proxy calls the script's code.
    let Some(object) = error.as_object().filter(|_| error.is_error() && !error.is_proxy()) else {
        return false;
    };
    let Ok(internal_error) = realm.entry.internal_error.clone().restore(ctx) else { return false };
    let exception = rquickjs::Exception::from_object(object.clone());
    object.get_prototype().is_some_and(|prototype| prototype == internal_error)
        && exception.and_then(|exception| exception.message()).is_some_and(|text| is_memory_message(&text))
}

/// Whether an error has no special class. The engine makes none of these, so the script has thrown it.
fn is_plain_error<'js>(realm: &Realm, ctx: &Ctx<'js>, error: &Value<'js>) -> bool {
    let Some(object) = error.as_object().filter(|_| !error.is_proxy()) else { return false };
    let Ok(plain) = realm.entry.plain_error.clone().restore(ctx) else { return false };
    object.get_prototype().is_some_and(|prototype| prototype == plain)
}

fn describe<'js>(realm: &Realm, ctx: &Ctx<'js>, error: Value<'js>) -> rquickjs::Result<Thrown> {
    let is_error = error.is_error();
    let parts: Array = realm.entry.describe.clone().restore(ctx)?.call((error,))?;
    let text = |index: usize| -> rquickjs::Result<String> {
        let mut text = parts.get::<Text>(index)?.0;
        text.truncate(text.floor_char_boundary(ERROR_BYTES_MAX));
        Ok(text)
    };
    let stack = text(3)?;
    // In a sealed runtime a stack trace is made by code, which needs stack itself.
    if realm.is_sealed && is_error && stack.is_empty() {
        realm.state.may_be_of_sealing.set(true);
    }
    Ok(Thrown {
        function: None,
        text: text(0)?,
        message: text(1)?,
        number: parts.get::<Option<f64>>(2)?.map(|number| {
            #[expect(clippy::cast_possible_truncation, reason = "numbers that do not fit saturate")]
            let number = number as i32;
            number
        }),
        stack: script_frames(&stack),
    })
}

/// The frames of the script itself, with the columns of its text. The text outside of its functions has no name.
fn script_frames(stack: &str) -> String {
    let is_own = |line: &&str| !line.contains(PRELUDE_NAME) && !line.contains("(native)");
    let lines: Vec<String> = stack.lines().filter(is_own).map(|line| unnamed(&corrected(line))).collect();
    lines.join("\n")
}

/// A frame without the name of the declared function.
fn unnamed(line: &str) -> String {
    let place = line
        .trim_start()
        .strip_prefix("at ")
        .and_then(|frame| frame.strip_prefix(DECLARED_NAME)?.strip_prefix(" (")?.strip_suffix(')'));
    place.map_or_else(|| line.to_owned(), |place| format!("    at {place}"))
}

/// A frame whose column is that of the script if it is on its first line.
fn corrected(line: &str) -> String {
    let (place, end) = match line.strip_suffix(')') {
        Some(place) => (place, ")"),
        None => (line, ""),
    };
    match place.rsplit_once(":1:").map(|(before, column)| (before, column.parse::<u32>())) {
        Some((before, Ok(column))) => format!("{before}:1:{}{end}", column.saturating_sub(SHIFT).max(1)),
        Some((_, Err(_))) | None => line.to_owned(),
    }
}

/// Checks the JSON text of a result.
pub(super) fn check_result(text: &str, bytes_max: usize) -> Result<(), Failure> {
    if text.len() > bytes_max {
        return Err(Failure::Result(ResultFault::TooLarge { bytes_max }));
    }
    if depth(text) > JSON_DEPTH_MAX {
        return Err(Failure::Result(ResultFault::TooDeep { depth_max: JSON_DEPTH_MAX }));
    }
    Ok(())
}

/// Replaces halves of surrogate pairs, which have no UTF-8 form, in JSON text that the engine has made: it escapes them
/// alone, and writes whole pairs as characters.
pub(super) fn replace_surrogates(json: &mut [u8]) {
    let mut at = 0;
    while at < json.len() {
        if json[at] != b'\\' {
            at += 1;
            continue;
        }
        if let Some([b'u', digits @ ..]) = json.get_mut(at + 1..at + 6)
            && digits[0].eq_ignore_ascii_case(&b'd')
            && digits[1] >= b'8'
        {
            digits.copy_from_slice(b"fffd");
        }
        at += 2;
    }
}

/// The levels of arrays and objects in JSON text.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut in_string, mut is_escaped) = (false, false);
    for byte in text.bytes() {
        if in_string {
            in_string = byte != b'"' || is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_ignores_strings() {
        assert_eq!(depth(r#"{"a":[{"b":"]]]\"[[[["}],"c":[]}"#), 3);
        assert_eq!(depth(r#""[[[""#), 0);
        assert_eq!(depth(r#"["\\",[]]"#), 2);
    }

    #[test]
    fn halves_of_surrogate_pairs_are_replaced() {
        let mut json = br#"{"\ud800":["\uDFFF\\ud800\ud7ff\n","\u"]}"#.to_vec();
        replace_surrogates(&mut json);
        assert_eq!(str::from_utf8(&json).unwrap(), r#"{"\ufffd":["\ufffd\\ud800\ud7ff\n","\u"]}"#);
    }

    #[test]
    fn results_have_limits() {
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert_eq!(check_result(&deep(JSON_DEPTH_MAX), 1000), Ok(()));
        assert!(check_result(&deep(JSON_DEPTH_MAX + 1), 1000).is_err());
        assert_eq!(check_result("12345", 5), Ok(()));
        assert!(check_result("12345", 4).is_err());
    }

    #[test]
    fn stacks_show_the_script() {
        let stack = format!(
            "    at fail (perihelion-prelude:40:1)\n    at f (my proc:1:{})\n    at my proc:2:3\n    at apply (native)\n    \
             at $script (my proc:1:56)\n",
            SHIFT + 25
        );
        assert_eq!(script_frames(&stack), "    at f (my proc:1:25)\n    at my proc:2:3\n    at my proc:1:1");
    }
}
