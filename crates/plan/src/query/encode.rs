//! The binary encoding of a query, or of its order alone, hashed to distinguish queries: in continuations and index
//! fingerprints.
//!
//! Equal queries have equal bytes and different queries different bytes, independent of any text form. Enums have tags
//! that never change; functions and aggregates are encoded by the names that clients use. The bytes are never decoded.

use super::{
    Aggregate, BinaryOperator, Expression, Grouping, LikePattern, Order, PathStep, Projection, Query, SlotId,
    SortKey, Source, SubqueryKind, UnaryOperator,
};
use model::Encoder;
use value::Value;

impl Query {
    /// Appends its encoding.
    pub fn encode(&self, out: &mut Encoder) {
        out.list(&self.sources, |out, source| source.encode(out));
        out.option(self.filter.as_ref(), |out, filter| filter.encode(out));
        out.option(self.grouping.as_ref(), |out, grouping| grouping.encode(out));
        self.order.encode(out);
        self.projection.encode(out);
        out.flag(self.distinct);
        out.number(self.offset);
        out.option(self.limit, Encoder::number);
    }
}

impl Query {
    /// Appends the encoding of everything that determines the position of a result among the others: sources, order,
    /// groups, distinct results, and the number of results that are skipped and returned. The filter decides only which
    /// of them there are, unless results are ranked; the projection only how they look, unless they are distinct.
    pub fn encode_order(&self, out: &mut Encoder) {
        out.list(&self.sources, |out, source| source.encode(out));
        self.order.encode(out);
        let is_ranked = matches!(self.order, Order::Rank(_));
        let is_ordered = is_ranked || matches!(self.order, Order::Keys(_));
        out.option(self.grouping.as_ref(), |out, grouping| match is_ordered || self.distinct {
            // The order and distinct results refer to aggregates.
            true => grouping.encode(out),
            false => list(out, &grouping.keys),
        });
        out.option(self.filter.as_ref().filter(|_| is_ranked), |out, filter| filter.encode(out));
        out.option(self.distinct.then_some(&self.projection), |out, projection| projection.encode(out));
        out.number(self.offset);
        out.option(self.limit, Encoder::number);
    }
}

impl Source {
    fn encode(&self, out: &mut Encoder) {
        match self {
            Source::Container { path } => tagged_path(0, path, out),
            Source::ContainerElements { path } => tagged_path(1, path, out),
            Source::Value(value) => tagged(2, value, out),
            Source::Elements(array) => tagged(3, array, out),
            Source::Rows(query) => {
                out.byte(4);
                query.encode(out);
            }
            Source::RowElements(query) => {
                out.byte(5);
                query.encode(out);
            }
        }
    }
}

fn tagged_path(tag: u8, path: &[PathStep], out: &mut Encoder) {
    out.byte(tag);
    out.list(path, |out, step| match step {
        PathStep::Name(name) => {
            out.byte(0);
            out.text(name);
        }
        PathStep::Position(position) => {
            out.byte(1);
            out.number(*position);
        }
    });
}

fn tagged(tag: u8, expression: &Expression, out: &mut Encoder) {
    out.byte(tag);
    expression.encode(out);
}

fn tagged_list(tag: u8, expressions: &[Expression], out: &mut Encoder) {
    out.byte(tag);
    list(out, expressions);
}

fn list(out: &mut Encoder, expressions: &[Expression]) {
    out.list(expressions, |out, expression| expression.encode(out));
}

fn members(out: &mut Encoder, members: &[(String, Expression)]) {
    out.list(members, |out, (name, member)| {
        out.text(name);
        member.encode(out);
    });
}

fn position(out: &mut Encoder, position: usize) {
    out.number(position as u64);
}

impl Grouping {
    fn encode(&self, out: &mut Encoder) {
        list(out, &self.keys);
        out.list(&self.aggregates, |out, aggregate: &Aggregate| {
            out.text(aggregate.kind.name());
            aggregate.argument.encode(out);
        });
    }
}

impl Order {
    fn encode(&self, out: &mut Encoder) {
        match self {
            Order::None => out.byte(0),
            Order::Keys(keys) => {
                out.byte(1);
                out.list(keys, |out, key: &SortKey| {
                    key.expression.encode(out);
                    out.option(key.path.as_ref(), Encoder::path);
                    out.flag(key.descending);
                });
            }
            Order::Rank(ranking) => {
                out.byte(2);
                list(out, &ranking.scores);
                out.list(&ranking.weights, |out, weight| out.double(*weight));
            }
        }
    }
}

impl Projection {
    fn encode(&self, out: &mut Encoder) {
        match self {
            Projection::Row(slot) => {
                out.byte(0);
                slot.encode(out);
            }
            Projection::Value(value) => tagged(1, value, out),
            Projection::Object(object) => {
                out.byte(2);
                members(out, object);
            }
        }
    }
}

impl SlotId {
    fn encode(self, out: &mut Encoder) {
        out.number(self.0);
    }
}

impl Expression {
    /// Appends its encoding.
    pub fn encode(&self, out: &mut Encoder) {
        match self {
            Expression::Undefined => out.byte(0),
            Expression::Constant(value) => {
                out.byte(1);
                encode_value(value, out);
            }
            Expression::Slot(slot) => {
                out.byte(2);
                slot.encode(out);
            }
            Expression::Member(base, name) => {
                tagged(3, base, out);
                out.text(name);
            }
            Expression::Index(base, index) => {
                tagged(4, base, out);
                index.encode(out);
            }
            Expression::Array(elements) => tagged_list(5, elements, out),
            Expression::Object(object) => {
                out.byte(6);
                members(out, object);
            }
            Expression::Unary(operator, operand) => {
                out.byte(7);
                tagged(operator.tag(), operand, out);
            }
            Expression::Binary(operator, left, right) => {
                out.byte(8);
                tagged(operator.tag(), left, out);
                right.encode(out);
            }
            Expression::And(parts) => tagged_list(9, parts, out),
            Expression::Or(parts) => tagged_list(10, parts, out),
            Expression::Concatenation(parts) => tagged_list(11, parts, out),
            Expression::In(value, candidates) => {
                tagged(12, value, out);
                list(out, candidates);
            }
            Expression::Between(operands) => tagged_list(13, &operands[..], out),
            Expression::Like(value, pattern) => {
                tagged(14, value, out);
                pattern.encode(out);
            }
            Expression::Coalesce(left, right) => {
                tagged(15, left, out);
                right.encode(out);
            }
            Expression::Conditional(operands) => tagged_list(16, &operands[..], out),
            Expression::Call(function, arguments) => {
                out.byte(17);
                out.text(function.signature().name);
                list(out, arguments);
            }
            Expression::UserCall(name, arguments) => {
                out.byte(18);
                out.text(name);
                list(out, arguments);
            }
            Expression::Subquery(kind, query) => {
                out.byte(19);
                out.byte(kind.tag());
                query.encode(out);
            }
            Expression::GroupKey(key) => {
                out.byte(20);
                position(out, *key);
            }
            Expression::Aggregate(aggregate) => {
                out.byte(21);
                position(out, *aggregate);
            }
        }
    }
}

impl LikePattern {
    fn encode(&self, out: &mut Encoder) {
        self.pattern.encode(out);
        out.option(self.escape, |out, escape| out.number(u32::from(escape)));
    }
}

impl UnaryOperator {
    fn tag(self) -> u8 {
        match self {
            UnaryOperator::Not => 0,
            UnaryOperator::Minus => 1,
            UnaryOperator::Plus => 2,
            UnaryOperator::BitNot => 3,
        }
    }
}

impl BinaryOperator {
    fn tag(self) -> u8 {
        match self {
            BinaryOperator::Equal => 0,
            BinaryOperator::NotEqual => 1,
            BinaryOperator::Less => 2,
            BinaryOperator::LessOrEqual => 3,
            BinaryOperator::Greater => 4,
            BinaryOperator::GreaterOrEqual => 5,
            BinaryOperator::Add => 6,
            BinaryOperator::Subtract => 7,
            BinaryOperator::Multiply => 8,
            BinaryOperator::Divide => 9,
            BinaryOperator::Modulo => 10,
            BinaryOperator::BitAnd => 11,
            BinaryOperator::BitOr => 12,
            BinaryOperator::BitXor => 13,
            BinaryOperator::ShiftLeft => 14,
            BinaryOperator::ShiftRight => 15,
            BinaryOperator::ShiftRightUnsigned => 16,
        }
    }
}

impl SubqueryKind {
    fn tag(self) -> u8 {
        match self {
            SubqueryKind::Scalar => 0,
            SubqueryKind::Exists => 1,
            SubqueryKind::Array => 2,
            SubqueryKind::First => 3,
            SubqueryKind::Last => 4,
            SubqueryKind::All => 5,
        }
    }
}

/// Appends the encoding of a constant; kinds that compare as equal have different encodings.
fn encode_value(value: &Value, out: &mut Encoder) {
    match value {
        Value::Null => out.byte(0),
        Value::Bool(flag) => out.byte(1 + u8::from(*flag)),
        Value::Int32(number) => tagged_signed(3, i64::from(*number), out),
        Value::Int64(number) => tagged_signed(4, *number, out),
        Value::Double(number) => {
            out.byte(5);
            out.double(*number);
        }
        Value::Decimal(number) => {
            out.byte(6);
            out.raw(&number.0);
        }
        Value::String(text) => {
            out.byte(7);
            out.text(text);
        }
        Value::Binary { subtype, bytes } => {
            out.byte(8);
            out.byte(*subtype);
            out.bytes(bytes);
        }
        Value::Date(milliseconds) => tagged_signed(9, *milliseconds, out),
        Value::Ticks(ticks) => tagged_signed(14, *ticks, out),
        Value::Guid(bytes) => {
            out.byte(10);
            out.raw(bytes);
        }
        Value::ObjectId(bytes) => {
            out.byte(11);
            out.raw(bytes);
        }
        Value::Array(elements) => {
            out.byte(12);
            out.list(elements, |out, element| encode_value(element, out));
        }
        Value::Object(members) => {
            out.byte(13);
            out.list(members, |out, (name, member)| {
                out.text(name);
                encode_value(member, out);
            });
        }
    }
}

fn tagged_signed(tag: u8, number: i64, out: &mut Encoder) {
    out.byte(tag);
    out.signed(number);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::Function;
    use std::collections::HashSet;

    fn bytes(expression: &Expression) -> Vec<u8> {
        let mut out = Encoder::default();
        expression.encode(&mut out);
        out.finish()
    }

    #[test]
    fn expressions_that_differ_have_different_bytes() {
        let slot = || Box::new(Expression::Slot(SlotId(0)));
        let constant = |value: Value| Expression::Constant(value);
        let text = |text: &str| constant(Value::String(text.to_owned()));
        let expressions = vec![
            Expression::Undefined,
            constant(Value::Null),
            constant(Value::Bool(false)),
            constant(Value::Int32(1)),
            constant(Value::Int64(1)),
            constant(Value::Double(1.0)),
            constant(Value::Double(0.0)),
            constant(Value::Double(-0.0)),
            constant(Value::Date(1)),
            constant(Value::Ticks(1)),
            text("1"),
            text("a\", \"b"),
            Expression::Array(vec![text("a"), text("b")]),
            Expression::Array(vec![text("ab")]),
            constant(Value::Array(vec![Value::String("a".to_owned()), Value::String("b".to_owned())])),
            constant(Value::Object(vec![("a".to_owned(), Value::Null)])),
            Expression::Member(slot(), "a.b".to_owned()),
            Expression::Member(Box::new(Expression::Member(slot(), "a".to_owned())), "b".to_owned()),
            Expression::Index(slot(), Box::new(text("a.b"))),
            Expression::And(vec![text("a"), text("b")]),
            Expression::Or(vec![text("a"), text("b")].into()),
            Expression::In(slot(), vec![text("a")].into()),
            Expression::Like(slot(), LikePattern { pattern: Box::new(text("a")), escape: None }),
            Expression::Like(slot(), LikePattern { pattern: Box::new(text("a")), escape: Some('!') }),
            Expression::Call(Function::Abs, vec![*slot()]),
            Expression::UserCall("ABS".to_owned(), vec![*slot()]),
            Expression::GroupKey(0),
            Expression::Aggregate(0),
        ];
        let different: HashSet<Vec<u8>> = expressions.iter().map(bytes).collect();
        assert_eq!(different.len(), expressions.len());
    }

    /// Issued continuations and stored indexes contain hashes of these bytes.
    #[test]
    fn the_bytes_of_a_query_are_fixed() {
        let name = Expression::Member(Box::new(Expression::Slot(SlotId(0))), "a".to_owned());
        let query = Query {
            sources: vec![Source::Container { path: Vec::new() }],
            filter: Some(Expression::Binary(
                BinaryOperator::Less,
                Box::new(name.clone()),
                Box::new(Expression::Constant(Value::Int64(-1))),
            )),
            grouping: None,
            order: Order::None,
            projection: Projection::Value(name),
            distinct: true,
            offset: 300,
            limit: Some(1),
        };
        let mut out = Encoder::default();
        query.encode(&mut out);
        let expected = [
            &[1, 0, 0][..],
            &[1, 8, 2, 3, 2, 0, 1, b'a', 1, 4, 255, 255, 255, 255, 255, 255, 255, 255],
            &[0],
            &[0],
            &[1, 3, 2, 0, 1, b'a'],
            &[1],
            &[0xac, 0x02],
            &[1, 1],
        ];
        assert_eq!(out.finish(), expected.concat());
    }
}
