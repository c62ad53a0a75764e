//! Computed properties as an index has them: an expression of a query that is the value of one has its path.
//!
//! A query says the expression where it said the name, so that is what is recognised, whoever wrote it. An index that
//! was made for another definition has another expression, and is not asked.

use partition::index::{IndexReader, PathStep as IndexStep};
use plan::query::Expression;

/// The way to a value that lies in a computed property; the expression must be about the document itself.
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
