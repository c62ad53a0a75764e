//! What an index knows about the spatial functions: which geometries may be near a constant one.
//!
//! Cells are never exact; the documents that they find are re-checked. "Further than" and negations have no lookup. A
//! geometry is within another only if they intersect, so both functions use the same lookup, whichever of the two
//! geometries is the document's.

use partition::index::{Coverage, IndexPath, IndexReader, IndexStep, near};
use plan::query::{Comparison, Expression, Function};
use value::Value;

use super::index_condition::IndexCondition;

/// What an index knows about a comparison of a distance with a constant; `names` returns the path to a value of the
/// document.
pub(super) fn of_comparison<'e>(
    index: &IndexReader,
    names: impl Fn(&'e Expression) -> Option<Vec<&'e str>>,
    (distance, comparison, metres): (&'e Expression, Comparison, &Value),
    is_explained: bool,
) -> Option<IndexCondition> {
    let Expression::Call(Function::StDistance, geometries) = distance else {
        return None;
    };
    let is_bounded = match comparison {
        Comparison::Less | Comparison::LessOrEqual | Comparison::Equal => true,
        Comparison::NotEqual | Comparison::Greater | Comparison::GreaterOrEqual => false,
    };
    let metres = metres.as_ref().as_f64().filter(|_| is_bounded)?;
    let (names, constant) = match &geometries[..] {
        [document, Expression::Constant(constant)] | [Expression::Constant(constant), document] => {
            (names(document)?, constant)
        }
        _ => return None,
    };
    let known = known(index, &names, constant, metres)?;
    let text = is_explained.then(|| text(&names, &format!("within {metres} m of"), constant));
    Some(IndexCondition { text, ..known })
}

/// What an index knows about documents whose geometry at a path is within a constant one, contains it or intersects it.
pub(super) fn of_meeting(
    index: &IndexReader,
    names: &[&str],
    constant: &Value,
    is_explained: bool,
) -> Option<IndexCondition> {
    let known = known(index, names, constant, 0.0)?;
    Some(IndexCondition { text: is_explained.then(|| text(names, "near", constant)), ..known })
}

fn known(index: &IndexReader, names: &[&str], constant: &Value, metres: f64) -> Option<IndexCondition> {
    let path = IndexPath::spatial(names.iter().map(|name| IndexStep::Name(name)));
    if index.covers(&path) != Coverage::Whole {
        return None;
    }
    let lookup = near(&path, constant.as_ref(), metres)?;
    Some(IndexCondition { lookup, is_exact: false, text: None })
}

fn text(names: &[&str], relation: &str, constant: &Value) -> String {
    let kind = constant.member("type").and_then(|kind| kind.as_ref().as_str()).unwrap_or_default();
    format!("/{} {relation} a {kind}", names.join("/"))
}
