//! From a filter to what an index can say about it: a lookup that finds every document the filter lets pass, and
//! perhaps others, which are looked at.
//!
//! A negation is carried down to the comparisons, since in three-valued logic `NOT (a AND b)` is true exactly where
//! one of them is false, and undefined is neither.

use eval::{EXPRESSION_DEPTH_MAX, LikeRest, Meter, like_beginning};
use partition::index::{Coverage, IndexPath, IndexReader, Lookup, PathStep as IndexStep};
use plan::query::{
    BinaryOperator, Expression, Function, LikePattern, PathStep, Query, SortKey, Source, UnaryOperator,
};
use std::cell::Cell;
use std::ops::Bound;
use std::sync::Arc;
use value::{Kind, Value, key_kind_bytes};

use super::covered::only_names;
use super::known::{
    Known, Place, beside, bounds_of, conjunction, different, equal, joined, negated, of_kind, starting_with,
    turned, without,
};
use super::tested::tested;
use super::{computed, spatial};
use crate::computed::DOCUMENT;

/// What an index says of a filter.
pub(crate) struct Told {
    /// Nothing if it cannot help.
    pub(crate) known: Option<Known>,
    /// Whether every index with the same rules says the same, whatever values it has.
    pub(crate) is_by_rules: bool,
}

/// What the index of a partition knows of the filter of a query. At no path are more than `tests_max` values tested,
/// roughly.
pub(crate) fn of_filter(query: &Query, index: &IndexReader, tests_max: u64, meter: &Arc<Meter>) -> Told {
    let (Some(root), Some(filter)) = (root_names(query), query.filter.as_ref()) else {
        return Told { known: None, is_by_rules: true };
    };
    let reading = Reading { index, root, tests_max, is_told: false, is_by_rules: Cell::new(true), meter };
    let known = reading.condition(filter, true, EXPRESSION_DEPTH_MAX);
    Told { known, is_by_rules: reading.is_by_rules.get() }
}

/// The same, and in words.
pub(crate) fn told_of_filter(
    query: &Query,
    index: &IndexReader,
    tests_max: u64,
    meter: &Arc<Meter>,
) -> Option<Known> {
    let (root, is_by_rules) = (root_names(query)?, Cell::new(true));
    let reading = Reading { index, root, tests_max, is_told: true, is_by_rules, meter };
    reading.condition(query.filter.as_ref()?, true, EXPRESSION_DEPTH_MAX)
}

/// The same of any condition on a document, without tests.
pub(crate) fn told_of_condition(condition: &Expression, index: &IndexReader) -> Option<Known> {
    // Without tests of values there is nothing to be counted.
    let meter = &Arc::default();
    let (root, is_by_rules) = (Vec::new(), Cell::new(true));
    let reading = Reading { index, root, tests_max: 0, is_told: true, is_by_rules, meter };
    reading.condition(condition, true, EXPRESSION_DEPTH_MAX)
}

/// The path that an expression names in a document, if the index knows every document there.
pub(crate) fn path(expression: &Expression, index: &IndexReader) -> Option<IndexPath> {
    path_of(&names_of(expression)?, index)
}

/// The path that names make, if the index knows every document there.
pub(crate) fn path_of(names: &[&str], index: &IndexReader) -> Option<IndexPath> {
    covered(index, IndexPath::property(names.iter().map(|name| IndexStep::Name(name))))
}

fn covered(index: &IndexReader, path: IndexPath) -> Option<IndexPath> {
    (index.covers(&path) == Coverage::Whole).then_some(path)
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
    covered(index, key_path(key, query, index)?)
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
        Some((covered(index, IndexPath::composite(members?))?, is_turned))
    };
    path_of(false).or_else(|| path_of(true))
}

/// Longest code of a scalar that terms and tuples are sure to hold whole.
const WHOLE_CODE_BYTES_MAX: usize = 64;

/// Whether terms and tuples hold a code whole: of arrays and objects they have a mark only.
fn is_whole(code: &[u8]) -> bool {
    let is_of = |kind| code.first().is_some_and(|first| key_kind_bytes(kind).contains(first));
    code.len() <= WHOLE_CODE_BYTES_MAX && !is_of(Kind::Array) && !is_of(Kind::Object)
}

/// The code of the one value that all documents of a lookup have at a path, if it fixes one.
pub(crate) fn fixed_code<'l>(lookup: &'l Lookup, wanted: &IndexPath) -> Option<&'l [u8]> {
    match lookup {
        Lookup::Term { path, code } if path == wanted && is_whole(code) => Some(code),
        Lookup::And(parts) => parts.iter().find_map(|part| fixed_code(part, wanted)),
        Lookup::All
        | Lookup::Present(_)
        | Lookup::Term { .. }
        | Lookup::Range { .. }
        | Lookup::Tested { .. }
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
    tests_max: u64,
    /// Whether what is known is put into words.
    is_told: bool,
    /// Whether nothing was asked that depends on the values in the index.
    is_by_rules: Cell<bool>,
    /// Counts the steps of tests.
    meter: &'a Arc<Meter>,
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
            (Expression::Between(parts), true) => self.between(parts),
            (Expression::Like(operand, pattern), true) => self.like(expression, operand, pattern),
            (Expression::Call(function, arguments), _) => self.call(*function, arguments, wanted),
            (Expression::Member(..), _) => {
                self.place(expression).map(|place| equal(&place, &Value::Bool(wanted)))
            }
            _ => None,
        };
        let truth = || Some(equal(&self.computed_place(expression, None)?, &Value::Bool(wanted)));
        known.or_else(truth).or_else(|| self.tested(expression, wanted, (Bound::Unbounded, Bound::Unbounded)))
    }

    /// The condition is tried on the different values of the one path that it is about.
    fn tested(
        &self,
        condition: &Expression,
        wanted: bool,
        bounds: (Bound<Vec<u8>>, Bound<Vec<u8>>),
    ) -> Option<Known> {
        self.is_by_rules.set(false);
        if self.tests_max == 0 {
            return None;
        }
        let names = only_names(condition)?;
        let whole: Vec<&str> = self.root.iter().copied().chain(names.iter().copied()).collect();
        let place = self.told(path_of(&whole, self.index)?);
        let is_affordable = self.index.value_bound(&place.path) <= self.tests_max;
        is_affordable.then(|| tested(&place, &names, condition, wanted, bounds, self.meter))
    }

    fn between(&self, parts: &[Expression; 3]) -> Option<Known> {
        let [operand, low, high] = parts;
        let low = self.comparison(BinaryOperator::GreaterOrEqual, operand, low, true);
        let high = self.comparison(BinaryOperator::LessOrEqual, operand, high, true);
        conjunction(vec![low, high])
    }

    /// All texts that are like a pattern begin with the letters it begins with.
    fn like(&self, expression: &Expression, operand: &Expression, pattern: &LikePattern) -> Option<Known> {
        let Expression::Constant(Value::String(text)) = &*pattern.pattern else {
            return None;
        };
        let (letters, rest) = like_beginning(text, pattern.escape)?;
        let place = self.place(operand)?;
        match rest {
            LikeRest::Nothing => Some(equal(&place, &Value::String(letters))),
            LikeRest::Anything => Some(starting_with(&place, &letters)),
            LikeRest::Pattern => {
                let beginning = starting_with(&place, &letters);
                let bounds = bounds_of(&letters);
                let tested = self.tested(expression, true, bounds);
                let has_letters = !letters.is_empty();
                tested.or_else(|| has_letters.then_some(Known { is_exact: false, ..beginning }))
            }
        }
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
        let names = |part| self.names(part);
        let comparison = (operator, left, right);
        let distance = spatial::of_comparison(self.index, names, comparison, wanted, self.is_told);
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
                let present = self.place(argument)?.present();
                return Some(if wanted { present } else { without(present) });
            }
            (Function::StartsWith, [argument, Expression::Constant(Value::String(start))]) if wanted => {
                return Some(starting_with(&self.place(argument)?, start));
            }
            (Function::StringEquals, [argument, Expression::Constant(text @ Value::String(_))]) if wanted => {
                return Some(equal(&self.place(argument)?, text));
            }
            (Function::ArrayContains, [argument, elements @ Expression::Constant(_)]) => {
                return self.containing(argument, std::slice::from_ref(elements), false, wanted);
            }
            (Function::ArrayContainsAny, [argument, elements @ ..]) => {
                return self.containing(argument, elements, false, wanted);
            }
            (Function::ArrayContainsAll, [argument, elements @ ..]) => {
                return self.containing(argument, elements, true, wanted);
            }
            (Function::StWithin | Function::StIntersects, _) if wanted => {
                return spatial::of_meeting(self.index, |part| self.names(part), arguments, self.is_told);
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

    /// Arrays with one or with all of these elements, or arrays that are not so.
    fn containing(
        &self,
        array: &Expression,
        elements: &[Expression],
        needs_all: bool,
        wanted: bool,
    ) -> Option<Known> {
        let named = || {
            let names = self.names(array)?;
            let steps = names.iter().map(|name| IndexStep::Name(name)).chain([IndexStep::Elements]);
            covered(self.index, IndexPath::property(steps)).map(|path| self.told(path))
        };
        let place = named().or_else(|| self.computed_place(array, Some(IndexStep::Elements)))?;
        let equals = elements.iter().map(|element| {
            let Expression::Constant(element) = element else { return None };
            Some(equal(&place, element))
        });
        let equals = equals.collect::<Option<Vec<Known>>>().filter(|equals| !equals.is_empty())?;
        let containing =
            if needs_all { joined(equals, " and ", Lookup::And) } else { joined(equals, " or ", Lookup::Or) };
        if wanted {
            return Some(containing);
        }
        let arrays = of_kind(&self.place(array)?, Kind::Array);
        Some(joined(vec![arrays, without(containing)], " and ", Lookup::And))
    }

    /// The place that an expression names, if the index knows every document there.
    fn place(&self, expression: &Expression) -> Option<Place> {
        let named = || path_of(&self.names(expression)?, self.index).map(|path| self.told(path));
        named().or_else(|| self.computed_place(expression, None))
    }

    /// The place in a computed property whose value an expression is, and perhaps one step further.
    fn computed_place(&self, expression: &Expression, further: Option<IndexStep<'_>>) -> Option<Place> {
        if !self.root.is_empty() {
            return None;
        }
        let mut steps = computed::steps(self.index, expression)?;
        steps.extend(further);
        covered(self.index, IndexPath::property(steps)).map(|path| self.told(path))
    }

    fn told(&self, path: IndexPath) -> Place {
        Place { path, is_told: self.is_told }
    }

    /// The names from the document to a value.
    fn names<'e>(&'e self, expression: &'e Expression) -> Option<Vec<&'e str>> {
        let names = names_of(expression)?;
        if self.root.is_empty() {
            return Some(names);
        }
        Some(self.root.iter().copied().chain(names).collect())
    }
}
