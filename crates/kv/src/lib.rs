//! Ordered bytes: ranges and batches over a storage engine.
