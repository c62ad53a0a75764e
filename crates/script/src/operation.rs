//! The document operations that a script asks its host to execute, and their results.
//!
//! All data comes from an untrusted process: texts are valid UTF-8, nothing else is checked.

use bytes::Bytes;

/// One operation on documents of the container and logical partition of the call.
#[derive(Debug, Clone, PartialEq)]
pub enum Operation {
    /// Stores a new document.
    Create {
        /// JSON text; it has an id unless the script has switched off the generation of ids.
        document: Bytes,
        /// Whether the document is indexed.
        index_action: IndexAction,
        /// Whether the script reads the stored document; otherwise the host does not return it.
        wants_document: bool,
    },
    /// Stores a document, in place of one with the same id if there is one.
    Upsert {
        /// JSON text.
        document: Bytes,
        /// Whether the document is indexed.
        index_action: IndexAction,
        /// The ETag that the stored document must have.
        if_match: Option<String>,
        /// Whether the script reads the stored document; otherwise the host does not return it.
        wants_document: bool,
    },
    /// Reads one document.
    Read {
        /// The document.
        document: DocumentLink,
        /// The ETag of the version that the script already has.
        if_none_match: Option<String>,
    },
    /// Replaces one document.
    Replace {
        /// The document.
        document: DocumentLink,
        /// Its new content as JSON text.
        content: Bytes,
        /// Whether the document is indexed.
        index_action: IndexAction,
        /// The ETag that the stored document must have.
        if_match: Option<String>,
        /// Whether the script reads the stored document; otherwise the host does not return it.
        wants_document: bool,
    },
    /// Deletes one document.
    Delete {
        /// The document.
        document: DocumentLink,
        /// The ETag that the stored document must have.
        if_match: Option<String>,
    },
    /// Changes parts of one document.
    Patch {
        /// The document.
        document: DocumentLink,
        /// A JSON array of patch operations, or an object with `operations` and `condition`.
        changes: Bytes,
        /// The ETag that the stored document must have.
        if_match: Option<String>,
        /// Whether the script reads the stored document; otherwise the host does not return it.
        wants_document: bool,
    },
    /// Reads one page of a query.
    Query {
        /// Text of the query.
        text: String,
        /// A JSON array of objects with `name` and `value`; empty for none.
        parameters: Bytes,
        /// Which page.
        page: PageOptions,
        /// Whether the query may read documents that no index finds.
        enable_scan: bool,
    },
    /// Reads one page of all documents.
    ReadAll {
        /// Which page.
        page: PageOptions,
    },
}

/// The document that an operation names: the part of its link after that of the container, without slashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DocumentLink {
    /// An RID, from a self link.
    Rid(String),
    /// An id, from a link by names.
    Id(String),
}

/// Whether a written document is indexed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum IndexAction {
    /// As the indexing policy says.
    #[default]
    Default,
    /// Always.
    Include,
    /// Never.
    Exclude,
}

/// Size and place of a page of results.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageOptions {
    /// Most results; `None` is the host's default, negative means that the host chooses.
    pub size: Option<i64>,
    /// Where the page before ended.
    pub continuation: Option<String>,
}

/// The results of the first operations of a message, in their order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Replies {
    /// One for each operation that was executed, at least one.
    pub replies: Vec<Reply>,
    /// Whether little of the budget of request units is left. The script's next operations are then not accepted.
    pub is_budget_low: bool,
}

/// The result of one operation.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// It was executed.
    Done(Outcome),
    /// It was refused; the script may go on.
    Refused(Refusal),
}

impl Reply {
    /// Bytes of its texts.
    pub fn size_bytes(&self) -> usize {
        match self {
            Reply::Done(outcome) => {
                let body = outcome.body.as_ref().map_or(0, Bytes::len);
                body + outcome.continuation.as_ref().map_or(0, String::len)
            }
            Reply::Refused(refusal) => refusal.message.len(),
        }
    }
}

/// What an executed operation returns to the script.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// JSON text: the document, or an array of the results of a page; `None` for a delete.
    pub body: Option<Bytes>,
    /// Whether [`Operation::Read`] found the version that the script has; there is no body then.
    pub is_not_modified: bool,
    /// Where the next page starts.
    pub continuation: Option<String>,
    /// Size of the container, with pages.
    pub container_size: Option<ContainerSize>,
}

/// Size of the container as scripts see it, in megabytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ContainerSize {
    /// Size of its documents.
    pub current_mb: f64,
    /// Most that it may have.
    pub max_mb: f64,
}

/// Why an operation was refused, as the API of the script shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The number of the error.
    pub number: u16,
    /// Its text.
    pub message: String,
}
