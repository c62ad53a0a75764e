//! Properties that hold for every value, document and text.

// Helpers of tests may do what tests may; lints treat them as ordinary functions.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

mod damage;
mod documents;
mod generate;
mod json_text;
mod keys;
mod numbers;
mod patches;
