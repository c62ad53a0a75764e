//! What an index knows of a condition on one place, and how such knowledge is joined.

use partition::index::{IndexPath, Lookup};
use plan::query::Comparison;
use std::cmp::Ordering;
use std::ops::Bound;
use value::{Kind, Value, encode_key_str, encode_key_value, key_kind_bytes};

/// What an index knows of a filter.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) lookup: Lookup,
    /// Whether the lookup says all that the filter says.
    pub(crate) is_exact: bool,
    /// The same for people, if they asked for it.
    pub(crate) text: Option<String>,
}

/// A place in documents.
pub(super) struct Place {
    pub(super) path: IndexPath,
    /// Whether what is known of it is put into words.
    pub(super) is_told: bool,
}

impl Place {
    /// What is said of the place, if anything is.
    pub(super) fn words(&self, words: impl FnOnce(&IndexPath) -> String) -> Option<String> {
        self.is_told.then(|| words(&self.path))
    }

    /// That any value is there.
    pub(super) fn present(&self) -> Known {
        let text = self.words(|path| format!("{path} is there"));
        Known::exact(Lookup::Present(self.path.clone()), text)
    }
}

impl Known {
    pub(super) fn exact(lookup: Lookup, text: Option<String>) -> Known {
        Known { lookup, is_exact: true, text }
    }
}

/// What is known of all parts together, of which some may be unknown.
pub(super) fn conjunction(parts: Vec<Option<Known>>) -> Option<Known> {
    let is_complete = parts.iter().all(Option::is_some);
    let known: Vec<Known> = parts.into_iter().flatten().collect();
    if known.is_empty() {
        return None;
    }
    let mut joined = joined(known, " and ", narrowest);
    joined.is_exact &= is_complete;
    Some(joined)
}

pub(super) fn joined(mut parts: Vec<Known>, word: &str, join: fn(Vec<Lookup>) -> Lookup) -> Known {
    if parts.len() == 1
        && let Some(only) = parts.pop()
    {
        return only;
    }
    let is_exact = parts.iter().all(|part| part.is_exact);
    let texts: Option<Vec<&str>> = parts.iter().map(|part| part.text.as_deref()).collect();
    let text = texts.map(|texts| format!("({})", texts.join(word)));
    Known { lookup: join(parts.into_iter().map(|part| part.lookup).collect()), is_exact, text }
}

/// All of these at once; stretches of one path become one, since a document has one value there.
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

/// The bound that leaves less: the `wanted` one of the two, and at the same place the one that leaves the place out.
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

pub(super) fn without(known: Known) -> Known {
    let text = known.text.map(|text| format!("not {text}"));
    // The documents that may be meant are all but those that are certainly not; if some doubt remains, it is told.
    Known { lookup: Lookup::Without(Box::new(known.lookup)), is_exact: known.is_exact, text }
}

pub(super) fn code_of(value: &Value) -> Vec<u8> {
    let mut code = Vec::new();
    encode_key_value(value, &mut code);
    code
}

pub(super) fn equal(place: &Place, constant: &Value) -> Known {
    let lookup = Lookup::Term { path: place.path.clone(), code: code_of(constant) };
    Known::exact(lookup, place.words(|path| format!("{path} = {}", constant.to_json())))
}

/// Any value at the place but these.
pub(super) fn different(place: &Place, these: Vec<Known>) -> Known {
    joined(vec![place.present(), without(joined(these, " or ", Lookup::Or))], " and ", Lookup::And)
}

/// Values of the kind of `constant` on one side of it; nothing where there is no such order.
pub(super) fn beside(place: &Place, comparison: Comparison, constant: &Value) -> Option<Known> {
    let kind = constant.kind();
    let is_ordered = matches!(kind, Kind::Null | Kind::Bool | Kind::String) || kind.is_number();
    if !is_ordered {
        return None;
    }
    let code = code_of(constant);
    let (mut first, behind) = ends_of(kind);
    if kind.is_number() {
        // What is computed may be no number at all, which sorts before all others and is on no side of any.
        first = Bound::Excluded(code_of(&Value::Double(f64::NAN)));
    }
    let (low, high) = match comparison {
        Comparison::Less => (first, Bound::Excluded(code)),
        Comparison::LessOrEqual => (first, Bound::Included(code)),
        Comparison::Greater => (Bound::Excluded(code), behind),
        Comparison::GreaterOrEqual => (Bound::Included(code), behind),
        Comparison::Equal | Comparison::NotEqual => return None,
    };
    let lookup = Lookup::Range { path: place.path.clone(), low, high };
    let words = |path: &IndexPath| format!("{path} {} {}", comparison.sign(), constant.to_json());
    Some(Known::exact(lookup, place.words(words)))
}

/// Where the codes of a kind begin and end.
pub(super) fn ends_of(kind: Kind) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let bytes = key_kind_bytes(kind);
    (Bound::Included(vec![*bytes.start()]), Bound::Excluded(vec![bytes.end() + 1]))
}

pub(super) fn of_kind(place: &Place, kind: Kind) -> Known {
    let (low, high) = ends_of(kind);
    let lookup = Lookup::Range { path: place.path.clone(), low, high };
    Known::exact(lookup, place.words(|path| format!("{path} is of kind {}", kind_name(kind))))
}

fn kind_name(kind: Kind) -> String {
    match kind {
        Kind::Int32 | Kind::Int64 | Kind::Double | Kind::Decimal => "number".to_owned(),
        Kind::Null
        | Kind::Bool
        | Kind::String
        | Kind::Binary
        | Kind::Date
        | Kind::Guid
        | Kind::ObjectId
        | Kind::Array
        | Kind::Object => format!("{kind:?}").to_lowercase(),
    }
}

pub(super) fn starting_with(place: &Place, start: &str) -> Known {
    let (low, high) = bounds_of(start);
    let lookup = Lookup::Range { path: place.path.clone(), low, high };
    let words = |path: &IndexPath| format!("{path} begins with {}", Value::from(start).to_json());
    Known::exact(lookup, place.words(words))
}

/// Where the codes of texts with a beginning begin and end.
pub(super) fn bounds_of(start: &str) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    /// Bytes that end the code of a text.
    const END_BYTES: usize = 2;
    let mut low = Vec::new();
    encode_key_str(start, &mut low);
    low.truncate(low.len() - END_BYTES);
    // The first byte is that of the kind, so there is always a code behind all that begin so.
    let kept = low.iter().rposition(|byte| *byte != u8::MAX).unwrap_or(0);
    let mut high = low[..=kept].to_vec();
    high[kept] += 1;
    (Bound::Included(low), Bound::Excluded(high))
}
