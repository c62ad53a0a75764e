//! Evaluation of an expression on a row.

use std::borrow::Cow;
use std::collections::HashMap;

use plan::query::{Alternatives, BinaryOperator, Expression, LikePattern, Query, SubqueryKind};
use value::{Value, ValueRef};

use crate::budget::WeightSum;
use crate::context::FEW_BYTES;
use crate::functions::{self, Call};
use crate::{Computed, Context, EvalFault, GroupRow, Row, operators, query};

/// Most levels of an expression, including those of its subqueries.
///
/// Query texts are checked against a smaller limit before they become expressions; this one protects the stack.
pub const EXPRESSION_DEPTH_MAX: usize = 256;

/// Levels that a subquery counts for, because running one takes that much more stack.
const SUBQUERY_LEVELS: usize = 8;

/// A value, or `None` for undefined, or a fault.
pub(crate) type EvalResult<'a> = Result<Option<Computed<'a>>, EvalFault>;

/// Unwraps a defined value of a `Result<Option<_>, _>`; undefined makes the function return undefined.
macro_rules! defined {
    ($outcome:expr) => {
        match $outcome? {
            Some(value) => value,
            None => return Ok(None),
        }
    };
}
pub(crate) use defined;

/// The value of an expression on a row; `None` is undefined.
pub fn evaluate<'a>(context: &'a Context<'_>, expression: &'a Expression, row: Row<'a>) -> EvalResult<'a> {
    Frame::new(context, row).evaluate(expression)
}

/// Evaluation position: the row and the depth.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'a> {
    pub(crate) context: &'a Context<'a>,
    pub(crate) row: Row<'a>,
    levels_left: usize,
}

impl<'a> Frame<'a> {
    pub(crate) fn new(context: &'a Context<'_>, row: Row<'a>) -> Frame<'a> {
        Frame { context, row, levels_left: EXPRESSION_DEPTH_MAX }
    }

    /// The same depth on another row.
    pub(crate) fn with_row<'b>(self, row: Row<'b>) -> Frame<'b>
    where
        'a: 'b,
    {
        Frame { context: self.context, row, levels_left: self.levels_left }
    }

    /// The same row one level down.
    #[inline]
    pub(crate) fn deeper(self) -> Result<Frame<'a>, EvalFault> {
        self.descend(1)
    }

    #[inline]
    fn descend(self, levels: usize) -> Result<Frame<'a>, EvalFault> {
        match self.levels_left.checked_sub(levels) {
            Some(levels_left) => Ok(Frame { levels_left, ..self }),
            None => Err(EvalFault::TooDeep { depth_max: EXPRESSION_DEPTH_MAX }),
        }
    }

    /// The value of an expression one level down.
    pub(crate) fn evaluate(self, expression: &'a Expression) -> EvalResult<'a> {
        let frame = self.deeper()?;
        // Each arm is one call, so that a level of nesting takes little stack.
        match expression {
            Expression::Undefined => Ok(None),
            Expression::Constant(constant) => Ok(Some(Computed::Borrowed(constant.as_ref()))),
            Expression::Slot(slot) => {
                Ok(self.row.slots.get(usize::from(slot.0)).copied().map(Computed::Borrowed))
            }
            Expression::Member(base, name) => frame.member(base, name),
            Expression::Index(base, index) => frame.index(base, index),
            Expression::Array(elements) => frame.array(elements),
            Expression::Object(members) => frame.object(members),
            Expression::Unary(operator, operand) => {
                Ok(frame.evaluate(operand)?.and_then(|operand| operators::unary(*operator, operand)))
            }
            Expression::Binary(operator, left, right) => frame.binary(*operator, left, right),
            Expression::And(terms) => frame.and(terms),
            Expression::Or(terms) => frame.or(terms),
            Expression::Concatenation(parts) => functions::concatenate(frame, parts),
            Expression::In(operand, candidates) => frame.is_in(operand, candidates),
            Expression::Between(operands) => frame.between(operands),
            Expression::Like(operand, pattern) => frame.like(operand, pattern),
            Expression::Coalesce(first, second) => match frame.evaluate(first)? {
                Some(value) => Ok(Some(value)),
                None => frame.evaluate(second),
            },
            Expression::Conditional(operands) => {
                let [condition, then, otherwise] = &**operands;
                frame.conditional(condition, then, otherwise)
            }
            Expression::Call(function, arguments) => functions::call(*function, Call { frame, arguments }),
            Expression::UserCall(name, arguments) => frame.user_call(name, arguments),
            Expression::Subquery(kind, subquery) => frame.subquery(*kind, subquery),
            Expression::GroupKey(index) => self.grouped(*index, "key", |group| &group.keys),
            Expression::Aggregate(index) => self.grouped(*index, "aggregate", |group| &group.aggregates),
        }
    }

    /// Counts the steps to weigh and copy a value.
    #[inline]
    fn charge_copy(self, value: &Computed<'_>) -> Result<(), EvalFault> {
        let value = value.as_ref();
        self.context.charge_bytes(value.extent())?;
        self.context.charge(value.len())
    }

    /// Counts the steps to compare two values, of which at least one is not small.
    #[cold]
    fn charge_comparison(self, left: &Computed<'_>, right: &Computed<'_>) -> Result<(), EvalFault> {
        self.context.charge_bytes(left.as_ref().extent().min(right.as_ref().extent()))
    }

    /// The truth value of an expression; a value that is not a boolean counts as undefined.
    pub(crate) fn truth(self, expression: &'a Expression) -> Result<Option<bool>, EvalFault> {
        Ok(self.evaluate(expression)?.and_then(|value| value.as_bool()))
    }

    fn member(self, base: &'a Expression, name: &str) -> EvalResult<'a> {
        Ok(self.evaluate(base)?.and_then(|base| base.member(name)))
    }

    /// An index that is negative, fractional, of the wrong kind or past the end yields undefined.
    fn index(self, base: &'a Expression, index: &'a Expression) -> EvalResult<'a> {
        let base = defined!(self.evaluate(base));
        let index = defined!(self.evaluate(index));
        let index = index.as_ref();
        if let Some(name) = index.as_str() {
            return Ok(base.member(name));
        }
        Ok(index.as_i64().and_then(|index| base.element(usize::try_from(index).ok()?)))
    }

    fn array(self, elements: &'a [Expression]) -> EvalResult<'a> {
        self.context.charge(elements.len())?;
        let mut array = Vec::with_capacity(elements.len());
        let mut scale = WeightSum::default();
        for element in elements {
            if let Some(value) = self.evaluate(element)? {
                self.charge_copy(&value)?;
                scale.add_value(value.as_ref())?;
                array.push(value.into_value());
            }
        }
        Ok(Some(Value::Array(array).into()))
    }

    pub(crate) fn object(self, members: &'a [(String, Expression)]) -> EvalResult<'a> {
        self.context.charge(members.len())?;
        let mut object: Vec<(String, Value)> = Vec::with_capacity(members.len());
        let mut scale = WeightSum::default();
        let mut repeated = repeated_names(members);
        for (name, member) in members {
            // The last of equal names counts, also if it is undefined.
            if let Some(count) = repeated.get_mut(name.as_str())
                && *count > 1
            {
                *count -= 1;
                continue;
            }
            if let Some(value) = self.evaluate(member)? {
                self.charge_copy(&value)?;
                scale.add(name.len())?;
                scale.add_value(value.as_ref())?;
                object.push((name.clone(), value.into_value()));
            }
        }
        Ok(Some(Value::Object(object).into()))
    }

    #[inline]
    fn binary(self, operator: BinaryOperator, left: &'a Expression, right: &'a Expression) -> EvalResult<'a> {
        let left = defined!(self.evaluate(left));
        let right = defined!(self.evaluate(right));
        if left.as_ref().extent() > FEW_BYTES {
            self.charge_comparison(&left, &right)?;
        }
        Ok(operators::binary(operator, left.as_ref(), right.as_ref()).map(Computed::Owned))
    }

    fn and(self, terms: &'a [Expression]) -> EvalResult<'a> {
        self.context.charge(terms.len())?;
        let mut known = Some(true);
        for term in terms {
            known = operators::and(known, self.truth(term)?);
            if known == Some(false) {
                break;
            }
        }
        Ok(known.map(Computed::from))
    }

    fn or(self, terms: &'a Alternatives) -> EvalResult<'a> {
        if let Some(key) = terms.key()
            && let Some(value) = self.evaluate(key)?
        {
            return self.any(terms.picked(value.as_ref()));
        }
        self.any(terms.iter())
    }

    fn any(self, terms: impl Iterator<Item = &'a Expression>) -> EvalResult<'a> {
        let mut known = Some(false);
        for term in terms {
            self.context.charge(1)?;
            known = operators::or(known, self.truth(term)?);
            if known == Some(true) {
                break;
            }
        }
        Ok(known.map(Computed::from))
    }

    fn is_in(self, operand: &'a Expression, candidates: &'a Alternatives) -> EvalResult<'a> {
        let operand = defined!(self.evaluate(operand));
        if candidates.are_constants() {
            let is_in = candidates.picked(operand.as_ref()).next().is_some();
            return Ok(Some((is_in && !operators::is_nan(operand.as_ref())).into()));
        }
        for candidate in candidates {
            self.context.charge(1)?;
            if let Some(candidate) = self.evaluate(candidate)?
                && operators::equal(operand.as_ref(), candidate.as_ref())
            {
                return Ok(Some(true.into()));
            }
        }
        Ok(Some(false.into()))
    }

    fn between(self, operands: &'a [Expression; 3]) -> EvalResult<'a> {
        let [operand, low, high] = operands;
        let operand = defined!(self.evaluate(operand));
        let compare = |bound: &'a Expression, operator| {
            let bound = defined!(self.evaluate(bound));
            Ok(operators::binary(operator, operand.as_ref(), bound.as_ref())
                .and_then(|truth| truth.as_ref().as_bool()))
        };
        let above = compare(low, BinaryOperator::GreaterOrEqual)?;
        let below = compare(high, BinaryOperator::LessOrEqual)?;
        Ok(operators::and(above, below).map(Computed::from))
    }

    fn like(self, operand: &'a Expression, pattern: &'a LikePattern) -> EvalResult<'a> {
        let operand = defined!(self.evaluate(operand));
        let value = defined!(self.evaluate(&pattern.pattern));
        let (Some(text), Some(wanted)) = (operand.as_ref().as_str(), value.as_ref().as_str()) else {
            return Ok(None);
        };
        let matcher = self.context.patterns.like(wanted, pattern.escape)?;
        self.context.charge_bytes(matcher.bytes_compared(text))?;
        Ok(Some(matcher.matches(text).into()))
    }

    pub(crate) fn conditional(
        self,
        condition: &'a Expression,
        then: &'a Expression,
        otherwise: &'a Expression,
    ) -> EvalResult<'a> {
        match self.truth(condition)? {
            Some(true) => self.evaluate(then),
            Some(false) | None => self.evaluate(otherwise),
        }
    }

    fn user_call(self, name: &str, arguments: &'a [Expression]) -> EvalResult<'a> {
        let mut values = Vec::with_capacity(arguments.len());
        for argument in arguments {
            values.push(self.evaluate(argument)?.map(Computed::into_value));
        }
        let result = self.context.call_user_function(name, values)?;
        if let Some(value) = &result {
            WeightSum::default().add_value(value.as_ref())?;
        }
        Ok(result.map(Computed::Owned))
    }

    fn subquery(self, kind: SubqueryKind, subquery: &'a Query) -> EvalResult<'a> {
        query::subquery(self.descend(SUBQUERY_LEVELS - 1)?, kind, subquery)
            .map(|value| value.map(Computed::Owned))
    }

    fn grouped(
        self,
        index: usize,
        what: &'static str,
        part: fn(&GroupRow) -> &Vec<Option<Value>>,
    ) -> EvalResult<'a> {
        let value = self.row.group.and_then(|group| part(group).get(index));
        let value = value.ok_or(EvalFault::OutsideGroup { what, index })?;
        Ok(value.as_ref().map(|value| Computed::Borrowed(value.as_ref())))
    }
}

impl<'a> Computed<'a> {
    /// The text, if this is a string.
    pub(crate) fn into_text(self) -> Option<Cow<'a, str>> {
        match self {
            Computed::Borrowed(value) => ValueRef::as_str(value).map(Cow::Borrowed),
            Computed::Owned(Value::String(text)) => Some(Cow::Owned(text)),
            Computed::Owned(_) => None,
        }
    }
}

/// Number of occurrences of the repeated names of an object; empty if there are none.
fn repeated_names(members: &[(String, Expression)]) -> HashMap<&str, usize> {
    // Most objects are small; then this is cheaper than hashing.
    const FEW: usize = 16;
    let names = || members.iter().map(|member| member.0.as_str());
    if members.len() <= FEW
        && names().enumerate().all(|(at, name)| names().take(at).all(|other| other != name))
    {
        return HashMap::new();
    }
    let mut counts = HashMap::new();
    names().for_each(|name| *counts.entry(name).or_default() += 1);
    counts
}
