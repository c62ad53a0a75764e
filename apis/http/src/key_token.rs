//! Bearer tokens as clients make them for emulators: signed with nothing, they contain an account key.

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use engine::{Access, Principal};

/// The principal of such a token: its third part is the text of an account key. What the token claims is not read.
pub fn key_holder(access: &Access, now_seconds: u64, token: &str) -> Option<Principal> {
    let mut parts = token.split('.');
    let (Some(_), Some(_), Some(last), None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return None;
    };
    let text = BASE64_URL_SAFE_NO_PAD.decode(last.trim_end_matches('=')).ok()?;
    let key = BASE64_STANDARD.decode(text).ok()?;
    access.verify_key(&key, now_seconds)
}
