//! From a filter to what an index can say about it: a lookup that finds every document the filter lets pass, and
//! perhaps others, which are looked at.
//!
//! A negation is carried down to the comparisons, since in three-valued logic `NOT (a AND b)` is true exactly where
//! one of them is false, and undefined is neither.

use eval::EXPRESSION_DEPTH_MAX;
use partition::index::{Coverage, IndexPath, IndexReader, Lookup, PathStep as IndexStep};
use plan::query::{BinaryOperator, Expression, Function, PathStep, Query, SortKey, Source, UnaryOperator};
use std::cmp::Ordering;
use std::ops::Bound;
use value::{Kind, Value, encode_key_str, encode_key_value, key_kind_bytes};

use super::{computed, spatial};
use crate::computed::DOCUMENT;

/// What an index knows of a filter.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) lookup: Lookup,
    /// Whether the lookup says all that the filter says.
    pub(crate) is_exact: bool,
    /// The same for people.
    pub(crate) text: String,
}

/// What the index of a partition knows of the filter of a query; nothing if it cannot help.
pub(crate) fn of_filter(query: &Query, index: &IndexReader) -> Option<Known> {
    let root = root_names(query)?;
    Reading { index, root }.condition(query.filter.as_ref()?, true, EXPRESSION_DEPTH_MAX)
}

/// The same of any condition on a document.
pub(crate) fn of_condition(condition: &Expression, index: &IndexReader) -> Option<Known> {
    Reading { index, root: Vec::new() }.condition(condition, true, EXPRESSION_DEPTH_MAX)
}

/// The place that an expression names in a document, if the index knows every document there.
pub(crate) fn place(expression: &Expression, index: &IndexReader) -> Option<Place> {
    place_of(&names_of(expression)?, index)
}

/// The place that names lead to.
pub(crate) fn place_of(names: &[&str], index: &IndexReader) -> Option<Place> {
    let path = IndexPath::property(names.iter().map(|name| IndexStep::Name(name)));
    let text = format!("/{}", names.join("/"));
    (index.covers(&path) == Coverage::Whole).then_some(Place { path, text })
}

/// The names that lead from the document to a value; at least one.
pub(crate) fn names_of(expression: &Expression) -> Option<Vec<&str>> {
    let mut names = Vec::new();
    let mut base = expression;
    while let Expression::Member(inner, name) = base {
        names.push(name.as_str());
        base = inner;
    }
    names.reverse();
    (*base == Expression::Slot(DOCUMENT) && !names.is_empty()).then_some(names)
}

/// The index path of a sort key, if the index knows every document there.
pub(crate) fn sort_path(key: &SortKey, query: &Query, index: &IndexReader) -> Option<IndexPath> {
    let path = key_path(key, query, index)?;
    (index.covers(&path) == Coverage::Whole).then_some(path)
}

fn key_path(key: &SortKey, query: &Query, index: &IndexReader) -> Option<IndexPath> {
    match &key.path {
        Some(path) => Some(IndexPath::property(path.segments().map(IndexStep::Name))),
        None if root_names(query)?.is_empty() => {
            Some(IndexPath::property(computed::steps(index, &key.expression)?))
        }
        None => None,
    }
}

/// The path of a composite index that has the order of these keys, and whether it must be walked backwards for it.
pub(crate) fn composite_path(
    keys: &[SortKey],
    query: &Query,
    index: &IndexReader,
) -> Option<(IndexPath, bool)> {
    let path_of = |is_turned: bool| {
        let member = |key: &SortKey| Some((key_path(key, query, index)?, key.is_backwards() != is_turned));
        let members: Option<Vec<_>> = keys.iter().map(member).collect();
        let path = IndexPath::composite(members?);
        (index.covers(&path) == Coverage::Whole).then_some((path, is_turned))
    };
    path_of(false).or_else(|| path_of(true))
}

/// Longest code that terms and tuples hold whole, whatever its kind.
const WHOLE_CODE_BYTES_MAX: usize = 64;

/// The code of the one value that all documents of a lookup have at a path, if it fixes one.
pub(crate) fn fixed_code<'l>(lookup: &'l Lookup, wanted: &IndexPath) -> Option<&'l [u8]> {
    match lookup {
        Lookup::Term { path, code } if path == wanted && code.len() <= WHOLE_CODE_BYTES_MAX => Some(code),
        Lookup::And(parts) => parts.iter().find_map(|part| fixed_code(part, wanted)),
        Lookup::All
        | Lookup::Present(_)
        | Lookup::Term { .. }
        | Lookup::Range { .. }
        | Lookup::Logical(_)
        | Lookup::Effective(_)
        | Lookup::Or(_)
        | Lookup::Without(_) => None,
    }
}

/// The names that lead from the document to the first source.
fn root_names(query: &Query) -> Option<Vec<&str>> {
    let Some(Source::Container { path }) = query.sources.first() else {
        return None;
    };
    let names = path.iter().map(|step| match step {
        PathStep::Name(name) => Some(name.as_str()),
        PathStep::Position(_) => None,
    });
    names.collect()
}

struct Reading<'a> {
    index: &'a IndexReader,
    root: Vec<&'a str>,
}

/// A place in documents, in two forms.
pub(crate) struct Place {
    pub(crate) path: IndexPath,
    pub(crate) text: String,
}

impl Known {
    fn exact(lookup: Lookup, text: String) -> Known {
        Known { lookup, is_exact: true, text }
    }
}

impl Reading<'_> {
    /// Where an expression is true, or false if `wanted` says so.
    fn condition(&self, expression: &Expression, wanted: bool, levels_left: usize) -> Option<Known> {
        let levels_left = levels_left.checked_sub(1)?;
        let known = match (expression, wanted) {
            (Expression::And(parts), true) => self.all(parts, wanted, levels_left),
            (Expression::Or(parts), false) => self.all(parts, wanted, levels_left),
            (Expression::Or(parts), true) => self.any(parts, wanted, levels_left),
            (Expression::And(parts), false) => self.any(parts, wanted, levels_left),
            (Expression::Unary(UnaryOperator::Not, part), _) => self.condition(part, !wanted, levels_left),
            (Expression::Binary(operator, left, right), _) => self.comparison(*operator, left, right, wanted),
            (Expression::In(operand, list), _) => self.listed(operand, list, wanted),
            (Expression::Between(parts), true) => {
                let [operand, low, high] = &**parts;
                let low = self.comparison(BinaryOperator::GreaterOrEqual, operand, low, true);
                let high = self.comparison(BinaryOperator::LessOrEqual, operand, high, true);
                conjunction(vec![low, high])
            }
            (Expression::Call(function, arguments), _) => self.call(*function, arguments, wanted),
            (Expression::Member(..), _) => {
                let place = self.place(expression)?;
                Some(equal(&place, &Value::Bool(wanted)))
            }
            _ => None,
        };
        let truth = || Some(equal(&self.computed_place(expression, None)?, &Value::Bool(wanted)));
        known.or_else(truth)
    }

    /// Of a conjunction each part that an index knows narrows the documents.
    fn all(&self, parts: &[Expression], wanted: bool, levels_left: usize) -> Option<Known> {
        conjunction(parts.iter().map(|part| self.condition(part, wanted, levels_left)).collect())
    }

    /// Of a disjunction every part must be known.
    fn any(&self, parts: &[Expression], wanted: bool, levels_left: usize) -> Option<Known> {
        let known: Option<Vec<Known>> =
            parts.iter().map(|part| self.condition(part, wanted, levels_left)).collect();
        Some(joined(known?, " or ", Lookup::Or))
    }

    fn comparison(
        &self,
        operator: BinaryOperator,
        left: &Expression,
        right: &Expression,
        wanted: bool,
    ) -> Option<Known> {
        let distance =
            spatial::of_comparison(self.index, |part| self.names(part), (operator, left, right), wanted);
        if distance.is_some() {
            return distance;
        }
        let (place, constant, operator) = match (left, right) {
            (place, Expression::Constant(constant)) => (self.place(place)?, constant, operator),
            (Expression::Constant(constant), place) => (self.place(place)?, constant, turned(operator)),
            _ => return None,
        };
        let operator = if wanted { operator } else { negated(operator)? };
        match operator {
            BinaryOperator::Equal => Some(equal(&place, constant)),
            BinaryOperator::NotEqual => Some(different(&place, vec![equal(&place, constant)])),
            BinaryOperator::Less
            | BinaryOperator::LessOrEqual
            | BinaryOperator::Greater
            | BinaryOperator::GreaterOrEqual => beside(&place, operator, constant),
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

    fn listed(&self, operand: &Expression, list: &[Expression], wanted: bool) -> Option<Known> {
        let place = self.place(operand)?;
        let equals: Option<Vec<Known>> = list
            .iter()
            .map(|constant| {
                if let Expression::Constant(constant) = constant {
                    Some(equal(&place, constant))
                } else {
                    None
                }
            })
            .collect();
        let equals = equals?;
        if wanted { Some(joined(equals, " or ", Lookup::Or)) } else { Some(different(&place, equals)) }
    }

    fn call(&self, function: Function, arguments: &[Expression], wanted: bool) -> Option<Known> {
        let kinds: &[Kind] = match (function, arguments) {
            (Function::IsDefined, [argument]) => {
                let place = self.place(argument)?;
                let present = Known::exact(Lookup::Present(place.path), format!("{} is there", place.text));
                return Some(if wanted { present } else { without(present) });
            }
            (Function::StartsWith, [argument, Expression::Constant(Value::String(start))]) if wanted => {
                return Some(starting_with(&self.place(argument)?, start));
            }
            (Function::ArrayContains, [argument, Expression::Constant(wanted_element)]) if wanted => {
                return self.containing(argument, wanted_element);
            }
            (Function::StWithin | Function::StIntersects, _) if wanted => {
                return spatial::of_meeting(self.index, |part| self.names(part), arguments);
            }
            (Function::IsNull, [_]) => &[Kind::Null],
            (Function::IsBool, [_]) => &[Kind::Bool],
            (Function::IsNumber, [_]) => &[Kind::Int64],
            (Function::IsString, [_]) => &[Kind::String],
            (Function::IsArray, [_]) => &[Kind::Array],
            (Function::IsObject, [_]) => &[Kind::Object],
            _ => return None,
        };
        let place = self.place(arguments.first()?)?;
        let kinds = kinds.iter().map(|kind| of_kind(&place, *kind)).collect();
        let known = joined(kinds, " or ", Lookup::Or);
        Some(if wanted { known } else { without(known) })
    }

    fn containing(&self, array: &Expression, element: &Value) -> Option<Known> {
        let named = || {
            let names = self.names(array)?;
            let steps = names.iter().map(|name| IndexStep::Name(name)).chain([IndexStep::Elements]);
            self.covered(IndexPath::property(steps), format!("/{}/[]", names.join("/")))
        };
        let place = named().or_else(|| self.computed_place(array, Some(IndexStep::Elements)))?;
        Some(equal(&place, element))
    }

    /// The place that an expression names, if the index knows every document there.
    fn place(&self, expression: &Expression) -> Option<Place> {
        let named = || place_of(&self.names(expression)?, self.index);
        named().or_else(|| self.computed_place(expression, None))
    }

    /// The place in a computed property whose value an expression is, and perhaps one step further.
    fn computed_place(&self, expression: &Expression, further: Option<IndexStep<'_>>) -> Option<Place> {
        if !self.root.is_empty() {
            return None;
        }
        let mut steps = computed::steps(self.index, expression)?;
        steps.extend(further);
        let text = computed::text(&steps);
        self.covered(IndexPath::property(steps), text)
    }

    fn covered(&self, path: IndexPath, text: String) -> Option<Place> {
        (self.index.covers(&path) == Coverage::Whole).then_some(Place { path, text })
    }

    /// The names from the document to a value.
    fn names<'e>(&'e self, expression: &'e Expression) -> Option<Vec<&'e str>> {
        let names = names_of(expression)?;
        Some(self.root.iter().copied().chain(names).collect())
    }
}

/// What is known of all parts together, of which some may be unknown.
fn conjunction(parts: Vec<Option<Known>>) -> Option<Known> {
    let is_complete = parts.iter().all(Option::is_some);
    let known: Vec<Known> = parts.into_iter().flatten().collect();
    if known.is_empty() {
        return None;
    }
    let mut joined = joined(known, " and ", narrowest);
    joined.is_exact &= is_complete;
    Some(joined)
}

fn joined(mut parts: Vec<Known>, word: &str, join: fn(Vec<Lookup>) -> Lookup) -> Known {
    if parts.len() == 1
        && let Some(only) = parts.pop()
    {
        return only;
    }
    let is_exact = parts.iter().all(|part| part.is_exact);
    let texts: Vec<&str> = parts.iter().map(|part| part.text.as_str()).collect();
    let text = format!("({})", texts.join(word));
    Known { lookup: join(parts.into_iter().map(|part| part.lookup).collect()), is_exact, text }
}

/// All of these at once; stretches of one path become one, since a document has one value there.
fn narrowest(parts: Vec<Lookup>) -> Lookup {
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
fn tighter(one: &Bound<Vec<u8>>, other: &Bound<Vec<u8>>, wanted: Ordering) -> Bound<Vec<u8>> {
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

fn without(known: Known) -> Known {
    let text = format!("not {}", known.text);
    // The documents that may be meant are all but those that are certainly not; if some doubt remains, it is told.
    Known { lookup: Lookup::Without(Box::new(known.lookup)), is_exact: known.is_exact, text }
}

fn code_of(value: &Value) -> Vec<u8> {
    let mut code = Vec::new();
    encode_key_value(value, &mut code);
    code
}

fn equal(place: &Place, constant: &Value) -> Known {
    let lookup = Lookup::Term { path: place.path.clone(), code: code_of(constant) };
    Known::exact(lookup, format!("{} = {}", place.text, constant.to_json()))
}

/// Any value at the place but these.
fn different(place: &Place, these: Vec<Known>) -> Known {
    let present = Known::exact(Lookup::Present(place.path.clone()), format!("{} is there", place.text));
    joined(vec![present, without(joined(these, " or ", Lookup::Or))], " and ", Lookup::And)
}

/// Values of the kind of `constant` on one side of it; nothing where there is no such order.
fn beside(place: &Place, operator: BinaryOperator, constant: &Value) -> Option<Known> {
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
    let (low, high) = if operator == BinaryOperator::Less {
        (first, Bound::Excluded(code))
    } else if operator == BinaryOperator::LessOrEqual {
        (first, Bound::Included(code))
    } else if operator == BinaryOperator::Greater {
        (Bound::Excluded(code), behind)
    } else {
        (Bound::Included(code), behind)
    };
    let lookup = Lookup::Range { path: place.path.clone(), low, high };
    Some(Known::exact(lookup, format!("{} {} {}", place.text, operator.sign(), constant.to_json())))
}

/// Where the codes of a kind begin and end.
fn ends_of(kind: Kind) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let bytes = key_kind_bytes(kind);
    (Bound::Included(vec![*bytes.start()]), Bound::Excluded(vec![bytes.end() + 1]))
}

fn of_kind(place: &Place, kind: Kind) -> Known {
    let (low, high) = ends_of(kind);
    let name = match kind {
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
    };
    let lookup = Lookup::Range { path: place.path.clone(), low, high };
    Known::exact(lookup, format!("{} is of kind {name}", place.text))
}

fn starting_with(place: &Place, start: &str) -> Known {
    /// Bytes that end the code of a text.
    const END_BYTES: usize = 2;
    let mut low = Vec::new();
    encode_key_str(start, &mut low);
    low.truncate(low.len() - END_BYTES);
    // The first byte is that of the kind, so there is always a code behind all that begin so.
    let kept = low.iter().rposition(|byte| *byte != u8::MAX).unwrap_or(0);
    let mut high = low[..=kept].to_vec();
    high[kept] += 1;
    let lookup =
        Lookup::Range { path: place.path.clone(), low: Bound::Included(low), high: Bound::Excluded(high) };
    Known::exact(lookup, format!("{} begins with {}", place.text, Value::from(start).to_json()))
}

/// The operator with its sides exchanged.
pub(super) fn turned(operator: BinaryOperator) -> BinaryOperator {
    match operator {
        BinaryOperator::Less => BinaryOperator::Greater,
        BinaryOperator::LessOrEqual => BinaryOperator::GreaterOrEqual,
        BinaryOperator::Greater => BinaryOperator::Less,
        BinaryOperator::GreaterOrEqual => BinaryOperator::LessOrEqual,
        BinaryOperator::Equal
        | BinaryOperator::NotEqual
        | BinaryOperator::Add
        | BinaryOperator::Subtract
        | BinaryOperator::Multiply
        | BinaryOperator::Divide
        | BinaryOperator::Modulo
        | BinaryOperator::BitAnd
        | BinaryOperator::BitOr
        | BinaryOperator::BitXor
        | BinaryOperator::ShiftLeft
        | BinaryOperator::ShiftRight
        | BinaryOperator::ShiftRightUnsigned => operator,
    }
}

/// The operator that is true where this one is false.
pub(super) fn negated(operator: BinaryOperator) -> Option<BinaryOperator> {
    match operator {
        BinaryOperator::Equal => Some(BinaryOperator::NotEqual),
        BinaryOperator::NotEqual => Some(BinaryOperator::Equal),
        BinaryOperator::Less => Some(BinaryOperator::GreaterOrEqual),
        BinaryOperator::LessOrEqual => Some(BinaryOperator::Greater),
        BinaryOperator::Greater => Some(BinaryOperator::LessOrEqual),
        BinaryOperator::GreaterOrEqual => Some(BinaryOperator::Less),
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
