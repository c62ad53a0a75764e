//! Tasks of the project: test, tidy, bench, fuzz.

fn main() {}
