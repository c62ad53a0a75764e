//! One request of a batch: headers of its part, request line, headers, body.

use super::MultipartFault;
use super::parts::line;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};

/// Most headers of a part, and of the request in it.
pub const HEADERS_MAX: usize = 64;

/// A request of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct PartRequest {
    /// Its method.
    pub method: Method,
    /// Its address as it was sent: absolute, or a path with its query.
    pub address: String,
    /// Its headers.
    pub headers: HeaderMap,
    /// The number that its answer repeats, if it has one.
    pub content_id: Option<String>,
    /// Its body.
    pub body: Bytes,
}

/// Reads the headers at the beginning of `rest`, up to the empty line after them.
pub(super) fn headers(rest: &mut &[u8], part: usize) -> Result<HeaderMap, MultipartFault> {
    let mut headers = HeaderMap::new();
    while let Some(line) = line(rest) {
        if line.is_empty() {
            break;
        }
        if headers.len() == HEADERS_MAX {
            return Err(MultipartFault::TooManyHeaders { part });
        }
        let malformed = MultipartFault::MalformedHeader { part };
        let colon = line.iter().position(|byte| *byte == b':').ok_or(malformed.clone())?;
        let name = HeaderName::from_bytes(&line[..colon]).map_err(|_| malformed.clone())?;
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).map_err(|_| malformed)?;
        headers.append(name, value);
    }
    Ok(headers)
}

/// Reads the request in the `rest` of a part, whose own headers were read before. `body` is the body of the batch.
pub(super) fn request(
    body: &Bytes,
    part_headers: &HeaderMap,
    mut rest: &[u8],
    part: usize,
) -> Result<PartRequest, MultipartFault> {
    // Clients send one empty line or two before the request.
    let mut first = line(&mut rest).unwrap_or_default();
    while first.is_empty() && !rest.is_empty() {
        first = line(&mut rest).unwrap_or_default();
    }
    let malformed = MultipartFault::MalformedRequestLine { part };
    let text = str::from_utf8(first).map_err(|_| malformed.clone())?;
    let (method, text) = text.split_once(' ').ok_or(malformed.clone())?;
    let (address, version) = text.trim().rsplit_once(' ').ok_or(malformed.clone())?;
    let method = Method::from_bytes(method.as_bytes()).map_err(|_| malformed.clone())?;
    if !version.starts_with("HTTP/") || address.is_empty() || address.bytes().any(|byte| byte <= b' ') {
        return Err(malformed);
    }
    let request_headers = headers(&mut rest, part)?;
    let content_id = [part_headers, &request_headers]
        .into_iter()
        .find_map(|headers| headers.get("content-id"))
        .and_then(|id| id.to_str().ok())
        .map(str::to_owned);
    Ok(PartRequest {
        method,
        address: address.to_owned(),
        headers: request_headers,
        content_id,
        body: body.slice_ref(trim_line_ends(rest)),
    })
}

/// Bodies are JSON; clients end them with one line end, several or none.
fn trim_line_ends(mut body: &[u8]) -> &[u8] {
    while let Some(shorter) = body.strip_suffix(b"\n").or_else(|| body.strip_suffix(b"\r")) {
        body = shorter;
    }
    body
}
