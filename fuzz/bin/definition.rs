//! Fuzzes `definition`: definitions of containers and small resources.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::definition(data));
