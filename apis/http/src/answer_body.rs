//! The body of an answer: bytes that are counted as memory until all of them are sent.

use bytes::Bytes;
use engine::Reservation;
use hyper::body::{Body, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Bytes that are handed to the connection at a time. A connection holds them until they are sent, so for a client that
/// does not read it holds at most this many.
const PIECE_BYTES_MAX: usize = 64 * 1024;

/// Bytes that a body may have allocated without using them.
const SLACK_BYTES_MAX: usize = 64 * 1024;

/// A complete body that is sent in pieces.
#[derive(Debug, Default)]
pub struct AnswerBody {
    rest: Bytes,
}

impl AnswerBody {
    /// A body of these bytes.
    pub fn new(bytes: Bytes) -> AnswerBody {
        AnswerBody { rest: bytes }
    }
}

impl From<Bytes> for AnswerBody {
    fn from(bytes: Bytes) -> AnswerBody {
        AnswerBody::new(bytes)
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        let piece = if self.rest.len() <= PIECE_BYTES_MAX {
            std::mem::take(&mut self.rest)
        } else {
            self.rest.split_to(PIECE_BYTES_MAX)
        };
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}

/// Bytes whose memory is reserved until the last reference to a part of them is dropped.
pub fn reserved(mut bytes: Vec<u8>, mut reservation: Reservation) -> Bytes {
    if bytes.capacity() > bytes.len() + SLACK_BYTES_MAX {
        bytes.shrink_to_fit();
    }
    reservation.hand_over(bytes.capacity());
    Bytes::from_owner(Reserved { bytes, _reservation: reservation })
}

struct Reserved {
    bytes: Vec<u8>,
    _reservation: Reservation,
}

impl AsRef<[u8]> for Reserved {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt as _;

    #[tokio::test]
    async fn pieces_are_small_and_make_up_the_whole() {
        for length in [0, 1, PIECE_BYTES_MAX, PIECE_BYTES_MAX + 1, 5 * PIECE_BYTES_MAX + 7] {
            let whole: Vec<u8> = (0..=250).cycle().take(length).collect();
            let mut body = AnswerBody::new(whole.clone().into());
            assert_eq!(body.size_hint().exact(), Some(length as u64));
            let mut sent = Vec::new();
            while let Some(frame) = body.frame().await {
                let piece = frame.unwrap().into_data().unwrap();
                assert!(!piece.is_empty() && piece.len() <= PIECE_BYTES_MAX);
                sent.extend_from_slice(&piece);
            }
            assert!(body.is_end_stream());
            assert_eq!(sent, whole);
        }
    }
}
