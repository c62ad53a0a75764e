//! Text to syntax tree: a handwritten recursive descent parser with a precedence table for operators.
//!
//! Does not resolve names, parameters or functions. Stops at the first error.
#![allow(clippy::wildcard_enum_match_arm)] // a rule names the few tokens that fit it; all others are one mistake

mod clauses;
mod cursor;
mod expression;
mod from;
mod predicate;
mod primary;
mod query;
mod select;

use crate::ast::{Expression, ExpressionKind, Query};
use crate::fault::{FaultKind, Limit, Span, SqlFault};
use crate::lexer::{self, Token};
use crate::limits::{EXPRESSION_DEPTH_MAX, SUBQUERY_DEPTH_MAX, TEXT_BYTES_MAX};

/// Faults and expressions are boxed: small stack frames allow deep texts on a small stack.
type Parsed<T> = Result<T, Box<SqlFault>>;

/// Parses a query that is the whole text.
pub(crate) fn parse(text: &str) -> Parsed<Query> {
    if text.len() > TEXT_BYTES_MAX {
        let kind = FaultKind::TextTooLong { given: text.len() };
        return Err(fault(kind, Span::default()));
    }
    let mut parser = Parser { tokens: lexer::tokens(text), next: 0, open: 0, subqueries: 0 };
    let (query, _) = parser.query()?;
    parser.expect_end()?;
    Ok(query)
}

/// The state of the parser. The functions of the grammar rules are in the other files of this folder.
struct Parser<'text> {
    /// At least the end token.
    tokens: Vec<Token<'text>>,
    /// Index of the next token; at most that of the end token.
    next: usize,
    /// Nested calls of `Parser::operators`.
    open: usize,
    /// Nested subqueries.
    subqueries: usize,
}

/// An expression and its height: one more than that of its highest part.
struct ParsedNode {
    expression: Box<Expression>,
    height: usize,
}

/// Most nested calls of `Parser::operators`. A level of the tree needs at most two: one for a bracket, one for the
/// operand in it.
const OPEN_MAX: usize = 2 * EXPRESSION_DEPTH_MAX;

fn fault(kind: FaultKind, span: Span) -> Box<SqlFault> {
    Box::new(SqlFault { kind, span })
}

impl Parser<'_> {
    /// A node whose parts have at most `height`.
    fn node(&self, kind: ExpressionKind, span: Span, height: usize) -> Parsed<ParsedNode> {
        let height = height + 1;
        if height > EXPRESSION_DEPTH_MAX {
            return Err(fault(FaultKind::Limit { limit: Limit::Depth }, span));
        }
        Ok(ParsedNode { expression: Box::new(Expression { kind, span }), height })
    }

    /// Counts a nested call of a recursive rule, up to the limit. If it succeeds, the caller decrements `open` at its
    /// end; after a fault parsing stops.
    fn enter(&mut self) -> Parsed<()> {
        if self.open >= OPEN_MAX {
            return Err(fault(FaultKind::Limit { limit: Limit::Depth }, self.peek().span));
        }
        self.open += 1;
        Ok(())
    }

    /// Parses a nested query after its opening bracket, including the closing one.
    fn subquery(&mut self) -> Parsed<(Query, usize)> {
        if self.subqueries >= SUBQUERY_DEPTH_MAX {
            let span = self.peek().span;
            return Err(fault(FaultKind::Limit { limit: Limit::Subqueries }, span));
        }
        self.subqueries += 1;
        let query = self.query()?;
        self.subqueries -= 1;
        self.expect(lexer::TokenKind::CloseRound)?;
        Ok(query)
    }
}
