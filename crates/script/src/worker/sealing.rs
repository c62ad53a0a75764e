//! Whether a function may be called for many rows in one sealed runtime.
//!
//! There it is compiled in strict mode, and everything shared is frozen: code that would change something shared throws
//! and is called again alone, as it is written. That is not enough for code whose result differs without an error that
//! leaves the function. Such code is recognised by the words it cannot do without. A word in a text or a comment also
//! counts: the function is then only slower.

/// Words of code that may behave differently in strict mode or on frozen objects without throwing, or that may hide
/// a throw.
const WORDS: [&str; 15] = [
    // Have another value, or another effect, in strict mode.
    "this",
    "arguments",
    "eval",
    "caller",
    "callee",
    // Makes code that is not strict.
    "Function",
    "constructor",
    // Changes that are refused without an error.
    "Reflect",
    // Hide an error.
    "catch",
    "finally",
    "then",
    "Promise",
    "async",
    "await",
    "AggregateError",
];

/// Whether all rows get the results that calls of the function alone would have.
pub(super) fn is_sealable(source: &str) -> bool {
    // A name may be written with escapes.
    !source.contains("\\u")
        && !words(source).any(|word| WORDS.contains(&word))
        && !has_function_in_block(source)
}

fn words(source: &str) -> impl Iterator<Item = &str> {
    source.split(|it: char| !is_part_of_word(it)).filter(|word| !word.is_empty())
}

fn is_part_of_word(it: char) -> bool {
    it.is_alphanumeric() || it == '_' || it == '$'
}

/// Whether a function is declared in a block: outside strict mode its name is visible around the block.
fn has_function_in_block(source: &str) -> bool {
    const KEYWORD: &str = "function";
    let mut depth = 0_i64;
    let mut from = 0;
    for (position, _) in source.match_indices(KEYWORD) {
        depth += source[from..position].bytes().map(depth_change).sum::<i64>();
        from = position;
        let is_word = !source[..position].ends_with(is_part_of_word)
            && !source[position + KEYWORD.len()..].starts_with(is_part_of_word);
        let name =
            source[position + KEYWORD.len()..].trim_start_matches(|it: char| it.is_whitespace() || it == '*');
        if is_word && depth > 1 && name.starts_with(is_part_of_word) {
            return true;
        }
    }
    false
}

fn depth_change(byte: u8) -> i64 {
    match byte {
        b'{' => 1,
        b'}' => -1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::is_sealable;

    #[test]
    fn ordinary_functions_are_sealable() {
        for source in [
            "function (score) { return score > 5000; }",
            "function f(x) { function double(y) { return 2 * y; } return double(x); }",
            "function f(x) { if (x == undefined) throw 'no input'; return x.map(function (y) { return y + 1; }); }",
            "function f(x) { return g(x); } function g(x) { return /a+/.test(x) ? `${x}` : Math.max(x, 1); }",
            "x => ({ thisOne: x, myFunction: 1 })",
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
            "function (x) { if (x) { function *f() {} } return typeof f; }",
            "function (x) { return ev\\u0061l('x'); }",
            "function (x) { return Reflect.set(globalThis, 'z', 1); }",
            "async function (x) { return 1; }",
            "function (x) { x = 2; return arguments[0]; }",
        ] {
            assert!(!is_sealable(source), "{source}");
        }
    }
}
