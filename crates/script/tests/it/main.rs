//! Scripts in real worker processes.

mod api;
mod faults;
mod fixture;
mod fluent;
mod functions;
mod hostile;
mod pool;
mod sandbox;
mod triggers;
