//! Authentication: the text that a request must have signed, or the token that it carries.
//!
//! Builds the candidates; keys, tokens and the comparison are in the engine. Reveals nothing about what exists: a
//! caller without a valid credential learns only what it sent.
//!
//! Links are signed by name or, if the client has a `_self` link, by the lower-case RID of the addressed resource. A
//! database name can look like a RID, so the path does not show which was meant: both are tried, names first.

use crate::credential::{Credential, SIGNATURE_BYTES};
use crate::faults::{CredentialFault, NosqlFault};
use crate::route::Path;
use crate::wire::request_headers::RequestHeaders;
use crate::wire::{date, names};
use api_http::key_holder;
use engine::{Access, Principal};
use http::header::DATE;
use http::{HeaderValue, Method};
use model::Rid;
use std::borrow::Cow;

/// Maximum difference between the date of a request and the server's time, in either direction.
const WINDOW_SECONDS: u64 = 15 * 60;

/// The signed parts of a request and its credential.
pub(crate) struct Signed<'a> {
    pub(crate) verb: &'a Method,
    pub(crate) path: &'a Path<'a>,
    pub(crate) headers: &'a RequestHeaders,
    pub(crate) authorization: Option<&'a HeaderValue>,
}

/// Authenticates the caller. `now_seconds` is the server's time.
pub(crate) fn authenticate(
    access: &Access,
    now_seconds: u64,
    signed: &Signed<'_>,
    takes_key_tokens: bool,
) -> Result<Principal, NosqlFault> {
    let signature = match Credential::of(signed.authorization)? {
        Credential::Signature(signature) => signature,
        Credential::Bearer(token) if takes_key_tokens => {
            let holder = key_holder(access, now_seconds, &token);
            return Ok(holder.map_or_else(|| access.verify_bearer(&token, now_seconds), Ok)?);
        }
        // A token contains its own expiry, so the date of the request does not matter.
        Credential::Bearer(token) => return Ok(access.verify_bearer(&token, now_seconds)?),
    };
    let date = SignedDate::of(signed.headers)?;
    let principal = verify(access, now_seconds, signed, &date, &signature)?;
    // Only a caller with a key learns that its clock is wrong.
    date.check(now_seconds)?;
    Ok(principal)
}

/// The signed date: `x-ms-date`, or `date` if that is absent.
struct SignedDate<'a> {
    text: &'a str,
    seconds: u64,
    own_header: bool,
}

impl<'a> SignedDate<'a> {
    fn of(headers: &'a RequestHeaders) -> Result<SignedDate<'a>, CredentialFault> {
        let (value, own_header) = match headers.get(&names::X_MS_DATE) {
            Some(value) => (Some(value), true),
            None => (headers.get(&DATE), false),
        };
        let malformed = |date: Cow<'_, str>| CredentialFault::DateMalformed { date: date.into_owned() };
        let bytes = value.map_or(&[][..], |value| value.as_bytes());
        let text = str::from_utf8(bytes).map_err(|_| malformed(String::from_utf8_lossy(bytes)))?;
        let seconds = date::parse(text).ok_or_else(|| malformed(text.into()))?;
        Ok(SignedDate { text, seconds, own_header })
    }

    fn check(&self, now_seconds: u64) -> Result<(), CredentialFault> {
        let skew_seconds = now_seconds.abs_diff(self.seconds);
        if skew_seconds <= WINDOW_SECONDS {
            return Ok(());
        }
        let server_time = date::text(now_seconds);
        Err(CredentialFault::DateOutOfWindow {
            date: self.text.to_owned(),
            server_time,
            skew_seconds,
            window_seconds: WINDOW_SECONDS,
        })
    }
}

fn verify(
    access: &Access,
    now_seconds: u64,
    signed: &Signed<'_>,
    date: &SignedDate<'_>,
    signature: &[u8; SIGNATURE_BYTES],
) -> Result<Principal, CredentialFault> {
    let subject = Subject::of(signed.path);
    let first = payload(signed.verb, subject.kind, subject.link, date);
    if let Some(principal) = access.verify_signature(&first, signature, now_seconds) {
        return Ok(principal);
    }
    if let Some(link) = subject.other_link {
        let second = payload(signed.verb, subject.kind, link, date);
        if let Some(principal) = access.verify_signature(&second, signature, now_seconds) {
            return Ok(principal);
        }
    }
    Err(CredentialFault::SignatureMismatch { payload: String::from_utf8_lossy(&first).replace('\n', "\\n") })
}

/// The text to sign: verb, kind and date in lower case, and the link.
fn payload(verb: &Method, kind: &str, link: Link<'_>, date: &SignedDate<'_>) -> Vec<u8> {
    let mut payload = Vec::with_capacity(256);
    push_lower(verb.as_str(), &mut payload);
    payload.push(b'\n');
    push_lower(kind, &mut payload);
    payload.push(b'\n');
    link.push(&mut payload);
    payload.push(b'\n');
    if !date.own_header {
        payload.push(b'\n');
    }
    push_lower(date.text, &mut payload);
    payload.push(b'\n');
    if date.own_header {
        payload.push(b'\n');
    }
    payload
}

fn push_lower(text: &str, payload: &mut Vec<u8>) {
    let start = payload.len();
    payload.extend_from_slice(text.as_bytes());
    payload[start..].make_ascii_lowercase();
}

/// How a resource is named in the signed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link<'a> {
    /// By its whole path, decoded, in the letter case of the request.
    Path(&'a [Cow<'a, str>]),
    /// By its RID alone, in lower case.
    Rid(&'a str),
}

impl Link<'_> {
    fn push(self, payload: &mut Vec<u8>) {
        match self {
            Link::Path(segments) => {
                for (index, segment) in segments.iter().enumerate() {
                    if index > 0 {
                        payload.push(b'/');
                    }
                    payload.extend_from_slice(segment.as_bytes());
                }
            }
            Link::Rid(rid) => push_lower(rid, payload),
        }
    }
}

/// The subject of a signature: a kind of resource and a link, with a second interpretation of the link if there is one.
#[derive(Debug, PartialEq, Eq)]
struct Subject<'a> {
    kind: &'a str,
    link: Link<'a>,
    other_link: Option<Link<'a>>,
}

impl<'a> Subject<'a> {
    fn of(path: &'a Path<'a>) -> Subject<'a> {
        match path.segments() {
            [] => Subject { kind: "", link: Link::Path(&[]), other_link: None },
            // An offer has no name: the RID is tried first.
            segments @ [kind, rid] if kind == "offers" => {
                Subject { kind, link: Link::Rid(rid), other_link: Some(Link::Path(segments)) }
            }
            // An operation on a container is signed with the link of the container.
            [owner @ .., operations, _] if operations == "operations" => Subject::new("colls", owner),
            // A single resource: the path ends with its id.
            segments @ [.., kind, _] if segments.len().is_multiple_of(2) => Subject::new(kind, segments),
            // A feed is signed with the link of its owner.
            [owner @ .., kind] => Subject::new(kind, owner),
        }
    }

    fn new(kind: &'a str, link: &'a [Cow<'a, str>]) -> Subject<'a> {
        let other_link = match link {
            [_, database, ..] if matches!(Rid::parse(database), Some(Rid::Database(_))) => {
                link.last().map(|rid| Link::Rid(rid))
            }
            _ => None,
        };
        Subject { kind, link: Link::Path(link), other_link }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::prelude::BASE64_STANDARD;
    use engine::AccountKey;
    use http::HeaderMap;
    use http::header::AUTHORIZATION;

    const EMULATOR_KEY: &str =
        "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
    const OTHER_KEY: &str =
        "dsZQi3KtZmCv1ljt3VNWNm7sQUF1y5rJfC6kv5JiwvW0EndXdDku/dkKBp8/ufDToSxLzR4y+O/0H/t4bQtVNw==";
    const DATE_TEXT: &str = "Thu, 27 Apr 2017 00:51:12 GMT";
    const NOW: u64 = 1_493_254_272;

    fn access(key: &str) -> Access {
        Access::new(vec![AccountKey::new(&BASE64_STANDARD.decode(key).unwrap())], [0; 32])
    }

    fn credential(signature: &str) -> String {
        format!("type=master&ver=1.0&sig={signature}")
            .replace('+', "%2b")
            .replace('=', "%3D")
            .replace('&', "%26")
    }

    fn headers(authorization: &str, date: &str) -> RequestHeaders {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_str(authorization).unwrap());
        headers.insert(&names::X_MS_DATE, HeaderValue::from_str(date).unwrap());
        headers.into()
    }

    fn outcome(
        key: &str,
        verb: &Method,
        path: &str,
        headers: &RequestHeaders,
        now: u64,
    ) -> Result<(), NosqlFault> {
        let path = Path::parse(path).unwrap();
        let signed = Signed { verb, path: &path, headers, authorization: headers.get(&AUTHORIZATION) };
        authenticate(&access(key), now, &signed, false).map(drop)
    }

    #[test]
    fn the_recorded_signatures_are_accepted() {
        for (key, verb, path, signature) in [
            (OTHER_KEY, Method::GET, "/dbs/ToDoList", "c09PEVJrgp2uQRkr934kFbTqhByc7TVr3OHyqlu+c+c="),
            (EMULATOR_KEY, Method::GET, "/", "gFB1bRB/PLJTG3bCgMuoVgNzOyFvZAamzEtLuSITjRc="),
            (EMULATOR_KEY, Method::GET, "/dbs/ToDoList/", "mM0rMK/7o1MZhQwDitGRoGisPRPx09os/86Jk0YwquY="),
            (
                EMULATOR_KEY,
                Method::POST,
                "/dbs/Db1/colls/C1/docs",
                "4YZ8f+Qzq5jvHQVGlVcll+L6fdhNCmdosLymuH7KWys=",
            ),
            (
                EMULATOR_KEY,
                Method::GET,
                "/dbs/Db1/colls/C1/docs/Item%201",
                "6bDtWPCXUCjvm2nN1ZPCCBHUyXcbBhkI6bB0VqpUcwk=",
            ),
            (EMULATOR_KEY, Method::PUT, "/offers/O1aA", "lzF2aF+9lNJitx97V2py3IkQrs54X336UhXLOXVben8="),
        ] {
            let headers = headers(&credential(signature), DATE_TEXT);
            assert_eq!(outcome(key, &verb, path, &headers, NOW), Ok(()), "{path}");
            let mismatch = outcome(key, &Method::DELETE, path, &headers, NOW);
            assert!(
                matches!(mismatch, Err(NosqlFault::Credential(CredentialFault::SignatureMismatch { .. }))),
                "{path}"
            );
        }
    }

    fn signed_text(verb: Method, path: &str, other: bool) -> Option<String> {
        let path = Path::parse(path).unwrap();
        let subject = Subject::of(&path);
        let date = SignedDate { text: "D", seconds: 0, own_header: true };
        let link = if other { subject.other_link? } else { subject.link };
        Some(String::from_utf8(payload(&verb, subject.kind, link, &date)).unwrap())
    }

    #[test]
    fn links_are_named_as_clients_sign_them() {
        let by_name = |path| signed_text(Method::POST, path, false).unwrap();
        assert_eq!(by_name("/dbs"), "post\ndbs\n\nd\n\n");
        assert_eq!(by_name("/dbs/D/colls/C/pkranges"), "post\npkranges\ndbs/D/colls/C\nd\n\n");
        assert_eq!(
            by_name("/dbs/D/colls/C/operations/partitionkeydelete"),
            "post\ncolls\ndbs/D/colls/C\nd\n\n"
        );
        assert_eq!(by_name("/dbs/D/colls/C/sprocs/S"), "post\nsprocs\ndbs/D/colls/C/sprocs/S\nd\n\n");
        let by_rid = |path| signed_text(Method::GET, path, true);
        assert_eq!(
            by_rid("/dbs/AQAAAA==/colls/AQAAAIAAAAE=/pkranges").unwrap(),
            "get\npkranges\naqaaaiaaaae=\nd\n\n"
        );
        assert_eq!(by_rid("/dbs/AQAAAA==").unwrap(), "get\ndbs\naqaaaa==\nd\n\n");
        assert_eq!(by_rid("/dbs/ToDoList/colls/C"), None);
    }

    #[test]
    fn the_date_header_stands_in_for_the_own_one() {
        let date = SignedDate { text: "D", seconds: 0, own_header: false };
        assert_eq!(payload(&Method::GET, "", Link::Path(&[]), &date), b"get\n\n\n\nd\n");
    }

    #[test]
    fn clocks_may_be_a_quarter_of_an_hour_apart_and_no_more() {
        let headers = headers(&credential("gFB1bRB/PLJTG3bCgMuoVgNzOyFvZAamzEtLuSITjRc="), DATE_TEXT);
        let at = |now| outcome(EMULATOR_KEY, &Method::GET, "/", &headers, now);
        assert_eq!(at(NOW + 900), Ok(()));
        assert_eq!(at(NOW - 900), Ok(()));
        assert!(matches!(
            at(NOW + 901),
            Err(NosqlFault::Credential(CredentialFault::DateOutOfWindow { skew_seconds: 901, .. }))
        ));
        assert!(matches!(
            at(NOW - 901),
            Err(NosqlFault::Credential(CredentialFault::DateOutOfWindow { skew_seconds: 901, .. }))
        ));
    }

    #[test]
    fn bad_dates_and_credentials_are_told_apart() {
        let good = credential("gFB1bRB/PLJTG3bCgMuoVgNzOyFvZAamzEtLuSITjRc=");
        let with =
            |headers: &RequestHeaders| outcome(EMULATOR_KEY, &Method::GET, "/", headers, NOW).unwrap_err();
        for date in ["", "yesterday", "2017-04-27T00:51:12Z"] {
            assert!(
                matches!(
                    with(&headers(&good, date)),
                    NosqlFault::Credential(CredentialFault::DateMalformed { .. })
                ),
                "{date}"
            );
        }
        assert_eq!(with(&RequestHeaders::default()), CredentialFault::Missing.into());
        assert_eq!(with(&headers("", DATE_TEXT)), CredentialFault::Missing.into());
        let fault = with(&headers("nonsense", DATE_TEXT));
        assert!(matches!(fault, NosqlFault::Credential(CredentialFault::Malformed { .. })), "{fault:?}");
        let fault = with(&headers("type=aad&ver=1.0&sig=a.b.c", DATE_TEXT));
        assert_eq!(fault, model::AccessFault::Bearer(model::BearerFault::Disabled).into());
    }
}
