//! Request bodies: read completely within limits of size and time, or not at all.
//!
//! A connection can only be used again after a body that was read to its end. So the body of a refused request is
//! drained if that is cheap; otherwise the connection is closed.

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::Body;
use model::LimitFault;
use model::limits::REQUEST_BYTES_MAX;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;
use thiserror::Error;

/// Bytes of a refused body that are read and discarded. A client that is still sending when the connection closes sees
/// a broken connection instead of the answer, and retries.
const DRAIN_BYTES_MAX: usize = 64 * 1024 * 1024;

/// How long the server waits for the rest of a refused body whose sender is not authenticated. A client with a wrong key
/// can send a small one and see the answer; longer, callers without a key would hold the memory of their connections.
const DRAIN_SECONDS_STRANGER: u64 = 1;

/// A body that was not read.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum BodyFault {
    /// It did not arrive in time.
    #[error("it did not arrive in time")]
    Late,
    /// It ended before its announced end.
    #[error("it broke off")]
    BrokenOff,
    /// It is too large.
    #[error(transparent)]
    Limit(LimitFault),
}

/// The body of a request.
pub struct IncomingBody<'a, B> {
    body: Pin<&'a mut B>,
    /// Bytes received so far.
    received: usize,
    /// Whether the end was reached.
    ended: bool,
    timeout: Duration,
    /// Whether the sender has a valid credential.
    is_sender_known: bool,
    /// The first piece, as long as it is the only one: most bodies have one piece, which needs no copy.
    first: Bytes,
    /// All pieces, if there are several.
    joined: BytesMut,
}

impl<'a, B: Body<Data = Bytes>> IncomingBody<'a, B> {
    /// Nothing is read yet. The whole body must arrive within `timeout`.
    pub fn new(body: Pin<&'a mut B>, timeout: Duration) -> IncomingBody<'a, B> {
        let (first, joined) = (Bytes::new(), BytesMut::new());
        let (ended, is_sender_known) = (body.is_end_stream(), false);
        IncomingBody { ended, body, received: 0, timeout, is_sender_known, first, joined }
    }

    /// The sender is authenticated.
    pub fn know_sender(&mut self) {
        self.is_sender_known = true;
    }

    /// The whole body if it has already arrived, as most have: a timer costs more than reading it. A client that
    /// announces too much is refused before it sends.
    pub async fn read_at_once(&mut self) -> Result<Option<Bytes>, BodyFault> {
        if self.ended {
            return Ok(Some(Bytes::new()));
        }
        let announced = self.bytes_announced();
        if announced > REQUEST_BYTES_MAX {
            return Err(too_large(announced));
        }
        let mut gathering = pin!(self.gather());
        match poll_fn(|context| Poll::Ready(gathering.as_mut().poll(context))).await {
            Poll::Ready(whole) => whole.map(Some),
            Poll::Pending => Ok(None),
        }
    }

    /// The whole body, including what was already received.
    pub async fn read(&mut self) -> Result<Bytes, BodyFault> {
        let timeout = self.timeout;
        let late = |_| BodyFault::Late;
        tokio::time::timeout(timeout, self.gather()).await.map_err(late)?
    }

    /// Maximum size of the body.
    pub fn bytes_expected(&self) -> usize {
        let left = self.body.size_hint().upper().and_then(|bytes| usize::try_from(bytes).ok());
        left.map_or(REQUEST_BYTES_MAX, |left| self.received.saturating_add(left).min(REQUEST_BYTES_MAX))
    }

    fn bytes_announced(&self) -> usize {
        usize::try_from(self.body.size_hint().lower()).unwrap_or(usize::MAX)
    }

    /// Can be cancelled between two pieces and restarted: received pieces are kept here.
    async fn gather(&mut self) -> Result<Bytes, BodyFault> {
        while let Some(chunk) = self.bounded_chunk().await? {
            if self.received == chunk.len() {
                self.first = chunk;
                continue;
            }
            if self.joined.is_empty() {
                self.joined.reserve(self.bytes_expected());
                self.joined.extend_from_slice(&std::mem::take(&mut self.first));
            }
            self.joined.extend_from_slice(&chunk);
        }
        if self.joined.is_empty() {
            return Ok(std::mem::take(&mut self.first));
        }
        Ok(std::mem::take(&mut self.joined).freeze())
    }

    async fn bounded_chunk(&mut self) -> Result<Option<Bytes>, BodyFault> {
        let chunk = self.chunk().await?;
        if self.received > REQUEST_BYTES_MAX { Err(too_large(self.received)) } else { Ok(chunk) }
    }

    /// The next piece of data; `None` at the end.
    async fn chunk(&mut self) -> Result<Option<Bytes>, BodyFault> {
        // A body with all announced bytes is not polled for its end, because that takes another poll.
        while !self.body.is_end_stream() {
            let Some(frame) = self.body.frame().await else { break };
            let broken = |_| BodyFault::BrokenOff;
            // Trailers are ignored.
            let Ok(data) = frame.map_err(broken)?.into_data() else {
                continue;
            };
            self.received += data.len();
            return Ok(Some(data));
        }
        self.ended = true;
        Ok(None)
    }

    /// Discards the rest; returns whether the connection can be used again.
    pub async fn drain(&mut self) -> bool {
        if self.ended {
            return true;
        }
        if self.received.saturating_add(self.bytes_announced()) > DRAIN_BYTES_MAX {
            return false;
        }
        let timeout = match self.is_sender_known {
            true => self.timeout,
            false => self.timeout.min(Duration::from_secs(DRAIN_SECONDS_STRANGER)),
        };
        let rest =
            async { while self.received <= DRAIN_BYTES_MAX && matches!(self.chunk().await, Ok(Some(_))) {} };
        tokio::time::timeout(timeout, rest).await.is_ok() && self.ended
    }
}

fn too_large(bytes: usize) -> BodyFault {
    BodyFault::Limit(LimitFault::TooLarge { bytes, limit: REQUEST_BYTES_MAX })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::Full;
    use hyper::body::{Frame, SizeHint};
    use std::collections::VecDeque;
    use std::convert::Infallible;
    use std::task::{Context, Waker};

    /// A body whose pieces are available and whose end is only known by its length, as on a connection.
    struct Announced {
        pieces: VecDeque<&'static [u8]>,
        length: usize,
    }

    impl Body for Announced {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            let Some(piece) = self.pieces.pop_front() else { return Poll::Pending };
            self.length -= piece.len();
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(piece)))))
        }

        fn is_end_stream(&self) -> bool {
            self.length == 0
        }

        fn size_hint(&self) -> SizeHint {
            SizeHint::with_exact(self.length as u64)
        }
    }

    /// Polls the body once. There is no runtime here, so a timer would panic.
    fn taken<B: Body<Data = Bytes>>(body: B) -> Bytes {
        let body = pin!(body);
        let mut incoming = IncomingBody::new(body, Duration::from_secs(1));
        let Poll::Ready(read) = pin!(incoming.read_at_once()).poll(&mut Context::from_waker(Waker::noop()))
        else {
            panic!("the body is there");
        };
        read.unwrap().expect("the body is there")
    }

    #[test]
    fn a_body_that_is_there_needs_no_timer() {
        assert_eq!(taken(Full::from("whole")), "whole");
        assert_eq!(taken(Full::<Bytes>::default()), "");
        for pieces in [vec![&b"whole"[..]], vec![b"wh", b"ol", b"e"]] {
            assert_eq!(taken(Announced { pieces: pieces.into(), length: 5 }), "whole");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_come_is_given_up() {
        let body = pin!(Announced { pieces: [&b"who"[..]].into(), length: 5 });
        let mut incoming = IncomingBody::new(body, Duration::from_secs(1));
        assert!(incoming.read_at_once().await.unwrap().is_none());
        assert_eq!(incoming.bytes_expected(), 5);
        let fault = incoming.read().await.unwrap_err();
        assert!(fault.to_string().contains("in time"), "{fault}");
    }
}
