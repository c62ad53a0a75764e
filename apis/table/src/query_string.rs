//! The query parameters of a request.

use crate::faults::{Code, TableFault, request};
use api_http::percent;
use std::borrow::Cow;

/// Most query parameters of a request.
const PARAMETERS_MAX: usize = 64;

/// Names and values, decoded.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueryString<'a> {
    parameters: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

impl<'a> QueryString<'a> {
    /// Parses the text after the question mark.
    pub(crate) fn parse(text: &'a str) -> Result<QueryString<'a>, TableFault> {
        let malformed = || {
            request(
                Code::InvalidQueryParameterValue,
                "Value for one of the query parameters specified in the request URI is invalid.",
            )
        };
        let mut parameters = Vec::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = decoded(name).ok_or_else(malformed)?;
            let value = decoded(value).ok_or_else(malformed)?;
            if parameters.len() == PARAMETERS_MAX || parameters.iter().any(|(other, _)| *other == name) {
                return Err(malformed());
            }
            parameters.push((name, value));
        }
        Ok(QueryString { parameters })
    }

    /// The value of a parameter.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(other, _)| other == name).map(|(_, value)| &**value)
    }
}

/// Decodes percent-encoding, and plus signs to spaces.
fn decoded(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('+') {
        return percent::decoded(text);
    }
    percent::decoded(&text.replace('+', " ")).map(|decoded| Cow::Owned(decoded.into_owned()))
}

#[test]
fn parameters_are_decoded_and_occur_once() {
    let query = QueryString::parse("$filter=a%20eq+'b%2B'&x&$top=5&&empty=").unwrap();
    assert_eq!(query.get("$filter"), Some("a eq 'b+'"));
    assert_eq!((query.get("x"), query.get("$top"), query.get("empty")), (Some(""), Some("5"), Some("")));
    assert_eq!(query.get("y"), None);
    assert!(QueryString::parse("a=1&a=2").is_err() && QueryString::parse("a=%4").is_err());
    let many = |count: usize| (0..count).map(|index| format!("p{index}=1")).collect::<Vec<_>>().join("&");
    assert!(QueryString::parse(&many(64)).is_ok() && QueryString::parse(&many(65)).is_err());
}
