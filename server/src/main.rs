//! The program `perihelion`: settings, listeners, TLS, logs, metrics around the engine and its APIs.
//!
//! Reads the settings once and passes them down as small option structs. Knows no protocol beyond HTTP framing.

mod ambient;
mod backoff;
mod commands;
mod connection;
mod connection_monitor;
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
mod output;
mod screen;
mod secret;
mod service;
mod settings;
mod store_marker;
mod tls;

use std::process::ExitCode;

/// Requests make many small, short-lived allocations, and documents many long-lived ones.
#[cfg(not(target_env = "msvc"))]
#[global_allocator]
static MEMORY: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let variables = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let unknown = settings::unknown_variables(variables);
    match commands::run(std::env::args_os(), |name| std::env::var(name).ok(), &unknown) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
