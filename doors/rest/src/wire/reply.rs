//! Answers: status, headers and body, before they become a response.

use super::activity::ActivityId;
use super::names;
use crate::faults::{self, Refusal};
use bytes::Bytes;
use engine::Container;
use http::header::{CONNECTION, CONTENT_LENGTH};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::Full;
use model::{Charge, Etag, Fault, LimitFault, SessionToken};

/// Headers of a usual answer; room for them is made at once.
const HEADERS_USUAL: usize = 16;

/// A path of names as a header can carry it: names are any text, headers are ASCII.
fn header_path(path: &Bytes) -> Bytes {
    if path.iter().all(|byte| matches!(byte, b' '..=b'~')) {
        return path.clone();
    }
    let mut text = String::with_capacity(path.len() * 2);
    for byte in path {
        match byte {
            b' '..=b'~' => text.push(char::from(*byte)),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text.into()
}

/// The answer to one request.
#[derive(Debug)]
pub(crate) struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Reply {
    /// An answer without a body.
    pub(crate) fn empty(status: StatusCode, charge: Charge) -> Reply {
        let mut reply = Reply { status, headers: HeaderMap::with_capacity(HEADERS_USUAL), body: Vec::new() };
        if charge == Charge::MINIMUM {
            // What nearly every read costs.
            reply.headers.insert(&names::REQUEST_CHARGE, HeaderValue::from_static("1.00"));
        } else {
            reply.text(&names::REQUEST_CHARGE, charge.to_string());
        }
        reply
    }

    /// An answer with a JSON body.
    pub(crate) fn json(status: StatusCode, charge: Charge, body: Vec<u8>) -> Reply {
        let mut reply = Reply::empty(status, charge);
        reply.body = body;
        reply.headers.insert(&names::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        reply
    }

    /// The answer to a refused request.
    pub(crate) fn refused(refusal: &Refusal, activity: &ActivityId) -> Reply {
        let (status, substatus, _) = faults::wire(&refusal.fault);
        let mut reply = Reply::json(status, refusal.charge, faults::body(refusal, activity));
        if substatus != 0 {
            reply.number(&names::SUBSTATUS, substatus);
        }
        if let Fault::Limit(LimitFault::Busy { retry_after_ms }) = refusal.fault {
            reply.number(&names::RETRY_AFTER_MS, retry_after_ms);
        }
        reply
    }

    /// Adds a header. Text that cannot stand in a header is left out; ours always can.
    pub(crate) fn text(&mut self, name: &'static HeaderName, text: String) {
        if let Ok(value) = HeaderValue::try_from(text) {
            self.headers.insert(name, value);
        }
    }

    /// Adds a header whose text others hold too.
    fn shared(&mut self, name: &'static HeaderName, text: Bytes) {
        if let Ok(value) = HeaderValue::from_maybe_shared(text) {
            self.headers.insert(name, value);
        }
    }

    /// Adds a header with a whole number.
    pub(crate) fn number(&mut self, name: &'static HeaderName, number: impl itoa::Integer) {
        let value = HeaderValue::from_str(itoa::Buffer::new().format(number));
        self.headers.insert(name, value.unwrap_or(HeaderValue::from_static("0")));
    }

    /// Adds the version of the resource.
    pub(crate) fn etag(&mut self, etag: Etag) {
        if let Ok(value) = HeaderValue::from_bytes(&etag.text()) {
            self.headers.insert(&names::ETAG, value);
        }
    }

    /// Adds the container that a session token belongs to; without it clients keep no session.
    pub(crate) fn owner(&mut self, container: &Container) {
        self.shared(&names::ALT_CONTENT_PATH, header_path(container.name_path()));
        self.shared(&names::CONTENT_PATH, container.rid_text().clone());
    }

    /// Adds what the client has now seen of a partition of `container`.
    pub(crate) fn session(&mut self, container: &Container, session: SessionToken) {
        self.text(&names::SESSION_TOKEN, session.to_string());
        self.number(&names::LSN, session.lsn.0);
        self.number(&names::PARTITION_KEY_RANGE_ID, session.ordinal.0);
        self.owner(container);
    }

    /// Adds what the client has now seen of several partitions of `container`.
    pub(crate) fn sessions(&mut self, container: &Container, sessions: &[SessionToken]) {
        match sessions {
            [] => self.owner(container),
            [session] => self.session(container, *session),
            several => {
                let texts: Vec<String> = several.iter().map(ToString::to_string).collect();
                self.text(&names::SESSION_TOKEN, texts.join(","));
                self.owner(container);
            }
        }
    }

    /// Asks the client to open a new connection: this one holds an unread body.
    pub(crate) fn close_connection(&mut self) {
        self.headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }

    /// The response. The length is always said, except where a body is impossible.
    pub(crate) fn into_response(mut self, activity: &ActivityId) -> Response<Full<Bytes>> {
        self.headers.insert(&names::ACTIVITY_ID, activity.header());
        if self.status != StatusCode::NO_CONTENT && self.status != StatusCode::NOT_MODIFIED {
            self.headers.insert(CONTENT_LENGTH, HeaderValue::from(self.body.len()));
        }
        let mut response = Response::new(Full::new(Bytes::from(self.body)));
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response
    }
}
