//! The state of an accumulator as a value, for continuations and for what partitions send to each other.
//!
//! ```text
//! [0, count]                                                  COUNT, COUNTIF (then 1)
//! [2, count, integers, has double, unbounded, doubles, large] SUM, AVG (then 3)
//! [4] or [4, value]                                           MIN, MAX (then 5)
//! [6, values]                                                 MAKELIST, MAKESET (then 7)
//! [kind, null]                                                undefined for good
//! ```
//!
//! `integers` is text, since no number of JSON holds 128 bits; `unbounded` has one bit for each of +∞, -∞ and NaN.

use plan::query::AggregateKind;
use thiserror::Error;
use value::{Kind, Value, ValueRef};

use super::exact_sum::{ExactSum, Expansion, Unbounded};
use super::{Accumulator, State};

/// A value that is no state of an accumulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("damaged state of an aggregate")]
pub struct DamagedState;

const KINDS: [AggregateKind; 8] = [
    AggregateKind::Count,
    AggregateKind::CountIf,
    AggregateKind::Sum,
    AggregateKind::Avg,
    AggregateKind::Min,
    AggregateKind::Max,
    AggregateKind::MakeList,
    AggregateKind::MakeSet,
];

fn kind_number(kind: AggregateKind) -> i64 {
    match kind {
        AggregateKind::Count => 0,
        AggregateKind::CountIf => 1,
        AggregateKind::Sum => 2,
        AggregateKind::Avg => 3,
        AggregateKind::Min => 4,
        AggregateKind::Max => 5,
        AggregateKind::MakeList => 6,
        AggregateKind::MakeSet => 7,
    }
}

impl Accumulator {
    /// The state, from which [`from_state`](Self::from_state) makes an equal accumulator.
    pub fn to_state(&self) -> Value {
        let mut state = vec![Value::Int64(kind_number(self.kind))];
        match &self.state {
            State::Count(count) => state.push(count_value(*count)),
            State::Sum { sum, count } => {
                let Unbounded { positive, negative, nan } = sum.unbounded;
                let unbounded = i64::from(positive) | i64::from(negative) << 1 | i64::from(nan) << 2;
                state.extend([
                    count_value(*count),
                    Value::String(sum.integers.to_string()),
                    Value::Bool(sum.has_double),
                    Value::Int64(unbounded),
                    expansion_value(&sum.doubles),
                    expansion_value(&sum.large),
                ]);
            }
            State::Extreme(None) => {}
            State::Extreme(Some(value)) => state.push(value_in_box(value)),
            State::List(values) => state.push(values.to_value()),
            State::Spoiled => state.push(Value::Null),
        }
        Value::Array(state)
    }

    /// The accumulator of a state.
    pub fn from_state(state: ValueRef<'_>) -> Result<Accumulator, DamagedState> {
        read(state).ok_or(DamagedState)
    }
}

fn count_value(count: u64) -> Value {
    Value::Int64(i64::try_from(count).unwrap_or(i64::MAX))
}

fn expansion_value(expansion: &Expansion) -> Value {
    Value::Array(expansion.parts.iter().map(|part| Value::Double(*part)).collect())
}

/// A null that is an extreme must not look like the mark of a spoiled state.
fn value_in_box(value: &Value) -> Value {
    Value::Array(vec![value.clone()])
}

fn read(state: ValueRef<'_>) -> Option<Accumulator> {
    let kind = *KINDS.get(usize::try_from(state.element(0)?.as_i64()?).ok()?)?;
    let content = state.element(1);
    if content.is_some_and(ValueRef::is_null) {
        return Some(Accumulator { kind, state: State::Spoiled });
    }
    let count = || u64::try_from(content?.as_i64()?).ok();
    let state = match kind {
        AggregateKind::Count | AggregateKind::CountIf => State::Count(count()?),
        AggregateKind::Sum | AggregateKind::Avg => State::Sum { sum: read_sum(state)?, count: count()? },
        AggregateKind::Min | AggregateKind::Max => State::Extreme(match content {
            Some(content) => Some(content.element(0)?.to_value()),
            None => None,
        }),
        AggregateKind::MakeList | AggregateKind::MakeSet => {
            let values = content.filter(|content| content.kind() == Kind::Array)?;
            let mut list = Accumulator::new(kind);
            values.elements().for_each(|value| list.add(Some(value)));
            return Some(list);
        }
    };
    Some(Accumulator { kind, state })
}

fn read_sum(state: ValueRef<'_>) -> Option<ExactSum> {
    let unbounded = state.element(4)?.as_i64()?;
    Some(ExactSum {
        integers: state.element(2)?.as_str()?.parse().ok()?,
        has_double: state.element(3)?.as_bool()?,
        unbounded: Unbounded {
            positive: unbounded & 1 != 0,
            negative: unbounded & 2 != 0,
            nan: unbounded & 4 != 0,
        },
        doubles: read_expansion(state.element(5)?)?,
        large: read_expansion(state.element(6)?)?,
    })
}

fn read_expansion(value: ValueRef<'_>) -> Option<Expansion> {
    if value.kind() != Kind::Array {
        return None;
    }
    let parts: Option<Vec<f64>> =
        value.elements().map(|part| part.as_f64().filter(|part| part.is_finite())).collect();
    Some(Expansion { parts: parts? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_survive_json() {
        for (kind, values) in [
            (AggregateKind::Count, vec![Value::Null]),
            (AggregateKind::Sum, vec![Value::Double(0.1), Value::Double(1e300), Value::Int64(i64::MIN)]),
            (AggregateKind::Sum, vec![Value::Double(f64::INFINITY)]),
            (AggregateKind::Avg, vec![Value::Null]),
            (AggregateKind::Min, vec![Value::Null]),
            (AggregateKind::Max, vec![]),
        ] {
            let mut accumulator = Accumulator::new(kind);
            values.iter().for_each(|value| accumulator.add(Some(value.as_ref())));
            let text = accumulator.to_state().to_json();
            let state = Value::from_json(text.as_bytes()).unwrap();
            assert_eq!(Accumulator::from_state(state.as_ref()).unwrap(), accumulator, "{text}");
        }
    }

    #[test]
    fn damage_is_refused() {
        for text in
            ["null", "[]", "[9]", "[0]", "[0,-1]", "[2,1]", "[2,1,\"x\",false,0,[],[]]", "[4,1]", "{}"]
        {
            let state = Value::from_json(text.as_bytes()).unwrap();
            assert_eq!(Accumulator::from_state(state.as_ref()), Err(DamagedState), "{text}");
        }
    }
}
