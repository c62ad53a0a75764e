//! A stable text of a query, for tests and for people: one line for each step, in the order of execution.
//!
//! Slots are `$0`, `$1`, …, keys of groups `key 0`, aggregates `aggregate 0`. Values are JSON. The text is not SQL and
//! is never parsed.

use super::{
    AggregateKind, BinaryOperator, Expression, Grouping, Order, PathStep, Projection, Query, SlotId, Source,
    SubqueryKind, UnaryOperator,
};
use std::fmt;
use value::Value;

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines().join("\n"))
    }
}

impl Query {
    fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.sources.iter().map(|source| format!("from {source}")).collect();
        lines.extend(self.filter.iter().map(|filter| format!("where {filter}")));
        lines.extend(self.grouping.iter().map(Grouping::to_string));
        match &self.order {
            Order::None => {}
            order @ (Order::Keys(_) | Order::Rank(_)) => lines.push(format!("order {order}")),
        }
        let distinct = if self.distinct { "distinct " } else { "" };
        lines.push(format!("select {distinct}{}", self.projection));
        if self.offset > 0 {
            lines.push(format!("offset {}", self.offset));
        }
        lines.extend(self.limit.iter().map(|limit| format!("limit {limit}")));
        lines
    }

    /// The same on one line, for a query inside another.
    fn inline(&self) -> String {
        format!("{{ {} }}", self.lines().join("; "))
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Container { path } => write!(f, "container{}", PathText(path)),
            Source::ContainerElements { path } => write!(f, "elements of container{}", PathText(path)),
            Source::Value(value) => write!(f, "{value}"),
            Source::Elements(array) => write!(f, "elements of {array}"),
            Source::Rows(query) => write!(f, "{}", query.inline()),
            Source::RowElements(query) => write!(f, "elements of {}", query.inline()),
        }
    }
}

struct PathText<'a>(&'a [PathStep]);

impl fmt::Display for PathText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in self.0 {
            match step {
                PathStep::Name(name) => write!(f, "[{}]", Quoted(name))?,
                PathStep::Position(position) => write!(f, "[{position}]")?,
            }
        }
        Ok(())
    }
}

struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Value::from(self.0).to_json())
    }
}

impl fmt::Display for Grouping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "group by ({})", List(&self.keys))?;
        for (index, aggregate) in self.aggregates.iter().enumerate() {
            let start = if index == 0 { " computing" } else { "," };
            write!(f, "{start} {}({})", aggregate.kind.name(), aggregate.argument)?;
        }
        Ok(())
    }
}

impl AggregateKind {
    /// All aggregates.
    pub const ALL: [AggregateKind; 8] = [
        AggregateKind::Count,
        AggregateKind::CountIf,
        AggregateKind::Sum,
        AggregateKind::Avg,
        AggregateKind::Min,
        AggregateKind::Max,
        AggregateKind::MakeList,
        AggregateKind::MakeSet,
    ];

    /// The name of its function.
    pub fn name(self) -> &'static str {
        match self {
            AggregateKind::Count => "COUNT",
            AggregateKind::CountIf => "COUNTIF",
            AggregateKind::Sum => "SUM",
            AggregateKind::Avg => "AVG",
            AggregateKind::Min => "MIN",
            AggregateKind::Max => "MAX",
            AggregateKind::MakeList => "MAKELIST",
            AggregateKind::MakeSet => "MAKESET",
        }
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Order::None => f.write_str("by number"),
            Order::Keys(keys) => {
                for (index, key) in keys.iter().enumerate() {
                    let start = if index == 0 { "by" } else { "," };
                    let direction = if key.descending { " descending" } else { "" };
                    write!(f, "{start} {}{direction}", key.expression)?;
                    if let Some(path) = &key.path {
                        write!(f, " (path {path})")?;
                    }
                }
                Ok(())
            }
            Order::Rank(ranking) => {
                write!(f, "by rank of ({})", List(&ranking.scores))?;
                if !ranking.weights.is_empty() {
                    write!(f, " weighing {:?}", ranking.weights)?;
                }
                Ok(())
            }
        }
    }
}

impl fmt::Display for Projection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Projection::Row(slot) => write!(f, "row {slot}"),
            Projection::Value(value) => write!(f, "value {value}"),
            Projection::Object(members) => write!(f, "{}", MemberList(members)),
        }
    }
}

impl fmt::Display for SlotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${}", self.0)
    }
}

struct List<'a>(&'a [Expression]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_joined(f, self.0, ", ")
    }
}

struct MemberList<'a>(&'a [(String, Expression)]);

impl fmt::Display for MemberList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (index, (name, member)) in self.0.iter().enumerate() {
            let start = if index == 0 { "" } else { ", " };
            write!(f, "{start}{}: {member}", Quoted(name))?;
        }
        f.write_str("}")
    }
}

fn write_joined(f: &mut fmt::Formatter<'_>, items: &[Expression], separator: &str) -> fmt::Result {
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            f.write_str(separator)?;
        }
        write!(f, "{item}")?;
    }
    Ok(())
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expression::Undefined => f.write_str("undefined"),
            Expression::Constant(value) => f.write_str(&value.to_json()),
            Expression::Slot(slot) => write!(f, "{slot}"),
            Expression::Member(base, name) if is_word(name) => write!(f, "{base}.{name}"),
            Expression::Member(base, name) => write!(f, "{base}[{}]", Quoted(name)),
            Expression::Index(base, index) => write!(f, "{base}[{index}]"),
            Expression::Array(elements) => write!(f, "[{}]", List(elements)),
            Expression::Object(members) => write!(f, "{}", MemberList(members)),
            Expression::Unary(operator, operand) => write!(f, "({} {operand})", operator.sign()),
            Expression::Binary(operator, left, right) => write!(f, "({left} {} {right})", operator.sign()),
            Expression::And(members) => write_chain(f, members, " AND "),
            Expression::Or(members) => write_chain(f, members, " OR "),
            Expression::Concatenation(members) => write_chain(f, members, " || "),
            Expression::In(operand, list) => write!(f, "({operand} IN ({}))", List(list)),
            Expression::Between(operands) => {
                let [operand, low, high] = operands.as_ref();
                write!(f, "({operand} BETWEEN {low} AND {high})")
            }
            Expression::Like(operand, like) => {
                write!(f, "({operand} LIKE {}", like.pattern)?;
                if let Some(escape) = like.escape {
                    write!(f, " ESCAPE {}", Quoted(escape.encode_utf8(&mut [0; 4])))?;
                }
                f.write_str(")")
            }
            Expression::Coalesce(first, second) => write!(f, "({first} ?? {second})"),
            Expression::Conditional(parts) => {
                let [condition, then, otherwise] = parts.as_ref();
                write!(f, "({condition} ? {then} : {otherwise})")
            }
            Expression::Call(function, arguments) => {
                write!(f, "{}({})", function.signature().name, List(arguments))
            }
            Expression::UserCall(name, arguments) => write!(f, "udf.{name}({})", List(arguments)),
            Expression::Subquery(kind, query) => write!(f, "{} {}", kind.word(), query.inline()),
            Expression::GroupKey(position) => write!(f, "key {position}"),
            Expression::Aggregate(position) => write!(f, "aggregate {position}"),
        }
    }
}

fn write_chain(f: &mut fmt::Formatter<'_>, members: &[Expression], separator: &str) -> fmt::Result {
    f.write_str("(")?;
    write_joined(f, members, separator)?;
    f.write_str(")")
}

fn is_word(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

impl UnaryOperator {
    /// Its SQL operator.
    pub fn sign(self) -> &'static str {
        match self {
            UnaryOperator::Not => "NOT",
            UnaryOperator::Minus => "-",
            UnaryOperator::Plus => "+",
            UnaryOperator::BitNot => "~",
        }
    }
}

impl BinaryOperator {
    /// Its SQL operator.
    pub fn sign(self) -> &'static str {
        match self {
            BinaryOperator::Equal => "=",
            BinaryOperator::NotEqual => "!=",
            BinaryOperator::Less => "<",
            BinaryOperator::LessOrEqual => "<=",
            BinaryOperator::Greater => ">",
            BinaryOperator::GreaterOrEqual => ">=",
            BinaryOperator::Add => "+",
            BinaryOperator::Subtract => "-",
            BinaryOperator::Multiply => "*",
            BinaryOperator::Divide => "/",
            BinaryOperator::Modulo => "%",
            BinaryOperator::BitAnd => "&",
            BinaryOperator::BitOr => "|",
            BinaryOperator::BitXor => "^",
            BinaryOperator::ShiftLeft => "<<",
            BinaryOperator::ShiftRight => ">>",
            BinaryOperator::ShiftRightUnsigned => ">>>",
        }
    }
}

impl SubqueryKind {
    fn word(self) -> &'static str {
        match self {
            SubqueryKind::Scalar => "the one of",
            SubqueryKind::Exists => "exists",
            SubqueryKind::Array => "array of",
            SubqueryKind::First => "first of",
            SubqueryKind::Last => "last of",
            SubqueryKind::All => "all of",
        }
    }
}
