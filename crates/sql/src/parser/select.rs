//! The SELECT clause, and row counts.

use super::{Parsed, Parser, fault};
use crate::ast::{Count, CountValue, Select, SelectItem, SelectList};
use crate::fault::FaultKind;
use crate::keyword::Keyword;
use crate::lexer::TokenKind;
use crate::literal;

impl Parser<'_> {
    /// Parses the clause; also returns the height of its highest expression.
    pub(super) fn select(&mut self) -> Parsed<(Select, usize)> {
        let start = self.peek().span;
        self.expect_keyword(Keyword::Select)?;
        let distinct = self.eat_keyword(Keyword::Distinct);
        let top = if self.eat_keyword(Keyword::Top) { Some(self.count()?) } else { None };
        let (list, height) = self.select_list()?;
        let span = start.to(self.last_span());
        Ok((Select { distinct, top, list, span }, height))
    }

    fn select_list(&mut self) -> Parsed<(SelectList, usize)> {
        if self.peek().kind == TokenKind::Star {
            return Ok((SelectList::Star(self.take().span), 0));
        }
        if self.eat_keyword(Keyword::Value) {
            let value = self.expression()?;
            // The grammar allows a name here, which the result does not show.
            self.alias()?;
            return Ok((SelectList::Value(*value.expression), value.height));
        }
        let mut items = Vec::new();
        let mut height = 0;
        loop {
            let node = self.expression()?;
            height = height.max(node.height);
            let alias = self.alias()?;
            items.push(SelectItem { expression: *node.expression, alias });
            if !self.eat(TokenKind::Comma) {
                return Ok((SelectList::Items(items), height));
            }
        }
    }

    /// Parses `AS alias`, `AS 'alias'` or an alias alone, if there is one. Only in quotes a keyword can be an alias.
    fn alias(&mut self) -> Parsed<Option<String>> {
        let is_announced = self.eat_keyword(Keyword::As);
        if is_announced && self.peek().kind == TokenKind::String {
            return self.string_literal().map(Some);
        }
        // `1e` is a number with a missing exponent, not a number with an alias.
        let is_apart = self.last_span().end < self.peek().span.start;
        if is_announced || (is_apart && self.sees_name()) {
            return Ok(Some(self.expect_name()?.text.to_owned()));
        }
        Ok(None)
    }

    /// Parses the count of TOP, OFFSET or LIMIT: an integer or a parameter.
    pub(super) fn count(&mut self) -> Parsed<Count> {
        let token = self.peek();
        let value = match token.kind {
            TokenKind::Parameter => CountValue::Parameter(token.text.to_owned()),
            TokenKind::Integer => {
                let number = literal::read_number(token.text).ok_or_else(|| {
                    let kind = FaultKind::InvalidNumber { token: super::cursor::shortened(token.text) };
                    fault(kind, token.span)
                })?;
                CountValue::Number(number)
            }
            _ => return Err(self.unexpected()),
        };
        self.take();
        Ok(Count { value, span: token.span })
    }
}
