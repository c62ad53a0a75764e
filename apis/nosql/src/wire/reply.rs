//! Answers: status, headers and body, before they become a response.

use super::activity::ActivityId;
use super::answer_body::{AnswerBody, reserved};
use super::links::{self, ContainerLinks};
use super::{header_map, json, names, percent, session};
use crate::faults::{self, Refusal, Subject};
use bytes::Bytes;
use engine::{Container, Reservation};
use http::{HeaderName, HeaderValue, Response, StatusCode, Version};
use model::{Charge, Etag, SessionToken};
use std::ops::Range;
use std::time::Duration;

/// Number of headers of a typical answer; the capacity is allocated at once.
const HEADERS_USUAL: usize = 16;

/// Bytes of the header texts of a typical answer; a body should have this spare capacity.
pub(crate) const HEADER_BYTES_USUAL: usize = 256;

/// The answer to one request.
#[derive(Debug)]
pub(crate) struct Reply {
    status: StatusCode,
    /// In the order in which they were added; the last of a name wins.
    headers: Vec<(&'static HeaderName, Text)>,
    /// The body, followed by the texts written for headers: one allocation for all of them.
    bytes: Vec<u8>,
    body_length: usize,
    /// Reserved memory of the bytes; small answers have none.
    reservation: Option<Box<Reservation>>,
}

#[derive(Debug)]
enum Text {
    /// Constant, or built before.
    Fixed(HeaderValue),
    /// Built for this answer.
    Shared(Bytes),
    /// A range of the answer's bytes.
    Written(Range<usize>),
}

impl Text {
    /// The value, where `texts` starts at offset `texts_at` of the answer's bytes. A text that is invalid in a header
    /// becomes empty, which is equivalent to no header; ours are always valid.
    fn value(self, texts: &Bytes, texts_at: usize) -> HeaderValue {
        let empty = || HeaderValue::from_static("");
        match self {
            Text::Fixed(text) => text,
            Text::Shared(text) => HeaderValue::from_maybe_shared(text).unwrap_or_else(|_| empty()),
            Text::Written(range) => {
                let text = texts.slice(range.start - texts_at..range.end - texts_at);
                HeaderValue::from_maybe_shared(text).unwrap_or_else(|_| empty())
            }
        }
    }
}

impl Reply {
    /// An answer without a body.
    pub(crate) fn empty(status: StatusCode, charge: Charge) -> Reply {
        Reply::with_body(status, charge, Vec::new())
    }

    fn with_body(status: StatusCode, charge: Charge, body: Vec<u8>) -> Reply {
        let headers = Vec::with_capacity(HEADERS_USUAL);
        let body_length = body.len();
        let mut reply = Reply { status, headers, body_length, bytes: body, reservation: None };
        if charge == Charge::MINIMUM {
            // The charge of nearly every read.
            reply.fixed(&names::REQUEST_CHARGE, const { HeaderValue::from_static("1.00") });
        } else {
            reply.written(&names::REQUEST_CHARGE, |text| json::push_hundredths(charge.hundredths(), text));
        }
        reply
    }

    /// An answer with a JSON body.
    pub(crate) fn json(status: StatusCode, charge: Charge, body: Vec<u8>) -> Reply {
        let mut reply = Reply::with_body(status, charge, body);
        reply.fixed(&names::CONTENT_TYPE, const { HeaderValue::from_static("application/json") });
        reply
    }

    /// The answer to a refused request.
    pub(crate) fn refused(refusal: &Refusal, activity: &ActivityId, subject: Option<Subject>) -> Reply {
        let (status, substatus, _) = faults::wire(&refusal.fault);
        let mut reply = Reply::json(status, refusal.charge, faults::body(refusal, activity, subject));
        if substatus != 0 {
            reply.number(&names::SUBSTATUS, substatus);
        }
        if let Some(retry_after_ms) = refusal.fault.retry_after_ms() {
            reply.number(&names::RETRY_AFTER_MS, retry_after_ms);
        }
        if let Some(session) = refusal.session {
            reply.position(session);
        }
        if let Some(log) = &refusal.log {
            crate::scripts::add_log(&mut reply, log);
        }
        reply
    }

    pub(crate) fn text(&mut self, name: &'static HeaderName, text: String) {
        self.headers.push((name, Text::Shared(text.into())));
    }

    /// Replaces the body of an answer that has one.
    pub(crate) fn replace_body(&mut self, body: &[u8]) {
        let texts = self.bytes.split_off(self.body_length);
        for (_, text) in &mut self.headers {
            if let Text::Written(range) = text {
                let moved = |at: usize| at - self.body_length + body.len();
                *range = moved(range.start)..moved(range.end);
            }
        }
        self.bytes.clear();
        self.bytes.extend_from_slice(body);
        self.bytes.extend_from_slice(&texts);
        self.body_length = body.len();
    }

    /// Adds a header with a constant value.
    pub(crate) fn fixed(&mut self, name: &'static HeaderName, text: HeaderValue) {
        self.headers.push((name, Text::Fixed(text)));
    }

    /// Adds a header with the text that `write` appends.
    fn written(&mut self, name: &'static HeaderName, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        write(&mut self.bytes);
        self.headers.push((name, Text::Written(start..self.bytes.len())));
    }

    /// Adds a header with an integer.
    pub(crate) fn number(&mut self, name: &'static HeaderName, number: impl itoa::Integer) {
        self.written(name, |text| json::push_integer(number, text));
    }

    /// Adds the version of the resource.
    pub(crate) fn etag(&mut self, etag: Etag) {
        self.written(&names::ETAG, |text| text.extend_from_slice(&etag.text()));
    }

    /// Adds the container that a session token belongs to; without it clients keep no session.
    pub(crate) fn owner(&mut self, container: &Container) {
        let links = ContainerLinks::of(container);
        self.headers.push((&names::ALT_CONTENT_PATH, Text::Fixed(links.name_path.clone())));
        self.headers.push((&names::CONTENT_PATH, Text::Fixed(links.rid.clone())));
    }

    /// Adds the name path of the owner of the resource. Clients put it in front of the resource's own segments.
    pub(crate) fn owner_path(&mut self, path: &str) {
        self.text(&names::ALT_CONTENT_PATH, percent::encoded(path).into_owned());
    }

    /// Adds the owner of a container, its database. What the second header is for a container is unverified; some
    /// clients take it for the RID of the container.
    pub(crate) fn owner_of_container(&mut self, container: &Container) {
        self.owner_path(&links::database_names(container.database()));
        self.headers.push((&names::CONTENT_PATH, Text::Fixed(ContainerLinks::of(container).rid.clone())));
    }

    /// Adds the session token for a partition of `container`.
    pub(crate) fn session(&mut self, container: &Container, session: SessionToken) {
        self.position(session);
        self.owner(container);
    }

    /// Adds the session token for a partition, without its container.
    fn position(&mut self, session: SessionToken) {
        self.written(&names::SESSION_TOKEN, |text| session::push(session, text));
        self.number(&names::LSN, session.lsn.0);
        self.number(&names::PARTITION_KEY_RANGE_ID, session.ordinal.0);
    }

    /// Adds the session tokens for several partitions of `container`.
    pub(crate) fn sessions(&mut self, container: &Container, sessions: &[SessionToken]) {
        match sessions {
            [] => self.owner(container),
            [session] => self.session(container, *session),
            several => {
                self.written(&names::SESSION_TOKEN, |text| session::push_list(several, text));
                self.owner(container);
            }
        }
    }

    /// Writes the session token in the simple form `<range>:<lsn>`, for clients that do not know the other one.
    pub(crate) fn simplify_session(&mut self) {
        let tokens = self.headers.iter_mut().filter(|(name, _)| std::ptr::eq(*name, &names::SESSION_TOKEN));
        for (_, text) in tokens {
            if let Text::Written(range) = text {
                let vector = String::from_utf8_lossy(&self.bytes[range.clone()]);
                *text = Text::Shared(session::simplified(&vector).into());
            }
        }
    }

    /// Adds the URL of the resource: the parts are joined.
    pub(crate) fn location(&mut self, parts: &[&[u8]]) {
        self.written(&names::CONTENT_LOCATION, |text| {
            parts.iter().for_each(|part| text.extend_from_slice(part))
        });
    }

    /// Asks the client to open a new connection: this one has an unread body.
    pub(crate) fn close_connection(&mut self) {
        self.fixed(&names::CONNECTION, const { HeaderValue::from_static("close") });
    }

    /// Bytes of memory of the answer.
    pub(crate) fn size(&self) -> usize {
        self.bytes.capacity()
    }

    /// Whether the answer is counted as memory.
    pub(crate) fn is_reserved(&self) -> bool {
        self.reservation.is_some()
    }

    /// Counts the answer as memory until it is sent.
    pub(crate) fn reserve(&mut self, reservation: Reservation) {
        self.reservation = Some(Box::new(reservation));
    }

    /// The response. The length is always given, except if a body is impossible.
    pub(crate) fn into_response(
        mut self,
        activity: &ActivityId,
        duration: Duration,
        version: Version,
    ) -> Response<AnswerBody> {
        self.written(&names::ACTIVITY_ID, |text| text.extend_from_slice(activity.as_bytes()));
        let microseconds = duration.as_micros();
        self.written(&names::REQUEST_DURATION_MS, |text| {
            json::push_thousandths(u64::try_from(microseconds).unwrap_or(u64::MAX), text);
        });
        if self.status != StatusCode::NO_CONTENT && self.status != StatusCode::NOT_MODIFIED {
            self.number(&names::CONTENT_LENGTH, self.body_length);
        }
        let (headers, body_length) = (std::mem::take(&mut self.headers), self.body_length);
        let mut response = Response::default();
        *response.status_mut() = self.status;
        if version < Version::HTTP_2 {
            let bytes = self.into_bytes();
            *response.headers_mut() = header_map::of(headers, |text| text.value(&bytes, 0));
            *response.body_mut() = AnswerBody::new(bytes.slice(..body_length));
        } else {
            // Texts of headers stay in the tables of the connection, so they must not keep the body alive.
            let texts = Bytes::copy_from_slice(&self.bytes[body_length..]);
            self.bytes.truncate(body_length);
            *response.headers_mut() = header_map::of(headers, |text| text.value(&texts, body_length));
            *response.body_mut() = AnswerBody::new(self.into_bytes());
        }
        response
    }

    /// The bytes, counted as memory until the last reference to a part of them is dropped.
    fn into_bytes(self) -> Bytes {
        match self.reservation {
            Some(reservation) => reserved(self.bytes, *reservation),
            None => Bytes::from(self.bytes),
        }
    }
}
