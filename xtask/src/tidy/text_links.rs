//! Checks that links in Markdown files into the repository have a target.

use std::path::Path;

/// The dead links of a text in `folder`.
pub(super) fn findings(text: &str, folder: &Path) -> Vec<String> {
    let mut findings = Vec::new();
    for (line, target) in links(text) {
        let path = target.split(['#', '?']).next().unwrap_or_default();
        if path.is_empty() || is_elsewhere(target) {
            continue;
        }
        if !folder.join(path.replace("%20", " ")).exists() {
            findings.push(format!("line {line}: the link \"{target}\" points nowhere"));
        }
    }
    findings
}

/// Whether a link points outside the repository.
fn is_elsewhere(target: &str) -> bool {
    target.contains("://") || target.starts_with("mailto:") || target.starts_with('/')
}

/// Targets of `[text](target)` with their line, outside of code.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut in_code = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        // Odd pieces between backquotes are code.
        for piece in line.split('`').step_by(2) {
            for rest in piece.split("](").skip(1) {
                let target = rest.split([')', ' ']).next().unwrap_or_default();
                found.push((index + 1, target.trim_matches(['<', '>'])));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_dead_relative_links_are_found() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a b.md"), "").unwrap();
        let text = "[x](https://example.org/a) [y](#top) [z](a%20b.md#part) `[code](gone.md)` [m](mailto:a@example.org)\n\
                    ```\n[code](gone.md)\n```\n\
                    [dead](gone.md \"title\") and [again](../nowhere/at/all.md#x)\n";
        let found = findings(text, folder.path());
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("line 5") && found[0].contains("gone.md"));
    }
}
