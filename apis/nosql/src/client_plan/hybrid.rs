//! ORDER BY RANK: one query for each score and one for the statistics that text scores need; the client fuses ranks.
//!
//! ```sql
//! SELECT TOP 120 c._rid, [{"item": <score>}] AS orderByItems,
//!        {"payload": c, "componentScores": [(<score> ?? -1), …]} AS payload
//! FROM c
//! WHERE ({documentdb-formattableorderbyquery-filter})
//! ORDER BY <score> DESC
//! ```
//!
//! The frequency of a word is only known over all ranges. So the client adds up the statistics of the ranges and puts
//! them into the scores before it requests rows.

use super::literal::literal;
use super::{ClientPlan, OrderKey, count, order, root_name, selects_value};
use plan::query::{Function, Order};
use sql::ast::{
    Count, CountValue, Expression, ExpressionKind, NumberLiteral, OffsetLimit, OrderBy, Query, SelectItem,
    SelectList, SortKey,
};
use value::Value;

/// Minimum number of rows per range and score: fused ranks are only meaningful if enough rows are ranked.
const ROWS_MIN: u64 = 120;
/// Number of requested rows relative to the rows of the result.
const ROWS_FACTOR: u64 = 2;
/// The score of a document without a vector.
const LEAST_SCORE: f64 = -1.79769e308;
/// The score of a document whose text contains none of the words.
const NO_SCORE: i64 = -1;

/// What a client does with a query that has ORDER BY RANK.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HybridPlan {
    /// Counts documents, words and hits of a range; `None` if no score needs them.
    pub(crate) statistics: Option<Query>,
    /// A query for each score.
    pub(crate) components: Vec<ClientPlan>,
    /// The weight of each score; empty if all are equal.
    pub(crate) weights: Vec<f64>,
    /// Number of rows to skip.
    pub(crate) skip: Option<u64>,
    /// Maximum number of rows after those.
    pub(crate) take: Option<u64>,
}

impl HybridPlan {
    /// The features that a client needs for this plan.
    pub(crate) fn features(&self) -> Vec<&'static str> {
        let mut features = vec!["HybridSearch"];
        if !self.weights.is_empty() {
            features.push("WeightedRankFusion");
        }
        features
    }
}

/// The client plan of a query with ORDER BY RANK; `None` for any other query.
pub(crate) fn hybrid_plan(query: &Query, lowered: &plan::query::Query) -> Option<HybridPlan> {
    let Order::Rank(ranking) = &lowered.order else {
        return None;
    };
    let Some(OrderBy::Rank(written)) = &query.order_by else {
        return None;
    };
    let [Expression { kind: ExpressionKind::Call(name, arguments), .. }] = written.as_slice() else {
        return None;
    };
    let calls = if name == "RRF" { arguments.as_slice() } else { written.as_slice() };
    let mut scores = Scores::default();
    for (call, score) in calls.iter().zip(&ranking.scores) {
        scores.add(call, score)?;
    }
    let (skip, take) = match (&query.offset_limit, lowered.limit) {
        (Some(_), limit) => (Some(lowered.offset), limit),
        (None, limit) => (None, limit),
    };
    let components = scores.scores.iter().map(|score| component(query, score, &scores, skip, take));
    Some(HybridPlan {
        components: components.collect(),
        statistics: (!scores.statistics.is_empty()).then(|| statistics(query, &scores)),
        weights: ranking.weights.clone(),
        skip,
        take,
    })
}

/// The scores of a query and the statistics that they need.
#[derive(Default)]
struct Scores {
    /// The scores; larger is better.
    scores: Vec<Expression>,
    /// The scores, with a default for undefined.
    defined: Vec<Expression>,
    /// The statistics for the text scores, one for each.
    statistics: Vec<Expression>,
}

impl Scores {
    fn add(&mut self, call: &Expression, score: &plan::query::Expression) -> Option<()> {
        let ExpressionKind::Call(_, arguments) = &call.kind else {
            return None;
        };
        let plan::query::Expression::Call(function, values) = score else {
            return None;
        };
        let (score, least) = if *function == Function::FullTextScore {
            (self.text_score(arguments.first()?, values)?, Expression::integer(NO_SCORE))
        } else {
            (Expression::call("_VectorScore", arguments.clone()), literal(&Value::Double(LEAST_SCORE))?)
        };
        let defined = ExpressionKind::Coalesce(Box::new(score.clone()), Box::new(least));
        self.defined.push(Expression::new(defined));
        self.scores.push(score);
        Some(())
    }

    /// `_FullTextScore(path, [words], documents, total words, [hits])`
    fn text_score(&mut self, path: &Expression, values: &[plan::query::Expression]) -> Option<Expression> {
        let words = words_of(values.get(1..)?)?;
        let hits = words.iter().map(|word| {
            let hit = Expression::call("FullTextContains", vec![path.clone(), word.clone()]);
            Expression::call("COUNTIF", vec![hit])
        });
        let count = Expression::call("_FullTextWordCount", vec![path.clone()]);
        let statistic = Expression::object([
            ("totalWordCount", Expression::call("SUM", vec![count])),
            ("hitCounts", Expression::array(hits.collect())),
        ]);
        let index = self.statistics.len();
        self.statistics.push(statistic);
        let place =
            |name: &str| Expression::placeholder(format!("documentdb-formattablehybridsearchquery-{name}"));
        let arguments = vec![
            path.clone(),
            Expression::array(words),
            place("totaldocumentcount"),
            place(&format!("totalwordcount-{index}")),
            place(&format!("hitcountsarray-{index}")),
        ];
        Some(Expression::call("_FullTextScore", arguments))
    }
}

/// The words to search for: separate arguments, or one array.
fn words_of(values: &[plan::query::Expression]) -> Option<Vec<Expression>> {
    let mut words = Vec::new();
    for value in values {
        let plan::query::Expression::Constant(value) = value else {
            return None;
        };
        match value {
            Value::Array(list) => words.extend(list.iter().map(literal).collect::<Option<Vec<_>>>()?),
            Value::Null
            | Value::Bool(_)
            | Value::Int32(_)
            | Value::Int64(_)
            | Value::Double(_)
            | Value::Decimal(_)
            | Value::String(_)
            | Value::Binary { .. }
            | Value::Date(_)
            | Value::Ticks(_)
            | Value::Guid(_)
            | Value::ObjectId(_)
            | Value::Object(_) => words.push(literal(value)?),
        }
    }
    Some(words)
}

fn statistics(query: &Query, scores: &Scores) -> Query {
    let documents = Expression::call("COUNT", vec![Expression::integer(1)]);
    let list = SelectList::Items(vec![
        SelectItem::named(documents, "documentCount"),
        SelectItem::named(Expression::array(scores.statistics.clone()), "fullTextStatistics"),
    ]);
    let mut statistics = Query::over_container(root_name(query), list);
    statistics.from = query.from.clone();
    statistics
}

/// The rows of a range with the best values of one score.
fn component(
    query: &Query,
    score: &Expression,
    scores: &Scores,
    skip: Option<u64>,
    take: Option<u64>,
) -> ClientPlan {
    let keys = [SortKey { expression: score.clone(), descending: true, has_direction: true }];
    let mut text = order::rewritten(query, &keys);
    if let SelectList::Items(items) = &mut text.select.list
        && let Some(payload) = items.last_mut()
    {
        let row = payload.expression.clone();
        payload.expression = Expression::object([
            ("payload", row),
            ("componentScores", Expression::array(scores.defined.clone())),
        ]);
    }
    text.order_by = Some(OrderBy::Keys(keys.to_vec()));
    count::take_out(&mut text);
    let rows = take.map(|take| {
        let wanted = skip.unwrap_or(0).saturating_add(take).saturating_mul(ROWS_FACTOR);
        wanted.clamp(ROWS_MIN, u64::from(u32::MAX))
    });
    let mut plan = ClientPlan {
        order: vec![OrderKey { expression: sql::print_expression(score), descending: true }],
        is_order_unstable: true,
        selects_value: selects_value(query),
        ..ClientPlan::default()
    };
    if let Some(rows) = rows {
        let number = NumberLiteral::Integer(i64::try_from(rows).unwrap_or(i64::MAX));
        let count = Count { value: CountValue::Number(number), span: sql::Span::default() };
        if skip.is_some() {
            (plan.offset, plan.limit) = (Some(0), Some(rows));
            text.offset_limit = Some(OffsetLimit { offset: Count::of(0), limit: count });
        } else {
            plan.top = Some(rows);
            text.select.top = Some(count);
        }
    }
    plan.rewritten = Some(text);
    plan
}
