//! The program `perihelion`: settings, listeners, TLS, logs, metrics around the engine and its APIs.
//!
//! Reads settings once and hands them down as small option structs. Knows no protocol beyond HTTP's frame.

mod ambient;
mod backoff;
mod commands;
mod connection;
mod failure;
mod files;
mod handles;
mod identity;
mod keys;
mod listener;
mod logs;
mod machine;
mod metrics;
mod mode;
mod screen;
mod secret;
mod service;
mod settings;
mod store_marker;
mod tls;
mod watch;

use std::process::ExitCode;

/// Requests are many small pieces of memory that live shortly, and documents many that live long.
#[cfg(not(target_env = "msvc"))]
#[global_allocator]
static MEMORY: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    match commands::run(std::env::args_os(), |name| std::env::var(name).ok()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
