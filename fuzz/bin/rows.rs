//! Fuzzes `rows`: rows and keys around the records.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::rows(data));
