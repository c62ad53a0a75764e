//! The `authorization` header: `type=…&ver=1.0&sig=…`, percent-encoded as a whole.
//!
//! Only takes it apart. Whether a signature or token is good is asked in [`crate::auth`].

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use model::{AccessFault, percent_decoded};

/// Bytes of an HMAC-SHA256.
pub(crate) const SIGNATURE_BYTES: usize = 32;

/// What a caller shows.
#[derive(PartialEq, Eq)]
pub(crate) enum Credential {
    /// `type=master`: the request is signed with an account key.
    Signature([u8; SIGNATURE_BYTES]),
    /// `type=aad`: a token of an identity provider.
    Bearer(String),
}

impl Credential {
    /// Reads the header.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Credential, AccessFault> {
        let value = headers.get(AUTHORIZATION).ok_or(AccessFault::CredentialMissing)?;
        if value.is_empty() {
            return Err(AccessFault::CredentialMissing);
        }
        let encoded = str::from_utf8(value.as_bytes()).map_err(|_| malformed("it is not UTF-8"))?;
        let text = percent_decoded(encoded).ok_or(malformed("its percent-encoding is broken"))?;
        let [mut kind, mut version, mut signature] = [None; 3];
        for field in text.split('&') {
            let (name, value) = field.split_once('=').ok_or(malformed("a field has no \"=\""))?;
            let place = match name {
                "type" => &mut kind,
                "ver" => &mut version,
                "sig" => &mut signature,
                _ => continue,
            };
            if place.replace(value).is_some() {
                return Err(malformed("a field is given twice"));
            }
        }
        let kind = kind.ok_or(malformed("\"type\" is missing"))?;
        if version.ok_or(malformed("\"ver\" is missing"))? != "1.0" {
            return Err(malformed("only the version \"1.0\" is accepted"));
        }
        let signature = signature.ok_or(malformed("\"sig\" is missing"))?;
        match kind {
            "master" => signature_bytes(signature).map(Credential::Signature),
            "aad" => Ok(Credential::Bearer(signature.to_owned())),
            _ => Err(malformed("only the types \"master\" and \"aad\" are accepted")),
        }
    }
}

fn malformed(reason: &'static str) -> AccessFault {
    AccessFault::CredentialMalformed { reason }
}

fn signature_bytes(text: &str) -> Result<[u8; SIGNATURE_BYTES], AccessFault> {
    let mut bytes = [0; SIGNATURE_BYTES + 1];
    match BASE64_STANDARD.decode_slice(text, &mut bytes) {
        Ok(SIGNATURE_BYTES) => {}
        Ok(_) | Err(_) => return Err(malformed("\"sig\" is not the base64 of 32 bytes")),
    }
    let (signature, _) = bytes.split_first_chunk().ok_or(malformed("\"sig\" is too short"))?;
    Ok(*signature)
}

/// Says the kind and nothing else: what a caller shows must not end up in a log.
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
    use http::HeaderValue;

    const SIGNATURE: &str = "gFB1bRB/PLJTG3bCgMuoVgNzOyFvZAamzEtLuSITjRc=";

    fn parsed(text: &str) -> Result<Credential, AccessFault> {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_str(text).unwrap());
        Credential::of(&headers)
    }

    #[test]
    fn both_kinds_are_read_encoded_or_not() {
        let signature = parsed(&format!("type=master&ver=1.0&sig={SIGNATURE}")).unwrap();
        assert!(matches!(signature, Credential::Signature([0x80, 0x50, ..])));
        let encoded = SIGNATURE.replace('/', "%2F").replace('=', "%3d");
        assert_eq!(parsed(&format!("type%3Dmaster%26ver%3D1.0%26sig%3D{encoded}")).unwrap(), signature);
        let bearer = Credential::Bearer("a.b-_.c".to_owned());
        assert_eq!(parsed("type=aad&ver=1.0&sig=a.b-_.c").unwrap(), bearer);
        assert_eq!(parsed("type%3daad%26ver%3d1.0%26sig%3da.b-_.c").unwrap(), bearer);
        assert_eq!(format!("{signature:?} {bearer:?}"), "Signature(…) Bearer(…)");
    }

    #[test]
    fn nothing_else_is_read() {
        let missing = Err(AccessFault::CredentialMissing);
        assert_eq!(Credential::of(&HeaderMap::new()), missing);
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
            "Bearer abc".to_owned(),
        ] {
            let fault = parsed(&text).unwrap_err();
            assert!(matches!(fault, AccessFault::CredentialMalformed { .. }), "{text}: {fault:?}");
        }
    }
}
