//! Splitting short texts at an ASCII character.
//!
//! Byte by byte: paths and tokens are too short to benefit from the standard library's search.

/// The text before and after the first `mark`.
pub(crate) fn cut_once(text: &str, mark: u8) -> Option<(&str, &str)> {
    debug_assert!(mark.is_ascii());
    let place = text.bytes().position(|byte| byte == mark)?;
    Some((&text[..place], &text[place + 1..]))
}

/// The pieces between marks; one more than there are marks.
pub(crate) fn pieces(text: &str, mark: u8) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        match cut_once(text, mark) {
            Some((piece, behind)) => {
                rest = Some(behind);
                Some(piece)
            }
            None => rest.take(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_as_the_standard_library_cuts_them() {
        for text in ["", "/", "a", "a/", "/a", "a//b", "é/😀/", "a/b/c"] {
            assert_eq!(cut_once(text, b'/'), text.split_once('/'), "{text}");
            assert!(pieces(text, b'/').eq(text.split('/')), "{text}");
        }
    }
}
