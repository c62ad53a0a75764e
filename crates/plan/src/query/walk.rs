//! The direct subexpressions of an expression or a query.
//!
//! Used to search or rewrite queries; callers descend into subqueries themselves.

use super::{Expression, Order, Projection, Query, Source};

impl Expression {
    /// The direct subexpressions; not those of a subquery.
    pub fn children(&self) -> Vec<&Expression> {
        match self {
            Expression::Undefined
            | Expression::Constant(_)
            | Expression::Slot(_)
            | Expression::Subquery(..)
            | Expression::GroupKey(_)
            | Expression::Aggregate(_) => Vec::new(),
            Expression::Member(one, _) | Expression::Unary(_, one) => vec![one],
            Expression::Index(one, other)
            | Expression::Binary(_, one, other)
            | Expression::Coalesce(one, other) => vec![one, other],
            Expression::Like(operand, pattern) => vec![operand, &pattern.pattern],
            Expression::Array(parts)
            | Expression::And(parts)
            | Expression::Concatenation(parts)
            | Expression::Call(_, parts)
            | Expression::UserCall(_, parts) => parts.iter().collect(),
            Expression::Or(parts) => parts.iter().collect(),
            Expression::Object(members) => members.iter().map(|(_, member)| member).collect(),
            Expression::In(operand, list) => std::iter::once(&**operand).chain(list).collect(),
            Expression::Between(parts) | Expression::Conditional(parts) => parts.iter().collect(),
        }
    }

    /// The direct subexpressions, mutable.
    pub fn children_mut(&mut self) -> Vec<&mut Expression> {
        match self {
            Expression::Undefined
            | Expression::Constant(_)
            | Expression::Slot(_)
            | Expression::Subquery(..)
            | Expression::GroupKey(_)
            | Expression::Aggregate(_) => Vec::new(),
            Expression::Member(one, _) | Expression::Unary(_, one) => vec![one],
            Expression::Index(one, other)
            | Expression::Binary(_, one, other)
            | Expression::Coalesce(one, other) => vec![one, other],
            Expression::Like(operand, pattern) => vec![operand, &mut pattern.pattern],
            Expression::Array(parts)
            | Expression::And(parts)
            | Expression::Concatenation(parts)
            | Expression::Call(_, parts)
            | Expression::UserCall(_, parts) => parts.iter_mut().collect(),
            Expression::Or(parts) => parts.members_mut().iter_mut().collect(),
            Expression::Object(members) => members.iter_mut().map(|(_, member)| member).collect(),
            Expression::In(operand, list) => {
                std::iter::once(&mut **operand).chain(list.members_mut()).collect()
            }
            Expression::Between(parts) | Expression::Conditional(parts) => parts.iter_mut().collect(),
        }
    }
}

impl Query {
    /// The number of constants in the filter: values with which documents are compared.
    pub fn filter_constants(&self) -> u64 {
        let mut count = 0;
        let mut left: Vec<&Expression> = self.filter.iter().collect();
        while let Some(expression) = left.pop() {
            count += u64::from(matches!(expression, Expression::Constant(_)));
            left.extend(expression.children());
        }
        count
    }

    /// The expressions that see complete rows: the filter and everything after it.
    pub fn expressions_mut(&mut self) -> Vec<&mut Expression> {
        let mut found: Vec<&mut Expression> = self.filter.iter_mut().collect();
        if let Some(grouping) = &mut self.grouping {
            found.extend(&mut grouping.keys);
            found.extend(grouping.aggregates.iter_mut().map(|aggregate| &mut aggregate.argument));
        }
        match &mut self.order {
            Order::None => {}
            Order::Keys(keys) => found.extend(keys.iter_mut().map(|key| &mut key.expression)),
            Order::Rank(ranking) => found.extend(&mut ranking.scores),
        }
        match &mut self.projection {
            Projection::Row(_) => {}
            Projection::Value(value) => found.push(value),
            Projection::Object(members) => found.extend(members.iter_mut().map(|(_, member)| member)),
        }
        found
    }
}

impl Source {
    /// The query that produces its rows, if it has one.
    pub fn query(&self) -> Option<&Query> {
        match self {
            Source::Rows(query) | Source::RowElements(query) => Some(query),
            Source::Container { .. }
            | Source::ContainerElements { .. }
            | Source::Value(_)
            | Source::Elements(_) => None,
        }
    }
}
