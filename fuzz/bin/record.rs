//! Fuzzes `record`: stored records.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::record(data));
