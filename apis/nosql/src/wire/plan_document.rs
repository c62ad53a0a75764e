//! The JSON of a query plan, which says how a client queries ranges and merges their answers.
//!
//! Lists are always present and names never change: clients access them unchecked.

use crate::client_plan::{ClientPlan, Distinct, Fold, HybridPlan};
use model::{EffectiveKey, EffectiveRange};
use serde_json::{Map, Value as Json, json};

/// A part of the hash space that the client must query.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PlanRange {
    /// One point, both ends included.
    Point(EffectiveKey),
    /// An interval without its upper end.
    Interval(EffectiveRange),
}

impl PlanRange {
    /// The first point.
    pub(crate) fn min(&self) -> &EffectiveKey {
        match self {
            PlanRange::Point(key) => key,
            PlanRange::Interval(range) => &range.min,
        }
    }

    /// Whether a point is inside.
    pub(crate) fn contains(&self, key: &EffectiveKey) -> bool {
        match self {
            PlanRange::Point(point) => point == key,
            PlanRange::Interval(range) => range.contains(key),
        }
    }

    fn to_json(&self) -> Json {
        let (min, max, is_max_inclusive) = match self {
            PlanRange::Point(key) => (key, key, true),
            PlanRange::Interval(range) => (&range.min, &range.max, false),
        };
        json!({
            "min": min.to_hex(),
            "max": max.to_hex(),
            "isMinInclusive": true,
            "isMaxInclusive": is_max_inclusive,
        })
    }
}

/// The text of a plan that merges rows.
pub(crate) fn joined(plan: &ClientPlan, ranges: &[PlanRange]) -> String {
    let document = json!({
        "partitionedQueryExecutionInfoVersion": 2,
        "queryInfo": query_info(plan),
        "queryRanges": ranges.iter().map(PlanRange::to_json).collect::<Vec<_>>(),
        "hybridSearchQueryInfo": null,
    });
    document.to_string()
}

/// The text of a plan that fuses ranks.
pub(crate) fn fused(plan: &HybridPlan, ranges: &[PlanRange]) -> String {
    let document = json!({
        "partitionedQueryExecutionInfoVersion": 2,
        "queryRanges": ranges.iter().map(PlanRange::to_json).collect::<Vec<_>>(),
        "hybridSearchQueryInfo": {
            "globalStatisticsQuery": plan.statistics.as_ref().map(sql::print).unwrap_or_default(),
            "componentQueryInfos": plan.components.iter().map(query_info).collect::<Vec<_>>(),
            "componentWithoutPayloadQueryInfos": [],
            "projectionQueryInfo": null,
            "componentWeights": plan.weights,
            "skip": plan.skip,
            "take": plan.take,
            "requiresGlobalStatistics": plan.statistics.is_some(),
        },
    });
    document.to_string()
}

fn query_info(plan: &ClientPlan) -> Json {
    let directions = plan.order.iter().map(|key| if key.descending { "Descending" } else { "Ascending" });
    let folds: Map<String, Json> =
        plan.columns.iter().map(|(name, fold)| (name.clone(), fold.map(Fold::name).into())).collect();
    json!({
        "distinctType": match plan.distinct {
            Distinct::None => "None",
            Distinct::Ordered => "Ordered",
            Distinct::Unordered => "Unordered",
        },
        "top": plan.top,
        "offset": plan.offset,
        "limit": plan.limit,
        "orderBy": directions.collect::<Vec<_>>(),
        "orderByExpressions": plan.order.iter().map(|key| key.expression.as_str()).collect::<Vec<_>>(),
        "groupByExpressions": plan.group_keys,
        "groupByAliases": plan.columns.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        "aggregates": plan.aggregates.iter().map(|fold| fold.name()).collect::<Vec<_>>(),
        "groupByAliasToAggregateType": folds,
        "rewrittenQuery": plan.rewritten.as_ref().map(sql::print).unwrap_or_default(),
        "hasSelectValue": plan.selects_value,
        "dCountInfo": plan.distinct_count.as_ref().map(|alias| json!({ "dCountAlias": alias })),
        "hasNonStreamingOrderBy": plan.is_order_unstable,
    })
}
