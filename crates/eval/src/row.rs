//! A row: what the slots of a query hold.

use value::{Value, ValueRef};

/// The values of all sources in scope, outer queries first.
#[derive(Debug, Clone, Copy, Default)]
pub struct Row<'a> {
    /// One value for each slot. A slot beyond the end is undefined: after grouping the sources are gone.
    pub slots: &'a [ValueRef<'a>],
    /// The group this row stands for.
    pub group: Option<&'a GroupRow>,
    /// Number of the document the row comes from.
    pub document_number: Option<u64>,
}

/// What is known of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupRow {
    /// Its keys; `None` is undefined.
    pub keys: Vec<Option<Value>>,
    /// Its aggregates; `None` is undefined.
    pub aggregates: Vec<Option<Value>>,
}

impl<'a> Row<'a> {
    /// A row of a query over the container alone.
    pub fn of_document(slots: &'a [ValueRef<'a>], document_number: u64) -> Row<'a> {
        Row { slots, group: None, document_number: Some(document_number) }
    }
}
