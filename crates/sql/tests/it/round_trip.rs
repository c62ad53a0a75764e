//! Random trees: each is printed and parsed back to the same tree.

use plan::query::{BinaryOperator, SubqueryKind, UnaryOperator};
use proptest::prelude::*;
use sql::Span;
use sql::ast::{
    Collection, Count, CountValue, Expression, ExpressionKind, From, NumberLiteral, OffsetLimit, OrderBy,
    Query, Select, SelectItem, SelectList, SortKey, Source, Step,
};

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{1,3}[0-9_]{0,2}",
        Just("udf".to_owned()),
        Just("rank".to_owned()),
        Just("all".to_owned())
    ]
    .prop_filter("reserved", |name| {
        !["as", "by", "in", "or", "and", "not", "asc", "top"].contains(&name.as_str())
    })
}

fn any_name() -> impl Strategy<Value = String> {
    prop_oneof![
        name(),
        any::<String>(),
        Just("order".to_owned()),
        Just("VALUE".to_owned()),
        Just(String::new())
    ]
}

fn number() -> impl Strategy<Value = NumberLiteral> {
    prop_oneof![
        (0..=i64::MAX).prop_map(NumberLiteral::Integer),
        (0i64..100).prop_map(NumberLiteral::Integer),
        any::<f64>()
            .prop_filter("finite", |double| double.is_finite())
            .prop_map(|double| NumberLiteral::Double(double.abs())),
    ]
}

fn leaf() -> impl Strategy<Value = ExpressionKind> {
    prop_oneof![
        Just(ExpressionKind::Undefined),
        Just(ExpressionKind::Null),
        any::<bool>().prop_map(ExpressionKind::Boolean),
        number().prop_map(ExpressionKind::Number),
        any::<String>().prop_map(ExpressionKind::String),
        name().prop_map(|name| ExpressionKind::Parameter(format!("@{name}"))),
        name().prop_map(ExpressionKind::Name),
    ]
}

fn unary() -> impl Strategy<Value = UnaryOperator> {
    prop::sample::select(vec![
        UnaryOperator::Not,
        UnaryOperator::Minus,
        UnaryOperator::Plus,
        UnaryOperator::BitNot,
    ])
}

fn binary() -> impl Strategy<Value = BinaryOperator> {
    prop::sample::select(vec![
        BinaryOperator::Equal,
        BinaryOperator::NotEqual,
        BinaryOperator::Less,
        BinaryOperator::LessOrEqual,
        BinaryOperator::Greater,
        BinaryOperator::GreaterOrEqual,
        BinaryOperator::Add,
        BinaryOperator::Subtract,
        BinaryOperator::Multiply,
        BinaryOperator::Divide,
        BinaryOperator::Modulo,
        BinaryOperator::BitAnd,
        BinaryOperator::BitOr,
        BinaryOperator::BitXor,
        BinaryOperator::ShiftLeft,
        BinaryOperator::ShiftRight,
        BinaryOperator::ShiftRightUnsigned,
    ])
}

fn subquery_kind() -> impl Strategy<Value = SubqueryKind> {
    prop::sample::select(vec![
        SubqueryKind::Scalar,
        SubqueryKind::Exists,
        SubqueryKind::Array,
        SubqueryKind::First,
        SubqueryKind::Last,
        SubqueryKind::All,
    ])
}

fn expression() -> BoxedStrategy<Expression> {
    leaf()
        .prop_map(Expression::new)
        .prop_recursive(5, 40, 4, |part| composite(part.boxed()).prop_map(Expression::new))
        .boxed()
}

fn composite(part: BoxedStrategy<Expression>) -> BoxedStrategy<ExpressionKind> {
    let boxed = part.clone().prop_map(Box::new);
    let some = |least: usize| prop::collection::vec(part.clone(), least..4);
    let not_string =
        boxed.clone().prop_filter("a member", |index| !matches!(index.kind, ExpressionKind::String(_)));
    let three = [part.clone(), part.clone(), part.clone()].prop_map(Box::new);
    prop_oneof![
        (boxed.clone(), any_name()).prop_map(|(base, name)| ExpressionKind::Member(base, name)),
        (boxed.clone(), not_string).prop_map(|(base, index)| ExpressionKind::Index(base, index)),
        some(0).prop_map(ExpressionKind::Array),
        prop::collection::vec((any_name(), part.clone()), 0..4).prop_map(ExpressionKind::Object),
        (unary(), boxed.clone()).prop_map(|(operator, operand)| ExpressionKind::Unary(operator, operand)),
        (binary(), boxed.clone(), boxed.clone())
            .prop_map(|(operator, left, right)| ExpressionKind::Binary(operator, left, right)),
        some(2).prop_map(ExpressionKind::And),
        some(2).prop_map(ExpressionKind::Or),
        some(2).prop_map(ExpressionKind::Concatenation),
        (boxed.clone(), some(1), any::<bool>()).prop_map(|(operand, list, negated)| ExpressionKind::In {
            operand,
            list,
            negated
        }),
        (three.clone(), any::<bool>())
            .prop_map(|(operands, negated)| ExpressionKind::Between { operands, negated }),
        (boxed.clone(), boxed.clone(), any::<Option<char>>(), any::<bool>()).prop_map(
            |(operand, pattern, escape, negated)| ExpressionKind::Like { operand, pattern, escape, negated }
        ),
        (boxed.clone(), boxed.clone()).prop_map(|(first, second)| ExpressionKind::Coalesce(first, second)),
        three.prop_map(ExpressionKind::Conditional),
        (prop::sample::select(vec!["LOWER", "COUNT", "LEFT", "StringEquals", "nosuch"]), some(0))
            .prop_map(|(name, arguments)| ExpressionKind::Call(name.to_owned(), arguments)),
        (name(), some(0)).prop_map(|(name, arguments)| ExpressionKind::UserCall(name, arguments)),
        (subquery_kind(), query(part.clone()))
            .prop_map(|(kind, query)| ExpressionKind::Subquery(kind, Box::new(query))),
    ]
    .boxed()
}

fn count() -> impl Strategy<Value = Count> {
    let value = prop_oneof![
        any::<u32>().prop_map(|count| CountValue::Number(NumberLiteral::Integer(i64::from(count)))),
        Just(CountValue::Number(NumberLiteral::Double(1e20))),
        name().prop_map(|name| CountValue::Parameter(format!("@{name}"))),
    ];
    value.prop_map(|value| Count { value, span: Span::default() })
}

fn select(part: BoxedStrategy<Expression>) -> impl Strategy<Value = Select> {
    let item = (part.clone(), prop::option::of(name()))
        .prop_map(|(expression, alias)| SelectItem { expression, alias });
    let list = prop_oneof![
        Just(SelectList::Star(Span::default())),
        part.prop_map(SelectList::Value),
        prop::collection::vec(item, 1..4).prop_map(SelectList::Items),
    ];
    (any::<bool>(), prop::option::of(count()), list).prop_map(|(distinct, top, list)| Select {
        distinct,
        top,
        list,
        span: Span::default(),
    })
}

fn source() -> impl Strategy<Value = Source> {
    let step = prop_oneof![any_name().prop_map(Step::Name), (0..=i64::MAX as u64).prop_map(Step::Position)];
    let path = (name(), prop::collection::vec(step, 0..3))
        .prop_map(|(root, steps)| Collection::Path { root, steps, span: Span::default() })
        .boxed();
    let plain =
        (path.clone(), prop::option::of(name())).prop_map(|(collection, alias)| (collection, alias, false));
    let elements = (path, name()).prop_map(|(collection, alias)| (collection, Some(alias), true));
    prop_oneof![plain, elements].prop_map(|(collection, alias, elements)| Source {
        collection,
        alias,
        elements,
        span: Span::default(),
    })
}

fn order_by(part: BoxedStrategy<Expression>) -> impl Strategy<Value = OrderBy> {
    let key = (part, any::<bool>()).prop_map(|(expression, descending)| SortKey {
        expression,
        descending,
        has_direction: descending,
    });
    let score = prop::collection::vec(leaf().prop_map(Expression::new), 0..3)
        .prop_map(|arguments| Expression::call("FullTextScore", arguments));
    prop_oneof![
        prop::collection::vec(key, 1..3).prop_map(OrderBy::Keys),
        prop::collection::vec(score, 1..3).prop_map(OrderBy::Rank),
    ]
}

fn query(part: BoxedStrategy<Expression>) -> BoxedStrategy<Query> {
    let offset_limit = (count(), count()).prop_map(|(offset, limit)| OffsetLimit { offset, limit });
    (
        select(part.clone()),
        prop::option::of(prop::collection::vec(source(), 1..4).prop_map(|sources| From { sources })),
        prop::option::of(part.clone()),
        prop::collection::vec(part.clone(), 0..3),
        prop::option::of(order_by(part)),
        prop::option::of(offset_limit),
    )
        .prop_map(|(select, from, filter, group_by, order_by, offset_limit)| Query {
            select,
            from,
            filter,
            group_by,
            order_by,
            offset_limit,
        })
        .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn text_reads_back_as_the_tree(query in query(expression())) {
        let text = sql::print(&query);
        let again = sql::parse(&text);
        prop_assert!(again.is_ok(), "{text}\n{}", again.unwrap_err());
        prop_assert_eq!(again.unwrap(), query, "{}", text);
    }

    #[test]
    fn any_text_is_answered(text in r#"(SELECT|FROM|c|\.|a|\[|\]|\(|\)|,|1|'x'|WHERE|IN|NOT|AND|OR|=|\+|-|\?|:|\*|VALUE|ORDER BY|GROUP BY|COUNT|@p| ){0,40}"#) {
        if let Ok(query) = sql::parse(&text) {
            prop_assert_eq!(&sql::parse(&sql::print(&query)).unwrap(), &query);
            sql::lower(&query, &sql::Parameters::none()).ok();
        }
    }
}

#[test]
fn rewritten_queries_look_as_the_service_writes_them() {
    let original = sql::parse("select c.a from c where c.k = 'x' order by c.v").unwrap();
    let filter = original.filter.clone().unwrap();
    let root = || Expression::name("c");
    let item = Expression::object([("item", root().member("v"))]);
    let list = SelectList::Items(vec![
        SelectItem::plain(root().member("_rid")),
        SelectItem::named(Expression::array(vec![item]), "orderByItems"),
        SelectItem::named(Expression::object([("a", root().member("a"))]), "payload"),
    ]);
    let mut rewritten = Query::over_container("c", list);
    rewritten.filter = Some(filter.and(Expression::placeholder("documentdb-formattableorderbyquery-filter")));
    rewritten.order_by = original.order_by;
    rewritten.select.top = Some(Count::of(10));
    assert_eq!(
        sql::print(&rewritten),
        "SELECT TOP 10 c._rid, [{\"item\": c.v}] AS orderByItems, {\"a\": c.a} AS payload\n\
         FROM c\n\
         WHERE ((c.k = \"x\") AND ({documentdb-formattableorderbyquery-filter}))\n\
         ORDER BY c.v"
    );
    assert!(
        sql::lower(&rewritten, &sql::Parameters::none()).is_err(),
        "a placeholder must be filled in first"
    );
}
