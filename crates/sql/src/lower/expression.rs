//! Expressions: resolves names to slots and parameters to values, and folds constants.

use super::scope::Resolved;
use super::{Lowering, Role, constant};
use crate::ast::{self, ExpressionKind, NumberLiteral};
use crate::fault::{FaultKind, Span};
use plan::query::{Expression, LikePattern, SubqueryKind, UnaryOperator};
use value::{Decimal128, Value};

impl<'query> Lowering<'query> {
    /// Lowers an expression of the current clause.
    pub(super) fn expression(&mut self, written: &'query ast::Expression) -> Expression {
        if let Some(key) = self.group_key(written) {
            return key;
        }
        match &written.kind {
            ExpressionKind::Undefined => Expression::Undefined,
            ExpressionKind::Null => Expression::Constant(Value::Null),
            ExpressionKind::Boolean(boolean) => Expression::Constant(Value::Bool(*boolean)),
            ExpressionKind::Number(number) => Expression::Constant(number_value(*number)),
            ExpressionKind::String(string) => Expression::Constant(Value::String(string.clone())),
            ExpressionKind::Parameter(name) => self.parameter(name, written.span),
            ExpressionKind::Name(_) | ExpressionKind::Member(..) | ExpressionKind::Index(..) => {
                self.reference(written, written)
            }
            ExpressionKind::Array(elements) => constant::array(self.all(elements)),
            ExpressionKind::Object(members) => constant::object(
                members.iter().map(|(name, member)| (name.clone(), self.expression(member))).collect(),
            ),
            ExpressionKind::Unary(operator, operand) => constant::unary(*operator, self.expression(operand)),
            ExpressionKind::Binary(operator, left, right) => {
                let left = Box::new(self.expression(left));
                Expression::Binary(*operator, left, Box::new(self.expression(right)))
            }
            ExpressionKind::And(members) => Expression::And(constant::flat_and(self.all(members))),
            ExpressionKind::Or(members) => Expression::Or(constant::flat_or(self.all(members)).into()),
            ExpressionKind::Concatenation(members) => Expression::Concatenation(self.all(members)),
            ExpressionKind::In { operand, list, negated } => {
                let operand = Box::new(self.expression(operand));
                negate(*negated, Expression::In(operand, self.all(list).into()))
            }
            ExpressionKind::Between { operands, negated } => {
                let operands = self.three(operands);
                negate(*negated, Expression::Between(operands))
            }
            ExpressionKind::Like { operand, pattern, escape, negated } => {
                let operand = Box::new(self.expression(operand));
                let pattern = Box::new(self.expression(pattern));
                negate(*negated, Expression::Like(operand, LikePattern { pattern, escape: *escape }))
            }
            ExpressionKind::Coalesce(first, second) => {
                let first = Box::new(self.expression(first));
                Expression::Coalesce(first, Box::new(self.expression(second)))
            }
            ExpressionKind::Conditional(parts) => Expression::Conditional(self.three(parts)),
            ExpressionKind::Call(name, arguments) => self.call(name, arguments, written.span),
            ExpressionKind::UserCall(name, arguments) => self.user_call(name, arguments, written.span),
            ExpressionKind::Subquery(kind, query) => self.subquery(*kind, query),
            ExpressionKind::Placeholder(name) => {
                let near = format!("{{{name}}}");
                self.fault(FaultKind::Syntax { near }, written.span);
                Expression::Undefined
            }
        }
    }

    pub(super) fn all(&mut self, written: &'query [ast::Expression]) -> Vec<Expression> {
        written.iter().map(|expression| self.expression(expression)).collect()
    }

    fn three(&mut self, written: &'query [ast::Expression; 3]) -> Box<[Expression; 3]> {
        let [first, second, third] = written;
        Box::new([self.expression(first), self.expression(second), self.expression(third)])
    }

    fn parameter(&mut self, name: &str, span: Span) -> Expression {
        match self.parameters.get(name) {
            Some(value) => Expression::Constant(value.clone()),
            None if self.parameters.missing_are_undefined() => Expression::Undefined,
            None => {
                self.fault(FaultKind::MissingParameter { name: name.to_owned() }, span);
                Expression::Undefined
            }
        }
    }

    /// A name with members and indexes after it; `whole` is quoted in a fault about the name.
    fn reference(&mut self, written: &'query ast::Expression, whole: &'query ast::Expression) -> Expression {
        if let ExpressionKind::Name(name) = &written.kind {
            if let Resolved::Slot(slot) = self.resolve(name) {
                return Expression::Slot(slot);
            }
            self.refuse_name(name, written.span, whole);
            Expression::Undefined
        } else if let ExpressionKind::Member(base, name) = &written.kind {
            Expression::Member(Box::new(self.base(base, whole)), name.clone())
        } else if let ExpressionKind::Index(base, index) = &written.kind {
            let base = Box::new(self.base(base, whole));
            let index = self.expression(index);
            // A parameter can name a member.
            if let Expression::Constant(Value::String(name)) = index {
                return Expression::Member(base, name);
            }
            Expression::Index(base, Box::new(index))
        } else {
            self.expression(written)
        }
    }

    /// The base of a member access: the beginning of a longer reference may be a group key.
    fn base(&mut self, written: &'query ast::Expression, whole: &'query ast::Expression) -> Expression {
        match self.group_key(written) {
            Some(key) => key,
            None => self.reference(written, whole),
        }
    }

    fn subquery(&mut self, kind: SubqueryKind, query: &'query ast::Query) -> Expression {
        Expression::Subquery(kind, Box::new(self.query(query, Role::Inner)))
    }
}

fn number_value(number: NumberLiteral) -> Value {
    match number {
        NumberLiteral::Integer(integer) => Value::Int64(integer),
        NumberLiteral::Unsigned(integer) => Value::Decimal(Decimal128::from_u64(integer)),
        NumberLiteral::Double(double) => Value::Double(double),
    }
}

fn negate(negated: bool, expression: Expression) -> Expression {
    if negated { Expression::Unary(UnaryOperator::Not, Box::new(expression)) } else { expression }
}
