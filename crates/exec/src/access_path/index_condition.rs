//! What an index knows about a condition on one path, and how such knowledge is combined.

use partition::index::{IndexPath, Lookup};
use plan::query::Comparison;
use std::cmp::Ordering;
use std::ops::Bound;
use value::{Kind, Value, encode_key_str, encode_key_value, key_kind_bytes};

/// What an index knows about a filter.
#[derive(Clone, Debug)]
pub(crate) struct IndexCondition {
    pub(crate) lookup: Lookup,
    /// Whether the lookup is equivalent to the filter.
    pub(crate) is_exact: bool,
    /// The same as text, if it is explained.
    pub(crate) text: Option<String>,
}

/// A path in documents.
pub(super) struct ConditionPath {
    pub(super) path: IndexPath,
    /// Whether texts are produced for an explanation.
    pub(super) is_explained: bool,
}

impl ConditionPath {
    /// The text about the path, if texts are produced.
    pub(super) fn text(&self, text: impl FnOnce(&IndexPath) -> String) -> Option<String> {
        self.is_explained.then(|| text(&self.path))
    }

    /// The condition that there is a value.
    pub(super) fn present(&self) -> IndexCondition {
        let text = self.text(|path| format!("{path} is there"));
        IndexCondition::exact(Lookup::Present(self.path.clone()), text)
    }
}

impl IndexCondition {
    pub(super) fn exact(lookup: Lookup, text: Option<String>) -> IndexCondition {
        IndexCondition { lookup, is_exact: true, text }
    }
}

/// The conjunction of all members, some of which may be unknown.
pub(super) fn conjunction(parts: Vec<Option<IndexCondition>>) -> Option<IndexCondition> {
    let is_complete = parts.iter().all(Option::is_some);
    let known: Vec<IndexCondition> = parts.into_iter().flatten().collect();
    if known.is_empty() {
        return None;
    }
    let mut joined = joined(known, " and ", narrowest);
    joined.is_exact &= is_complete;
    Some(joined)
}

pub(super) fn joined(
    mut parts: Vec<IndexCondition>,
    word: &str,
    join: fn(Vec<Lookup>) -> Lookup,
) -> IndexCondition {
    if parts.len() == 1
        && let Some(only) = parts.pop()
    {
        return only;
    }
    let is_exact = parts.iter().all(|part| part.is_exact);
    let texts: Option<Vec<&str>> = parts.iter().map(|part| part.text.as_deref()).collect();
    let text = texts.map(|texts| format!("({})", texts.join(word)));
    IndexCondition { lookup: join(parts.into_iter().map(|part| part.lookup).collect()), is_exact, text }
}

/// The intersection of all members; ranges of one path are combined, since a document has one value there.
pub(super) fn narrowest(parts: Vec<Lookup>) -> Lookup {
    let mut narrow: Vec<Lookup> = Vec::with_capacity(parts.len());
    for part in parts {
        let Lookup::Range { path, low, high } = &part else {
            narrow.push(part);
            continue;
        };
        let same = narrow.iter_mut().find_map(|known| {
            if let Lookup::Range { path: known, low, high } = known {
                return (known == path).then_some((low, high));
            }
            None
        });
        match same {
            Some((known_low, known_high)) => {
                *known_low = tighter(known_low, low, Ordering::Greater);
                *known_high = tighter(known_high, high, Ordering::Less);
            }
            None => narrow.push(part),
        }
    }
    match narrow.len() {
        1 => narrow.swap_remove(0),
        _ => Lookup::And(narrow),
    }
}

/// The tighter bound: the `wanted` one of the two, and at the same code the exclusive one.
pub(super) fn tighter(one: &Bound<Vec<u8>>, other: &Bound<Vec<u8>>, wanted: Ordering) -> Bound<Vec<u8>> {
    let code = |bound: &Bound<Vec<u8>>| match bound {
        Bound::Included(code) | Bound::Excluded(code) => Some(code.clone()),
        Bound::Unbounded => None,
    };
    match (code(one), code(other)) {
        (_, None) => one.clone(),
        (None, Some(_)) => other.clone(),
        (Some(left), Some(right)) => {
            let order = left.cmp(&right);
            let is_one = order == wanted || order.is_eq() && matches!(one, Bound::Excluded(_));
            if is_one { one.clone() } else { other.clone() }
        }
    }
}

pub(super) fn without(known: IndexCondition) -> IndexCondition {
    let text = known.text.map(|text| format!("not {text}"));
    // The possible documents are all but those that certainly match; inexact remains inexact.
    IndexCondition { lookup: Lookup::Without(Box::new(known.lookup)), is_exact: known.is_exact, text }
}

pub(super) fn code_of(value: &Value) -> Vec<u8> {
    let mut code = Vec::new();
    encode_key_value(value, &mut code);
    code
}

pub(super) fn equal(target: &ConditionPath, constant: &Value) -> IndexCondition {
    let lookup = Lookup::Term { path: target.path.clone(), code: code_of(constant) };
    IndexCondition::exact(lookup, target.text(|path| format!("{path} = {}", constant.to_json())))
}

/// Any value at the path except these.
pub(super) fn different(target: &ConditionPath, these: Vec<IndexCondition>) -> IndexCondition {
    joined(vec![target.present(), without(joined(these, " or ", Lookup::Or))], " and ", Lookup::And)
}

/// Values of the kind of `constant` on one side of it; `None` if the kind has no order.
pub(super) fn one_sided(
    target: &ConditionPath,
    comparison: Comparison,
    constant: &Value,
) -> Option<IndexCondition> {
    let kind = constant.kind();
    if matches!(kind, Kind::Array | Kind::Object) {
        return None;
    }
    let code = code_of(constant);
    let (mut first, last) = ends_of(kind);
    if kind.is_number() {
        // A computed value may be NaN, which sorts before all other numbers and compares with none.
        first = Bound::Excluded(code_of(&Value::Double(f64::NAN)));
    }
    let (low, high) = match comparison {
        Comparison::Less => (first, Bound::Excluded(code)),
        Comparison::LessOrEqual => (first, Bound::Included(code)),
        Comparison::Greater => (Bound::Excluded(code), last),
        Comparison::GreaterOrEqual => (Bound::Included(code), last),
        Comparison::Equal | Comparison::NotEqual => return None,
    };
    let lookup = Lookup::Range { path: target.path.clone(), low, high };
    let text = |path: &IndexPath| format!("{path} {} {}", comparison.sign(), constant.to_json());
    Some(IndexCondition::exact(lookup, target.text(text)))
}

/// First and last codes of a kind.
pub(super) fn ends_of(kind: Kind) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let bytes = key_kind_bytes(kind);
    (Bound::Included(vec![*bytes.start()]), Bound::Excluded(vec![bytes.end() + 1]))
}

pub(super) fn of_kind(target: &ConditionPath, kind: Kind) -> IndexCondition {
    let (low, high) = ends_of(kind);
    let lookup = Lookup::Range { path: target.path.clone(), low, high };
    IndexCondition::exact(lookup, target.text(|path| format!("{path} is of kind {}", kind_name(kind))))
}

fn kind_name(kind: Kind) -> String {
    match kind {
        Kind::Int32 | Kind::Int64 | Kind::Double | Kind::Decimal => "number".to_owned(),
        Kind::Null
        | Kind::Bool
        | Kind::String
        | Kind::Binary
        | Kind::Date
        | Kind::Ticks
        | Kind::Guid
        | Kind::ObjectId
        | Kind::Array
        | Kind::Object => format!("{kind:?}").to_lowercase(),
    }
}

pub(super) fn starting_with(target: &ConditionPath, start: &str) -> IndexCondition {
    let (low, high) = bounds_of(start);
    let lookup = Lookup::Range { path: target.path.clone(), low, high };
    let text = |path: &IndexPath| format!("{path} begins with {}", Value::from(start).to_json());
    IndexCondition::exact(lookup, target.text(text))
}

/// First and last codes of strings with a prefix.
pub(super) fn bounds_of(start: &str) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    /// Bytes that end the code of a string.
    const END_BYTES: usize = 2;
    let mut low = Vec::new();
    encode_key_str(start, &mut low);
    low.truncate(low.len() - END_BYTES);
    // The first byte is that of the kind, so there is always a code after all codes with this prefix.
    let kept = low.iter().rposition(|byte| *byte != u8::MAX).unwrap_or(0);
    let mut high = low[..=kept].to_vec();
    high[kept] += 1;
    (Bound::Included(low), Bound::Excluded(high))
}
