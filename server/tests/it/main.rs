//! The program itself, started as users start it and tested over real sockets.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod client;
mod commands;
mod control;
mod hostile;
mod http2;
mod identity;
mod process;
mod queries;
mod restored;
mod secrets;
mod serving;
mod storage;
mod table;
mod tls;
