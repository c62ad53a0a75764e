//! ORDER BY: by paths of the document, by distance of vectors, or by rank.

use super::scope::Clause;
use super::{Lowering, Role};
use crate::ast::{self, Collection, OrderBy};
use crate::fault::{FaultKind, RankBar, Span};
use plan::query::{Expression, Function, Order, Ranking, SortKey, Source};
use value::{PropertyPath, Value};

impl<'query> Lowering<'query> {
    pub(super) fn order(&mut self, query: &'query ast::Query, role: Role, sources: &[Source]) -> Order {
        match &query.order_by {
            None => Order::None,
            Some(OrderBy::Rank(scores)) => {
                self.frame().clause = Clause::Rank;
                self.rank(query, role, scores)
            }
            // The order of a subquery was already reported as a fault.
            Some(OrderBy::Keys(_)) if role != Role::Outermost => Order::None,
            Some(OrderBy::Keys(keys)) => {
                self.frame().clause = Clause::OrderBy;
                if !query.group_by.is_empty() {
                    return self.order_of_groups(query, keys);
                }
                let keys = keys.iter().map(|key| self.sort_key(key, sources)).collect();
                // All rows are one result then; clients send this when they count an ordered query.
                if super::group::selects_aggregate(query) { Order::None } else { Order::Keys(keys) }
            }
        }
    }

    /// Groups are ordered by their keys; any other value differs between the rows of a group.
    fn order_of_groups(&mut self, query: &'query ast::Query, keys: &'query [ast::SortKey]) -> Order {
        let mut order = Vec::with_capacity(keys.len());
        for key in keys {
            match query.group_by.iter().position(|group_key| *group_key == key.expression) {
                Some(position) => {
                    let expression = Expression::GroupKey(position);
                    order.push(SortKey { expression, path: None, descending: key.descending });
                }
                None => self.fault(FaultKind::OrderByWithGroupBy, key.expression.span),
            }
        }
        Order::Keys(order)
    }

    fn sort_key(&mut self, key: &'query ast::SortKey, sources: &[Source]) -> SortKey {
        let faults_before = self.faults.len();
        let expression = self.expression(&key.expression);
        let mut path = None;
        match sort_target(&expression, sources) {
            _ if self.faults.len() > faults_before => {}
            SortTarget::Path(found) => path = Some(found),
            SortTarget::Distance | SortTarget::Element => {}
            SortTarget::Correlated => self.fault(FaultKind::OrderByCorrelated, key.expression.span),
            SortTarget::Other => self.fault(FaultKind::OrderByExpression, key.expression.span),
        }
        SortKey { expression, path, descending: key.descending }
    }

    fn rank(&mut self, query: &'query ast::Query, role: Role, scores: &'query [ast::Expression]) -> Order {
        let span = scores.first().map_or(query.select.span, |score| score.span);
        for bar in rank_bars(query, role) {
            self.fault(FaultKind::RankWith { with: bar }, span);
        }
        let [score] = scores else {
            self.fault(FaultKind::RankExpression, span);
            return Order::None;
        };
        let faults_before = self.faults.len();
        let lowered = self.expression(score);
        if let Expression::Call(Function::Rrf, arguments) = lowered {
            return self.fusion(arguments, score.span);
        }
        if let Expression::Call(Function::FullTextScore, _) = lowered {
            return Order::Rank(Ranking { scores: vec![lowered], weights: Vec::new() });
        }
        if self.faults.len() == faults_before {
            self.fault(FaultKind::RankExpression, score.span);
        }
        Order::None
    }

    /// `RRF(score, score, …[, weights])`
    fn fusion(&mut self, mut scores: Vec<Expression>, span: Span) -> Order {
        let weights = match scores.pop() {
            Some(Expression::Constant(weights)) => Some(weights),
            Some(score) => {
                scores.push(score);
                None
            }
            None => None,
        };
        let is_score = |score: &Expression| {
            matches!(score, Expression::Call(Function::FullTextScore | Function::VectorDistance, _))
        };
        if scores.is_empty() || !scores.iter().all(is_score) {
            self.fault(FaultKind::RankExpression, span);
            return Order::None;
        }
        let weights = match weights {
            None => Some(Vec::new()),
            Some(weights) => weights_of(&weights).filter(|weights| weights.len() == scores.len()),
        };
        match weights {
            Some(weights) => Order::Rank(Ranking { scores, weights }),
            None => {
                self.fault(FaultKind::RankWeights { scores: scores.len() }, span);
                Order::None
            }
        }
    }
}

/// What a sort key is.
enum SortTarget {
    /// A path of the document.
    Path(PropertyPath),
    /// The distance of a vector of the document to another, or a score that a client ranks by.
    Distance,
    /// A path of the document with an array position, which no index serves.
    Element,
    /// A value of a source with several rows per document.
    Correlated,
    Other,
}

fn sort_target(expression: &Expression, sources: &[Source]) -> SortTarget {
    if let Expression::Call(
        Function::VectorDistance | Function::InternalVectorScore | Function::InternalFullTextScore,
        _,
    ) = expression
    {
        return SortTarget::Distance;
    }
    let Some((slot, names)) = expression.slot_path() else {
        return element_target(expression, sources);
    };
    match sources.get(usize::from(slot.0)) {
        Some(source @ Source::Container { .. }) => {
            let Some(mut whole) = source.document_path() else {
                return SortTarget::Other;
            };
            whole.extend(names);
            PropertyPath::from_names(whole).map_or(SortTarget::Other, SortTarget::Path)
        }
        Some(Source::ContainerElements { .. } | Source::Value(_) | Source::Elements(_)) => {
            SortTarget::Correlated
        }
        Some(Source::Rows(_) | Source::RowElements(_)) => SortTarget::Correlated,
        None => SortTarget::Other,
    }
}

/// The target of a path with array positions.
fn element_target(expression: &Expression, sources: &[Source]) -> SortTarget {
    let mut rest = expression;
    while let Expression::Member(base, _) | Expression::Index(base, _) = rest {
        if let Expression::Index(_, position) = rest
            && !is_position(position)
        {
            return SortTarget::Other;
        }
        rest = base;
    }
    let Expression::Slot(slot) = rest else {
        return SortTarget::Other;
    };
    match sources.get(usize::from(slot.0)) {
        Some(Source::Container { .. }) => SortTarget::Element,
        Some(
            Source::ContainerElements { .. }
            | Source::Value(_)
            | Source::Elements(_)
            | Source::Rows(_)
            | Source::RowElements(_),
        ) => SortTarget::Correlated,
        None => SortTarget::Other,
    }
}

/// Whether this is an array position.
fn is_position(index: &Expression) -> bool {
    matches!(index, Expression::Constant(Value::Int64(position)) if *position >= 0)
}

/// All reasons why a query cannot be ordered by rank.
fn rank_bars(query: &ast::Query, role: Role) -> Vec<RankBar> {
    let sources = query.from.as_ref().map(|from| from.sources.as_slice()).unwrap_or_default();
    let is_subquery = |source: &ast::Source| matches!(source.collection, Collection::Subquery(_));
    let is_grouped = !query.group_by.is_empty() || super::group::selects_aggregate(query);
    let bars = [
        (role != Role::Outermost, RankBar::Subquery),
        (sources.len() > 1, RankBar::Join),
        (sources.iter().take(1).any(|source| source.elements), RankBar::ElementSource),
        (sources.iter().take(1).any(is_subquery), RankBar::SubquerySource),
        (is_grouped, RankBar::Grouping),
        (query.select.distinct, RankBar::Distinct),
    ];
    bars.into_iter().filter(|(applies, _)| *applies).map(|(_, bar)| bar).collect()
}

/// The numbers of an array of numbers.
fn weights_of(weights: &Value) -> Option<Vec<f64>> {
    let Value::Array(weights) = weights else {
        return None;
    };
    weights.iter().map(|weight| weight.as_ref().as_f64()).collect()
}
