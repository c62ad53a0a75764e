//! Queries on partitions: how rows are reached, what is made of them, how answers of several partitions are joined.
//!
//! Knows nothing of query text, HTTP, catalogs or access rights.
