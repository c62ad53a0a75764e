//! The FROM clause: sources and their paths.

use super::{Parsed, Parser, fault};
use crate::ast::{Collection, From, Source, Step};
use crate::fault::{FaultKind, Limit};
use crate::keyword::Keyword;
use crate::lexer::TokenKind;
use crate::limits::JOINS_MAX;
use crate::literal;

impl Parser<'_> {
    /// Parses the clause after its keyword; also returns the height of its highest expression.
    pub(super) fn from(&mut self) -> Parsed<(From, usize)> {
        let mut sources = Vec::new();
        let mut height = 0;
        loop {
            let (source, source_height) = self.source()?;
            height = height.max(source_height);
            sources.push(source);
            let span = self.peek().span;
            if !self.eat_keyword(Keyword::Join) {
                return Ok((From { sources }, height));
            }
            if sources.len() > JOINS_MAX {
                return Err(fault(FaultKind::Limit { limit: Limit::Joins }, span));
            }
        }
    }

    fn source(&mut self) -> Parsed<(Source, usize)> {
        let start = self.peek().span;
        let second = self.peek_second();
        let is_elements = second.keyword == Some(Keyword::In);
        if self.sees_name() && is_elements {
            let alias = self.take();
            self.take();
            let (collection, height) = self.collection()?;
            let source =
                Source { collection, alias: Some(alias.text.to_owned()), elements: true, span: alias.span };
            return Ok((source, height));
        }
        let (collection, height) = self.collection()?;
        let span = start.to(self.last_span());
        let alias = match self.eat_keyword(Keyword::As) || self.sees_name() {
            true => Some(self.expect_name()?),
            false => None,
        };
        let span = alias.map_or(span, |alias| alias.span);
        let alias = alias.map(|alias| alias.text.to_owned());
        Ok((Source { collection, alias, elements: false, span }, height))
    }

    fn collection(&mut self) -> Parsed<(Collection, usize)> {
        if self.eat(TokenKind::OpenRound) {
            let (query, height) = self.subquery()?;
            return Ok((Collection::Subquery(Box::new(query)), height));
        }
        let root = self.expect_name()?;
        let mut steps = Vec::new();
        loop {
            // Each step adds a level to the expression of the path.
            if steps.len() >= crate::limits::EXPRESSION_DEPTH_MAX {
                let kind = FaultKind::Limit { limit: Limit::Depth };
                return Err(fault(kind, self.peek().span));
            }
            if self.eat(TokenKind::Dot) {
                steps.push(Step::Name(self.expect(TokenKind::Word)?.text.to_owned()));
            } else if self.eat(TokenKind::OpenSquare) {
                steps.push(self.step_in_brackets()?);
                self.expect(TokenKind::CloseSquare)?;
            } else {
                let root_name = root.text.to_owned();
                return Ok((Collection::Path { root: root_name, steps, span: root.span }, 0));
            }
        }
    }

    fn step_in_brackets(&mut self) -> Parsed<Step> {
        let token = self.peek();
        match token.kind {
            TokenKind::String => Ok(Step::Name(self.string_literal()?)),
            TokenKind::Integer => match literal::read_number(token.text) {
                Some(crate::ast::NumberLiteral::Integer(position)) => {
                    self.take();
                    Ok(Step::Position(position.unsigned_abs()))
                }
                Some(crate::ast::NumberLiteral::Unsigned(_) | crate::ast::NumberLiteral::Double(_))
                | None => Err(self.unexpected()),
            },
            // A computed step may be well-formed, but sources are resolved before there is a row to compute it from.
            TokenKind::Parameter | TokenKind::Word => Err(fault(FaultKind::MemberIndexer, token.span)),
            _ => Err(self.unexpected()),
        }
    }
}
