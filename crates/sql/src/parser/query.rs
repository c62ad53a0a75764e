//! A query: its clauses in order.

use super::{Parsed, Parser};
use crate::ast::Query;
use crate::keyword::Keyword;

impl Parser<'_> {
    /// Parses a query; also returns the height of its highest expression.
    pub(super) fn query(&mut self) -> Parsed<(Query, usize)> {
        let (select, mut height) = self.select()?;
        let mut higher = |other: usize| height = height.max(other);
        let from = match self.eat_keyword(Keyword::From) {
            true => {
                let (from, from_height) = self.from()?;
                higher(from_height);
                Some(from)
            }
            false => None,
        };
        let filter = match self.eat_keyword(Keyword::Where) {
            true => {
                let filter = self.expression()?;
                higher(filter.height);
                Some(*filter.expression)
            }
            false => None,
        };
        let (group_by, group_height) = self.group_by()?;
        higher(group_height);
        let (order_by, order_height) = self.order_by()?;
        higher(order_height);
        let offset_limit = self.offset_limit()?;
        Ok((Query { select, from, filter, group_by, order_by, offset_limit }, height))
    }
}
