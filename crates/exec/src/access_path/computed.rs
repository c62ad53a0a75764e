//! Computed properties in an index: if an expression of a query is the value of a computed property, it has the path of
//! that property.
//!
//! Queries contain the expression in place of the name, so the expression is recognised, also if the client wrote it
//! out. An index that was built for another definition has another expression and is not used.

use partition::index::{IndexReader, IndexStep};
use plan::query::Expression;

/// The path to a value in a computed property; the expression must refer to the document itself.
pub(super) fn steps<'e>(index: &'e IndexReader, expression: &'e Expression) -> Option<Vec<IndexStep<'e>>> {
    let mut steps = Vec::new();
    let mut base = expression;
    loop {
        if let Some(name) = index.computed_name(base) {
            steps.push(IndexStep::Computed(name));
            steps.reverse();
            return Some(steps);
        }
        let Expression::Member(inner, name) = base else {
            return None;
        };
        steps.push(IndexStep::Name(name));
        base = inner;
    }
}
