//! Authentication: the text that a request must have signed, or the token that it carries.
//!
//! Builds the candidates; keys, tokens and the comparison are in the engine. A shared access signature becomes a
//! delegation of the key that signed it. Inside a batch only the outer request has a credential.

mod sas;
mod sas_fields;
mod shared_key;

use crate::account::{AccountKeys, TableAccount};
use crate::faults::{CredentialFault, TableFault};
use crate::query_string::QueryString;
use crate::route::Operation;
use crate::wire::names;
use api_http::request_headers::RequestHeaders;
use api_http::{ConnectionInfo, key_holder};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use engine::{Engine, Principal};
use http::request::Parts;

/// A request whose caller is to be authenticated.
pub(crate) struct Claim<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) account: &'a TableAccount,
    pub(crate) parts: &'a Parts,
    pub(crate) headers: &'a RequestHeaders,
    pub(crate) query: &'a QueryString<'a>,
    pub(crate) connection: &'a ConnectionInfo,
    pub(crate) operation: &'a Operation,
    /// Whether a bearer token is accepted that contains an account key.
    pub(crate) takes_key_tokens: bool,
}

/// An authenticated caller.
pub(crate) struct Caller {
    pub(crate) principal: Principal,
    /// The holder of the key that signed the delegation of the principal, or the principal itself. Finds tables by name
    /// in any case, and creates the database of all tables.
    pub(crate) signer: Principal,
}

impl Caller {
    fn itself(principal: Principal) -> Caller {
        Caller { signer: principal.clone(), principal }
    }
}

/// The name of the account in an `Authorization` header.
pub(crate) fn named_account(headers: &RequestHeaders) -> Option<&str> {
    let text = headers.get(&names::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, credential) = text.split_once(' ')?;
    let is_key = scheme.eq_ignore_ascii_case("SharedKey") || scheme.eq_ignore_ascii_case("SharedKeyLite");
    credential.trim().split_once(':').filter(|_| is_key).map(|(account, _)| account)
}

/// Authenticates the caller.
pub(crate) fn authenticate(claim: &Claim<'_>) -> Result<Caller, TableFault> {
    let Some(value) = claim.headers.get(&names::AUTHORIZATION) else {
        return match claim.query.get("sig") {
            Some(_) => sas::authenticate(claim),
            None => Err(CredentialFault::Missing.into()),
        };
    };
    let malformed = |reason| CredentialFault::Malformed { reason };
    let text = value.to_str().map_err(|_| malformed("it is not text"))?;
    let (scheme, credential) = text.split_once(' ').ok_or(malformed("it has no scheme"))?;
    let credential = credential.trim();
    if scheme.eq_ignore_ascii_case("SharedKey") {
        return shared_key::authenticate(claim, credential, shared_key::Form::Full).map(Caller::itself);
    }
    if scheme.eq_ignore_ascii_case("SharedKeyLite") {
        return shared_key::authenticate(claim, credential, shared_key::Form::Lite).map(Caller::itself);
    }
    if scheme.eq_ignore_ascii_case("Bearer") {
        return bearer(claim, credential).map(Caller::itself);
    }
    Err(malformed("its scheme is not known").into())
}

fn bearer(claim: &Claim<'_>, token: &str) -> Result<Principal, TableFault> {
    let now_seconds = claim.engine.ambient().now_seconds();
    let access = claim.engine.access();
    if claim.takes_key_tokens
        && let Some(principal) = key_holder(access, now_seconds, token)
    {
        return Ok(principal);
    }
    Ok(access.verify_bearer(token, now_seconds)?)
}

/// The holder of the key of the account that signed `payload`.
fn verify(claim: &Claim<'_>, payload: &str, signature: &str) -> Option<Principal> {
    let signature = BASE64_STANDARD.decode(signature).ok()?;
    let access = claim.engine.access();
    match &claim.account.keys {
        AccountKeys::Store => {
            let now_seconds = claim.engine.ambient().now_seconds();
            access.verify_signature(payload.as_bytes(), &signature, now_seconds)
        }
        AccountKeys::Own(key) => access.verify_other_key(key, payload.as_bytes(), &signature),
    }
}

fn mismatch(payload: &str) -> CredentialFault {
    CredentialFault::Signature { payload: payload.replace('\n', "\\n") }
}
