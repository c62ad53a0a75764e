//! A row: the values of the slots of a query.

use value::{Value, ValueRef};

/// The values of all sources in scope, outer queries first.
#[derive(Debug, Clone, Copy, Default)]
pub struct Row<'a> {
    /// One value per slot. A slot out of range is undefined: after grouping the sources are not available.
    pub slots: &'a [ValueRef<'a>],
    /// The group of this row.
    pub group: Option<&'a GroupRow>,
    /// Number of the document of the row.
    pub document_number: Option<u64>,
}

/// The values of a group.
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
