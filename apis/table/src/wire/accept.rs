//! What a client wants to read: the level of metadata, JSON or XML.

use super::entity::MetadataLevel;
use super::names;
use crate::faults::{Code, ErrorForm, TableFault, request};
use api_http::request_headers::RequestHeaders;

/// The level of metadata of an answer: by `$format`, or else by `Accept`. An answer is always JSON.
pub(crate) fn level(headers: &RequestHeaders, format: Option<&str>) -> Result<MetadataLevel, TableFault> {
    let accept = match headers.get(&names::ACCEPT) {
        Some(value) => value.to_str().unwrap_or_default(),
        None => "",
    };
    let asked = format.unwrap_or(accept);
    if contains(asked, "odata=nometadata") {
        return Ok(MetadataLevel::None);
    }
    if contains(asked, "odata=fullmetadata") {
        return Ok(MetadataLevel::Full);
    }
    let is_json = asked.is_empty() || contains(asked, "json") || contains(asked, "*/*");
    match (is_json, contains(asked, "odata=minimalmetadata")) {
        (_, true) | (true, _) => Ok(MetadataLevel::Minimal),
        (false, false) if contains(asked, "atom") => Err(request(
            Code::AtomFormatNotSupported,
            "The Atom format is not supported. Use application/json with an odata metadata level.",
        )),
        (false, false) if format.is_some() => {
            Err(request(Code::MediaTypeNotSupported, "The format that $format names is not supported."))
        }
        // Clients of the service's XML operations send their Accept everywhere.
        (false, false) => Ok(MetadataLevel::Minimal),
    }
}

/// The content type of a body with this level.
pub(crate) fn content_type(level: MetadataLevel) -> &'static str {
    match level {
        MetadataLevel::None => "application/json;odata=nometadata;streaming=true;charset=utf-8",
        MetadataLevel::Minimal => "application/json;odata=minimalmetadata;streaming=true;charset=utf-8",
        MetadataLevel::Full => "application/json;odata=fullmetadata;streaming=true;charset=utf-8",
    }
}

/// The form of an error body: XML if the client asks for that and not for JSON.
pub(crate) fn error_form(headers: &RequestHeaders) -> ErrorForm {
    let accept = headers.get(&names::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match contains(accept, "xml") && !contains(accept, "json") {
        true => ErrorForm::Xml,
        false => ErrorForm::Json,
    }
}

/// Whether a text contains another one, in any case.
fn contains(text: &str, part: &str) -> bool {
    text.as_bytes().windows(part.len()).any(|window| window.eq_ignore_ascii_case(part.as_bytes()))
}

#[test]
fn levels_are_told_by_format_or_accept() {
    let level_of = |accept: &'static str, format: Option<&str>| {
        let mut map = http::HeaderMap::new();
        if !accept.is_empty() {
            map.insert(&names::ACCEPT, http::HeaderValue::from_static(accept));
        }
        level(&map.into(), format).ok()
    };
    assert_eq!(level_of("", None), Some(MetadataLevel::Minimal));
    assert_eq!(level_of("application/json;odata=nometadata", None), Some(MetadataLevel::None));
    assert_eq!(level_of("application/json; ODATA=FullMetadata", None), Some(MetadataLevel::Full));
    assert_eq!(level_of("application/json", None), Some(MetadataLevel::Minimal));
    assert_eq!(
        level_of("application/json;odata=nometadata", Some("application/json;odata=fullmetadata")),
        Some(MetadataLevel::Full)
    );
    assert_eq!(level_of("application/xml", None), Some(MetadataLevel::Minimal));
    assert_eq!(level_of("application/atom+xml", None), None);
    assert_eq!(level_of("application/json", Some("application/other")), None);
}
