//! Tests of the Table API over an engine in memory.
