//! The text of a continuation of documents: the sealed position inside JSON, because some clients parse it.
//!
//! ```json
//! [{"token":"AQx…","range":{"min":"","max":"FF"}}]
//! ```
//!
//! The range is that of the request, for the client's information: only the token is read back. A client that has taken
//! the token out of the JSON may send it alone.

use engine::Continuation;
use model::{ContinuationFault, EffectiveRange, RequestFault};
use serde::Deserialize;
use std::borrow::Cow;

/// Longest bound that is written, in bytes before the hex encoding; a range with longer bounds is written as the whole
/// hash space. Clients limit a continuation to 1 KB.
const BOUND_BYTES_MAX: usize = 48;

#[derive(Deserialize)]
struct Element<'a> {
    #[serde(borrow)]
    token: Cow<'a, str>,
}

/// The text of a continuation.
pub(crate) fn text(continuation: &Continuation) -> String {
    let Continuation { text, hashes } = continuation;
    let is_long =
        [&hashes.min, &hashes.max].into_iter().any(|bound| bound.as_bytes().len() > BOUND_BYTES_MAX);
    let EffectiveRange { min, max } = if is_long { &EffectiveRange::full() } else { hashes };
    format!(r#"[{{"token":"{text}","range":{{"min":"{min}","max":"{max}"}}}}]"#)
}

/// The sealed position in the text of a continuation.
pub(crate) fn token(text: String) -> Result<String, RequestFault> {
    if !text.starts_with('[') {
        return Ok(text);
    }
    match serde_json::from_str::<Vec<Element<'_>>>(&text).as_deref() {
        Ok([Element { token }]) => Ok(token.clone().into_owned()),
        Ok(_) | Err(_) => Err(RequestFault::BadContinuation(ContinuationFault::Form)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::EffectiveKey;

    #[test]
    fn the_token_is_found_in_the_text() {
        let bound = |byte: u8, length: usize| EffectiveKey::from_bytes(&vec![byte; length]);
        for (hashes, range) in [
            (EffectiveRange::full(), r#"{"min":"","max":"FF"}"#),
            (EffectiveRange { min: bound(1, 2), max: bound(2, 1) }, r#"{"min":"0101","max":"02"}"#),
            (EffectiveRange { min: bound(1, 49), max: bound(2, 1) }, r#"{"min":"","max":"FF"}"#),
        ] {
            let written = text(&Continuation { text: "Ab-_9".to_owned(), hashes });
            assert_eq!(written, format!(r#"[{{"token":"Ab-_9","range":{range}}}]"#));
            assert_eq!(token(written).unwrap(), "Ab-_9");
        }
        assert_eq!(token("Ab".to_owned()).unwrap(), "Ab");
        assert_eq!(token(r#"[ {"range":{"max":"FF"},"token":"A\u0062"} ]"#.to_owned()).unwrap(), "Ab");
    }

    #[test]
    fn json_of_another_form_is_refused() {
        for bad in ["[", "[]", "[1]", r#"[{"token":null}]"#, r#"[{"token":"a"},{"token":"b"}]"#, "[{}]"] {
            assert!(token(bad.to_owned()).is_err(), "{bad}");
        }
    }
}
