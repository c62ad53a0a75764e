//! The clauses after WHERE: GROUP BY, ORDER BY, OFFSET LIMIT.

use super::{Parsed, Parser, fault};
use crate::ast::{Expression, OffsetLimit, OrderBy, SortKey};
use crate::fault::{FaultKind, Limit};
use crate::keyword::Keyword;
use crate::lexer::TokenKind;
use crate::limits::GROUP_KEYS_MAX;

impl Parser<'_> {
    /// Parses the GROUP BY clause if there is one; also returns the height of its highest expression.
    pub(super) fn group_by(&mut self) -> Parsed<(Vec<Expression>, usize)> {
        let mut keys = Vec::new();
        let mut height = 0;
        if !self.eat_keyword(Keyword::Group) {
            return Ok((keys, height));
        }
        self.expect_keyword(Keyword::By)?;
        loop {
            if keys.len() >= GROUP_KEYS_MAX {
                let kind = FaultKind::Limit { limit: Limit::GroupKeys };
                return Err(fault(kind, self.peek().span));
            }
            let key = self.expression()?;
            height = height.max(key.height);
            keys.push(*key.expression);
            if !self.eat(TokenKind::Comma) {
                return Ok((keys, height));
            }
        }
    }

    /// Parses the ORDER BY clause if there is one; also returns the height of its highest expression.
    pub(super) fn order_by(&mut self) -> Parsed<(Option<OrderBy>, usize)> {
        if !self.eat_keyword(Keyword::Order) {
            return Ok((None, 0));
        }
        self.expect_keyword(Keyword::By)?;
        // RANK is an ordinary word unless a call or a name follows it.
        let second = self.peek_second();
        let is_followed = second.kind == TokenKind::Word && second.keyword.is_none();
        if self.sees_word("RANK") && is_followed {
            self.take();
            return self.scores();
        }
        let mut keys = Vec::new();
        let mut height = 0;
        loop {
            let node = self.expression()?;
            height = height.max(node.height);
            let is_ascending = self.eat_keyword(Keyword::Asc);
            let descending = !is_ascending && self.eat_keyword(Keyword::Desc);
            let has_direction = is_ascending || descending;
            keys.push(SortKey { expression: *node.expression, descending, has_direction });
            if !self.eat(TokenKind::Comma) {
                return Ok((Some(OrderBy::Keys(keys)), height));
            }
        }
    }

    /// Parses the scores: operators are not allowed, because `RANK (…)` would be a call.
    fn scores(&mut self) -> Parsed<(Option<OrderBy>, usize)> {
        let mut scores = Vec::new();
        let mut height = 0;
        loop {
            let score = self.primary()?;
            height = height.max(score.height);
            scores.push(*score.expression);
            if self.sees(Keyword::Asc) || self.sees(Keyword::Desc) {
                return Err(fault(FaultKind::RankDirection, self.peek().span));
            }
            if !self.eat(TokenKind::Comma) {
                return Ok((Some(OrderBy::Rank(scores)), height));
            }
        }
    }

    /// Parses the OFFSET LIMIT clause if there is one.
    pub(super) fn offset_limit(&mut self) -> Parsed<Option<OffsetLimit>> {
        if !self.eat_keyword(Keyword::Offset) {
            return Ok(None);
        }
        let offset = self.count()?;
        self.expect_keyword(Keyword::Limit)?;
        let limit = self.count()?;
        Ok(Some(OffsetLimit { offset, limit }))
    }
}
