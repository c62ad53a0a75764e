//! Answers: status, headers and body, before they become a response.

use super::names;
use api_http::answer_body::{AnswerBody, reserved};
use api_http::{Guid, date};
use bytes::Bytes;
use engine::Reservation;
use http::header::CACHE_CONTROL;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use model::Charge;

/// Number of headers of a typical answer.
const HEADERS_USUAL: usize = 14;
/// The version of the service that answers follow if a client names none.
const VERSION_DEFAULT: &str = "2019-02-02";
/// Longest id of a client that is echoed.
const CLIENT_ID_BYTES_MAX: usize = 1024;

/// The answer to one request.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    pub(crate) charge: Charge,
    /// Reserved memory of the body; small answers have none.
    pub(crate) reservation: Option<Box<Reservation>>,
}

impl Reply {
    /// An answer without a body.
    pub(crate) fn empty(status: StatusCode, charge: Charge) -> Reply {
        let headers = HeaderMap::with_capacity(HEADERS_USUAL);
        Reply { status, headers, body: Vec::new(), charge, reservation: None }
    }

    /// An answer with a body.
    pub(crate) fn with_body(
        status: StatusCode,
        charge: Charge,
        content_type: &'static str,
        body: Vec<u8>,
    ) -> Reply {
        let mut reply = Reply { body, ..Reply::empty(status, charge) };
        reply.headers.insert(names::CONTENT_TYPE, HeaderValue::from_static(content_type));
        reply
    }

    /// Adds a header; a text that is invalid in a header is left out.
    pub(crate) fn text(&mut self, name: &'static HeaderName, text: impl Into<String>) {
        if let Ok(value) = HeaderValue::from_maybe_shared(Bytes::from(text.into())) {
            self.headers.insert(name, value);
        }
    }

    /// Adds a header with a constant value.
    pub(crate) fn fixed(&mut self, name: &'static HeaderName, text: &'static str) {
        self.headers.insert(name, HeaderValue::from_static(text));
    }

    /// The response, with the headers that all answers have.
    pub(crate) fn into_response(mut self, common: &Common<'_>) -> Response<AnswerBody> {
        let charge = self.charge.hundredths();
        self.text(&names::REQUEST_CHARGE, format!("{}.{:02}", charge / 100, charge % 100));
        if let Ok(value) = HeaderValue::from_bytes(common.request_id.as_bytes()) {
            self.headers.insert(&names::REQUEST_ID, value);
        }
        self.headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        match common.version {
            Some(version) => self.headers.insert(&names::VERSION, version.clone()),
            None => self.headers.insert(&names::VERSION, HeaderValue::from_static(VERSION_DEFAULT)),
        };
        if let Some(id) = common.client_id.filter(|id| id.len() <= CLIENT_ID_BYTES_MAX) {
            self.headers.insert(&names::CLIENT_REQUEST_ID, id.clone());
        }
        self.text_of(names::DATE, date::text(common.now_seconds));
        self.headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
        if self.status != StatusCode::NO_CONTENT && self.status != StatusCode::NOT_MODIFIED {
            self.headers.insert(names::CONTENT_LENGTH, HeaderValue::from(self.body.len()));
        }
        let mut response = Response::default();
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        let bytes = match self.reservation {
            Some(reservation) => reserved(self.body, *reservation),
            None => Bytes::from(self.body),
        };
        *response.body_mut() = AnswerBody::new(bytes);
        response
    }

    fn text_of(&mut self, name: HeaderName, text: String) {
        if let Ok(value) = HeaderValue::from_maybe_shared(Bytes::from(text)) {
            self.headers.insert(name, value);
        }
    }
}

/// What all answers repeat from their request.
pub(crate) struct Common<'a> {
    pub(crate) request_id: Guid,
    pub(crate) client_id: Option<&'a HeaderValue>,
    pub(crate) version: Option<&'a HeaderValue>,
    pub(crate) now_seconds: u64,
}
