//! JSON pointers (RFC 6901), the paths of patches: `/items/0/name`, `~0` for a tilde, `~1` for a slash.
//!
//! Whether a step is a member name or an array position depends on the value it is applied to.

use std::fmt;

use crate::{PathError, PathErrorKind};

/// Steps from the root of a document to a value in it; none for the root itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pointer {
    steps: Vec<String>,
}

impl Pointer {
    /// The root of a document.
    pub fn root() -> Pointer {
        Pointer { steps: Vec::new() }
    }

    /// Parses a pointer.
    pub fn parse(text: &str) -> Result<Pointer, PathError> {
        if text.is_empty() {
            return Ok(Pointer::root());
        }
        let Some(steps) = text.strip_prefix('/') else {
            return Err(PathError { kind: PathErrorKind::MissingSlash, offset: 0 });
        };
        let mut offset = 1;
        let mut pointer = Pointer::root();
        for step in steps.split('/') {
            pointer.steps.push(unescape(step, offset)?);
            offset += step.len() + 1;
        }
        Ok(pointer)
    }

    /// The steps from the root down.
    pub fn steps(&self) -> impl ExactSizeIterator<Item = &str> + Clone {
        self.steps.iter().map(String::as_str)
    }

    /// The steps to the parent and the last step; `None` for the root.
    pub(crate) fn split_last(&self) -> Option<(&[String], &str)> {
        self.steps.split_last().map(|(last, parent)| (parent, last.as_str()))
    }

    /// Whether this target is inside that of `other`.
    pub(crate) fn is_below(&self, other: &Pointer) -> bool {
        self.steps.len() > other.steps.len() && self.steps.starts_with(&other.steps)
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps.iter().try_for_each(|step| write!(f, "/{}", step.replace('~', "~0").replace('/', "~1")))
    }
}

fn unescape(step: &str, offset: usize) -> Result<String, PathError> {
    let mut pieces = step.split('~');
    let mut unescaped = pieces.next().unwrap_or_default().to_owned();
    let mut offset = offset + unescaped.len();
    for piece in pieces {
        let (character, rest) = match piece.as_bytes().first() {
            Some(b'0') => ('~', &piece[1..]),
            Some(b'1') => ('/', &piece[1..]),
            Some(_) | None => {
                return Err(PathError { kind: PathErrorKind::InvalidEscape, offset });
            }
        };
        unescaped.push(character);
        unescaped.push_str(rest);
        offset += 1 + piece.len();
    }
    Ok(unescaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, steps: &[&str]) {
        let pointer = Pointer::parse(text).unwrap();
        assert_eq!(pointer.steps().collect::<Vec<_>>(), steps);
        assert_eq!(pointer.to_string(), text);
    }

    #[test]
    fn steps_are_unescaped() {
        check("", &[]);
        check("/", &[""]);
        check("/a/0/-", &["a", "0", "-"]);
        check("/a~1b/~0~01", &["a/b", "~~1"]);
        check("/é/", &["é", ""]);
    }

    #[test]
    fn errors_name_the_place() {
        let error = |text| Pointer::parse(text).map_err(|error| (error.kind, error.offset));
        assert_eq!(error("a"), Err((PathErrorKind::MissingSlash, 0)));
        assert_eq!(error("/a/b~2"), Err((PathErrorKind::InvalidEscape, 4)));
        assert_eq!(error("/~0x~"), Err((PathErrorKind::InvalidEscape, 4)));
    }
}
