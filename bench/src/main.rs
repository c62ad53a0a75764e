//! Benchmark driver and reference server.

fn main() {}
