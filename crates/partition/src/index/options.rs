//! Sizes at which pieces of the index are merged and flushed. The defaults are measured; tests set small ones.

/// Sizes at which pieces of the index are merged and flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexOptions {
    /// Merges of fewer documents run in the writer, others in a separate task.
    pub inline_documents_max: usize,
    /// Documents in memory at which they are flushed to a run.
    pub flush_documents: usize,
    /// Bytes in memory at which they are flushed to a run.
    pub flush_bytes: usize,
    /// Runs of about one size that are merged into one.
    pub run_fan_in: usize,
    /// Memory limit of the segments of all partitions of a store, in bytes.
    pub memory_bytes_max: usize,
    /// Size of the cache of run rows of all partitions of a store, in bytes.
    pub cache_bytes: usize,
}

impl Default for IndexOptions {
    fn default() -> IndexOptions {
        IndexOptions {
            inline_documents_max: 4096,
            flush_documents: 32_768,
            flush_bytes: 32 << 20,
            run_fan_in: 4,
            memory_bytes_max: 256 << 20,
            cache_bytes: 64 << 20,
        }
    }
}
