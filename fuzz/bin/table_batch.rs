//! Fuzzes `table_batch`: batches of the Table API.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::table_batch(data));
