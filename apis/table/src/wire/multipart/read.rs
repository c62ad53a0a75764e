//! The body of a batch: one changeset of writes, or one query.

use super::parts::{boundary, parts};
use super::request::{headers, request};
use super::{MultipartFault, PartRequest};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method};

/// Largest batch in bytes.
pub const BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Most operations of a batch.
pub const BATCH_OPERATIONS_MAX: usize = 100;

/// The requests of a batch.
#[derive(Clone, Debug, PartialEq)]
pub enum Batch {
    /// Writes that are executed together, at least one.
    Changeset(Vec<PartRequest>),
    /// A single query.
    Retrieval(PartRequest),
}

/// Reads a batch with the content type of its request.
pub fn read_batch(content_type: &str, body: &Bytes) -> Result<Batch, MultipartFault> {
    if body.len() > BATCH_BYTES_MAX {
        return Err(MultipartFault::TooLarge { bytes: body.len(), bytes_max: BATCH_BYTES_MAX });
    }
    let outer = boundary(content_type).ok_or(MultipartFault::ContentType)?;
    let ranges = parts(body, outer, 1, &MultipartFault::SeveralParts)?;
    let range = ranges.into_iter().next().ok_or(MultipartFault::Empty)?;
    let mut rest = body.get(range).unwrap_or_default();
    let part_headers = headers(&mut rest, 0)?;
    match media_type(&part_headers) {
        Some(media_type) if is_multipart(media_type) => {
            let inner = boundary(media_type).ok_or(MultipartFault::ContentType)?;
            changeset(&body.slice_ref(rest), inner)
        }
        Some(media_type) if is_request(media_type) => {
            let request = request(body, &part_headers, rest, 0)?;
            if request.method != Method::GET {
                return Err(MultipartFault::WriteOutsideChangeset);
            }
            Ok(Batch::Retrieval(request))
        }
        Some(_) | None => Err(MultipartFault::PartContentType { part: 0 }),
    }
}

fn changeset(body: &Bytes, inner: &str) -> Result<Batch, MultipartFault> {
    let too_many = MultipartFault::TooManyOperations { count_max: BATCH_OPERATIONS_MAX };
    let ranges = parts(body, inner, BATCH_OPERATIONS_MAX, &too_many)?;
    if ranges.is_empty() {
        return Err(MultipartFault::Empty);
    }
    let mut requests = Vec::with_capacity(ranges.len());
    for (part, range) in ranges.into_iter().enumerate() {
        let mut rest = body.get(range).unwrap_or_default();
        let part_headers = headers(&mut rest, part)?;
        match media_type(&part_headers) {
            Some(media_type) if is_request(media_type) => {}
            Some(media_type) if is_multipart(media_type) => {
                return Err(MultipartFault::NestedChangeset { part });
            }
            Some(_) | None => return Err(MultipartFault::PartContentType { part }),
        }
        let request = request(body, &part_headers, rest, part)?;
        if request.method == Method::GET {
            return Err(MultipartFault::QueryInChangeset { part });
        }
        requests.push(request);
    }
    Ok(Batch::Changeset(requests))
}

fn media_type(headers: &HeaderMap) -> Option<&str> {
    headers.get(CONTENT_TYPE)?.to_str().ok()
}

fn is_multipart(media_type: &str) -> bool {
    media_type.get(..10).is_some_and(|start| start.eq_ignore_ascii_case("multipart/"))
}

fn is_request(media_type: &str) -> bool {
    media_type.split(';').next().is_some_and(|start| start.trim().eq_ignore_ascii_case("application/http"))
}
