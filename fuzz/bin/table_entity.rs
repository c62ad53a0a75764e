//! Fuzzes `table_entity`: entities of the Table API.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::table_entity(data));
