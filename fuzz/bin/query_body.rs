//! Fuzzes `query_body`: bodies of queries and continuations.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::query_body(data));
