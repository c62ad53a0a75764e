//! Sizes at which the index moves its pieces on. The defaults are measured; tests set small ones.

/// See the file's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexOptions {
    /// Merges of fewer documents run in the writer's turn, others as a task of their own.
    pub inline_documents_max: usize,
}

impl Default for IndexOptions {
    fn default() -> IndexOptions {
        IndexOptions { inline_documents_max: 4096 }
    }
}
