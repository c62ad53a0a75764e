//! The normal form of a condition: the operand, the comparison and the constants.
//!
//! Everything that needs to know what a filter says about a path reads this form: index lookups, pinned partition keys,
//! index metrics and advice. A negation is pushed down to the comparisons, because in three-valued logic `NOT (a AND
//! b)` is true exactly if one of them is false, and undefined is neither. The form is produced one level at a time and
//! borrows everything, so that reading a filter does not allocate.

use super::{Alternatives, BinaryOperator, Expression, Function, LikePattern, UnaryOperator};
use value::{Kind, Value};

/// A comparison of two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // each is named after its sign
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    /// The comparison with its sides exchanged.
    #[must_use]
    pub(crate) fn mirrored(self) -> Comparison {
        match self {
            Comparison::Equal | Comparison::NotEqual => self,
            Comparison::Less => Comparison::Greater,
            Comparison::LessOrEqual => Comparison::GreaterOrEqual,
            Comparison::Greater => Comparison::Less,
            Comparison::GreaterOrEqual => Comparison::LessOrEqual,
        }
    }

    /// The comparison that is true if this one is false.
    #[must_use]
    pub(crate) fn negated(self) -> Comparison {
        match self {
            Comparison::Equal => Comparison::NotEqual,
            Comparison::NotEqual => Comparison::Equal,
            Comparison::Less => Comparison::GreaterOrEqual,
            Comparison::LessOrEqual => Comparison::Greater,
            Comparison::Greater => Comparison::LessOrEqual,
            Comparison::GreaterOrEqual => Comparison::Less,
        }
    }

    /// Its SQL operator.
    pub fn sign(self) -> &'static str {
        match self {
            Comparison::Equal => "=",
            Comparison::NotEqual => "!=",
            Comparison::Less => "<",
            Comparison::LessOrEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterOrEqual => ">=",
        }
    }
}

impl BinaryOperator {
    /// The comparison of this operator; `None` for operators that compute.
    pub(crate) fn comparison(self) -> Option<Comparison> {
        match self {
            BinaryOperator::Equal => Some(Comparison::Equal),
            BinaryOperator::NotEqual => Some(Comparison::NotEqual),
            BinaryOperator::Less => Some(Comparison::Less),
            BinaryOperator::LessOrEqual => Some(Comparison::LessOrEqual),
            BinaryOperator::Greater => Some(Comparison::Greater),
            BinaryOperator::GreaterOrEqual => Some(Comparison::GreaterOrEqual),
            BinaryOperator::Add
            | BinaryOperator::Subtract
            | BinaryOperator::Multiply
            | BinaryOperator::Divide
            | BinaryOperator::Modulo
            | BinaryOperator::BitAnd
            | BinaryOperator::BitOr
            | BinaryOperator::BitXor
            | BinaryOperator::ShiftLeft
            | BinaryOperator::ShiftRight
            | BinaryOperator::ShiftRightUnsigned => None,
        }
    }
}

/// An expression that must have a truth value: true for a filter, false inside a negation.
#[derive(Clone, Copy, Debug)]
pub struct Requirement<'q> {
    /// The condition.
    pub expression: &'q Expression,
    /// The required truth value.
    pub truth: bool,
}

/// Members of an AND or an OR, each with its required truth value.
#[derive(Clone, Copy, Debug)]
pub struct Requirements<'q> {
    members: &'q [Expression],
    truth: bool,
}

/// The normal form of a requirement. Most forms are equivalent to it. A BETWEEN with one bound and a spatial condition
/// are only necessary for it; searches for text, partial matches and [`Predicate::Other`] contain no information.
#[derive(Clone, Copy, Debug)]
pub enum Predicate<'q> {
    /// All of these hold.
    All(Requirements<'q>),
    /// One of these holds.
    Any(Requirements<'q>),
    /// A value is `true`, or `false`.
    Truth {
        /// The value.
        operand: &'q Expression,
        /// Which of the two.
        truth: bool,
    },
    /// A value compared with a constant.
    Compare {
        /// The value.
        operand: &'q Expression,
        /// The comparison.
        comparison: Comparison,
        /// The constant.
        constant: &'q Value,
    },
    /// Two values compared with each other, neither of them a constant.
    CompareValues {
        /// One value.
        left: &'q Expression,
        /// The comparison.
        comparison: Comparison,
        /// The other value.
        right: &'q Expression,
    },
    /// A value that equals one of several constants, or that is defined and equals none.
    Listed {
        /// The value.
        operand: &'q Expression,
        /// The constants.
        constants: Constants<'q>,
        /// Whether it equals one.
        truth: bool,
    },
    /// A value between two constants, both included.
    Between {
        /// The value.
        operand: &'q Expression,
        /// The lower bound; `None` if it is not a constant.
        low: Option<&'q Value>,
        /// The upper bound; `None` if it is not a constant.
        high: Option<&'q Value>,
    },
    /// A value is defined, or is not.
    Defined {
        /// The value.
        operand: &'q Expression,
        /// Whether it is defined.
        truth: bool,
    },
    /// A value is of a kind, or is not. Numbers of all kinds count as [`Kind::Int64`].
    OfKind {
        /// The value.
        operand: &'q Expression,
        /// The kind.
        kind: Kind,
        /// Whether it is of the kind.
        truth: bool,
    },
    /// A text that is matched against a constant.
    Text {
        /// The text.
        operand: &'q Expression,
        /// The pattern.
        pattern: TextPattern<'q>,
        /// Whether it matches.
        truth: bool,
    },
    /// An array that contains constants, or does not.
    Contains {
        /// The array.
        operand: &'q Expression,
        /// The constants.
        elements: &'q [Expression],
        /// How the elements are matched.
        matching: ElementMatch,
        /// Whether it contains them.
        truth: bool,
    },
    /// A geometry that intersects a constant one: inside it, around it or across its border.
    Meets {
        /// The geometry.
        operand: &'q Expression,
        /// The constant.
        constant: &'q Value,
    },
    /// Any other condition.
    Other,
}

/// The pattern of a text match.
#[derive(Clone, Copy, Debug)]
pub enum TextPattern<'q> {
    /// The text starts with this.
    Start(&'q str),
    /// The text equals this.
    Whole(&'q Value),
    /// The pattern of a LIKE, and its escape character.
    Like(&'q str, Option<char>),
    /// A text inside it or at its end, a case-insensitive match, or a regular expression.
    Search,
}

/// How the elements of an array are matched against constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementMatch {
    /// One of the constants is an element.
    Any,
    /// All of the constants are elements.
    All,
    /// The constant is a part of an element.
    Partial,
}

/// Constants of a list.
#[derive(Clone, Copy, Debug)]
pub struct Constants<'q>(&'q Alternatives);

impl<'q> Requirement<'q> {
    /// A filter keeps a row if it is true.
    pub fn of_filter(filter: &'q Expression) -> Requirement<'q> {
        Requirement { expression: filter, truth: true }
    }

    /// The same without the negations around the condition.
    #[must_use]
    pub fn without_negations(self) -> Requirement<'q> {
        let Requirement { mut expression, mut truth } = self;
        while let Expression::Unary(UnaryOperator::Not, negated) = expression {
            (expression, truth) = (negated, !truth);
        }
        Requirement { expression, truth }
    }

    /// The normal form of the outermost level.
    pub fn predicate(self) -> Predicate<'q> {
        let Requirement { expression, truth } = self.without_negations();
        match expression {
            Expression::And(members) if truth => Predicate::All(Requirements { members, truth }),
            Expression::And(members) => Predicate::Any(Requirements { members, truth }),
            Expression::Or(members) if truth => Predicate::Any(Requirements { members, truth }),
            Expression::Or(members) => Predicate::All(Requirements { members, truth }),
            Expression::Binary(operator, left, right) => compare(*operator, left, right, truth),
            Expression::In(operand, list) => match Constants::of(list) {
                Some(constants) => Predicate::Listed { operand, constants, truth },
                None => Predicate::Other,
            },
            Expression::Between(parts) if truth => {
                let [operand, low, high] = &**parts;
                Predicate::Between { operand, low: constant(low), high: constant(high) }
            }
            Expression::Like(operand, pattern) => like(operand, pattern, truth),
            Expression::Call(function, arguments) => call(*function, arguments, truth),
            operand @ Expression::Member(..) => Predicate::Truth { operand, truth },
            Expression::Undefined
            | Expression::Constant(_)
            | Expression::Slot(_)
            | Expression::Index(..)
            | Expression::Array(_)
            | Expression::Object(_)
            | Expression::Unary(..)
            | Expression::Concatenation(_)
            | Expression::Between(_)
            | Expression::Coalesce(..)
            | Expression::Conditional(_)
            | Expression::UserCall(..)
            | Expression::Subquery(..)
            | Expression::GroupKey(_)
            | Expression::Aggregate(_) => Predicate::Other,
        }
    }
}

impl<'q> Requirements<'q> {
    /// The members.
    pub fn iter(self) -> impl ExactSizeIterator<Item = Requirement<'q>> {
        self.members.iter().map(move |expression| Requirement { expression, truth: self.truth })
    }
}

impl<'q> Constants<'q> {
    /// `None` if one of them is not a constant.
    fn of(list: &'q Alternatives) -> Option<Constants<'q>> {
        list.iter().all(|member| constant(member).is_some()).then_some(Constants(list))
    }

    /// The constants, at least one.
    pub fn iter(self) -> impl Iterator<Item = &'q Value> {
        self.0.iter().filter_map(constant)
    }

    /// The number of constants.
    pub fn count(self) -> usize {
        self.0.len()
    }
}

fn constant(expression: &Expression) -> Option<&Value> {
    if let Expression::Constant(constant) = expression { Some(constant) } else { None }
}

fn compare<'q>(
    operator: BinaryOperator,
    left: &'q Expression,
    right: &'q Expression,
    truth: bool,
) -> Predicate<'q> {
    let Some(comparison) = operator.comparison() else {
        return Predicate::Other;
    };
    let comparison = if truth { comparison } else { comparison.negated() };
    match (left, right) {
        (operand, Expression::Constant(constant)) => Predicate::Compare { operand, comparison, constant },
        (Expression::Constant(constant), operand) => {
            Predicate::Compare { operand, comparison: comparison.mirrored(), constant }
        }
        (left, right) => Predicate::CompareValues { left, comparison, right },
    }
}

fn like<'q>(operand: &'q Expression, pattern: &'q LikePattern, truth: bool) -> Predicate<'q> {
    match constant(&pattern.pattern) {
        Some(Value::String(text)) => {
            let pattern = TextPattern::Like(text, pattern.escape);
            Predicate::Text { operand, pattern, truth }
        }
        Some(_) | None => Predicate::Other,
    }
}

fn call<'q>(function: Function, arguments: &'q [Expression], truth: bool) -> Predicate<'q> {
    if let (Function::StWithin | Function::StIntersects, true) = (function, truth) {
        return match arguments {
            [operand, Expression::Constant(constant)] | [Expression::Constant(constant), operand] => {
                Predicate::Meets { operand, constant }
            }
            _ => Predicate::Other,
        };
    }
    let [operand, others @ ..] = arguments else {
        return Predicate::Other;
    };
    if !others.iter().all(|other| constant(other).is_some()) {
        return Predicate::Other;
    }
    if let Some(kind) = tested_kind(function) {
        return Predicate::OfKind { operand, kind, truth };
    }
    if function == Function::IsDefined {
        return Predicate::Defined { operand, truth };
    }
    if let Some(pattern) = text_pattern(function, others) {
        return Predicate::Text { operand, pattern, truth };
    }
    match (element_match(function, others), others) {
        (Some(ElementMatch::Partial), [element, ..]) => {
            let (matching, elements) = (ElementMatch::Partial, std::slice::from_ref(element));
            Predicate::Contains { operand, elements, matching, truth }
        }
        (Some(matching), [_, ..]) => Predicate::Contains { operand, elements: others, matching, truth },
        (Some(_) | None, _) => Predicate::Other,
    }
}

/// The kind that a function tests for.
fn tested_kind(function: Function) -> Option<Kind> {
    let kinds = [
        (Function::IsNull, Kind::Null),
        (Function::IsBool, Kind::Bool),
        (Function::IsNumber, Kind::Int64),
        (Function::IsString, Kind::String),
        (Function::IsArray, Kind::Array),
        (Function::IsObject, Kind::Object),
    ];
    kinds.iter().find(|(known, _)| *known == function).map(|(_, kind)| *kind)
}

/// The pattern of a text function; a further argument requests a case-insensitive match.
fn text_pattern(function: Function, others: &[Expression]) -> Option<TextPattern<'_>> {
    const SEARCHES: [Function; 5] = [
        Function::StartsWith,
        Function::StringEquals,
        Function::EndsWith,
        Function::Contains,
        Function::RegexMatch,
    ];
    match (function, others) {
        (Function::StartsWith, [Expression::Constant(Value::String(start))]) => {
            Some(TextPattern::Start(start))
        }
        (Function::StringEquals, [Expression::Constant(text @ Value::String(_))]) => {
            Some(TextPattern::Whole(text))
        }
        (_, _) => SEARCHES.contains(&function).then_some(TextPattern::Search),
    }
}

/// How a function matches elements; a third argument of `ARRAY_CONTAINS` requests partial matches.
fn element_match(function: Function, others: &[Expression]) -> Option<ElementMatch> {
    if function == Function::ArrayContains {
        return Some(if others.len() > 1 { ElementMatch::Partial } else { ElementMatch::Any });
    }
    if function == Function::ArrayContainsAny {
        return Some(ElementMatch::Any);
    }
    (function == Function::ArrayContainsAll).then_some(ElementMatch::All)
}

#[cfg(test)]
mod tests {
    use super::super::SlotId;
    use super::*;

    fn path(name: &str) -> Expression {
        Expression::path(SlotId::DOCUMENT, [name.to_owned()])
    }

    fn compared(operator: BinaryOperator, left: Expression, right: Expression) -> Expression {
        Expression::Binary(operator, Box::new(left), Box::new(right))
    }

    fn not(expression: Expression) -> Expression {
        Expression::Unary(UnaryOperator::Not, Box::new(expression))
    }

    /// The text of the form, all levels.
    fn words(requirement: Requirement<'_>) -> String {
        let name =
            |operand: &Expression| operand.document_path().map_or("?".to_owned(), |path| path.join("."));
        let all = |members: Requirements<'_>| members.iter().map(words).collect::<Vec<_>>();
        match requirement.predicate() {
            Predicate::All(members) => format!("({})", all(members).join(" and ")),
            Predicate::Any(members) => format!("({})", all(members).join(" or ")),
            Predicate::Truth { operand, truth } => format!("{} is {truth}", name(operand)),
            Predicate::Compare { operand, comparison, constant } => {
                format!("{} {} {}", name(operand), comparison.sign(), constant.to_json())
            }
            Predicate::CompareValues { left, comparison, right } => {
                format!("{} {} {}", name(left), comparison.sign(), name(right))
            }
            Predicate::Listed { .. }
            | Predicate::Between { .. }
            | Predicate::Defined { .. }
            | Predicate::OfKind { .. }
            | Predicate::Text { .. }
            | Predicate::Contains { .. }
            | Predicate::Meets { .. }
            | Predicate::Other => "other".to_owned(),
        }
    }

    #[track_caller]
    fn check(filter: &Expression, expected: &str) {
        assert_eq!(words(Requirement::of_filter(filter)), expected);
    }

    #[test]
    fn negations_go_down_to_the_comparisons() {
        let seven = || Expression::Constant(Value::Int64(7));
        let less = compared(BinaryOperator::Less, path("a"), seven());
        let mirrored = compared(BinaryOperator::Less, seven(), path("a"));
        let values = compared(BinaryOperator::GreaterOrEqual, path("a"), path("b"));
        check(&less, "a < 7");
        check(&mirrored, "a > 7");
        check(&not(less.clone()), "a >= 7");
        check(&not(not(less.clone())), "a < 7");
        check(&not(values.clone()), "a < b");
        let both = Expression::And(vec![less, not(path("c")), values]);
        check(&both, "(a < 7 and c is false and a >= b)");
        check(&not(both), "(a >= 7 or c is true or a < b)");
    }

    #[test]
    fn what_computes_is_no_comparison() {
        let sum = compared(BinaryOperator::Add, path("a"), path("b"));
        assert!(matches!(Requirement::of_filter(&sum).predicate(), Predicate::Other));
    }
}
