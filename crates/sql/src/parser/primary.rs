//! Operands: literals, names, calls, brackets, subqueries, and the members after them.

use super::{Parsed, ParsedNode, Parser, fault};
use crate::ast::{Expression, ExpressionKind};
use crate::fault::{FaultKind, Span};
use crate::keyword::Keyword;
use crate::lexer::{Token, TokenKind};
use crate::literal;
use crate::lower::canonical_function_name;
use plan::query::SubqueryKind;

impl Parser<'_> {
    /// Parses a primary expression and the members and indexes after it.
    pub(super) fn primary(&mut self) -> Parsed<ParsedNode> {
        let mut base = self.bare_primary()?;
        loop {
            let start = base.expression.span;
            if self.eat(TokenKind::Dot) {
                let name = self.expect(TokenKind::Word)?;
                let kind = ExpressionKind::Member(base.expression, name.text.to_owned());
                base = self.node(kind, start.to(name.span), base.height)?;
            } else if self.eat(TokenKind::OpenSquare) {
                let index = self.expression()?;
                let end = self.expect(TokenKind::CloseSquare)?.span;
                let height = base.height.max(index.height);
                base = self.node(index_of(base.expression, *index.expression), start.to(end), height)?;
            } else {
                return Ok(base);
            }
        }
    }

    fn bare_primary(&mut self) -> Parsed<ParsedNode> {
        let token = self.peek();
        match token.kind {
            TokenKind::Word => self.word(),
            TokenKind::Integer | TokenKind::Fraction => {
                let number = literal::read_number(token.text).ok_or_else(|| {
                    let kind = FaultKind::InvalidNumber { token: super::cursor::shortened(token.text) };
                    fault(kind, token.span)
                })?;
                self.leaf(ExpressionKind::Number(number))
            }
            TokenKind::String => {
                let string = self.string_literal()?;
                self.node(ExpressionKind::String(string), token.span, 0)
            }
            TokenKind::Parameter => self.leaf(ExpressionKind::Parameter(token.text.to_owned())),
            TokenKind::OpenRound => self.round(),
            TokenKind::OpenSquare => self.array(),
            TokenKind::OpenCurly => self.object(),
            _ => Err(self.unexpected()),
        }
    }

    /// Consumes a token that is an expression by itself.
    fn leaf(&mut self, kind: ExpressionKind) -> Parsed<ParsedNode> {
        let span = self.take().span;
        self.node(kind, span, 0)
    }

    /// Consumes a string token.
    pub(super) fn string_literal(&mut self) -> Parsed<String> {
        let token = self.take();
        literal::read_string(token.text).ok_or_else(|| {
            let kind = FaultKind::InvalidString { token: super::cursor::shortened(token.text) };
            fault(kind, token.span)
        })
    }

    /// A literal, a call, a subquery after a keyword, or the name of a source.
    fn word(&mut self) -> Parsed<ParsedNode> {
        let token = self.peek();
        let is_call = self.peek_second().kind == TokenKind::OpenRound;
        match self.keyword() {
            Some(Keyword::True) => self.leaf(ExpressionKind::Boolean(true)),
            Some(Keyword::False) => self.leaf(ExpressionKind::Boolean(false)),
            Some(Keyword::Null) => self.leaf(ExpressionKind::Null),
            Some(Keyword::Undefined) => self.leaf(ExpressionKind::Undefined),
            Some(Keyword::Exists) => self.worded_subquery(SubqueryKind::Exists),
            Some(Keyword::Array) => self.worded_subquery(SubqueryKind::Array),
            Some(Keyword::Left | Keyword::Right) if is_call => self.call(),
            Some(_) => Err(self.unexpected()),
            None if is_call => match free_subquery_word(token.text) {
                Some(kind) if self.third_is_select() => self.worded_subquery(kind),
                Some(_) | None => self.call(),
            },
            None if self.sees_word("UDF") && self.peek_second().kind == TokenKind::Dot => self.user_call(),
            None => self.leaf(ExpressionKind::Name(token.text.to_owned())),
        }
    }

    /// Whether SELECT follows a word and a bracket.
    fn third_is_select(&self) -> bool {
        let third = self.tokens.get(self.next + 2);
        third.is_some_and(|token| token.keyword == Some(Keyword::Select))
    }

    fn worded_subquery(&mut self, kind: SubqueryKind) -> Parsed<ParsedNode> {
        let start = self.take().span;
        self.expect(TokenKind::OpenRound)?;
        self.subquery_node(kind, start)
    }

    fn subquery_node(&mut self, kind: SubqueryKind, start: Span) -> Parsed<ParsedNode> {
        let (query, height) = self.subquery()?;
        let span = start.to(self.last_span());
        self.node(ExpressionKind::Subquery(kind, Box::new(query)), span, height)
    }

    fn call(&mut self) -> Parsed<ParsedNode> {
        let name = self.take();
        let (arguments, height) = self.arguments()?;
        let span = name.span.to(self.last_span());
        let kind = ExpressionKind::Call(canonical_function_name(name.text), arguments);
        self.node(kind, span, height)
    }

    /// A user-defined function; without a bracket after its name, `udf` is the name of a source.
    fn user_call(&mut self) -> Parsed<ParsedNode> {
        let is_call = self.tokens.get(self.next + 3).is_some_and(|token| token.kind == TokenKind::OpenRound);
        if !is_call {
            let Token { text, .. } = self.peek();
            return self.leaf(ExpressionKind::Name(text.to_owned()));
        }
        let start = self.take().span;
        self.take();
        let name = self.expect(TokenKind::Word)?;
        let (arguments, height) = self.arguments()?;
        let span = start.to(self.last_span());
        self.node(ExpressionKind::UserCall(name.text.to_owned(), arguments), span, height)
    }

    fn arguments(&mut self) -> Parsed<(Vec<Expression>, usize)> {
        self.expect(TokenKind::OpenRound)?;
        if self.eat(TokenKind::CloseRound) {
            return Ok((Vec::new(), 0));
        }
        let arguments = self.expressions()?;
        self.expect(TokenKind::CloseRound)?;
        Ok(arguments)
    }

    /// An expression or a subquery in round brackets.
    fn round(&mut self) -> Parsed<ParsedNode> {
        let start = self.take().span;
        if self.sees(Keyword::Select) {
            return self.subquery_node(SubqueryKind::Scalar, start);
        }
        let mut inner = self.expression()?;
        let end = self.expect(TokenKind::CloseRound)?.span;
        inner.expression.span = start.to(end);
        Ok(inner)
    }

    fn array(&mut self) -> Parsed<ParsedNode> {
        let start = self.take().span;
        let (elements, height) = match self.peek().kind == TokenKind::CloseSquare {
            true => (Vec::new(), 0),
            false => self.expressions()?,
        };
        let end = self.expect(TokenKind::CloseSquare)?.span;
        self.node(ExpressionKind::Array(elements), start.to(end), height)
    }

    fn object(&mut self) -> Parsed<ParsedNode> {
        let start = self.take().span;
        let mut members = Vec::new();
        let mut height = 0;
        while self.peek().kind != TokenKind::CloseCurly {
            if !members.is_empty() {
                self.expect(TokenKind::Comma)?;
            }
            let name = match self.peek().kind {
                TokenKind::String => self.string_literal()?,
                TokenKind::Word => self.take().text.to_owned(),
                _ => return Err(self.unexpected()),
            };
            self.expect(TokenKind::Colon)?;
            let member = self.expression()?;
            height = height.max(member.height);
            members.push((name, *member.expression));
        }
        let end = self.take().span;
        self.node(ExpressionKind::Object(members), start.to(end), height)
    }
}

/// `base[index]`, which is a member if the index is a string literal.
fn index_of(base: Box<Expression>, index: Expression) -> ExpressionKind {
    match index.kind {
        ExpressionKind::String(name) => ExpressionKind::Member(base, name),
        _ => ExpressionKind::Index(base, Box::new(index)),
    }
}

/// Words before a subquery that are not reserved.
fn free_subquery_word(word: &str) -> Option<SubqueryKind> {
    [("ALL", SubqueryKind::All), ("FIRST", SubqueryKind::First), ("LAST", SubqueryKind::Last)]
        .into_iter()
        .find(|(name, _)| word.eq_ignore_ascii_case(name))
        .map(|(_, kind)| kind)
}
