//! Sizes at which the index moves its pieces on. The defaults are measured; tests set small ones.

/// See the file's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexOptions {
    /// Merges of fewer documents run in the writer's turn, others as a task of their own.
    pub inline_documents_max: usize,
    /// Documents in memory after which they become a run on disk.
    pub flush_documents: usize,
    /// Bytes in memory after which they become a run on disk.
    pub flush_bytes: usize,
    /// Runs of about one size that become one.
    pub run_fan_in: usize,
    /// Bytes of all documents in memory, of all partitions of a store.
    pub memory_bytes_max: usize,
    /// Bytes of rows of runs that are kept in memory, of all partitions of a store.
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
