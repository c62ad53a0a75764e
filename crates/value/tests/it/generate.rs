//! Generators of values, numbers and names, chosen to hit the smallest differences between codes.

use proptest::prelude::*;
use value::{Decimal128, Value};

/// Few names, so that objects share them and paths match.
pub(crate) fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => prop::sample::select(vec!["a", "b", "id", "name", "", "a/b", "x~y", "0"]).prop_map(str::to_owned),
        2 => "\\PC{0,12}",
        1 => "[a-c]{250,260}",
    ]
}

pub(crate) fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[\\x00ab\\x01\u{ff}]{0,6}",
        "\\PC{0,20}",
        any::<String>(),
        prop::sample::select(vec!["\"", "\\", "\n\r\t\u{8}\u{c}", "\u{7f}", "\u{2028}", "😀é"])
            .prop_map(str::to_owned),
    ]
}

pub(crate) fn double() -> impl Strategy<Value = f64> {
    let special = vec![
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.1,
        0.5,
        1e22,
        1e23,
        9_007_199_254_740_992.0,
        9_223_372_036_854_775_808.0,
        f64::MAX,
        f64::MIN_POSITIVE,
        f64::EPSILON,
        5e-324,
    ];
    prop_oneof![
        any::<u64>().prop_map(f64::from_bits).prop_filter("finite", |double| double.is_finite()),
        (prop::sample::select(special), -3i8..=3, any::<bool>()).prop_map(|(base, steps, negative)| {
            let moved = (0..steps.abs())
                .fold(base, |double, _| if steps < 0 { double.next_down() } else { double.next_up() });
            let moved = if moved.is_finite() { moved } else { base };
            if negative { -moved } else { moved }
        }),
        (-1000i32..1000, 0u32..4)
            .prop_map(|(whole, places)| f64::from(whole) / 10f64.powi(places.cast_signed())),
    ]
}

pub(crate) fn integer() -> impl Strategy<Value = i64> {
    let anchors = vec![0, 1 << 53, 1 << 54, 1 << 62, i64::MAX, i64::MIN, -(1 << 53), 1 << 31, 128, 32_768];
    prop_oneof![
        any::<i64>(),
        -300i64..300,
        (prop::sample::select(anchors), -1100i64..1100)
            .prop_map(|(anchor, step)| anchor.saturating_add(step)),
    ]
}

/// Decimals of any bits, of any parts, and next to doubles and integers.
pub(crate) fn decimal() -> impl Strategy<Value = Decimal128> {
    const LARGEST: u128 = 9_999_999_999_999_999_999_999_999_999_999_999;
    let parts = |(negative, coefficient, exponent): (bool, u128, i32)| {
        Decimal128::from_parts(negative, coefficient, exponent).unwrap()
    };
    prop_oneof![
        any::<[u8; 16]>().prop_map(Decimal128),
        (any::<bool>(), 0..=LARGEST, -6176i32..=6111).prop_map(parts),
        (
            any::<bool>(),
            0u128..1000,
            prop::sample::select(vec![-6176, -400, -325, -324, -2, -1, 0, 1, 18, 22, 300, 308, 6111])
        )
            .prop_map(parts),
        (double(), 0u8..=34).prop_map(|(double, digits)| near(double, usize::from(digits))),
        integer().prop_map(|integer| Decimal128::from_parts(
            integer < 0,
            u128::from(integer.unsigned_abs()) * 10,
            -1
        )
        .unwrap()),
    ]
}

/// The decimal with `digits` digits nearest to a double.
fn near(double: f64, digits: usize) -> Decimal128 {
    let text = format!("{:.*e}", digits.saturating_sub(1), double.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap();
    let coefficient: u128 = mantissa.replace('.', "").parse().unwrap();
    let exponent: i32 = exponent.parse::<i32>().unwrap() - i32::try_from(digits.saturating_sub(1)).unwrap();
    Decimal128::from_parts(double < 0.0, coefficient, exponent).unwrap()
}

/// Numbers of all kinds, including NaN and infinities.
pub(crate) fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i32>().prop_map(Value::Int32),
        integer().prop_map(Value::Int64),
        double().prop_map(Value::Double),
        prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY]).prop_map(Value::Double),
        decimal().prop_map(Value::Decimal),
    ]
}

fn json_scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        integer().prop_map(Value::Int64),
        double().prop_map(Value::Double),
        text().prop_map(Value::String),
    ]
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => json_scalar(),
        4 => number(),
        1 => (any::<u8>(), prop::collection::vec(any::<u8>(), 0..6)).prop_map(|(subtype, bytes)| Value::Binary { subtype, bytes }),
        1 => integer().prop_map(Value::Date),
        1 => integer().prop_map(Value::Ticks),
        1 => any::<[u8; 16]>().prop_map(Value::Guid),
        1 => any::<[u8; 12]>().prop_map(Value::ObjectId),
    ]
}

fn nested(scalar: impl Strategy<Value = Value> + 'static) -> impl Strategy<Value = Value> {
    scalar.prop_recursive(4, 40, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::Array),
            members(inner).prop_map(Value::Object),
        ]
    })
}

/// Members with each name once, as an encoded object has them.
fn members(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Vec<(String, Value)>> {
    prop::collection::vec((name(), value), 0..8).prop_map(|mut members| {
        let mut seen = std::collections::HashSet::new();
        members.retain(|(name, _)| seen.insert(name.clone()));
        members
    })
}

/// Values of every kind.
pub(crate) fn value() -> impl Strategy<Value = Value> {
    nested(scalar())
}

/// Objects of every kind.
pub(crate) fn object() -> impl Strategy<Value = Value> {
    members(value()).prop_map(Value::Object)
}

/// Objects that JSON text can hold.
pub(crate) fn json_object() -> impl Strategy<Value = Value> {
    members(nested(json_scalar())).prop_map(Value::Object)
}
