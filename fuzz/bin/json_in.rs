//! Fuzzes `json_in`: jSON text in and out.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::json_in(data));
