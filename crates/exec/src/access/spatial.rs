//! What an index can say about the spatial functions: which geometries may be near a constant one.
//!
//! Cells never decide; what they name is looked at. "Further than" and negations have nothing to name. A geometry lies in
//! another only if they meet, so both are asked alike, whichever of the two is the document's.

use partition::index::{Coverage, IndexPath, IndexReader, PathStep as IndexStep, near};
use plan::query::{BinaryOperator, Expression, Function};
use value::Value;

use super::known::{Known, negated, turned};

/// What an index knows of a comparison of a distance with a constant; `names` gives the way to a value of the document.
pub(super) fn of_comparison<'e>(
    index: &IndexReader,
    names: impl Fn(&'e Expression) -> Option<Vec<&'e str>>,
    (operator, left, right): (BinaryOperator, &'e Expression, &'e Expression),
    wanted: bool,
    is_told: bool,
) -> Option<Known> {
    let (distance, metres, operator) = match (left, right) {
        (distance, Expression::Constant(metres)) => (distance, metres, operator),
        (Expression::Constant(metres), distance) => (distance, metres, turned(operator)),
        _ => return None,
    };
    let Expression::Call(Function::StDistance, geometries) = distance else {
        return None;
    };
    let operator = if wanted { operator } else { negated(operator)? };
    let is_bounded =
        matches!(operator, BinaryOperator::Less | BinaryOperator::LessOrEqual | BinaryOperator::Equal);
    let metres = metres.as_ref().as_f64().filter(|_| is_bounded)?;
    let (names, constant) = document_and_constant(names, geometries)?;
    let known = known(index, &names, constant, metres)?;
    let text = is_told.then(|| text(&names, &format!("within {metres} m of"), constant));
    Some(Known { text, ..known })
}

/// What an index knows of documents whose geometry lies in a constant one, around it, or meets it.
pub(super) fn of_meeting<'e>(
    index: &IndexReader,
    names: impl Fn(&'e Expression) -> Option<Vec<&'e str>>,
    geometries: &'e [Expression],
    is_told: bool,
) -> Option<Known> {
    let (names, constant) = document_and_constant(names, geometries)?;
    let known = known(index, &names, constant, 0.0)?;
    Some(Known { text: is_told.then(|| text(&names, "near", constant)), ..known })
}

fn document_and_constant<'e>(
    names: impl Fn(&'e Expression) -> Option<Vec<&'e str>>,
    geometries: &'e [Expression],
) -> Option<(Vec<&'e str>, &'e Value)> {
    match geometries {
        [document, Expression::Constant(constant)] | [Expression::Constant(constant), document] => {
            Some((names(document)?, constant))
        }
        _ => None,
    }
}

fn known(index: &IndexReader, names: &[&str], constant: &Value, metres: f64) -> Option<Known> {
    let path = IndexPath::spatial(names.iter().map(|name| IndexStep::Name(name)));
    if index.covers(&path) != Coverage::Whole {
        return None;
    }
    let lookup = near(&path, constant.as_ref(), metres)?;
    Some(Known { lookup, is_exact: false, text: None })
}

fn text(names: &[&str], relation: &str, constant: &Value) -> String {
    let kind = constant.member("type").and_then(|kind| kind.as_ref().as_str()).unwrap_or_default();
    format!("/{} {relation} a {kind}", names.join("/"))
}
