//! Resource tokens in the `authorization` header: sent by clients that have a permission and no key.
//!
//! Such a client signs nothing, so neither date nor path matter. The engine checks whether the token is valid.

use crate::faults::CredentialFault;
use crate::wire::percent;
use http::HeaderValue;

/// The prefix of every token. Clients copy the token from a permission and percent-encode it as a whole.
const KIND: &str = "type=resource&";
/// The beginning of such a header, encoded or not. Checked first, because most requests have another credential.
const BEGINNINGS: [&[u8]; 2] = [b"type%3dresource", b"type=resource"];

/// The sealed part of the resource token in the header; `None` if the credential is of another kind.
pub(crate) fn of(authorization: Option<&HeaderValue>) -> Result<Option<String>, CredentialFault> {
    let value = authorization.map_or(&[][..], HeaderValue::as_bytes);
    let begins = |with: &[u8]| value.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with));
    if !BEGINNINGS.into_iter().any(begins) {
        return Ok(None);
    }
    // What cannot be parsed is left to the general credential parser.
    let Some(text) = str::from_utf8(value).ok().and_then(percent::decoded) else {
        return Ok(None);
    };
    let Some(fields) = text.strip_prefix(KIND) else { return Ok(None) };
    let malformed = |reason| CredentialFault::Malformed { reason };
    let (version, rest) = fields.split_once('&').ok_or(malformed("\"sig\" is missing"))?;
    if !matches!(version, "ver=1" | "ver=1.0") {
        return Err(malformed("only the versions \"1\" and \"1.0\" of resource tokens are accepted"));
    }
    let sealed = rest.strip_prefix("sig=").ok_or(malformed("\"sig\" is missing"))?;
    Ok(Some(sealed.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(text: &str) -> Result<Option<String>, CredentialFault> {
        of(Some(&HeaderValue::from_str(text).unwrap()))
    }

    #[test]
    fn tokens_are_told_from_other_credentials() {
        let sealed = Ok(Some("abc-_".to_owned()));
        assert_eq!(with("type%3Dresource%26ver%3D1%26sig%3Dabc-_"), sealed);
        assert_eq!(with("type%3dresource%26ver%3d1.0%26sig%3dabc-_"), sealed);
        assert_eq!(with("type=resource&ver=1&sig=abc-_"), sealed);
        assert_eq!(with("type=master&ver=1.0&sig=abc"), Ok(None));
        assert_eq!(with("type=resource%2"), Ok(None));
        assert_eq!(of(None), Ok(None));
    }

    #[test]
    fn a_token_without_its_parts_is_malformed() {
        for text in
            ["type=resource&", "type=resource&ver=2&sig=a", "type=resource&ver=1", "type=resource&ver=1&x=a"]
        {
            assert!(matches!(with(text), Err(CredentialFault::Malformed { .. })), "{text}");
        }
    }
}
