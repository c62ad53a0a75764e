//! Conditions on the value at one path for which an index has no lookup: they are tested on each distinct value there.
//!
//! An index does not know the kind of a number, so a condition is tested on all kinds of numbers with that value. If
//! the results differ, the document is re-checked.

use eval::{Budget, Context, Meter, Row, evaluate};
use model::Ambient;
use partition::index::{Lookup, ValueTest, Verdict};
use plan::query::Expression;
use std::ops::Bound;
use std::sync::Arc;
use value::{Decimal128, Value, decode_key};

use super::index_condition::{ConditionPath, IndexCondition};

/// Bytes that the evaluation of one value may hold.
const MEMORY_BYTES: usize = 64 << 20;

/// Steps for the test of a value, in addition to the evaluation.
const TEST_STEPS: usize = 16;

/// No time and no randomness: conditions that need them are not tested on values.
#[derive(Debug)]
struct NoAmbient;

impl Ambient for NoAmbient {
    fn now_ms(&self) -> u64 {
        0
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        bytes.fill(0);
    }
}

/// A condition that is tested.
struct ValueTester {
    context: Context<'static>,
    condition: Expression,
    /// The names from the first source to the value.
    names: Vec<String>,
    /// The required truth value.
    wanted: bool,
}

impl ValueTester {
    /// Whether a value meets the condition; `None` for a fault, which the document will raise again.
    fn meets(&self, value: Option<Value>) -> Option<bool> {
        let root = match value {
            Some(value) => {
                let wrap = |inner, name: &String| Value::Object(vec![(name.clone(), inner)]);
                self.names.iter().rev().fold(value, wrap)
            }
            None => Value::Object(Vec::new()),
        };
        let slots = [root.as_ref()];
        let row = Row { slots: &slots, ..Row::default() };
        let truth = evaluate(&self.context, &self.condition, row).ok()?;
        Some(truth.and_then(|truth| truth.as_bool()) == Some(self.wanted))
    }

    /// The caller checks the meter afterwards: once it says stop, every verdict is unknown.
    fn verdict(&self, code: &[u8]) -> Verdict {
        if self.context.meter.check().is_err() || self.context.charge(TEST_STEPS).is_err() {
            return Verdict::Unknown;
        }
        let Ok((value, _)) = decode_key(code) else {
            return Verdict::Unknown;
        };
        let meets = if let Value::Int64(integer) = value {
            self.meets_in_all_forms(integer)
        } else {
            self.meets(Some(value))
        };
        match meets {
            Some(true) => Verdict::Yes,
            Some(false) => Verdict::No,
            None => Verdict::Unknown,
        }
    }

    /// The same for a number, if all kinds of numbers with its code agree.
    fn meets_in_all_forms(&self, integer: i64) -> Option<bool> {
        let mut forms = forms(integer).into_iter().map(|value| self.meets(Some(value)));
        let first = forms.next().flatten()?;
        forms.all(|form| form == Some(first)).then_some(first)
    }
}

/// The values of all kinds that have the code of an integer.
fn forms(integer: i64) -> Vec<Value> {
    let mut forms = vec![Value::Int64(integer)];
    forms.extend(i32::try_from(integer).map(Value::Int32));
    #[allow(clippy::cast_precision_loss)] // looked at in the next line
    let double = integer as f64;
    #[allow(clippy::cast_possible_truncation)] // doubles around 64-bit integers are far from the ends of i128
    if double as i128 == i128::from(integer) {
        forms.push(Value::Double(double));
    }
    if integer == 0 {
        forms.push(Value::Double(-0.0));
    }
    let decimal = Decimal128::from_parts(integer < 0, integer.unsigned_abs().into(), 0);
    forms.extend(decimal.map(Value::Decimal));
    forms
}

/// The documents where a condition on one path is true, or false if `wanted` is false. `names` lead to the value from
/// the first source. Values outside the bounds are known not to meet the condition.
pub(super) fn tested(
    target: &ConditionPath,
    names: &[&str],
    condition: &Expression,
    wanted: bool,
    (low, high): (Bound<Vec<u8>>, Bound<Vec<u8>>),
    meter: &Arc<Meter>,
) -> IndexCondition {
    let context = Context::new(&NoAmbient, Budget::new(MEMORY_BYTES, u64::MAX));
    let trial = ValueTester {
        context: context.with_meter(Arc::clone(meter)),
        condition: condition.clone(),
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        wanted,
    };
    let without_value = trial.meets(None);
    let test = ValueTest::new(move |code| trial.verdict(code));
    let tested = Lookup::Tested { path: target.path.clone(), low, high, test };
    let lookup = if without_value == Some(false) {
        tested
    } else {
        let missing = Lookup::Without(Box::new(Lookup::Present(target.path.clone())));
        Lookup::Or(vec![tested, missing])
    };
    let word = if wanted { "with" } else { "against" };
    let text = target.text(|path| format!("values at {path} {word} {condition}"));
    IndexCondition { lookup, is_exact: without_value.is_some(), text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::query::{Function, SlotId};
    use value::encode_key_value;

    fn verdict(condition: &dyn Fn(Expression) -> Expression, json: &str) -> Verdict {
        let path = Expression::path(SlotId(0), ["a".to_owned(), "b".to_owned()]);
        let trial = ValueTester {
            context: Context::new(&NoAmbient, Budget::new(1 << 20, u64::MAX)),
            condition: condition(path),
            names: vec!["a".to_owned(), "b".to_owned()],
            wanted: true,
        };
        let mut code = Vec::new();
        encode_key_value(&Value::from_json(json.as_bytes()).unwrap(), &mut code);
        trial.verdict(&code)
    }

    #[test]
    fn where_kinds_of_numbers_differ_the_document_decides() {
        let is_like = |text: &'static str| {
            move |path| {
                let shown = Expression::Call(Function::ToString, vec![path]);
                let text = Expression::Constant(Value::from(text));
                Expression::Call(Function::StringEquals, vec![shown, text])
            }
        };
        assert_eq!(verdict(&is_like("x"), "\"x\""), Verdict::Yes);
        assert_eq!(verdict(&is_like("x"), "\"y\""), Verdict::No);
        assert_eq!(verdict(&is_like("2.5"), "2.5"), Verdict::Yes);
        assert_eq!(verdict(&is_like("7"), "8"), Verdict::No);
        let zero = |path| Expression::Call(Function::IsNumber, vec![path]);
        assert_eq!(verdict(&zero, "-0.0"), Verdict::Yes);
        assert_eq!(forms(0).len(), 5);
        assert_eq!(forms((1 << 60) + 1).len(), 2);
    }
}
