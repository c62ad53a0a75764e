//! Rewrites `ORDER BY RANK` as an ordinary order.
//!
//! A text score depends on all documents, and the rank of a score on all scores. Both are determined by separate
//! queries, one after the other, and substituted as constants. Then the sort key of a row is an expression of the row
//! alone, and pages, partitions and continuations work as for any other order.
//!
//! Ranks are fused as in clients that merge themselves: each score's best rows are taken, equal scores share a rank,
//! and a row has the sum of weight / (60 + rank). A negative weight reverses its score.

use plan::query::{
    Aggregate, AggregateKind, BinaryOperator, Expression, Function, Grouping, Order, Projection, Query,
    Ranking, SortKey,
};
use std::collections::BTreeSet;
use value::{Value, ValueRef};

/// Minimum number of rows of each score that are candidates, however few rows are wanted.
const CANDIDATES_MIN: u64 = 120;
/// Constant of the fusion that reduces the differences between the first ranks.
const FUSION_OFFSET: i64 = 60;
/// The score of a row without a vector.
const NO_VECTOR: f64 = -1.79769e308;

/// The query for the statistics over all documents that text scores need; `None` without text scores.
pub fn statistics_query(query: &Query, ranking: &Ranking) -> Option<Query> {
    let mut aggregates =
        vec![Aggregate { kind: AggregateKind::Count, argument: Expression::Constant(Value::Int64(1)) }];
    for (text, terms) in ranking.scores.iter().filter_map(text_score) {
        let words = Expression::Call(Function::InternalFullTextWordCount, vec![text.clone()]);
        aggregates.push(Aggregate { kind: AggregateKind::Sum, argument: words });
        aggregates.extend(terms.into_iter().map(|term| Aggregate {
            kind: AggregateKind::CountIf,
            argument: Expression::Call(Function::FullTextContains, vec![text.clone(), term]),
        }));
    }
    if aggregates.len() == 1 {
        return None;
    }
    let numbers = (0..aggregates.len()).map(Expression::Aggregate).collect();
    Some(one_row(query, None, aggregates, Expression::Array(numbers)))
}

/// The scores as expressions of a row, larger is better. `statistics` is the result of [`statistics_query`].
pub fn scores(ranking: &Ranking, statistics: Option<ValueRef<'_>>) -> Vec<Expression> {
    let mut numbers = statistics.into_iter().flat_map(ValueRef::elements);
    let mut next = || numbers.next().map_or(Value::Int64(0), ValueRef::to_value);
    let documents = next();
    let mut scores = Vec::with_capacity(ranking.scores.len());
    for score in &ranking.scores {
        let score = match (text_score(score), score) {
            (Some((text, terms)), _) => {
                let words = next();
                let hits = terms.iter().map(|_| next()).collect();
                let statistics = [documents.clone(), words, Value::Array(hits)].map(Expression::Constant);
                let mut arguments = vec![text.clone(), list(terms)];
                arguments.extend(statistics);
                Expression::Call(Function::InternalFullTextScore, arguments)
            }
            (None, Expression::Call(Function::VectorDistance, arguments)) => {
                let score = Expression::Call(Function::InternalVectorScore, arguments.clone());
                let otherwise = Expression::Constant(Value::Double(NO_VECTOR));
                Expression::Coalesce(Box::new(score), Box::new(otherwise))
            }
            (None, other) => other.clone(),
        };
        scores.push(score);
    }
    scores
}

/// The query for the scores of all rows that pass the filter; `None` if a single score gives the order.
pub fn scores_query(query: &Query, scores: &[Expression]) -> Option<Query> {
    if scores.len() < 2 {
        return None;
    }
    let argument = Expression::Array(scores.to_vec());
    let list = vec![Aggregate { kind: AggregateKind::MakeList, argument }];
    Some(one_row(query, query.filter.clone(), list, Expression::Aggregate(0)))
}

/// The query with an ordinary order. `rows` is the result of [`scores_query`].
pub fn ordered(
    query: &Query,
    ranking: &Ranking,
    scores: Vec<Expression>,
    rows: Option<ValueRef<'_>>,
) -> Query {
    let expression = match rows {
        Some(rows) => fused(query, ranking, scores, rows),
        None => scores.into_iter().next().unwrap_or(Expression::Undefined),
    };
    let key = SortKey { expression, path: None, descending: true };
    Query { order: Order::Keys(vec![key]), ..query.clone() }
}

/// The sum of weight / (60 + rank).
fn fused(query: &Query, ranking: &Ranking, scores: Vec<Expression>, rows: ValueRef<'_>) -> Expression {
    let rows: Vec<Vec<f64>> =
        rows.elements().map(|row| row.elements().filter_map(ValueRef::as_f64).collect()).collect();
    let weights: Vec<f64> =
        (0..scores.len()).map(|index| ranking.weights.get(index).copied().unwrap_or(1.0)).collect();
    let candidates = candidates(query, &rows, &weights);
    let terms = scores.into_iter().enumerate().map(|(index, score)| {
        let mut values: Vec<f64> =
            candidates.iter().filter_map(|row| rows.get(*row)?.get(index).copied()).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let weight = weights.get(index).copied().unwrap_or(1.0);
        let values = Value::Array(values.into_iter().map(Value::Double).collect());
        let arguments = [values, Value::Bool(weight >= 0.0)].map(Expression::Constant);
        let rank =
            Expression::Call(Function::InternalRank, std::iter::once(score).chain(arguments).collect());
        let offset = Expression::Constant(Value::Int64(FUSION_OFFSET));
        let denominator = binary(BinaryOperator::Add, offset, rank);
        binary(BinaryOperator::Divide, Expression::Constant(Value::Double(weight.abs())), denominator)
    });
    terms.reduce(|sum, term| binary(BinaryOperator::Add, sum, term)).unwrap_or(Expression::Undefined)
}

/// Rows that are among the best of any score.
fn candidates(query: &Query, rows: &[Vec<f64>], weights: &[f64]) -> BTreeSet<usize> {
    let count = match query.limit {
        Some(limit) => query.offset.saturating_add(limit).saturating_mul(2).max(CANDIDATES_MIN),
        None => u64::MAX,
    };
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let mut candidates = BTreeSet::new();
    for (index, weight) in weights.iter().enumerate() {
        let score = |row: usize| rows.get(row).and_then(|row| row.get(index)).copied().unwrap_or(f64::MIN);
        let mut best: Vec<usize> = (0..rows.len()).collect();
        best.sort_by(|one, other| {
            let order = score(*other).total_cmp(&score(*one));
            if *weight >= 0.0 { order } else { order.reverse() }
        });
        candidates.extend(best.into_iter().take(count));
    }
    candidates
}

/// The text and the terms of a `FullTextScore`; terms may also be given as one list.
fn text_score(score: &Expression) -> Option<(&Expression, Vec<Expression>)> {
    let Expression::Call(Function::FullTextScore, arguments) = score else {
        return None;
    };
    let (text, terms) = arguments.split_first()?;
    let terms = match terms {
        [Expression::Array(terms)] => terms.clone(),
        [Expression::Constant(Value::Array(terms))] => {
            terms.iter().cloned().map(Expression::Constant).collect()
        }
        terms => terms.to_vec(),
    };
    Some((text, terms))
}

/// A list of expressions; a constant if all of them are.
fn list(elements: Vec<Expression>) -> Expression {
    let constants = elements.iter().map(|element| {
        let Expression::Constant(value) = element else {
            return None;
        };
        Some(value.clone())
    });
    match constants.collect::<Option<Vec<Value>>>() {
        Some(values) => Expression::Constant(Value::Array(values)),
        None => Expression::Array(elements),
    }
}

/// A query for one value computed over all rows of the same sources.
fn one_row(
    query: &Query,
    filter: Option<Expression>,
    aggregates: Vec<Aggregate>,
    value: Expression,
) -> Query {
    Query {
        sources: query.sources.clone(),
        filter,
        grouping: Some(Grouping { keys: Vec::new(), aggregates }),
        order: Order::None,
        projection: Projection::Value(value),
        distinct: false,
        offset: 0,
        limit: None,
    }
}

fn binary(operator: BinaryOperator, left: Expression, right: Expression) -> Expression {
    Expression::Binary(operator, Box::new(left), Box::new(right))
}
