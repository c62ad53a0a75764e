//! Request bodies: read whole within bounds of size and time, or not at all.
//!
//! A connection can only go on behind a body that was read to its end, so a refused request's body is drained when
//! that is cheap, and the connection is closed when it is not.

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::Body;
use model::limits::REQUEST_BYTES_MAX;
use model::{Fault, LimitFault, RequestFault};
use std::pin::Pin;
use std::time::Duration;

/// Bytes of a refused body that are read and thrown away. A client that is still sending when the connection closes
/// sees a broken connection instead of the answer, and tries again.
const DRAIN_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A body on its way in.
pub(crate) struct IncomingBody<'a, B> {
    body: Pin<&'a mut B>,
    /// Bytes that came so far.
    received: usize,
    /// Whether the end was seen.
    ended: bool,
    timeout: Duration,
}

impl<'a, B: Body<Data = Bytes>> IncomingBody<'a, B> {
    /// Nothing is read yet. All of the body must come within `timeout`.
    pub(crate) fn new(body: Pin<&'a mut B>, timeout: Duration) -> IncomingBody<'a, B> {
        IncomingBody { ended: body.is_end_stream(), body, received: 0, timeout }
    }

    /// The whole body. A client that announces too much is refused before it sends.
    pub(crate) async fn read(&mut self) -> Result<Bytes, Fault> {
        if self.ended {
            return Ok(Bytes::new());
        }
        let announced = usize::try_from(self.body.size_hint().lower()).unwrap_or(usize::MAX);
        if announced > REQUEST_BYTES_MAX {
            return Err(too_large(announced));
        }
        let late = || RequestFault::BadBody { reason: "it did not arrive in time".to_owned() };
        tokio::time::timeout(self.timeout, self.gather()).await.map_err(|_| late())?
    }

    async fn gather(&mut self) -> Result<Bytes, Fault> {
        let Some(first) = self.bounded_chunk().await? else {
            return Ok(Bytes::new());
        };
        // Most bodies come in one piece, which needs no copy.
        let Some(second) = self.bounded_chunk().await? else {
            return Ok(first);
        };
        let mut whole = BytesMut::from(first);
        whole.extend_from_slice(&second);
        while let Some(chunk) = self.bounded_chunk().await? {
            whole.extend_from_slice(&chunk);
        }
        Ok(whole.freeze())
    }

    async fn bounded_chunk(&mut self) -> Result<Option<Bytes>, Fault> {
        let chunk = self.chunk().await?;
        if self.received > REQUEST_BYTES_MAX { Err(too_large(self.received)) } else { Ok(chunk) }
    }

    /// The next piece of data; `None` at the end.
    async fn chunk(&mut self) -> Result<Option<Bytes>, Fault> {
        while let Some(frame) = self.body.frame().await {
            let broken = |_| RequestFault::BadBody { reason: "it broke off".to_owned() };
            // Trailers carry nothing for us.
            let Ok(data) = frame.map_err(broken)?.into_data() else {
                continue;
            };
            self.received += data.len();
            return Ok(Some(data));
        }
        self.ended = true;
        Ok(None)
    }

    /// Throws away what is left; answers whether the connection may go on.
    pub(crate) async fn drain(&mut self) -> bool {
        if self.ended {
            return true;
        }
        let left = usize::try_from(self.body.size_hint().lower()).unwrap_or(usize::MAX);
        if self.received.saturating_add(left) > DRAIN_BYTES_MAX {
            return false;
        }
        let timeout = self.timeout;
        let rest =
            async { while self.received <= DRAIN_BYTES_MAX && matches!(self.chunk().await, Ok(Some(_))) {} };
        tokio::time::timeout(timeout, rest).await.is_ok() && self.ended
    }
}

fn too_large(bytes: usize) -> Fault {
    LimitFault::TooLarge { bytes, limit: REQUEST_BYTES_MAX }.into()
}
