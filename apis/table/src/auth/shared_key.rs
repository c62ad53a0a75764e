//! `SharedKey` and `SharedKeyLite`: requests signed with an account key.

use super::{Claim, mismatch, verify};
use crate::faults::{CredentialFault, TableFault};
use crate::route::SECONDARY;
use crate::wire::names;
use api_http::date;
use engine::Principal;

/// Maximum difference between the date of a request and the server's time, in either direction.
const WINDOW_SECONDS: u64 = 15 * 60;

/// What is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Verb, MD5, content type, date, resource.
    Full,
    /// Date and resource.
    Lite,
}

pub(super) fn authenticate(claim: &Claim<'_>, credential: &str, form: Form) -> Result<Principal, TableFault> {
    let malformed = CredentialFault::Malformed { reason: "it is not an account and a signature" };
    let (account, signature) = credential.split_once(':').ok_or(malformed)?;
    if account != claim.account.name {
        return Err(CredentialFault::UnknownAccount { name: account.to_owned() }.into());
    }
    let header = |name| claim.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let date = match header(&names::X_MS_DATE) {
        "" => header(&names::DATE),
        date => date,
    };
    let seconds = date::parse(date).ok_or(CredentialFault::Date)?;
    let payload = |path: &str| {
        let resource = resource(account, path, claim.query.get("comp"));
        match form {
            Form::Full => {
                let (md5, content_type) = (header(&names::CONTENT_MD5), header(&names::CONTENT_TYPE));
                format!("{}\n{md5}\n{content_type}\n{date}\n{resource}", claim.parts.method)
            }
            Form::Lite => format!("{date}\n{resource}"),
        }
    };
    let path = claim.parts.uri.path();
    let sent = payload(path);
    let principal = verify(claim, &sent, signature.trim()).or_else(|| {
        // Some clients sign the address of the first region when they read from the second.
        let second = format!("/{account}{SECONDARY}/");
        let rest = path.strip_prefix(&second)?;
        verify(claim, &payload(&format!("/{account}/{rest}")), signature.trim())
    });
    let principal = principal.ok_or_else(|| mismatch(&sent))?;
    // Only a caller with a key learns that its clock is wrong.
    let skew_seconds = claim.engine.ambient().now_seconds().abs_diff(seconds);
    if skew_seconds > WINDOW_SECONDS {
        return Err(CredentialFault::Skew { skew_seconds }.into());
    }
    Ok(principal)
}

/// The account, the path as it was sent, and the parameter `comp`.
fn resource(account: &str, path: &str, comp: Option<&str>) -> String {
    match comp {
        Some(comp) => format!("/{account}{path}?comp={comp}"),
        None => format!("/{account}{path}"),
    }
}
