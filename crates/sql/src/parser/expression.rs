//! Operators by precedence.
//!
//! NOT has a lower precedence than comparison, as documented: `NOT c.a = 1` is `NOT (c.a = 1)`. After IN, LIKE and
//! BETWEEN only AND and operators of lower precedence can follow.

use super::predicate::PredicateOperator;
use super::{Parsed, ParsedNode, Parser, fault};
use crate::ast::{Expression, ExpressionKind};
use crate::fault::{FaultKind, Limit};
use crate::keyword::Keyword;
use crate::lexer::TokenKind;
use crate::limits::CHAIN_MEMBERS_MAX;
use plan::query::{BinaryOperator, UnaryOperator};

/// The precedence of an operator, lowest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Power {
    Conditional,
    Coalesce,
    Or,
    And,
    Not,
    Predicate,
    Concatenation,
    BitOr,
    BitXor,
    BitAnd,
    Equality,
    Comparison,
    Shift,
    Additive,
    Multiplicative,
    Unary,
}

/// What may follow an operand.
enum Infix {
    Binary(BinaryOperator),
    Chain(Chain),
    Predicate { predicate: PredicateOperator, negated: bool },
    Coalesce,
    Conditional,
}

/// Operators whose chains are one level.
#[derive(Clone, Copy)]
enum Chain {
    And,
    Or,
    Concatenation,
}

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Parsed<ParsedNode> {
        self.operators(Power::Conditional)
    }

    /// Parses expressions separated by commas; also returns the height of the highest.
    pub(super) fn expressions(&mut self) -> Parsed<(Vec<Expression>, usize)> {
        let mut list = Vec::new();
        let mut height = 0;
        loop {
            let node = self.expression()?;
            height = height.max(node.height);
            list.push(*node.expression);
            if !self.eat(TokenKind::Comma) {
                return Ok((list, height));
            }
        }
    }

    /// Parses an operand and all following operators with at least the precedence `least`.
    pub(super) fn operators(&mut self, least: Power) -> Parsed<ParsedNode> {
        self.enter()?;
        let mut left = self.operand()?;
        // Lowered by an operator after which no operator of higher precedence may follow.
        let mut most = Power::Unary;
        while let Some((infix, power)) = self.infix() {
            if power < least || power > most {
                break;
            }
            most = if let Infix::Predicate { .. } = infix { Power::And } else { power };
            left = self.infix_operation(left, infix)?;
        }
        self.open -= 1;
        Ok(left)
    }

    /// An operand with the operators before it.
    fn operand(&mut self) -> Parsed<ParsedNode> {
        let start = self.peek();
        let (operator, power) = match start.kind {
            TokenKind::Minus => (UnaryOperator::Minus, Power::Unary),
            TokenKind::Plus => (UnaryOperator::Plus, Power::Unary),
            TokenKind::Tilde => (UnaryOperator::BitNot, Power::Unary),
            TokenKind::Word if self.sees(Keyword::Not) => (UnaryOperator::Not, Power::Not),
            _ => return self.primary(),
        };
        self.take();
        let operand = self.operators(power)?;
        let span = start.span.to(operand.expression.span);
        self.node(ExpressionKind::Unary(operator, operand.expression), span, operand.height)
    }

    /// The next operator, not consumed.
    fn infix(&self) -> Option<(Infix, Power)> {
        let token = self.peek();
        if token.kind == TokenKind::Word {
            return self.infix_word();
        }
        let (operator, power) = match token.kind {
            TokenKind::Question => return Some((Infix::Conditional, Power::Conditional)),
            TokenKind::Coalesce => return Some((Infix::Coalesce, Power::Coalesce)),
            TokenKind::DoubleBar => return Some((Infix::Chain(Chain::Concatenation), Power::Concatenation)),
            TokenKind::Bar => (BinaryOperator::BitOr, Power::BitOr),
            TokenKind::Caret => (BinaryOperator::BitXor, Power::BitXor),
            TokenKind::Ampersand => (BinaryOperator::BitAnd, Power::BitAnd),
            TokenKind::Equal => (BinaryOperator::Equal, Power::Equality),
            TokenKind::NotEqual => (BinaryOperator::NotEqual, Power::Equality),
            TokenKind::Less => (BinaryOperator::Less, Power::Comparison),
            TokenKind::LessOrEqual => (BinaryOperator::LessOrEqual, Power::Comparison),
            TokenKind::Greater => (BinaryOperator::Greater, Power::Comparison),
            TokenKind::GreaterOrEqual => (BinaryOperator::GreaterOrEqual, Power::Comparison),
            TokenKind::ShiftLeft => (BinaryOperator::ShiftLeft, Power::Shift),
            TokenKind::ShiftRight => (BinaryOperator::ShiftRight, Power::Shift),
            TokenKind::ShiftRightUnsigned => (BinaryOperator::ShiftRightUnsigned, Power::Shift),
            TokenKind::Plus => (BinaryOperator::Add, Power::Additive),
            TokenKind::Minus => (BinaryOperator::Subtract, Power::Additive),
            TokenKind::Star => (BinaryOperator::Multiply, Power::Multiplicative),
            TokenKind::Slash => (BinaryOperator::Divide, Power::Multiplicative),
            TokenKind::Percent => (BinaryOperator::Modulo, Power::Multiplicative),
            _ => return None,
        };
        Some((Infix::Binary(operator), power))
    }

    fn infix_word(&self) -> Option<(Infix, Power)> {
        let keyword = self.keyword()?;
        match keyword {
            Keyword::And => return Some((Infix::Chain(Chain::And), Power::And)),
            Keyword::Or => return Some((Infix::Chain(Chain::Or), Power::Or)),
            _ => {}
        }
        let negated = keyword == Keyword::Not;
        let predicate = match negated {
            true => PredicateOperator::of(self.peek_second().keyword?)?,
            false => PredicateOperator::of(keyword)?,
        };
        Some((Infix::Predicate { predicate, negated }, Power::Predicate))
    }

    /// Parses an operator and what follows it.
    fn infix_operation(&mut self, left: ParsedNode, infix: Infix) -> Parsed<ParsedNode> {
        match infix {
            Infix::Binary(operator) => self.binary(left, operator),
            Infix::Chain(chain) => self.chain(left, chain),
            Infix::Predicate { predicate, negated } => self.predicate(left, predicate, negated),
            Infix::Coalesce => {
                self.take();
                let right = self.operators(Power::Or)?;
                let span = left.expression.span.to(right.expression.span);
                let height = left.height.max(right.height);
                let kind = ExpressionKind::Coalesce(left.expression, right.expression);
                self.node(kind, span, height)
            }
            Infix::Conditional => self.conditional(left),
        }
    }

    fn binary(&mut self, left: ParsedNode, operator: BinaryOperator) -> Parsed<ParsedNode> {
        self.take();
        let right = self.operators(tighter(operator))?;
        let span = left.expression.span.to(right.expression.span);
        let height = left.height.max(right.height);
        let kind = ExpressionKind::Binary(operator, left.expression, right.expression);
        self.node(kind, span, height)
    }

    fn chain(&mut self, first: ParsedNode, chain: Chain) -> Parsed<ParsedNode> {
        let tighter = match chain {
            Chain::And => Power::Not,
            Chain::Or => Power::And,
            Chain::Concatenation => Power::BitOr,
        };
        let start = first.expression.span;
        let mut height = first.height;
        let mut members = vec![*first.expression];
        while self.sees_chain(chain) {
            let sign = self.take();
            if members.len() >= CHAIN_MEMBERS_MAX {
                return Err(fault(FaultKind::Limit { limit: Limit::Chain }, sign.span));
            }
            let member = self.operators(tighter)?;
            height = height.max(member.height);
            members.push(*member.expression);
        }
        let span = start.to(self.last_span());
        let kind = match chain {
            Chain::And => ExpressionKind::And(members),
            Chain::Or => ExpressionKind::Or(members),
            Chain::Concatenation => ExpressionKind::Concatenation(members),
        };
        self.node(kind, span, height)
    }

    fn sees_chain(&self, chain: Chain) -> bool {
        match chain {
            Chain::And => self.sees(Keyword::And),
            Chain::Or => self.sees(Keyword::Or),
            Chain::Concatenation => self.peek().kind == TokenKind::DoubleBar,
        }
    }

    fn conditional(&mut self, condition: ParsedNode) -> Parsed<ParsedNode> {
        self.take();
        let then = self.expression()?;
        self.expect(TokenKind::Colon)?;
        let otherwise = self.expression()?;
        let span = condition.expression.span.to(otherwise.expression.span);
        let height = condition.height.max(then.height).max(otherwise.height);
        let parts = [*condition.expression, *then.expression, *otherwise.expression];
        self.node(ExpressionKind::Conditional(Box::new(parts)), span, height)
    }
}

/// The lowest precedence in the right operand of a left-associative operator.
fn tighter(operator: BinaryOperator) -> Power {
    match operator {
        BinaryOperator::BitOr => Power::BitXor,
        BinaryOperator::BitXor => Power::BitAnd,
        BinaryOperator::BitAnd => Power::Equality,
        BinaryOperator::Equal | BinaryOperator::NotEqual => Power::Comparison,
        BinaryOperator::Less
        | BinaryOperator::LessOrEqual
        | BinaryOperator::Greater
        | BinaryOperator::GreaterOrEqual => Power::Shift,
        BinaryOperator::ShiftLeft | BinaryOperator::ShiftRight | BinaryOperator::ShiftRightUnsigned => {
            Power::Additive
        }
        BinaryOperator::Add | BinaryOperator::Subtract => Power::Multiplicative,
        BinaryOperator::Multiply | BinaryOperator::Divide | BinaryOperator::Modulo => Power::Unary,
    }
}
