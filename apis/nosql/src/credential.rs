//! The `authorization` header: `type=…&ver=1.0&sig=…`, percent-encoded as a whole.
//!
//! Only parses it. Whether a signature or token is valid is checked in [`crate::auth`].

use crate::faults::CredentialFault;
use crate::wire::percent::{self, hex_value};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::HeaderValue;

/// Length of an HMAC-SHA256.
pub(crate) const SIGNATURE_BYTES: usize = 32;
/// Length of its base64 text.
const SIGNATURE_CHARACTERS: usize = SIGNATURE_BYTES.div_ceil(3) * 4;

/// The usual beginnings of the header of a signed request, as clients encode it.
const USUAL_BEGINNINGS: [&[u8]; 3] = [
    b"type%3Dmaster%26ver%3D1.0%26sig%3D",
    b"type%3dmaster%26ver%3d1.0%26sig%3d",
    b"type=master&ver=1.0&sig=",
];

/// The credential of a caller.
#[derive(PartialEq, Eq)]
pub(crate) enum Credential {
    /// `type=master`: the request is signed with an account key.
    Signature([u8; SIGNATURE_BYTES]),
    /// `type=aad`: a token of an identity provider.
    Bearer(String),
}

impl Credential {
    /// Reads the header.
    pub(crate) fn of(authorization: Option<&HeaderValue>) -> Result<Credential, CredentialFault> {
        let value = authorization.ok_or(CredentialFault::Missing)?;
        if value.is_empty() {
            return Err(CredentialFault::Missing);
        }
        if let Some(signature) = usual_signature(value.as_bytes()) {
            return Ok(Credential::Signature(signature));
        }
        let encoded = str::from_utf8(value.as_bytes()).map_err(|_| malformed("it is not UTF-8"))?;
        let text = percent::decoded(encoded).ok_or(malformed("its percent-encoding is broken"))?;
        let [mut kind, mut version, mut signature] = [None; 3];
        for field in text.as_bytes().split(|byte| *byte == b'&') {
            let end = field.iter().position(|byte| *byte == b'=').ok_or(malformed("a field has no \"=\""))?;
            let (name, value) = (&field[..end], &field[end + 1..]);
            let place = match name {
                b"type" => &mut kind,
                b"ver" => &mut version,
                b"sig" => &mut signature,
                _ => continue,
            };
            if place.replace(value).is_some() {
                return Err(malformed("a field is given twice"));
            }
        }
        let kind = kind.ok_or(malformed("\"type\" is missing"))?;
        if version.ok_or(malformed("\"ver\" is missing"))? != b"1.0" {
            return Err(malformed("only the version \"1.0\" is accepted"));
        }
        let signature = signature.ok_or(malformed("\"sig\" is missing"))?;
        match kind {
            b"master" => signature_bytes(signature)
                .map(Credential::Signature)
                .ok_or(malformed("\"sig\" is not the base64 of 32 bytes")),
            // The part between two ASCII characters of a UTF-8 text is UTF-8.
            b"aad" => Ok(Credential::Bearer(String::from_utf8_lossy(signature).into_owned())),
            _ => Err(malformed("only the types \"master\" and \"aad\" are accepted")),
        }
    }
}

fn malformed(reason: &'static str) -> CredentialFault {
    CredentialFault::Malformed { reason }
}

/// The signature in a header of the usual form. With the fields in that order and nothing after the signature, no
/// fields need to be split; any other form is left to the general parser.
fn usual_signature(header: &[u8]) -> Option<[u8; SIGNATURE_BYTES]> {
    let mut rest = USUAL_BEGINNINGS.iter().find_map(|beginning| header.strip_prefix(*beginning))?;
    let mut text = [0; SIGNATURE_CHARACTERS];
    for place in &mut text {
        (*place, rest) = match rest {
            [b'%', high, low, behind @ ..] => (hex_value(*high)? << 4 | hex_value(*low)?, behind),
            [character, behind @ ..] => (*character, behind),
            [] => return None,
        };
    }
    if rest.is_empty() { signature_bytes(&text) } else { None }
}

fn signature_bytes(text: &[u8]) -> Option<[u8; SIGNATURE_BYTES]> {
    let mut bytes = [0; SIGNATURE_BYTES + 1];
    match BASE64_STANDARD.decode_slice(text, &mut bytes) {
        Ok(SIGNATURE_BYTES) => bytes.first_chunk().copied(),
        Ok(_) | Err(_) => None,
    }
}

/// Shows only the kind: credentials must not be logged.
impl std::fmt::Debug for Credential {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Credential::Signature(_) => "Signature(…)",
            Credential::Bearer(_) => "Bearer(…)",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNATURE: &str = "gFB1bRB/PLJTG3bCgMuoVgNzOyFvZAamzEtLuSITjRc=";

    fn parsed(text: &str) -> Result<Credential, CredentialFault> {
        Credential::of(Some(&HeaderValue::from_str(text).unwrap()))
    }

    #[test]
    fn both_kinds_are_read_encoded_or_not() {
        let signature = parsed(&format!("type=master&ver=1.0&sig={SIGNATURE}")).unwrap();
        assert!(matches!(signature, Credential::Signature([0x80, 0x50, ..])));
        let encoded = SIGNATURE.replace('/', "%2F").replace('=', "%3d");
        // The first three have the usual form, the others do not.
        for beginning in [
            "type%3Dmaster%26ver%3D1.0%26sig%3D",
            "type%3dmaster%26ver%3d1.0%26sig%3d",
            "type=master&ver=1.0&sig=",
            "type%3Dmaster%26ver%3d1.0%26sig%3D",
            "ver%3D1.0%26type%3Dmaster%26x%3D%26sig%3D",
        ] {
            assert_eq!(parsed(&format!("{beginning}{encoded}")).unwrap(), signature);
            assert_eq!(parsed(&format!("{beginning}{encoded}&x=y")).unwrap(), signature);
        }
        let bearer = Credential::Bearer("a.b-_.c".to_owned());
        assert_eq!(parsed("type=aad&ver=1.0&sig=a.b-_.c").unwrap(), bearer);
        assert_eq!(parsed("type%3daad%26ver%3d1.0%26sig%3da.b-_.c").unwrap(), bearer);
        assert_eq!(format!("{signature:?} {bearer:?}"), "Signature(…) Bearer(…)");
    }

    #[test]
    fn nothing_else_is_read() {
        let missing = Err(CredentialFault::Missing);
        assert_eq!(Credential::of(None), missing);
        assert_eq!(parsed(""), missing);
        let good = |kind: &str, version: &str| format!("type={kind}&ver={version}&sig={SIGNATURE}");
        for text in [
            "nonsense".to_owned(),
            "type=master".to_owned(),
            "type=master&ver=1.0".to_owned(),
            "type=master&ver=1.0&sig=AAAA".to_owned(),
            "type=master&ver=1.0&sig=*".to_owned(),
            good("master", "2.0"),
            good("aad", "2.0"),
            good("Master", "1.0"),
            good("other", "1.0"),
            format!("type=master&{}", good("master", "1.0")),
            "type%3Dmaster%2".to_owned(),
            format!("{}%", good("master", "1.0")),
            format!("{}%3", good("master", "1.0")),
            format!("{}&sig=", good("master", "1.0")),
            format!("{}&", good("master", "1.0")),
            format!("{}A", good("master", "1.0")),
            good("master", "1.0").replace("ITjRc=", "ITjR%6"),
            good("master", "1.0").replace("ITjRc=", "ITjRc%3"),
            good("master", "1.0").to_ascii_uppercase(),
            "Bearer abc".to_owned(),
        ] {
            let fault = parsed(&text).unwrap_err();
            assert!(matches!(fault, CredentialFault::Malformed { .. }), "{text}: {fault:?}");
        }
    }
}
