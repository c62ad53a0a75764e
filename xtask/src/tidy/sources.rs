//! Rules for single Rust files: a head comment, a size limit, no unfinished work.

/// Most lines of a file. Most have 100 to 400; longer ones should be split.
const LINES_MAX: usize = 600;

/// Texts that are not allowed in a finished file. Written in parts, so that this file does not match itself.
const BANNED: [(&str, &str); 5] = [
    (concat!("todo", "!("), "unfinished work"),
    (concat!("unimplemented", "!("), "unfinished work"),
    (concat!("#[", "ignore]"), "a test that never runs"),
    (concat!("#[", "ignore ="), "a test that never runs"),
    (concat!("should_", "panic"), "a test that any panic satisfies"),
];

/// Violations in the text of a Rust file.
pub(super) fn findings(text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    if !text.starts_with("//! ") {
        findings.push("it does not start with a `//!` head".to_owned());
    }
    let count = text.lines().count();
    if count > LINES_MAX {
        findings.push(format!("it has {count} lines, {LINES_MAX} are allowed"));
    }
    for (index, line) in text.lines().enumerate() {
        for (banned, reason) in BANNED {
            if line.contains(banned) {
                findings.push(format!("line {}: `{banned}` is {reason}", index + 1));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_both_sides() {
        assert_eq!(findings(&format!("//! Head.\n{}", "//\n".repeat(LINES_MAX - 1))), Vec::<String>::new());
        assert_eq!(findings(&format!("//! Head.\n{}", "//\n".repeat(LINES_MAX))).len(), 1);
        assert_eq!(findings("// no head\n").len(), 1);
        assert_eq!(findings("").len(), 1);
        for (banned, _) in BANNED {
            assert_eq!(findings(&format!("//! Head.\n{banned}\n")).len(), 1, "{banned}");
        }
    }
}
