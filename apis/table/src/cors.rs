//! CORS by the rules in the service properties: which pages of other origins may read our answers in a browser.
//!
//! A *preflight* carries no credential. Nothing here grants a right.

use crate::service::DATABASE;
use crate::service_properties::{CORS_ANNOTATION, CorsRule, read_cors};
use engine::Engine;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method};

/// The rules in force.
fn rules(engine: &Engine) -> Vec<CorsRule> {
    let annotation = engine.published_annotation(DATABASE, CORS_ANNOTATION);
    annotation.map(|annotation| read_cors(&annotation.definition().text)).unwrap_or_default()
}

/// Whether a request is a preflight.
pub(crate) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    *method == Method::OPTIONS && headers.contains_key(ORIGIN)
}

/// The headers of the answer to a preflight; `None` if no rule allows it.
pub(crate) fn preflight(engine: &Engine, headers: &HeaderMap) -> Option<HeaderMap> {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let origin = text(ORIGIN)?;
    let method = text(ACCESS_CONTROL_REQUEST_METHOD)?;
    let asked = text(ACCESS_CONTROL_REQUEST_HEADERS).unwrap_or_default();
    let allows = |rule: &&CorsRule| {
        names(&rule.origins).any(|allowed| allowed == "*" || allowed == origin)
            && names(&rule.methods).any(|allowed| allowed == method)
            && names(asked).all(|name| names(&rule.allowed_headers).any(|allowed| covers(allowed, name)))
    };
    let rules = rules(engine);
    let rule = rules.iter().find(allows)?;
    let mut answer = HeaderMap::new();
    answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_str(shown_origin(rule, origin)).ok()?);
    answer.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_str(method).ok()?);
    if !asked.is_empty() {
        answer.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_str(asked).ok()?);
    }
    answer.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from(rule.max_age_seconds));
    answer.insert(VARY, HeaderValue::from_static("Origin"));
    Some(answer)
}

/// Adds the headers to an answer, also to a refusal: a page must be able to read why it was refused.
pub(crate) fn mark(engine: &Engine, method: &Method, request: &HeaderMap, answer: &mut HeaderMap) {
    let Some(origin) = request.get(ORIGIN).and_then(|value| value.to_str().ok()) else { return };
    let rules = rules(engine);
    let allows = |rule: &&CorsRule| {
        names(&rule.origins).any(|allowed| allowed == "*" || allowed == origin)
            && names(&rule.methods).any(|allowed| allowed == method.as_str())
    };
    if rules.is_empty() {
        return;
    }
    answer.insert(VARY, HeaderValue::from_static("Origin"));
    let Some(rule) = rules.iter().find(allows) else { return };
    if let Ok(origin) = HeaderValue::from_str(shown_origin(rule, origin)) {
        answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    }
    let exposed: Vec<&str> = answer
        .keys()
        .map(http::HeaderName::as_str)
        .filter(|name| names(&rule.exposed_headers).any(|allowed| covers(allowed, name)))
        .collect();
    if let Ok(exposed) = HeaderValue::from_str(&exposed.join(",")) {
        answer.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
}

fn shown_origin<'a>(rule: &CorsRule, origin: &'a str) -> &'a str {
    if names(&rule.origins).any(|allowed| allowed == "*") { "*" } else { origin }
}

fn names(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|name| !name.is_empty())
}

/// Whether a name of a rule, which may end with a star, covers the name of a header.
fn covers(allowed: &str, name: &str) -> bool {
    match allowed.strip_suffix('*') {
        Some(prefix) => name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix)),
        None => allowed.eq_ignore_ascii_case(name),
    }
}

#[test]
fn names_of_headers_are_compared_by_prefix_or_whole() {
    assert!(covers("*", "anything") && covers("x-ms-*", "X-MS-Date") && covers("Date", "date"));
    assert!(!covers("x-ms-*", "x-m") && !covers("date", "dates") && !covers("é*", "e"));
}
