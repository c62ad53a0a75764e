//! Fuzzes `binary_json_in`: the binary form of JSON in.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::binary_json_in(data));
