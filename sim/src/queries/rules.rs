//! The expected results of a query, computed as simply as possible: every document, every row, one comparison after the
//! other.
//!
//! Undefined is `None`. Shares no code with the product, except for the spatial functions: they are evaluated on each
//! document alone, since the comparison is about how documents are found.

use super::random_query::{Filter, Fold, Now, Projection, RandomQuery, Shape, Term};
use crate::ambient::SeededAmbient;
use eval::{Budget, Context, DocumentRow};
use serde_json::{Map, Value as Json};
use std::cmp::Ordering;
use value::Document;

/// A document as used by the rules.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) number: u64,
    pub(super) ts: u64,
    pub(super) body: Map<String, Json>,
    /// The body with the computed properties.
    pub(super) seen: Map<String, Json>,
}

/// Times of a query, in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// Time of the first page.
    pub(super) query: u64,
    /// Time of this page.
    pub(super) page: u64,
}

/// The position of a row: its sort keys, its document, its index among the document's rows.
#[derive(Clone, Debug)]
pub(super) struct Place {
    keys: Vec<Option<Json>>,
    number: u64,
    row: usize,
}

/// A row and its projection.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) place: Place,
    pub(super) result: Json,
}

/// The rows of a query in order, without offset and limit; equal results once if distinct.
pub(super) fn rows(random_query: &RandomQuery, items: &[Item], times: Times) -> Vec<Row> {
    let Shape::Rows { projection, order, distinct } = &random_query.shape else {
        return Vec::new();
    };
    let mut rows = Vec::new();
    for (item, row, element) in matches(random_query, items, times) {
        let value = |term: &Term| value(term, item, element);
        let result = match projection {
            Projection::Star => Some(Json::Object(item.body.clone())),
            Projection::Value(term) => value(term),
            Projection::Named(terms) => Some(named(terms.iter().map(value))),
        };
        if let Some(result) = result {
            let keys = order.iter().map(|(term, _)| value(term)).collect();
            rows.push(Row { place: Place { keys, number: item.number, row }, result });
        }
    }
    rows.sort_by(|left, right| compare_places(random_query, &left.place, &right.place));
    if *distinct {
        let mut seen: Vec<String> = Vec::new();
        rows.retain(|row| {
            let text = canonical(&row.result);
            let is_new = !seen.contains(&text);
            seen.push(text);
            is_new
        });
    }
    rows
}

/// The results of a query that folds rows, unordered.
pub(super) fn folded(random_query: &RandomQuery, items: &[Item], times: Times) -> Vec<Json> {
    let (keys, folds) = match &random_query.shape {
        Shape::Rows { .. } => return Vec::new(),
        Shape::Folds(folds) => (Vec::new(), folds),
        Shape::Groups { keys, folds } => (keys.clone(), folds),
    };
    // Each group: the text of its keys, its keys, its rows.
    type Group<'a> = (String, Vec<Option<Json>>, Vec<(&'a Item, Option<&'a Json>)>);
    let mut groups: Vec<Group<'_>> = Vec::new();
    if keys.is_empty() {
        groups.push((String::new(), Vec::new(), Vec::new()));
    }
    for (item, _, element) in matches(random_query, items, times) {
        let values: Vec<Option<Json>> = keys.iter().map(|key| value(key, item, element)).collect();
        let text: String =
            values.iter().map(|value| format!("{:?};", value.as_ref().map(canonical))).collect();
        let known = if keys.is_empty() { Some(0) } else { groups.iter().position(|group| group.0 == text) };
        match known {
            Some(known) => groups[known].2.push((item, element)),
            None => groups.push((text, values, vec![(item, element)])),
        }
    }
    let result = |(_, keys, rows): Group<'_>| {
        let folds = folds
            .iter()
            .enumerate()
            .filter_map(|(index, fold)| Some((format!("f{index}"), fold_of(fold, &rows)?)));
        let Json::Object(mut members) = named(keys.into_iter()) else {
            return Json::Null;
        };
        members.extend(folds);
        Json::Object(members)
    };
    groups.into_iter().map(result).collect()
}

fn fold_of(fold: &Fold, rows: &[(&Item, Option<&Json>)]) -> Option<Json> {
    let values = |term: &Term| -> Vec<Json> {
        rows.iter().filter_map(|(item, element)| value(term, item, *element)).collect()
    };
    let sum = |values: &[Json]| -> Option<f64> { values.iter().map(Json::as_f64).sum() };
    let extreme = |term: &Term, wanted: Ordering| {
        let values = values(term);
        if values.iter().any(|value| value.is_array() || value.is_object()) {
            return None;
        }
        values.into_iter().reduce(
            |best, value| {
                if compare(Some(&value), Some(&best)) == wanted { value } else { best }
            },
        )
    };
    match fold {
        Fold::Count => Some(rows.len().into()),
        Fold::CountOf(term) => Some(values(term).len().into()),
        Fold::Sum(term) => sum(&values(term)).map(Json::from),
        Fold::Average(term) => {
            let values = values(term);
            let count = values.len();
            sum(&values).filter(|_| count > 0).map(|sum| Json::from(sum / count as f64))
        }
        Fold::Min(term) => extreme(term, Ordering::Less),
        Fold::Max(term) => extreme(term, Ordering::Greater),
    }
}

/// An object of the defined values.
fn named(values: impl Iterator<Item = Option<Json>>) -> Json {
    let members = values.enumerate().filter_map(|(index, value)| Some((format!("k{index}"), value?)));
    Json::Object(members.collect())
}

/// The rows that pass the filter: document, index among its rows, joined element.
fn matches<'a>(
    random_query: &RandomQuery,
    items: &'a [Item],
    times: Times,
) -> Vec<(&'a Item, usize, Option<&'a Json>)> {
    let mut found = Vec::new();
    for item in items {
        let elements: Vec<Option<&Json>> = if random_query.joins {
            let tags = item.body.get("tags").and_then(Json::as_array);
            tags.into_iter().flatten().map(Some).collect()
        } else {
            vec![None]
        };
        for (row, element) in elements.into_iter().enumerate() {
            let passes = random_query
                .filter
                .as_ref()
                .is_none_or(|filter| holds(filter, item, element, times) == Some(true));
            if passes {
                found.push((item, row, element));
            }
        }
    }
    found
}

fn value(term: &Term, item: &Item, element: Option<&Json>) -> Option<Json> {
    match term {
        Term::Element => element.cloned(),
        Term::Path(names) if names[..] == ["_ts"] => Some(item.ts.into()),
        Term::Path(names) => {
            let (first, rest) = names.split_first()?;
            let mut value = item.seen.get(*first)?;
            for name in rest {
                value = value.as_object()?.get(*name)?;
            }
            Some(value.clone())
        }
    }
}

fn holds(filter: &Filter, item: &Item, element: Option<&Json>, times: Times) -> Option<bool> {
    let value = |term: &Term| value(term, item, element);
    match filter {
        Filter::Compare(term, operator, constant) => compared(&value(term)?, operator, constant),
        Filter::In(term, constants) => {
            let value = value(term)?;
            Some(constants.iter().any(|constant| same(&value, constant)))
        }
        Filter::Between(term, low, high) => {
            let value = value(term)?;
            both(compared(&value, ">=", low), compared(&value, "<=", high))
        }
        Filter::Test(function, term) => {
            let value = value(term);
            Some(match *function {
                "IS_DEFINED" => value.is_some(),
                "IS_NUMBER" => value.is_some_and(|value| value.is_number()),
                "IS_STRING" => value.is_some_and(|value| value.is_string()),
                "IS_NULL" => value.is_some_and(|value| value.is_null()),
                "IS_BOOL" => value.is_some_and(|value| value.is_boolean()),
                "IS_ARRAY" => value.is_some_and(|value| value.is_array()),
                "IS_OBJECT" => value.is_some_and(|value| value.is_object()),
                _ => value.is_some_and(|value| !value.is_array() && !value.is_object()),
            })
        }
        Filter::StartsWith(term, text) => Some(value(term)?.as_str()?.starts_with(text)),
        Filter::Contains(term, constant) => {
            Some(value(term)?.as_array()?.iter().any(|element| same(element, constant)))
        }
        Filter::ContainsEach(term, constants, needs_all) => {
            let array = value(term)?;
            let array = array.as_array()?;
            let mut found = constants.iter().map(|wanted| array.iter().any(|element| same(element, wanted)));
            Some(if *needs_all { found.all(|found| found) } else { found.any(|found| found) })
        }
        Filter::Text(function, term, text, is_blind) => {
            let value = value(term)?;
            let seen = |text: &str| if *is_blind { text.to_lowercase() } else { text.to_owned() };
            let (value, text) = (seen(value.as_str()?), seen(text));
            Some(match *function {
                "CONTAINS" => value.contains(&text),
                "STARTSWITH" => value.starts_with(&text),
                "ENDSWITH" => value.ends_with(&text),
                _ => value == text,
            })
        }
        Filter::Like(term, pattern) => Some(is_like(value(term)?.as_str()?, pattern)),
        Filter::Plus(term, number, operator, constant) => {
            let sum = value(term)?.as_f64()? + *number as f64;
            compared(&Json::from(sum), operator, constant)
        }
        Filter::Truth(term) => value(term)?.as_bool(),
        Filter::Since(term, operator, now, seconds) => {
            let now = match now {
                Now::Page => times.page,
                Now::Query(_) => times.query,
            };
            compared(&value(term)?, operator, &Json::from(now as f64 - *seconds as f64))
        }
        Filter::Spatial(..) => asked(&filter.sql(), item),
        Filter::Not(part) => holds(part, item, element, times).map(|truth| !truth),
        Filter::And(parts) => {
            parts.iter().map(|part| holds(part, item, element, times)).fold(Some(true), both)
        }
        Filter::Or(parts) => {
            let negated = |part| holds(part, item, element, times).map(|truth: bool| !truth);
            parts.iter().map(negated).fold(Some(true), both).map(|truth| !truth)
        }
    }
}

/// Whether a text matches a pattern of letters, `_` and `%`: for each prefix of the pattern, which prefixes of the text
/// match.
fn is_like(text: &str, pattern: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    let mut likes: Vec<bool> = (0..=text.len()).map(|length| length == 0).collect();
    for place in pattern.chars() {
        let longer = |length: usize| match place {
            '%' => likes[..=length].contains(&true),
            '_' => length > 0 && likes[length - 1],
            letter => length > 0 && likes[length - 1] && text[length - 1] == letter,
        };
        likes = (0..=text.len()).map(longer).collect();
    }
    likes[text.len()]
}

/// The result of a condition on one document.
fn asked(condition: &str, item: &Item) -> Option<bool> {
    let tree = sql::parse(&format!("SELECT VALUE {condition} FROM c")).ok()?;
    let query = sql::lower(&tree, &sql::Parameters::none()).ok()?;
    let document = Document::from_json(Json::Object(item.body.clone()).to_string().as_bytes()).ok()?;
    let ambient = SeededAmbient::seeded(0);
    let context = Context::new(&ambient, Budget::new(1 << 20, 1 << 10));
    let row = DocumentRow { number: item.number, root: document.root() };
    let found = eval::run(&context, &query, [row]).ok()?;
    found.first()?.as_ref().as_bool()
}

fn both(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    match (left, right) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn compared(value: &Json, operator: &str, constant: &Json) -> Option<bool> {
    match operator {
        "=" => return Some(same(value, constant)),
        "!=" => return Some(!same(value, constant)),
        _ => {}
    }
    let is_comparable = rank(Some(value)) == rank(Some(constant)) && !value.is_array() && !value.is_object();
    // Both booleans have the same rank here.
    let is_comparable = is_comparable || value.is_boolean() && constant.is_boolean();
    let order = is_comparable.then(|| compare(Some(value), Some(constant)))?;
    Some(match operator {
        "<" => order.is_lt(),
        "<=" => order.is_le(),
        ">" => order.is_gt(),
        _ => order.is_ge(),
    })
}

fn same(left: &Json, right: &Json) -> bool {
    canonical(left) == canonical(right)
}

fn rank(value: Option<&Json>) -> u8 {
    match value {
        None => 0,
        Some(Json::Null) => 1,
        Some(Json::Bool(false)) => 2,
        Some(Json::Bool(true)) => 3,
        Some(Json::Number(_)) => 4,
        Some(Json::String(_)) => 5,
        Some(Json::Array(_)) => 6,
        Some(Json::Object(_)) => 7,
    }
}

/// The order of values of all kinds.
fn compare(left: Option<&Json>, right: Option<&Json>) -> Ordering {
    match (left, right) {
        (Some(Json::Number(left)), Some(Json::Number(right))) => {
            let number = |number: &serde_json::Number| number.as_f64().unwrap_or(f64::NAN);
            number(left).total_cmp(&number(right))
        }
        (Some(Json::String(left)), Some(Json::String(right))) => left.cmp(right),
        (Some(Json::Array(left)), Some(Json::Array(right))) => {
            let pairs = left.iter().zip(right).map(|(left, right)| compare(Some(left), Some(right)));
            pairs.into_iter().find(|order| order.is_ne()).unwrap_or(left.len().cmp(&right.len()))
        }
        (Some(Json::Object(left)), Some(Json::Object(right))) => compare_members(left, right),
        _ => rank(left).cmp(&rank(right)),
    }
}

fn compare_members(left: &Map<String, Json>, right: &Map<String, Json>) -> Ordering {
    let sorted = |members: &Map<String, Json>| {
        let mut members: Vec<(String, Json)> = members.clone().into_iter().collect();
        members.sort_by(|left, right| left.0.cmp(&right.0));
        members
    };
    let (left, right) = (sorted(left), sorted(right));
    let pairs = left.iter().zip(&right);
    let order = pairs.map(|(left, right)| left.0.cmp(&right.0).then(compare(Some(&left.1), Some(&right.1))));
    order.into_iter().find(|order| order.is_ne()).unwrap_or(left.len().cmp(&right.len()))
}

/// The order of two rows.
pub(super) fn compare_places(random_query: &RandomQuery, left: &Place, right: &Place) -> Ordering {
    let order: &[(Term, bool)] = match &random_query.shape {
        Shape::Rows { order, .. } => order,
        Shape::Folds(_) | Shape::Groups { .. } => &[],
    };
    for ((_, down), (left, right)) in order.iter().zip(left.keys.iter().zip(&right.keys)) {
        let found = compare(left.as_ref(), right.as_ref());
        if found.is_ne() {
            return if *down { found.reverse() } else { found };
        }
    }
    let mut numbers = left.number.cmp(&right.number);
    if order.first().is_some_and(|(_, down)| *down) {
        numbers = numbers.reverse();
    }
    numbers.then(left.row.cmp(&right.row))
}

/// A text that is equal for equal values: members sorted, whole numbers without a point.
pub(super) fn canonical(value: &Json) -> String {
    match value {
        Json::Number(number) => {
            // There is one zero.
            let double = number.as_f64().unwrap_or(f64::NAN) + 0.0;
            format!("{double}")
        }
        Json::Array(elements) => {
            let elements: Vec<String> = elements.iter().map(canonical).collect();
            format!("[{}]", elements.join(","))
        }
        Json::Object(members) => {
            let mut members: Vec<String> =
                members.iter().map(|(name, member)| format!("{name:?}:{}", canonical(member))).collect();
            members.sort();
            format!("{{{}}}", members.join(","))
        }
        Json::Null | Json::Bool(_) | Json::String(_) => value.to_string(),
    }
}
