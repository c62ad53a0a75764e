//! A question about one document before it is changed.

use crate::SystemProperties;
use crate::query::Query;
use std::sync::Arc;

/// Asks whether a query gives a row for a document, which it sees with its system properties.
#[derive(Clone, Debug)]
pub struct Filter {
    /// The query; its container has this one document.
    pub query: Arc<Query>,
    /// Where the document is.
    pub system: SystemProperties,
}
