//! The worker process of the tests: `nosql-test-worker MEMORY_BYTES`. That of the server is the server itself.

use std::process::ExitCode;

fn main() -> ExitCode {
    match std::env::args().next_back().and_then(|bytes| bytes.parse().ok()) {
        Some(bytes) => engine::script::worker::main(bytes),
        None => ExitCode::FAILURE,
    }
}
