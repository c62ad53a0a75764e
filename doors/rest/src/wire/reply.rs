//! Answers: status, headers and body, before they become a response.

use super::activity::ActivityId;
use super::names;
use crate::faults::{self, Refusal};
use bytes::{BufMut, Bytes, BytesMut};
use engine::Container;
use http::header::CONNECTION;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::Full;
use model::{Charge, Etag, Fault, LimitFault, SessionToken};

/// Headers of a usual answer; room for them is made at once.
const HEADERS_USUAL: usize = 16;

/// Bytes of their texts in a usual answer.
const TEXT_BYTES_USUAL: usize = 192;

/// The answer to one request.
#[derive(Debug)]
pub(crate) struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    /// Where the texts of headers are written, one behind the other: one allocation for all of them.
    texts: BytesMut,
    body: Vec<u8>,
}

impl Reply {
    /// An answer without a body.
    pub(crate) fn empty(status: StatusCode, charge: Charge) -> Reply {
        let headers = HeaderMap::with_capacity(HEADERS_USUAL);
        let texts = BytesMut::with_capacity(TEXT_BYTES_USUAL);
        let mut reply = Reply { status, headers, texts, body: Vec::new() };
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

    /// Adds a header.
    pub(crate) fn text(&mut self, name: &'static HeaderName, text: String) {
        self.shared(name, text.into());
    }

    /// Adds a header with what `write` appends.
    fn written(&mut self, name: &'static HeaderName, write: impl FnOnce(&mut BytesMut)) {
        write(&mut self.texts);
        let text = self.texts.split().freeze();
        self.shared(name, text);
    }

    /// Adds a header whose text others hold too. Text that cannot stand in a header is left out; ours always can.
    fn shared(&mut self, name: &'static HeaderName, text: Bytes) {
        if let Ok(value) = HeaderValue::from_maybe_shared(text) {
            self.headers.insert(name, value);
        }
    }

    /// Adds a header with a whole number.
    pub(crate) fn number(&mut self, name: &'static HeaderName, number: impl itoa::Integer) {
        self.written(name, |text| text.put_slice(itoa::Buffer::new().format(number).as_bytes()));
    }

    /// Adds the version of the resource.
    pub(crate) fn etag(&mut self, etag: Etag) {
        self.written(&names::ETAG, |text| text.put_slice(&etag.text()));
    }

    /// Adds the container that a session token belongs to; without it clients keep no session.
    pub(crate) fn owner(&mut self, container: &Container) {
        self.shared(&names::ALT_CONTENT_PATH, container.name_path().clone());
        self.shared(&names::CONTENT_PATH, container.rid_text().clone());
    }

    /// Adds what the client has now seen of a partition of `container`.
    pub(crate) fn session(&mut self, container: &Container, session: SessionToken) {
        self.written(&names::SESSION_TOKEN, |text| session.push_text(text));
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
                self.written(&names::SESSION_TOKEN, |text| push_sessions(several, text));
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
        self.written(&names::ACTIVITY_ID, |text| text.put_slice(activity.as_bytes()));
        if self.status != StatusCode::NO_CONTENT && self.status != StatusCode::NOT_MODIFIED {
            self.number(&names::CONTENT_LENGTH, self.body.len());
        }
        let mut response = Response::new(Full::new(Bytes::from(self.body)));
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response
    }
}

/// Tokens joined by commas.
fn push_sessions(sessions: &[SessionToken], text: &mut BytesMut) {
    for (index, session) in sessions.iter().enumerate() {
        if index > 0 {
            text.put_u8(b',');
        }
        session.push_text(text);
    }
}
