//! The program: settings, listeners, TLS, logs, metrics.

fn main() {}
