//! Computed properties in the index: which of them can be indexed, and their values.
//!
//! A value is indexed if it is always the same and depends only on the stored document: no time, no randomness, no
//! user-defined functions, no subqueries (their rows are limited per query) and no system properties (they are not
//! stored). Other properties are computed by each query. The query text is parsed by the caller.

use eval::{Budget, Context, EXPRESSION_DEPTH_MAX, Row};
use model::Ambient;
use model::policy::ComputedProperty;
use plan::ADDED_PROPERTIES;
use plan::query::{Expression, Family, Function, Query, SlotId};
use std::sync::Arc;
use value::{Value, ValueRef};

/// Parses the query of a computed property; `None` if it is invalid.
pub type ComputedReader = fn(&str) -> Option<Query>;

/// The queries of computed properties, in their order; `None` for one that is invalid.
pub type ComputedQueries = Arc<[Option<Query>]>;

/// Parses the queries of computed properties.
pub fn parse_computed(properties: &[ComputedProperty], reader: ComputedReader) -> ComputedQueries {
    properties.iter().map(|property| reader(&property.query)).collect()
}

/// The name of the document in every query over a container.
const DOCUMENT: Expression = Expression::Slot(SlotId(0));

/// A computed property that can be indexed.
#[derive(Clone, Debug)]
pub(crate) struct IndexableProperty {
    pub(crate) name: String,
    pub(crate) value: Expression,
}

/// The properties that can be indexed.
pub(crate) fn indexable(
    properties: &[ComputedProperty],
    queries: &[Option<Query>],
) -> Vec<IndexableProperty> {
    let read = |(property, query): (&ComputedProperty, &Option<Query>)| {
        let value = query
            .as_ref()?
            .plain_value()
            .filter(|value| is_deterministic(value, EXPRESSION_DEPTH_MAX))?
            .clone();
        Some(IndexableProperty { name: property.name.clone(), value })
    };
    properties.iter().zip(queries).filter_map(read).collect()
}

/// Whether an expression always has the same value on a stored document.
fn is_deterministic(expression: &Expression, levels_left: usize) -> bool {
    let Some(levels_left) = levels_left.checked_sub(1) else {
        return false;
    };
    let are_children_steady =
        || expression.children().into_iter().all(|child| is_deterministic(child, levels_left));
    match expression {
        Expression::Member(base, name) if **base == DOCUMENT => !ADDED_PROPERTIES.contains(&name.as_str()),
        Expression::Index(base, index) if **base == DOCUMENT => {
            matches!(&**index, Expression::Constant(Value::String(name)) if !ADDED_PROPERTIES.contains(&name.as_str()))
        }
        Expression::Call(function, _) => is_function_deterministic(*function) && are_children_steady(),
        Expression::Slot(_)
        | Expression::UserCall(..)
        | Expression::Subquery(..)
        | Expression::GroupKey(_)
        | Expression::Aggregate(_) => false,
        Expression::Undefined
        | Expression::Constant(_)
        | Expression::Member(..)
        | Expression::Index(..)
        | Expression::Array(_)
        | Expression::Object(_)
        | Expression::Unary(..)
        | Expression::Binary(..)
        | Expression::And(_)
        | Expression::Or(_)
        | Expression::Concatenation(_)
        | Expression::In(..)
        | Expression::Between(_)
        | Expression::Like(..)
        | Expression::Coalesce(..)
        | Expression::Conditional(_) => are_children_steady(),
    }
}

fn is_function_deterministic(function: Function) -> bool {
    let depends_on_query = function.is_volatile() || function.depends_on_query_time();
    !depends_on_query && !matches!(function.signature().family, Family::Search | Family::Item)
}

/// Computes the values of documents.
pub(crate) struct Calculator {
    context: Context<'static>,
}

impl Calculator {
    pub(crate) fn new() -> Calculator {
        // Indexable expressions use neither.
        Calculator { context: Context::new(&NoAmbient, Budget::new(0, 0)) }
    }

    /// The value of a property on a document; `None` is undefined. If it cannot be computed, a query that evaluates
    /// the document is refused, and one that does not find it is not.
    pub(crate) fn value(&self, property: &IndexableProperty, document: ValueRef<'_>) -> Option<Value> {
        let slots = [document];
        let row = Row { slots: &slots, ..Row::default() };
        let value = eval::evaluate(&self.context, &property.value, row).ok()??;
        Some(value.into_value())
    }
}

/// An ambient without time and randomness.
#[derive(Debug)]
struct NoAmbient;

impl Ambient for NoAmbient {
    fn now_ms(&self) -> u64 {
        0
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        bytes.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str) -> Expression {
        Expression::Member(Box::new(DOCUMENT), name.to_owned())
    }

    #[test]
    fn only_what_never_changes_is_indexed() {
        let call = |function, arguments| Expression::Call(function, arguments);
        let steady = |expression: Expression| is_deterministic(&expression, EXPRESSION_DEPTH_MAX);
        assert!(steady(call(Function::Lower, vec![member("name")])));
        assert!(steady(Expression::Member(Box::new(member("a")), "_ts".to_owned())));
        for changing in [
            call(Function::Rand, vec![]),
            call(Function::Abs, vec![call(Function::GetCurrentTicksStatic, vec![])]),
            call(Function::DocumentId, vec![DOCUMENT]),
            member("_ts"),
            member("_etag"),
            DOCUMENT,
            Expression::Object(vec![("all".to_owned(), DOCUMENT)]),
            Expression::UserCall("f".to_owned(), vec![]),
        ] {
            assert!(!steady(changing.clone()), "{changing}");
        }
    }

    #[test]
    fn values_come_from_the_document() {
        let value = Expression::Call(Function::Lower, vec![member("name")]);
        let property = IndexableProperty { name: "lower".to_owned(), value };
        let of = |json: &str| {
            let document = Value::from_json(json.as_bytes()).unwrap();
            Calculator::new().value(&property, document.as_ref())
        };
        assert_eq!(of(r#"{"name":"Ada"}"#), Some(Value::from("ada")));
        assert_eq!(of(r#"{"name":1}"#), None);
    }
}
