//! Tests of the query language from text to plan and back.

mod limits;
mod round_trip;
mod suites;
