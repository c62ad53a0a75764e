//! The parts of a multipart body: what stands between lines that begin with the boundary.
//!
//! Lines end with CRLF or LF. The line end before a boundary belongs to the boundary.

use super::MultipartFault;
use std::ops::Range;

/// Longest boundary in bytes.
const BOUNDARY_BYTES_MAX: usize = 70;

/// The boundary of a content type; `None` if it is not multipart or has none.
pub(super) fn boundary(content_type: &str) -> Option<&str> {
    let (media_type, mut rest) = content_type.split_once(';')?;
    if !media_type.trim().eq_ignore_ascii_case("multipart/mixed") {
        return None;
    }
    loop {
        let (name, value) = rest.split_once('=')?;
        let value = value.trim_start();
        let (value, after) = match value.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => value.split_at(value.find(';').unwrap_or(value.len())),
        };
        if name.trim().eq_ignore_ascii_case("boundary") {
            let boundary = value.trim();
            let is_valid = (1..=BOUNDARY_BYTES_MAX).contains(&boundary.len())
                && boundary.bytes().all(|byte| (b' '..=b'~').contains(&byte));
            return is_valid.then_some(boundary);
        }
        rest = after.trim_start().strip_prefix(';')?;
    }
}

/// The ranges of the parts in `body`, at most `count_max`; `too_many` if there are
/// more. Everything before the first boundary and after the closing
/// one is ignored.
pub(super) fn parts(
    body: &[u8],
    boundary: &str,
    count_max: usize,
    too_many: &MultipartFault,
) -> Result<Vec<Range<usize>>, MultipartFault> {
    let mut parts = Vec::new();
    let mut part_start = None;
    let mut line_start = 0;
    loop {
        let line_end = body.get(line_start..).and_then(|rest| rest.iter().position(|byte| *byte == b'\n'));
        let next_line = line_end.map_or(body.len(), |end| line_start + end + 1);
        let line = body.get(line_start..next_line).unwrap_or_default();
        if let Some(after) = line.strip_prefix(b"--").and_then(|line| line.strip_prefix(boundary.as_bytes()))
        {
            let (after, is_last) = match after.strip_prefix(b"--") {
                Some(after) => (after, true),
                None => (after, false),
            };
            if after.trim_ascii().is_empty() {
                if let Some(start) = part_start {
                    if parts.len() == count_max {
                        return Err(too_many.clone());
                    }
                    parts.push(start..end_before(body, start, line_start));
                }
                if is_last {
                    return Ok(parts);
                }
                part_start = Some(next_line);
            } else if is_last || after.first().is_some_and(|byte| byte.is_ascii_whitespace()) {
                return Err(MultipartFault::MalformedBoundary { offset: line_start });
            }
        }
        if line_end.is_none() {
            return Err(MultipartFault::Unterminated);
        }
        line_start = next_line;
    }
}

/// The end of a part, without the line end before the boundary at `line_start`.
fn end_before(body: &[u8], start: usize, line_start: usize) -> usize {
    let part = body.get(start..line_start).unwrap_or_default();
    let part = part.strip_suffix(b"\n").unwrap_or(part);
    start + part.strip_suffix(b"\r").unwrap_or(part).len()
}

/// Cuts the first line off, without its line end; `None` at the end of the text.
pub(super) fn line<'a>(text: &mut &'a [u8]) -> Option<&'a [u8]> {
    if text.is_empty() {
        return None;
    }
    let (line, rest) = match text.iter().position(|byte| *byte == b'\n') {
        Some(end) => (&text[..end], &text[end + 1..]),
        None => (*text, &text[text.len()..]),
    };
    *text = rest;
    Some(line.strip_suffix(b"\r").unwrap_or(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boundaries_are_found() {
        for (given, expected) in [
            ("multipart/mixed; boundary=batch_1", Some("batch_1")),
            ("multipart/mixed;boundary=\"a b\"", Some("a b")),
            ("Multipart/Mixed; charset=utf-8; Boundary=x; y=z", Some("x")),
            ("multipart/mixed; a=\"x;boundary=no\"; boundary=yes", Some("yes")),
            ("multipart/mixed", None),
            ("multipart/mixed; boundary=", None),
            ("multipart/form-data; boundary=x", None),
            ("application/json; boundary=x", None),
            ("multipart/mixed; boundary=\"x", None),
            ("multipart/mixed; boundary=\u{e9}", None),
        ] {
            assert_eq!(boundary(given), expected, "{given}");
        }
        let of_length = |length: usize| format!("multipart/mixed; boundary={}", "b".repeat(length));
        assert!(boundary(&of_length(BOUNDARY_BYTES_MAX)).is_some());
        assert!(boundary(&of_length(BOUNDARY_BYTES_MAX + 1)).is_none());
    }

    fn texts(body: &str) -> Result<Vec<&str>, MultipartFault> {
        Ok(parts(body.as_bytes(), "b", 2, &MultipartFault::SeveralParts)?
            .into_iter()
            .map(|range| &body[range])
            .collect())
    }

    #[test]
    fn parts_stand_between_boundaries() {
        assert_eq!(texts("--b\r\none\r\n--b\r\ntwo\r\n\r\n--b--\r\n"), Ok(vec!["one", "two\r\n"]));
        assert_eq!(texts("before\n--b\none\n--b--"), Ok(vec!["one"]));
        assert_eq!(texts("--b \n--bx\n--b--after"), Err(MultipartFault::MalformedBoundary { offset: 10 }));
        assert_eq!(texts("--b\n--bx\n--b--\nafter"), Ok(vec!["--bx"]));
        assert_eq!(texts("--b--"), Ok(vec![]));
        assert_eq!(texts("--b\n--b--"), Ok(vec![""]));
        for body in ["", "--b", "--b\none", "--c\n--c--"] {
            assert_eq!(texts(body), Err(MultipartFault::Unterminated), "{body:?}");
        }
        assert_eq!(texts("--b\n1\n--b\n2\n--b\n3\n--b--"), Err(MultipartFault::SeveralParts));
    }
}
