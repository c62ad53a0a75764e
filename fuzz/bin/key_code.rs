//! Fuzzes `key_code`: key codes and their order.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::key_code(data));
