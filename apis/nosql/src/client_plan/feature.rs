//! The features that a client needs to merge the answers of ranges, by the names that clients use.

use super::{ClientPlan, Distinct, Fold};

impl ClientPlan {
    /// The features that a client needs for this plan.
    pub(crate) fn features(&self) -> Vec<&'static str> {
        let folds =
            || self.aggregates.iter().copied().chain(self.columns.iter().filter_map(|(_, fold)| *fold));
        let is_grouped = !self.group_keys.is_empty();
        let is_folded_to_one = !is_grouped && !self.columns.is_empty();
        let needs = [
            (self.distinct != Distinct::None, "Distinct"),
            (self.distinct_count.is_some(), "DCount"),
            (self.top.is_some(), "Top"),
            (self.offset.is_some() || self.limit.is_some(), "OffsetAndLimit"),
            (self.order.len() == 1, "OrderBy"),
            (self.order.len() > 1, "MultipleOrderBy"),
            (self.is_order_unstable, "NonStreamingOrderBy"),
            (is_grouped, "GroupBy"),
            (!is_grouped && !self.aggregates.is_empty(), "Aggregate"),
            (is_folded_to_one, "NonValueAggregate"),
            (is_folded_to_one && folds().count() > 1, "MultipleAggregates"),
            (folds().any(|fold| fold == Fold::CountIf), "CountIf"),
            (folds().any(|fold| matches!(fold, Fold::MakeList | Fold::MakeSet)), "ListAndSetAggregate"),
        ];
        needs.into_iter().filter(|(is_needed, _)| *is_needed).map(|(_, name)| name).collect()
    }
}
