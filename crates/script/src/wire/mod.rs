//! The messages between the server and a worker.
//!
//! A message is a length (4 bytes, little endian), then that many bytes: a kind and its fields. Numbers are little
//! endian, texts and bytes have their length in front.
//!
//! ```text
//! server -> worker   Run, Evaluate, Check    starts a call
//!                    Replies                 results of operations
//!                    Stop                    the call is over; forget it
//! worker -> server   Ready                   once, with what of the sandbox could not be set up
//!                    Operate                 operations, in order; expects Replies or Stop
//!                    Finished, Evaluated, Checked, Failed      ends a call
//! ```
//!
//! The worker executes hostile code, so the server trusts nothing that it receives: lengths are compared with what
//! has arrived, and a message that cannot be read ends the worker.

pub(crate) mod bytes;
pub(crate) mod from_worker;
pub(crate) mod operations;
pub(crate) mod to_worker;
pub(crate) mod values;

#[cfg(test)]
mod tests;

/// A message that does not follow the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("message of a script worker is malformed")]
pub(crate) struct Malformed;
