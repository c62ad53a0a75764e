//! Messages over standard input and output, which are pipes.

use crate::limits::FRAME_BYTES_MAX;
use bytes::{Bytes, BytesMut};
use rustix::io::Errno;

/// The server has closed the pipe, or has sent something that is not a message.
#[derive(Debug)]
pub(super) struct Closed;

/// Bytes that one read asks for.
const READ_BYTES: usize = 64 << 10;

/// The pipes from and to the server.
#[derive(Debug, Default)]
pub(super) struct Pipe {
    received: BytesMut,
    buffer: Vec<u8>,
    frame: Vec<u8>,
}

impl Pipe {
    /// Waits for a message.
    pub(super) fn receive(&mut self) -> Result<Bytes, Closed> {
        loop {
            if let Some(length) = self.received.first_chunk::<4>() {
                let length = u32::from_le_bytes(*length) as usize;
                if length > FRAME_BYTES_MAX {
                    return Err(Closed);
                }
                if self.received.len() >= 4 + length {
                    let mut message = self.received.split_to(4 + length);
                    return Ok(message.split_off(4).freeze());
                }
            }
            self.buffer.resize(READ_BYTES, 0);
            match rustix::io::read(rustix::stdio::stdin(), &mut self.buffer) {
                Ok(0) => return Err(Closed),
                Ok(count) => self.received.extend_from_slice(&self.buffer[..count]),
                Err(Errno::INTR) => {}
                Err(_) => return Err(Closed),
            }
        }
    }

    /// Sends a message. One that is too long cannot be sent; the server then sees that the worker has ended.
    pub(super) fn send(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), Closed> {
        self.frame.clear();
        self.frame.extend_from_slice(&[0; 4]);
        write(&mut self.frame);
        let length = u32::try_from(self.frame.len() - 4).map_err(|_| Closed)?;
        if length as usize > FRAME_BYTES_MAX {
            return Err(Closed);
        }
        self.frame[..4].copy_from_slice(&length.to_le_bytes());
        let mut rest = self.frame.as_slice();
        while !rest.is_empty() {
            match rustix::io::write(rustix::stdio::stdout(), rest) {
                Ok(count) => rest = &rest[count..],
                Err(Errno::INTR) => {}
                Err(_) => return Err(Closed),
            }
        }
        self.frame.shrink_to(READ_BYTES);
        Ok(())
    }
}
