//! A way in for the fuzzer to what is judged before a caller is known. Not part of the door's face.

use crate::auth::{Signed, authenticate as judge};
use crate::resource_token;
use crate::route::Path;
use crate::wire::names;
use engine::{Access, AccountKey};
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, Method};

/// The server's time while fuzzing.
const NOW_SECONDS: u64 = 1_700_000_000;

/// Judges an authorization header, a date and a path as a request would bring them. Nobody may get in.
pub fn authenticate(authorization: &[u8], date: &[u8], path: &str) {
    let mut headers = HeaderMap::new();
    if let Ok(value) = HeaderValue::from_bytes(authorization) {
        headers.insert(AUTHORIZATION, value);
    }
    if let Ok(value) = HeaderValue::from_bytes(date) {
        headers.insert(&names::X_MS_DATE, value);
    }
    resource_token::of(&headers).ok();
    let Ok(path) = Path::parse(path) else { return };
    let access = Access::new(vec![AccountKey::new(b"a key that no input knows")], [0; 32]);
    let signed = Signed { verb: &Method::GET, path: &path, headers: &headers };
    assert!(judge(&access, NOW_SECONDS, &signed).is_err(), "a forged signature was accepted");
}
