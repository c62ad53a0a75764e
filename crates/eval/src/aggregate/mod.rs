//! Aggregates as accumulators: add values, merge with others, finish.
//!
//! The result does not depend on how the values were distributed over accumulators or in which order they were added:
//! sums are exact until they are finished, and lists know the position of each row. So the results of partitions can be merged in any order.

mod exact_sum;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::num::NonZeroU64;

use plan::query::AggregateKind;
use value::{Decoded, Kind, Value, ValueRef, compare, encode_key};

use crate::number::Number;
use exact_sum::ExactSum;

/// An aggregate over the values so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Accumulator {
    kind: AggregateKind,
    state: AggregateState,
}

#[derive(Debug, Clone, PartialEq)]
enum AggregateState {
    Count(u64),
    Sum {
        sum: ExactSum,
        count: u64,
    },
    Extreme(Option<Value>),
    List(ValueList),
    /// A value that makes the aggregate undefined, whatever else is added.
    Spoiled,
}

impl Accumulator {
    /// An aggregate over nothing.
    pub fn new(kind: AggregateKind) -> Accumulator {
        let state = match kind {
            AggregateKind::Count | AggregateKind::CountIf => AggregateState::Count(0),
            AggregateKind::Sum | AggregateKind::Avg => {
                AggregateState::Sum { sum: ExactSum::default(), count: 0 }
            }
            AggregateKind::Min | AggregateKind::Max => AggregateState::Extreme(None),
            AggregateKind::MakeList | AggregateKind::MakeSet => AggregateState::List(ValueList::default()),
        };
        Accumulator { kind, state }
    }

    /// Adds the value of the row at `origin`; lists have the order of their rows.
    pub(crate) fn add_row(&mut self, value: Option<ValueRef<'_>>, origin: &[u8]) {
        match (&mut self.state, value) {
            (AggregateState::List(values), Some(value)) => values.insert(self.kind, origin, value.to_value()),
            (_, value) => self.add(value),
        }
    }

    /// Adds the value of a row; `None` is undefined, which all aggregates skip.
    pub fn add(&mut self, value: Option<ValueRef<'_>>) {
        let Some(value) = value else {
            return;
        };
        match &mut self.state {
            AggregateState::Count(count) => {
                let counts = self.kind == AggregateKind::Count || value.as_bool() == Some(true);
                *count = count.saturating_add(u64::from(counts));
            }
            AggregateState::Sum { sum, count } => match Number::of(value) {
                Some(number) => {
                    sum.add(number);
                    *count = count.saturating_add(1);
                }
                None => self.state = AggregateState::Spoiled,
            },
            AggregateState::Extreme(extreme) => {
                if matches!(value.kind(), Kind::Array | Kind::Object) {
                    self.state = AggregateState::Spoiled;
                } else if extreme.as_ref().is_none_or(|extreme| is_better(self.kind, value, extreme.as_ref()))
                {
                    *extreme = Some(value.to_value());
                }
            }
            AggregateState::List(values) => values.insert(self.kind, &[], value.to_value()),
            AggregateState::Spoiled => {}
        }
    }

    /// Adds a value `times` times as stored in an index: the kind of a number may be another one that is equal.
    pub fn add_times(&mut self, value: Option<ValueRef<'_>>, times: u64) {
        match (&mut self.state, value) {
            (_, None) => {}
            (AggregateState::Count(count), Some(value)) => {
                let counts = self.kind == AggregateKind::Count || value.as_bool() == Some(true);
                *count = count.saturating_add(if counts { times } else { 0 });
            }
            (AggregateState::Sum { sum, count }, Some(value)) => match Number::of(value) {
                Some(number) => {
                    sum.add_times(number, times);
                    *count = count.saturating_add(times);
                }
                None => self.state = AggregateState::Spoiled,
            },
            (AggregateState::List(_), Some(_)) if self.kind == AggregateKind::MakeList => {
                (0..times).for_each(|_| self.add(value));
            }
            (AggregateState::Extreme(_) | AggregateState::List(_) | AggregateState::Spoiled, Some(_)) => {
                self.add(value)
            }
        }
    }

    /// Whether the result depends on number kinds that [`add_times`](Self::add_times) did not know.
    pub fn is_in_doubt(&self) -> bool {
        match &self.state {
            AggregateState::Sum { sum, .. } => sum.is_in_doubt(),
            AggregateState::Count(_)
            | AggregateState::Extreme(_)
            | AggregateState::List(_)
            | AggregateState::Spoiled => false,
        }
    }

    /// Merges another accumulator of the same kind.
    pub fn merge(&mut self, other: Accumulator) {
        match (&mut self.state, other.state) {
            (AggregateState::Count(count), AggregateState::Count(more)) => {
                *count = count.saturating_add(more)
            }
            (AggregateState::Sum { sum, count }, AggregateState::Sum { sum: more, count: more_count }) => {
                sum.merge(&more);
                *count = count.saturating_add(more_count);
            }
            (AggregateState::Extreme(_), AggregateState::Extreme(None)) => {}
            (AggregateState::Extreme(_), AggregateState::Extreme(Some(value))) => {
                self.add(Some(value.as_ref()))
            }
            (AggregateState::List(values), AggregateState::List(more)) => {
                for (code, equal) in more.values {
                    equal.into_iter().for_each(|value| values.insert_at(self.kind, code.clone(), value));
                }
            }
            (AggregateState::Spoiled, _) => {}
            // Spoiled by the other one; accumulators of different kinds are never merged.
            (
                AggregateState::Count(_)
                | AggregateState::Sum { .. }
                | AggregateState::Extreme(_)
                | AggregateState::List(_),
                _,
            ) => self.state = AggregateState::Spoiled,
        }
    }

    /// The aggregate; `None` is undefined.
    pub fn finish(&self) -> Option<Value> {
        match &self.state {
            AggregateState::Count(count) => Some(Value::Int64(i64::try_from(*count).unwrap_or(i64::MAX))),
            AggregateState::Sum { sum, count } => match self.kind {
                AggregateKind::Avg => NonZeroU64::new(*count).map(|count| sum.mean(count).into_value()),
                AggregateKind::Sum
                | AggregateKind::Count
                | AggregateKind::CountIf
                | AggregateKind::Min
                | AggregateKind::Max
                | AggregateKind::MakeList
                | AggregateKind::MakeSet => Some(sum.total().into_value()),
            },
            AggregateState::Extreme(extreme) => extreme.clone(),
            AggregateState::List(values) => Some(values.to_value()),
            AggregateState::Spoiled => None,
        }
    }

    /// Approximate size in bytes.
    pub(crate) fn weight(&self) -> usize {
        let text = match &self.state {
            AggregateState::Extreme(Some(Value::String(text))) => text.len(),
            AggregateState::List(values) => values.weight,
            AggregateState::Count(_)
            | AggregateState::Sum { .. }
            | AggregateState::Extreme(_)
            | AggregateState::Spoiled => 0,
        };
        size_of::<Accumulator>() + text
    }
}

/// The mean of two numbers, rounded once.
pub(crate) fn mean(numbers: [Number; 2]) -> Number {
    const TWO: NonZeroU64 = NonZeroU64::MIN.saturating_add(1);
    let mut sum = ExactSum::default();
    numbers.into_iter().for_each(|number| sum.add(number));
    sum.mean(TWO)
}

/// Values by their codes, so that the order in which they are added does not matter: for a list the position of the row
/// and the key code of the value, for a set the key code alone.
#[derive(Debug, Clone, PartialEq, Default)]
struct ValueList {
    values: BTreeMap<Vec<u8>, Vec<Value>>,
    /// Approximate size in bytes.
    weight: usize,
}

impl ValueList {
    fn insert(&mut self, kind: AggregateKind, origin: &[u8], value: Value) {
        let mut code = if kind == AggregateKind::MakeList { origin.to_vec() } else { Vec::new() };
        encode_key(value.as_ref(), &mut code);
        self.insert_at(kind, code, value);
    }

    /// Adds a value to a list, or to a set if it has no equal one.
    fn insert_at(&mut self, kind: AggregateKind, code: Vec<u8>, value: Value) {
        let weight = 2 * code.len() + size_of::<Value>();
        let equal = self.values.entry(code).or_default();
        match equal.first_mut() {
            Some(first) if kind == AggregateKind::MakeSet => {
                if kind_rank(value.as_ref()) < kind_rank(first.as_ref()) {
                    *first = value;
                }
            }
            Some(_) | None => {
                let place = equal.partition_point(|one| kind_rank(one.as_ref()) <= kind_rank(value.as_ref()));
                equal.insert(place, value);
                self.weight += weight;
            }
        }
    }

    fn to_value(&self) -> Value {
        Value::Array(self.values.values().flatten().cloned().collect())
    }
}

/// Whether a value comes before the current extreme. Of equal numbers the same one is kept, whichever came first.
fn is_better(kind: AggregateKind, value: ValueRef<'_>, extreme: ValueRef<'_>) -> bool {
    match compare(value, extreme) {
        Ordering::Less => kind == AggregateKind::Min,
        Ordering::Greater => kind == AggregateKind::Max,
        Ordering::Equal => kind_rank(value) < kind_rank(extreme),
    }
}

/// Rank among equal numbers: 1 before 1.0, and 0.0 before -0.0.
fn kind_rank(number: ValueRef<'_>) -> u8 {
    match number.decode() {
        Decoded::Int64(_) => 0,
        Decoded::Int32(_) => 1,
        Decoded::Double(value) => 2 + u8::from(value.is_sign_negative()),
        Decoded::Decimal(_) => 4,
        Decoded::Null
        | Decoded::Bool(_)
        | Decoded::String(_)
        | Decoded::Binary { .. }
        | Decoded::Date(_)
        | Decoded::Ticks(_)
        | Decoded::Guid(_)
        | Decoded::ObjectId(_)
        | Decoded::Array(_)
        | Decoded::Object(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(kind: AggregateKind, values: &[Option<Value>]) -> Accumulator {
        let mut accumulator = Accumulator::new(kind);
        values.iter().for_each(|value| accumulator.add(value.as_ref().map(Value::as_ref)));
        accumulator
    }

    #[track_caller]
    fn check(kind: AggregateKind, values: &str, expected: &str) {
        let values: Vec<Option<Value>> =
            values.split_whitespace().map(|text| Value::from_json(text.as_bytes()).ok()).collect();
        let found = of(kind, &values).finish().map_or("undefined".to_owned(), |value| value.to_json());
        assert_eq!(found, expected, "{kind:?} {values:?}");
    }

    #[test]
    fn counts() {
        check(AggregateKind::Count, "", "0");
        check(AggregateKind::Count, "1 null undefined [] false", "4");
        check(AggregateKind::CountIf, "true false null 1 true undefined", "2");
        check(AggregateKind::CountIf, "", "0");
    }

    #[test]
    fn sums_and_averages() {
        check(AggregateKind::Sum, "", "0");
        check(AggregateKind::Sum, "undefined", "0");
        check(AggregateKind::Sum, "1 2 undefined 3.5", "6.5");
        check(AggregateKind::Sum, "0.5 0.5", "1");
        check(AggregateKind::Sum, "1 null", "undefined");
        check(AggregateKind::Sum, "1 \"2\"", "undefined");
        check(AggregateKind::Sum, "true", "undefined");
        check(AggregateKind::Sum, "[] 1", "undefined");
        check(AggregateKind::Sum, "9223372036854775807 1 -1", "9223372036854775807");
        check(AggregateKind::Sum, "9223372036854775807 9223372036854775807", "1.8446744073709552e+19");
        check(AggregateKind::Sum, "1e300 1 -1e300", "1");
        check(AggregateKind::Sum, "0.1 0.2 0.3", "0.6");
        check(AggregateKind::Sum, "1.5e308 1.5e308 -1.5e308", "1.5e+308");
        check(AggregateKind::Sum, "1.5e308 1.5e308", "\"Infinity\"");
        check(AggregateKind::Avg, "", "undefined");
        check(AggregateKind::Avg, "undefined", "undefined");
        check(AggregateKind::Avg, "1 2 undefined", "1.5");
        check(AggregateKind::Avg, "2 4", "3");
        check(AggregateKind::Avg, "2 {}", "undefined");
    }

    #[test]
    fn extremes() {
        check(AggregateKind::Min, "", "undefined");
        check(AggregateKind::Max, "undefined", "undefined");
        check(AggregateKind::Min, "3 1 2", "1");
        check(AggregateKind::Max, "3 1 2", "3");
        check(AggregateKind::Min, "\"a\" 1 true null", "null");
        check(AggregateKind::Max, "\"a\" 1 true null", "\"a\"");
        check(AggregateKind::Max, "false 1 true", "1");
        check(AggregateKind::Min, "1 []", "undefined");
        check(AggregateKind::Max, "{} 1", "undefined");
        check(AggregateKind::Max, "1.0 1", "1");
        check(AggregateKind::Min, "-0.0 0.0", "0.0");
    }

    #[test]
    fn lists_and_sets() {
        check(AggregateKind::MakeList, "", "[]");
        check(AggregateKind::MakeList, "3 1 undefined 3 \"a\" null", "[null,1,3,3,\"a\"]");
        check(AggregateKind::MakeSet, "3 1 undefined 3 3.0 [1] [1]", "[1,3,[1]]");
    }

    fn any_value() -> impl Strategy<Value = Option<Value>> {
        prop_oneof![
            4 => any::<i64>().prop_map(|value| Some(Value::Int64(value))),
            8 => any::<f64>().prop_map(|value| Some(Value::Double(value))),
            4 => (-3i64..3).prop_map(|value| Some(Value::Int64(value))),
            4 => (-3i32..3).prop_map(|value| Some(Value::Double(f64::from(value) / 2.0))),
            1 => Just(None),
            1 => "[ab]{0,2}".prop_map(|text| Some(Value::String(text))),
            1 => any::<bool>().prop_map(|value| Some(Value::Bool(value))),
        ]
    }

    #[test]
    fn large_whole_numbers_of_unknown_kind_leave_a_doubt() {
        let sum = |values: &[(Value, u64)]| {
            let mut sum = Accumulator::new(AggregateKind::Sum);
            values.iter().for_each(|(value, times)| sum.add_times(Some(value.as_ref()), *times));
            sum
        };
        assert!(!sum(&[(Value::Int64(1 << 30), 1 << 23)]).is_in_doubt());
        assert!(sum(&[(Value::Int64(1 << 30), 1 << 23), (Value::Int64(1), 1)]).is_in_doubt());
        assert!(!sum(&[(Value::Int64(1 << 60), 9), (Value::Double(0.5), 1)]).is_in_doubt());
        let mut halves = sum(&[(Value::Int64(1 << 52), 1)]);
        halves.merge(sum(&[(Value::Int64(1 << 52), 2)]));
        assert!(halves.is_in_doubt());
    }

    proptest! {
        #[test]
        fn so_many_times_is_one_after_the_other(
            values in prop::collection::vec((any_value(), 0u64..20), 0..20),
        ) {
            for kind in AggregateKind::ALL {
                let mut times = Accumulator::new(kind);
                let mut each = Accumulator::new(kind);
                for (value, count) in values.iter().filter(|(_, count)| *count > 0) {
                    let value = value.as_ref().map(Value::as_ref);
                    times.add_times(value, *count);
                    (0..*count).for_each(|_| each.add(value));
                }
                let texts = [times, each].map(|accumulator| accumulator.finish().map(|value| value.to_json()));
                prop_assert_eq!(&texts[0], &texts[1], "{:?}", kind);
            }
        }

        #[test]
        fn any_split_gives_the_same(
            values in prop::collection::vec(any_value(), 0..40),
            parts in prop::collection::vec(0usize..4, 40),
        ) {
            for kind in AggregateKind::ALL {
                let whole = of(kind, &values);
                let mut split: Vec<Accumulator> = (0..4).map(|_| Accumulator::new(kind)).collect();
                for (value, part) in values.iter().zip(&parts) {
                    split[*part].add(value.as_ref().map(Value::as_ref));
                }
                let mut merged = Accumulator::new(kind);
                for part in split.into_iter().rev() {
                    merged.merge(part);
                }
                let texts = [merged, whole].map(|accumulator| accumulator.finish().map(|value| value.to_json()));
                prop_assert_eq!(&texts[0], &texts[1], "{:?}", kind);
            }
        }

        #[test]
        fn sums_of_numbers_do_not_depend_on_order(mut values in prop::collection::vec(any::<f64>(), 0..40)) {
            let sum = |values: &[f64]| {
                let values: Vec<_> = values.iter().map(|value| Some(Value::Double(*value))).collect();
                of(AggregateKind::Sum, &values).finish().map(|value| value.to_json())
            };
            let forwards = sum(&values);
            values.sort_by(f64::total_cmp);
            prop_assert_eq!(forwards, sum(&values));
        }
    }
}
