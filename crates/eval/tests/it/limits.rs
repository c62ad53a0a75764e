//! Every limit from both sides, on a stack no larger than that of a worker thread.

use eval::{
    Budget, Context, DocumentRow, EXPRESSION_DEPTH_MAX, EvalFault, Meter, Row, VALUE_WEIGHT_MAX, evaluate,
    run,
};
use plan::query::{Expression, Function, Query, SlotId, SubqueryKind, UnaryOperator};
use value::{Document, Value};

use crate::ambient::Still;
use crate::text;

fn compute(expression: &Expression, budget: Budget) -> Result<Option<Value>, EvalFault> {
    let ambient = Still::default();
    let context = Context::new(&ambient, budget);
    let text = Value::from_json(br#"{"a":[1,2,3,4,5,6,7,8,9,10]}"#).unwrap();
    let slots = [text.as_ref()];
    evaluate(&context, expression, Row::of_document(&slots, 1))
        .map(|value| value.map(|value| value.into_value()))
}

fn roomy() -> Budget {
    Budget::new(1 << 30, 1 << 30)
}

fn nested(levels: usize, wrap: impl Fn(Expression) -> Expression) -> Expression {
    (0..levels).fold(Expression::Constant(Value::Int64(1)), |inner, _| wrap(inner))
}

#[test]
fn depth_is_bounded_for_every_form() {
    let query = |projected: Expression| Query {
        projection: plan::query::Projection::Value(projected),
        ..text::query("SELECT VALUE 1")
    };
    type Form<'f> = &'f dyn Fn(Expression) -> Expression;
    // Levels of one nesting, and how it is built.
    let forms: [(usize, Form<'_>); 6] = [
        (1, &|inner| Expression::Unary(UnaryOperator::Minus, Box::new(inner))),
        (1, &|inner| Expression::Array(vec![inner])),
        (1, &|inner| Expression::Object(vec![("a".to_owned(), inner)])),
        (1, &|inner| Expression::Call(Function::Abs, vec![inner])),
        (1, &|inner| Expression::And(vec![inner])),
        (8, &|inner| Expression::Subquery(SubqueryKind::Scalar, Box::new(query(inner)))),
    ];
    for (levels, form) in forms {
        let most = (EXPRESSION_DEPTH_MAX - 1) / levels;
        assert!(compute(&nested(most, form), roomy()).is_ok());
        let fault = EvalFault::TooDeep { depth_max: EXPRESSION_DEPTH_MAX };
        assert_eq!(compute(&nested(most + 1, form), roomy()), Err(fault));
    }
}

#[test]
fn values_are_bounded() {
    let text = Value::String("x".repeat(1 << 20));
    let fault = Err(EvalFault::ValueTooLarge { weight_max: VALUE_WEIGHT_MAX });
    let copies = |count: usize| vec![Expression::Constant(text.clone()); count];
    assert!(compute(&Expression::Array(copies(31)), roomy()).is_ok());
    assert_eq!(compute(&Expression::Array(copies(32)), roomy()), fault);
    assert!(compute(&Expression::Concatenation(copies(32)), roomy()).is_ok());
    assert_eq!(compute(&Expression::Concatenation(copies(33)), roomy()), fault);
    // Each level doubles the result of the one below.
    let doubled = nested(24, |inner| {
        let mut query = text::query("SELECT VALUE 1");
        query.sources = vec![plan::query::Source::Value(inner)];
        let slot = Expression::Slot(SlotId(1));
        query.projection = plan::query::Projection::Value(Expression::Array(vec![slot.clone(), slot]));
        Expression::Subquery(SubqueryKind::Scalar, Box::new(query))
    });
    assert_eq!(compute(&doubled, roomy()), fault);
}

#[test]
fn rows_are_bounded() {
    let joined = text::expression("(SELECT VALUE COUNT(1) FROM x IN c.a JOIN y IN c.a JOIN z IN c.a)");
    // 10 + 100 + 1,000 rows are looked at.
    assert_eq!(compute(&joined, Budget::new(1 << 20, 1_110)), Ok(Some(Value::Int64(1_000))));
    assert_eq!(
        compute(&joined, Budget::new(1 << 20, 1_109)),
        Err(EvalFault::RowsExceeded { rows_max: 1_109 })
    );
}

#[test]
fn memory_is_bounded() {
    let sorted = text::query("SELECT VALUE c.text FROM c ORDER BY c.text");
    let grouped = text::query("SELECT c.text FROM c GROUP BY c.text");
    let distinct = text::query("SELECT DISTINCT VALUE c.text FROM c");
    let documents: Vec<Document> = (0..100)
        .map(|number| {
            let text = format!(r#"{{"text":"{number:01000}"}}"#);
            Document::from_json(text.as_bytes()).unwrap()
        })
        .collect();
    for query in [sorted, grouped, distinct] {
        let outcome = |bytes_max| {
            let ambient = Still::default();
            let context = Context::new(&ambient, Budget::new(bytes_max, 1_000));
            let rows = documents
                .iter()
                .enumerate()
                .map(|(number, document)| DocumentRow { number: number as u64, root: document.root() });
            let outcome = run(&context, &query, rows).map(|rows| rows.len());
            assert_eq!(context.budget.bytes_held(), 0);
            outcome
        };
        assert_eq!(outcome(1 << 20), Ok(100));
        assert_eq!(outcome(50_000), Err(EvalFault::MemoryExceeded { bytes_max: 50_000 }));
    }
}

#[test]
fn deep_values_are_walked_safely() {
    let text = format!("{{\"a\":{}{}}}", "[".repeat(127), "]".repeat(127));
    let document = Document::from_json(text.as_bytes()).unwrap();
    let ambient = Still::default();
    let context = Context::new(&ambient, roomy());
    let slots = [document.root()];
    for text in
        ["c.a = [c.a][0]", "ARRAY_CONTAINS([c.a], c.a)", "LENGTH(ToString(c)) > 0", "SetEqual([c], [c])"]
    {
        let expression = text::expression(text);
        let found = evaluate(&context, &expression, Row::of_document(&slots, 1)).unwrap();
        assert_eq!(found.and_then(|value| value.as_bool()), Some(true), "{text}");
    }
}

/// Work that a few letters of a query can request; each must be charged by its size, or it cannot be stopped.
#[test]
fn work_is_counted_by_its_size() {
    let line = |west: usize| {
        let points: Vec<String> = (0..2000).map(|at| format!("[{},{}]", west + at / 100, at % 80)).collect();
        format!(r#"{{"type":"LineString","coordinates":[{}]}}"#, points.join(","))
    };
    let json = format!(
        r#"{{"text":"{}","words":"{}","numbers":[{}],"line":{},"other":{}}}"#,
        "a".repeat(1 << 20),
        "word ".repeat(20_000),
        (0..20_000).map(|number| number.to_string()).collect::<Vec<_>>().join(","),
        line(0),
        line(100),
    );
    let document = Document::from_json(json.as_bytes()).unwrap();
    let ambient = Still::default();
    let steps_max = 10_000;
    for sql in [
        "(SELECT VALUE COUNT(1) FROM a IN c.numbers)",
        "EXISTS(SELECT VALUE a FROM a IN c.numbers WHERE a < 0)",
        "ARRAY_CONTAINS(c.numbers, -1)",
        "ARRAY_CONTAINS_ANY(c.numbers, -1, -2)",
        "SetUnion(c.numbers, c.numbers)",
        "ARRAY_CONCAT(c.numbers, c.numbers)",
        "c.text = c.text",
        "CONTAINS(c.text, 'b')",
        "UPPER(c.text)",
        "c.text || 'b'",
        "c.text LIKE '%_b_%'",
        "REPLACE(c.text, 'a', 'b')",
        "RegexMatch(c.text, 'b')",
        "RegexMatch('b', '(\\\\w{9}){9}')",
        "FullTextContains(c.words, 'word word none')",
        "FullTextContains(c.words, {term: 'wodr', distance: 2})",
        "ST_DISTANCE(c.line, c.other)",
        "ST_INTERSECTS(c.line, c.other)",
        "[c.text, c.text]",
        "{a: c.numbers}",
    ] {
        let expression = text::expression(sql);
        let context = Context::new(&ambient, roomy()).with_meter(Meter::bounded(steps_max));
        let slots = [document.root()];
        let outcome = evaluate(&context, &expression, Row::of_document(&slots, 1));
        assert_eq!(outcome.err(), Some(EvalFault::StepsExceeded { steps_max }), "{sql}");
        // A stopped query yields no result.
        let context = Context::new(&ambient, roomy());
        context.meter.stop();
        let outcome = evaluate(&context, &expression, Row::of_document(&slots, 1));
        assert_eq!(outcome.err(), Some(EvalFault::Stopped), "{sql}");
    }
}
