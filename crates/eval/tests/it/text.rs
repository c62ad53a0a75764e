//! Parses expressions and queries of the cases.

use plan::query::{Expression, Projection, Query};

/// Parses and lowers a query.
pub(crate) fn query(text: &str) -> Query {
    let tree = sql::parse(text).unwrap_or_else(|faults| panic!("{text}: {faults:?}"));
    sql::lower(&tree, &sql::Parameters::none()).unwrap_or_else(|faults| panic!("{text}: {faults:?}"))
}

/// An expression over the document `c`.
pub(crate) fn expression(text: &str) -> Expression {
    match query(&format!("SELECT VALUE {text} FROM c")).projection {
        Projection::Value(expression) => expression,
        other @ (Projection::Row(_) | Projection::Object(_)) => panic!("{text}: {other:?}"),
    }
}
