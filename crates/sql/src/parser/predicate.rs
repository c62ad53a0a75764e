//! IN, LIKE and BETWEEN, with and without NOT.

use super::expression::Power;
use super::{Parsed, ParsedNode, Parser, fault};
use crate::ast::ExpressionKind;
use crate::fault::{FaultKind, Limit};
use crate::keyword::Keyword;
use crate::lexer::TokenKind;
use crate::limits::IN_VALUES_MAX;

#[derive(Clone, Copy)]
pub(super) enum PredicateOperator {
    In,
    Like,
    Between,
}

impl PredicateOperator {
    /// The predicate that starts with a keyword.
    pub(super) fn of(keyword: Keyword) -> Option<PredicateOperator> {
        match keyword {
            Keyword::In => Some(PredicateOperator::In),
            Keyword::Like => Some(PredicateOperator::Like),
            Keyword::Between => Some(PredicateOperator::Between),
            _ => None,
        }
    }
}

impl Parser<'_> {
    /// Parses a predicate from its first word.
    pub(super) fn predicate(
        &mut self,
        operand: ParsedNode,
        predicate: PredicateOperator,
        negated: bool,
    ) -> Parsed<ParsedNode> {
        if negated {
            self.take();
        }
        self.take();
        match predicate {
            PredicateOperator::In => self.in_list(operand, negated),
            PredicateOperator::Like => self.like(operand, negated),
            PredicateOperator::Between => self.between(operand, negated),
        }
    }

    fn in_list(&mut self, operand: ParsedNode, negated: bool) -> Parsed<ParsedNode> {
        self.expect(TokenKind::OpenRound)?;
        let mut list = Vec::new();
        let mut height = operand.height;
        loop {
            if list.len() >= IN_VALUES_MAX {
                let kind = FaultKind::Limit { limit: Limit::InValues };
                return Err(fault(kind, self.peek().span));
            }
            let value = self.expression()?;
            height = height.max(value.height);
            list.push(*value.expression);
            if !self.eat(TokenKind::Comma) {
                break;
            }
        }
        self.expect(TokenKind::CloseRound)?;
        let span = operand.expression.span.to(self.last_span());
        let operand = operand.expression;
        self.node(ExpressionKind::In { operand, list, negated }, span, height)
    }

    fn like(&mut self, operand: ParsedNode, negated: bool) -> Parsed<ParsedNode> {
        let pattern = self.operators(Power::Concatenation)?;
        let escape = match self.sees_word("ESCAPE") {
            true => Some(self.escape_character()?),
            false => None,
        };
        let span = operand.expression.span.to(self.last_span());
        let height = operand.height.max(pattern.height);
        let operand = operand.expression;
        let pattern = pattern.expression;
        self.node(ExpressionKind::Like { operand, pattern, escape, negated }, span, height)
    }

    /// Parses ESCAPE and its string of one character.
    fn escape_character(&mut self) -> Parsed<char> {
        self.take();
        let token = self.peek();
        if token.kind != TokenKind::String {
            return Err(self.unexpected());
        }
        let string = self.string_literal()?;
        let mut characters = string.chars();
        match (characters.next(), characters.next()) {
            (Some(character), None) => Ok(character),
            (Some(_), Some(_)) | (None, _) => {
                let kind = FaultKind::Syntax { near: super::cursor::shortened(token.text) };
                Err(fault(kind, token.span))
            }
        }
    }

    fn between(&mut self, operand: ParsedNode, negated: bool) -> Parsed<ParsedNode> {
        let low = self.operators(Power::Concatenation)?;
        self.expect_keyword(Keyword::And)?;
        let high = self.operators(Power::Concatenation)?;
        let span = operand.expression.span.to(high.expression.span);
        let height = operand.height.max(low.height).max(high.height);
        let operands = Box::new([*operand.expression, *low.expression, *high.expression]);
        self.node(ExpressionKind::Between { operands, negated }, span, height)
    }
}
