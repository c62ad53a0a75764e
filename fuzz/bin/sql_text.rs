//! Fuzzes `sql_text`: text of queries.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::sql_text(data));
