//! The answer of a batch: 202 with one part for each operation, or with one part for the first that failed.
//!
//! The caller passes random boundaries, so that no body contains them.

use http::{HeaderMap, StatusCode};

/// The answer of one operation.
#[derive(Clone, Debug)]
pub struct PartResponse {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// The number of the request, if it had one.
    pub content_id: Option<String>,
    /// Its body.
    pub body: Vec<u8>,
}

/// The content type of an answer with this boundary.
pub fn batch_content_type(batch_boundary: &str) -> String {
    format!("multipart/mixed; boundary={batch_boundary}")
}

/// Appends the answer of a changeset: all answers, or only the one that failed.
pub fn write_changeset(
    batch_boundary: &str,
    changeset_boundary: &str,
    responses: &[PartResponse],
    out: &mut Vec<u8>,
) {
    push(out, &["--", batch_boundary, "\r\nContent-Type: multipart/mixed; boundary=", changeset_boundary]);
    push(out, &["\r\n\r\n"]);
    for response in responses {
        push(out, &["--", changeset_boundary, "\r\n"]);
        write_response(response, out);
    }
    push(out, &["--", changeset_boundary, "--\r\n--", batch_boundary, "--\r\n"]);
}

/// Appends the answer of a single query.
pub fn write_retrieval(batch_boundary: &str, response: &PartResponse, out: &mut Vec<u8>) {
    push(out, &["--", batch_boundary, "\r\n"]);
    write_response(response, out);
    push(out, &["--", batch_boundary, "--\r\n"]);
}

fn write_response(response: &PartResponse, out: &mut Vec<u8>) {
    push(out, &["Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n"]);
    push(out, &["\r\nHTTP/1.1 ", response.status.as_str()]);
    push(out, &[" ", response.status.canonical_reason().unwrap_or("Unknown"), "\r\n"]);
    if let Some(id) = &response.content_id {
        push(out, &["Content-ID: ", id, "\r\n"]);
    }
    for (name, value) in &response.headers {
        push(out, &[title_case(name.as_str()).as_str(), ": "]);
        out.extend_from_slice(value.as_bytes());
        push(out, &["\r\n"]);
    }
    push(out, &["\r\n"]);
    out.extend_from_slice(&response.body);
    push(out, &["\r\n"]);
}

/// `content-type` as `Content-Type`: some clients look for headers of parts in this case.
fn title_case(name: &str) -> String {
    let mut is_start = true;
    let mut upper = |character: char| {
        let was_start = std::mem::replace(&mut is_start, character == '-');
        if was_start { character.to_ascii_uppercase() } else { character }
    };
    match name {
        "etag" => "ETag".to_owned(),
        name if name.starts_with("x-ms-") => name.to_owned(),
        name => name.chars().map(&mut upper).collect(),
    }
}

fn push(out: &mut Vec<u8>, texts: &[&str]) {
    texts.iter().for_each(|text| out.extend_from_slice(text.as_bytes()));
}
