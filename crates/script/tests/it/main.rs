//! Scripts in real worker processes.

#![allow(clippy::unwrap_used)] // a failed expectation ends the test

mod alike;
mod api;
mod faults;
mod fixture;
mod fluent;
mod functions;
mod hostile;
mod pool;
mod sandbox;
mod sealed;
mod triggers;
