//! Rules that hold for all values.

use eval::{Budget, Context, DocumentRow, Row, evaluate, run};
use plan::query::{BinaryOperator, Expression, Function, SlotId};
use proptest::prelude::*;
use value::{Document, Value};

use crate::ambient::Still;
use crate::text;

fn any_scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-3i64..4).prop_map(Value::Int64),
        any::<i64>().prop_map(Value::Int64),
        (-6i32..6).prop_map(|half| Value::Double(f64::from(half) / 2.0)),
        any::<f64>().prop_filter("JSON has no such", |value| value.is_finite()).prop_map(Value::Double),
        "[ab%_\\[ é]{0,4}".prop_map(Value::String),
        Just(Value::String("2024-02-29T12:00:00Z".to_owned())),
    ]
}

fn any_value() -> impl Strategy<Value = Value> {
    any_scalar().prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map("[abc]|type|coordinates", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// The value of an expression over `{"a": …, "b": …}`; `None` is undefined.
fn compute(text: &str, left: &Value, right: &Value) -> Option<Value> {
    let members = vec![("a".to_owned(), left.clone()), ("b".to_owned(), right.clone())];
    let document = Document::from_value(&Value::Object(members)).unwrap();
    let ambient = Still::default();
    let context = Context::new(&ambient, Budget::new(1 << 24, 10_000));
    let expression = text::expression(text);
    let slots = [document.root()];
    evaluate(&context, &expression, Row::of_document(&slots, 1)).unwrap().map(|value| value.into_value())
}

const TRUE: Option<Value> = Some(Value::Bool(true));

proptest! {
    #[test]
    fn comparison_is_a_total_order_inside_a_kind(a in any_scalar(), b in any_scalar()) {
        let found: Vec<_> =
            ["c.a < c.b", "c.a = c.b", "c.a > c.b"].iter().map(|text| compute(text, &a, &b)).collect();
        prop_assert!(found[1].is_some());
        if found[0].is_some() {
            prop_assert_eq!(found.iter().filter(|truth| **truth == TRUE).count(), 1);
            prop_assert_eq!(compute("c.b > c.a", &a, &b), found[0].clone());
            prop_assert_eq!(compute("NOT (c.a <= c.b)", &a, &b), found[2].clone());
        } else {
            // There is no order between kinds, and nothing is equal.
            prop_assert_eq!(&found, &vec![None, Some(Value::Bool(false)), None]);
        }
    }

    #[test]
    fn equality_is_deep_and_agrees_with_membership(a in any_value(), b in any_value()) {
        prop_assert_eq!(compute("c.a = c.a", &a, &b), TRUE);
        let equal = compute("c.a = c.b", &a, &b);
        prop_assert_eq!(compute("c.a IN (c.b)", &a, &b), equal.clone());
        prop_assert_eq!(compute("ARRAY_CONTAINS([c.b], c.a)", &a, &b), equal.clone());
        prop_assert_eq!(compute("NOT (c.a != c.b)", &a, &b), equal.clone());
        prop_assert_eq!(compute("[c.a] = [c.b]", &a, &b), equal.clone());
        prop_assert_eq!(compute("SetEqual([c.a, c.b], [c.b])", &a, &b), equal);
    }

    /// Long lists and chains are sorted by their constants; short ones are checked one by one.
    #[test]
    fn long_lists_and_chains_say_what_their_members_say(
        a in prop::option::weighted(0.9, any_value()),
        b in any_scalar(),
        constants in prop::collection::vec((any_value(), any_scalar()), 9..40),
    ) {
        let members = a.iter().map(|a| ("a".to_owned(), a.clone())).chain([("b".to_owned(), b.clone())]);
        let document = Document::from_value(&Value::Object(members.collect())).unwrap();
        let ambient = Still::default();
        let context = Context::new(&ambient, Budget::new(1 << 24, 10_000));
        let slots = [document.root()];
        let truth = |expression: &Expression| {
            let value = evaluate(&context, expression, Row::of_document(&slots, 1)).unwrap();
            value.and_then(|value| value.as_bool())
        };
        let place = |name: &str| Box::new(Expression::path(SlotId(0), [name.to_owned()]));
        let compared = |operator, name: &str, value: &Value| {
            Expression::Binary(operator, place(name), Box::new(Expression::Constant(value.clone())))
        };
        let equals: Vec<Expression> =
            constants.iter().map(|(a, _)| compared(BinaryOperator::Equal, "a", a)).collect();
        let pairs: Vec<Expression> = constants
            .iter()
            .map(|(a, b)| {
                let parts = [compared(BinaryOperator::Less, "b", b), compared(BinaryOperator::Equal, "a", a)];
                Expression::And(parts.into())
            })
            .collect();
        let any = |terms: &[Expression]| {
            let truths: Vec<Option<bool>> = terms.iter().map(&truth).collect();
            let is_undefined = truths.contains(&None);
            if truths.contains(&Some(true)) { Some(true) } else { (!is_undefined).then_some(false) }
        };
        let list = constants.iter().map(|(a, _)| Expression::Constant(a.clone()));
        let listed = Expression::In(place("a"), list.collect());
        prop_assert_eq!(truth(&listed), any(&equals));
        prop_assert_eq!(truth(&Expression::Or(equals.clone().into())), any(&equals));
        prop_assert_eq!(truth(&Expression::Or(pairs.clone().into())), any(&pairs));
        // One operand that is not an equality must not change the result.
        let mixed: Vec<Expression> = pairs.into_iter().chain([compared(BinaryOperator::Less, "a", &b)]).collect();
        prop_assert_eq!(truth(&Expression::Or(mixed.clone().into())), any(&mixed));
    }

    #[test]
    fn texts_read_back(a in any_value()) {
        let text = Value::String(a.to_json());
        for (function, kind) in [("StringToArray", "IS_ARRAY"), ("StringToObject", "IS_OBJECT"), ("StringToNumber", "IS_NUMBER")] {
            let is_kind = compute(&format!("{kind}(c.a)"), &a, &text) == TRUE;
            let read = compute(&format!("{function}(c.b) = c.a"), &a, &text);
            prop_assert_eq!(read, is_kind.then_some(Value::Bool(true)));
        }
    }

    #[test]
    fn a_text_is_like_itself_escaped(a in "[ab%_\\[\\]^é]{0,6}") {
        let escaped: String = a.chars().flat_map(|letter| ['!', letter]).collect();
        let (text, pattern) = (Value::String(a), Value::String(escaped));
        prop_assert_eq!(compute("c.a LIKE c.b ESCAPE '!'", &text, &pattern), TRUE);
        prop_assert_eq!(compute("('x' || c.a || 'y') LIKE ('%' || c.b || '_') ESCAPE '!'", &text, &pattern), TRUE);
    }

    /// For any arguments, a function yields a value, undefined or a fault.
    #[test]
    fn no_function_panics(
        function in prop::sample::select(Function::ALL),
        arguments in prop::collection::vec(prop::option::weighted(0.9, any_value()), 0..8),
    ) {
        let arguments =
            arguments.into_iter().map(|value| value.map_or(Expression::Undefined, Expression::Constant)).collect();
        let ambient = Still::default();
        let context = Context::new(&ambient, Budget::new(1 << 20, 1_000));
        let _ = evaluate(&context, &Expression::Call(function, arguments), Row::default());
    }

    #[test]
    fn an_order_is_that_of_values(values in prop::collection::vec(prop::option::of(any_value()), 0..20)) {
        let documents: Vec<Document> = values
            .iter()
            .map(|value| {
                let members = value.iter().map(|value| ("a".to_owned(), value.clone())).collect();
                Document::from_value(&Value::Object(members)).unwrap()
            })
            .collect();
        let ambient = Still::default();
        let context = Context::new(&ambient, Budget::new(1 << 24, 1_000));
        let order = |text: &str| {
            let query = text::query(text);
            let rows = documents
                .iter()
                .enumerate()
                .map(|(number, document)| DocumentRow { number: number as u64, root: document.root() });
            run(&context, &query, rows).unwrap()
        };
        let ascending = order("SELECT VALUE [DOCUMENTID(c), c.a] FROM c ORDER BY c.a");
        let mut descending = order("SELECT VALUE [DOCUMENTID(c), c.a] FROM c ORDER BY c.a DESC");
        descending.reverse();
        prop_assert_eq!(&ascending, &descending);
        for pair in ascending.windows(2) {
            let [first, second] = [&pair[0], &pair[1]].map(|row| row.as_ref().element(1));
            let is_ordered = match (first, second) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(first), Some(second)) => value::compare(first, second).is_le(),
            };
            prop_assert!(is_ordered);
        }
    }
}
