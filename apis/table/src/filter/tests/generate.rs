//! Random entities and filters over few names and values, so that comparisons often hold.

use crate::edm::{PARTITION_KEY, ROW_KEY, TIMESTAMP};
use crate::filter::Filter;
use plan::query::Comparison;
use proptest::prelude::*;
use value::{Document, Value};

/// Names of properties that entities may have.
const NAMES: [&str; 4] = ["a", "b", "id", "ttl"];

/// An entity and the tick of its last change.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) partition_key: String,
    pub(super) row_key: String,
    pub(super) properties: Vec<(String, Value)>,
    pub(super) ticks: u64,
}

impl Row {
    pub(super) fn document(&self) -> Document {
        let mut members = vec![
            ("id".to_owned(), Value::String(crate::edm::document_id(&self.row_key).into_owned())),
            (PARTITION_KEY.to_owned(), Value::String(self.partition_key.clone())),
            (ROW_KEY.to_owned(), Value::String(self.row_key.clone())),
        ];
        let properties = self.properties.iter();
        members.extend(
            properties.map(|(name, value)| (crate::edm::member_name(name).into_owned(), value.clone())),
        );
        Document::from_value(&Value::Object(members)).unwrap()
    }
}

pub(super) fn value() -> impl Strategy<Value = Value> {
    let large = (1i64 << 53) - 1..(1i64 << 53) + 2;
    #[allow(clippy::cast_precision_loss)] // neighbours of integers that doubles cannot hold
    let rounded = large.clone().prop_map(|number| Value::Double(number as f64));
    prop_oneof![
        any::<bool>().prop_map(Value::Bool),
        (-2i32..3).prop_map(Value::Int32),
        (-2i64..3).prop_map(Value::Int64),
        large.prop_map(Value::Int64),
        rounded,
        prop::sample::select(vec![
            -2.0,
            -0.5,
            -0.0,
            0.0,
            1.0,
            1.5,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY
        ])
        .prop_map(Value::Double),
        key().prop_map(Value::String),
        (0i64..40_000_000).prop_map(|ticks| Value::Ticks(ticks / 3_333_333 * 3_333_333)),
        (0u8..3).prop_map(|byte| Value::Guid([byte; 16])),
        prop::collection::vec(0u8..2, 0..3).prop_map(|bytes| Value::Binary { subtype: 0, bytes }),
    ]
}

fn key() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["", "a", "b", "ab", "é", "'", "~", "true"]).prop_map(str::to_owned)
}

pub(super) fn row() -> impl Strategy<Value = Row> {
    let property = (prop::sample::select(NAMES.to_vec()).prop_map(str::to_owned), value());
    let ticks = (0u64..12).prop_map(|third| third * 3_333_333);
    (key(), key(), prop::collection::vec(property, 0..5), ticks).prop_map(
        |(partition_key, row_key, mut properties, ticks)| {
            let mut seen = std::collections::HashSet::new();
            properties.retain(|(name, _)| seen.insert(name.clone()));
            Row { partition_key, row_key, properties, ticks }
        },
    )
}

pub(super) fn rows() -> impl Strategy<Value = Vec<Row>> {
    prop::collection::vec(row(), 0..24).prop_map(|mut rows| {
        let mut seen = std::collections::HashSet::new();
        rows.retain(|row| seen.insert((row.partition_key.clone(), row.row_key.clone())));
        rows
    })
}

pub(super) fn filter() -> impl Strategy<Value = Filter> {
    let property = prop_oneof![
        4 => prop::sample::select(NAMES.to_vec()),
        2 => prop::sample::select(vec![PARTITION_KEY, ROW_KEY]),
        1 => Just(TIMESTAMP),
    ];
    let comparison = prop::sample::select(vec![
        Comparison::Equal,
        Comparison::NotEqual,
        Comparison::Less,
        Comparison::LessOrEqual,
        Comparison::Greater,
        Comparison::GreaterOrEqual,
    ]);
    let compared = (property, comparison, value()).prop_map(|(property, comparison, literal)| {
        Filter::Compare { property: property.to_owned(), comparison, literal }
    });
    let leaf = prop_oneof![
        12 => compared,
        1 => prop::sample::select(NAMES.to_vec()).prop_map(|name| Filter::Property(name.to_owned())),
        1 => any::<bool>().prop_map(Filter::Constant),
    ];
    leaf.prop_recursive(4, 20, 4, |inner| {
        prop_oneof![
            2 => prop::collection::vec(inner.clone(), 2..4).prop_map(Filter::And),
            2 => prop::collection::vec(inner.clone(), 2..4).prop_map(Filter::Or),
            1 => inner.prop_map(|inner| Filter::Not(Box::new(inner))),
        ]
    })
}

/// The text of a filter; brackets everywhere.
pub(super) fn text(filter: &Filter) -> String {
    let all = |members: &[Filter], word: &str| {
        let members: Vec<String> = members.iter().map(|member| format!("({})", text(member))).collect();
        members.join(word)
    };
    match filter {
        Filter::And(members) => all(members, " and "),
        Filter::Or(members) => all(members, " or "),
        Filter::Not(inner) => format!("not ({})", text(inner)),
        Filter::Compare { property, comparison, literal } => {
            let operator = match comparison {
                Comparison::Equal => "eq",
                Comparison::NotEqual => "ne",
                Comparison::Less => "lt",
                Comparison::LessOrEqual => "le",
                Comparison::Greater => "gt",
                Comparison::GreaterOrEqual => "ge",
            };
            format!("{property} {operator} {}", literal_text(literal))
        }
        Filter::Property(name) => name.clone(),
        Filter::Constant(value) => value.to_string(),
    }
}

fn literal_text(literal: &Value) -> String {
    let quoted = literal.to_json().trim_matches('"').to_owned();
    match literal {
        Value::Int64(integer) => format!("{integer}L"),
        Value::String(text) => format!("'{}'", text.replace('\'', "''")),
        Value::Ticks(_) => format!("datetime'{quoted}'"),
        Value::Guid(_) => format!("guid'{quoted}'"),
        Value::Binary { bytes, .. } => {
            format!("X'{}'", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
        }
        Value::Null
        | Value::Bool(_)
        | Value::Int32(_)
        | Value::Double(_)
        | Value::Decimal(_)
        | Value::Date(_)
        | Value::ObjectId(_)
        | Value::Array(_)
        | Value::Object(_) => quoted,
    }
}
