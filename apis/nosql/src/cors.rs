//! CORS: which pages of other origins may read our answers in a browser.
//!
//! A browser first sends a *preflight*, which carries no credential, and then the real request, which is authorised
//! like any other. So nothing here grants a right; it only says which pages may use the rights they have. A page whose
//! origin is not listed gets no header of this file, and its browser withholds the answer.

use crate::wire::answer_body::AnswerBody;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Uri};

/// Methods that a page may use.
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, PUT, PATCH, DELETE");
/// How long a browser may cache the answer to a preflight: two hours, the maximum of all browsers.
const PREFLIGHT_SECONDS: HeaderValue = HeaderValue::from_static("7200");
/// The headers on which the answer to a preflight depends.
const PREFLIGHT_VARY: HeaderValue =
    HeaderValue::from_static("Origin, Access-Control-Request-Method, Access-Control-Request-Headers");
/// Asks whether a public page may access a host in a private network; answered with yes.
const REQUEST_PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-request-private-network");
const ALLOW_PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-allow-private-network");

/// Request headers that clients send in addition to those that begin with [`OWN_PREFIX`].
const REQUEST_HEADERS: [&str; 17] = [
    "a-im",
    "accept",
    "accept-language",
    "authorization",
    "cache-control",
    "content-language",
    "content-type",
    "date",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "pragma",
    "prefer",
    "traceparent",
    "tracestate",
    "user-agent",
    "x-requested-with",
];
/// The prefix of the protocol's own headers.
const OWN_PREFIX: &str = "x-ms-";

/// Response headers that a page may read: all that SDKs use. Browsers hide every header that is not listed.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "content-length, content-location, date, etag, lsn, \
     x-ms-activity-id, x-ms-alt-content-path, x-ms-content-path, x-ms-continuation, \
     x-ms-databaseaccount-consumed-mb, x-ms-databaseaccount-provisioned-mb, x-ms-databaseaccount-reserved-mb, \
     x-ms-max-media-storage-usage-mb, x-ms-media-storage-usage-mb, \
     x-ms-cosmos-item-llsn, x-ms-cosmos-llsn, x-ms-cosmos-min-throughput, x-ms-cosmos-query-advice, \
     x-ms-cosmos-query-execution-info, \
     x-ms-cosmos-index-utilization, x-ms-current-replica-set-size, x-ms-current-write-quorum, \
     x-ms-documentdb-partitionkeyrangeid, x-ms-documentdb-query-metrics, x-ms-documentdb-script-log-results, \
     x-ms-gatewayversion, x-ms-global-committed-lsn, x-ms-item-count, x-ms-item-lsn, x-ms-last-state-change-utc, \
     x-ms-number-of-read-regions, x-ms-offer-replace-pending, x-ms-quorum-acked-lsn, x-ms-request-charge, \
     x-ms-request-duration-ms, x-ms-resource-quota, x-ms-resource-usage, x-ms-retry-after-ms, x-ms-schemaversion, \
     x-ms-serviceversion, x-ms-session-token, x-ms-substatus, x-ms-transport-request-id, x-ms-xp-role",
);

/// Origins whose pages may read our answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CorsPolicy {
    /// Any origin.
    Any,
    /// These origins, in the form that browsers send.
    Listed(Vec<String>),
}

impl CorsPolicy {
    /// Parses a setting: `*`, or origins separated by commas. The error names the invalid origin and the reason.
    pub fn parse(text: &str) -> Result<CorsPolicy, String> {
        if text.trim() == "*" {
            return Ok(CorsPolicy::Any);
        }
        text.split(',')
            .map(|origin| listed_origin(origin.trim()))
            .collect::<Result<_, _>>()
            .map(CorsPolicy::Listed)
    }

    /// The answer to a preflight of an allowed origin; `None` for every other request.
    pub(crate) fn preflight(&self, parts: &Parts) -> Option<Response<AnswerBody>> {
        if parts.method != Method::OPTIONS || !parts.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
            return None;
        }
        let origin = self.allowed(&parts.headers)?;
        let mut response = Response::new(AnswerBody::default());
        *response.status_mut() = StatusCode::NO_CONTENT;
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        headers.insert(ACCESS_CONTROL_MAX_AGE, PREFLIGHT_SECONDS);
        headers.insert(VARY, PREFLIGHT_VARY);
        if let Some(names) = allowed_names(&parts.headers) {
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, names);
        }
        if parts.headers.get(REQUEST_PRIVATE_NETWORK).is_some_and(|value| value == "true") {
            headers.insert(ALLOW_PRIVATE_NETWORK, HeaderValue::from_static("true"));
        }
        Some(response)
    }

    /// Adds the headers to an answer, also to a refusal: a page must be able to read why it was refused.
    pub(crate) fn mark(&self, request: &HeaderMap, answer: &mut HeaderMap) {
        if let CorsPolicy::Listed(_) = self {
            // Also if the origin is absent or refused: a cache must not give that answer to another origin.
            answer.insert(VARY, HeaderValue::from_static("Origin"));
        }
        if let Some(origin) = self.allowed(request) {
            answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            answer.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
        }
    }

    /// The origin of the request as the answer repeats it, if it is allowed.
    fn allowed(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = headers.get(ORIGIN)?;
        match self {
            CorsPolicy::Any => Some(HeaderValue::from_static("*")),
            CorsPolicy::Listed(origins) => {
                let listed = |allowed: &String| origin.as_bytes().eq_ignore_ascii_case(allowed.as_bytes());
                origins.iter().any(listed).then(|| origin.clone())
            }
        }
    }
}

/// The headers that the browser asks about, without those that no client sends.
fn allowed_names(headers: &HeaderMap) -> Option<HeaderValue> {
    let asked = headers.get(ACCESS_CONTROL_REQUEST_HEADERS)?.to_str().ok()?;
    let known = |name: &&str| {
        let is_own = name.get(..OWN_PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(OWN_PREFIX));
        is_own || REQUEST_HEADERS.iter().any(|known| name.eq_ignore_ascii_case(known))
    };
    let names: Vec<&str> = asked.split(',').map(str::trim).filter(known).collect();
    HeaderValue::try_from(names.join(", ")).ok().filter(|value| !value.is_empty())
}

/// An origin in the form that browsers send: scheme and host in lower case, no port that the scheme implies.
fn listed_origin(text: &str) -> Result<String, String> {
    if text == "null" {
        // Every sandboxed frame and local file has this origin.
        return Err("\"null\" is the origin of strangers too; use * if any page may come".to_owned());
    }
    let wrong =
        || format!("\"{text}\" is no origin; one looks like https://app.example or http://localhost:3000");
    let uri: Uri = text.parse().map_err(|_| wrong())?;
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return Err(wrong());
    };
    let implied = match scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    };
    let bare = text.len() == scheme.len() + "://".len() + authority.as_str().len();
    if !bare || authority.as_str().contains('@') {
        return Err(wrong());
    }
    let host = authority.host().to_ascii_lowercase();
    Ok(match authority.port_u16() {
        Some(port) if Some(port) != implied => format!("{scheme}://{host}:{port}"),
        Some(_) | None => format!("{scheme}://{host}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_written_as_browsers_write_them() {
        let listed = |text: &str| match CorsPolicy::parse(text) {
            Ok(CorsPolicy::Listed(origins)) => origins.join(" "),
            Ok(CorsPolicy::Any) => "any".to_owned(),
            Err(_) => "wrong".to_owned(),
        };
        for (text, expected) in [
            ("*", "any"),
            ("https://app.example", "https://app.example"),
            ("HTTPS://App.Example:443, http://localhost:3000", "https://app.example http://localhost:3000"),
            ("http://[::1]:80", "http://[::1]"),
            ("", "wrong"),
            ("null", "wrong"),
            ("app.example", "wrong"),
            ("https://app.example/", "wrong"),
            ("https://app.example/path", "wrong"),
            ("https://me@app.example", "wrong"),
            ("https://a.example,", "wrong"),
            ("https://a.example,*", "wrong"),
        ] {
            assert_eq!(listed(text), expected, "{text}");
        }
    }
}
