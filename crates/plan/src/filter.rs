//! A condition on one document that is checked before it is changed.

use crate::SystemProperties;
use crate::query::Query;
use std::sync::Arc;

/// Requires that a query returns a row for a document. The query sees the document with its system properties.
#[derive(Clone, Debug)]
pub struct Filter {
    /// The query; its container consists of this one document.
    pub query: Arc<Query>,
    /// What is needed to add the system properties.
    pub system: SystemProperties,
}
