//! Fuzzes `auth_header`: the authorization header.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::auth_header(data));
