//! The built-in functions: one table from name to computation, one file per family.
//!
//! Common rule: an argument that is undefined or of the wrong kind makes the result undefined. How many arguments a
//! function takes is checked before; one that is missing all the same counts as undefined.

mod arrays;
mod current_time;
mod date_format;
mod date_time;
mod full_text;
mod integers;
mod item;
mod math;
mod moment;
mod regex;
mod sets;
mod spatial;
mod string_conversion;
mod string_search;
mod strings;
mod type_check;
mod vector;

pub use self::regex::PATTERN_SIZE_MAX;
pub(crate) use self::regex::PatternCache;
pub(crate) use self::strings::concatenate;

use std::borrow::Cow;

use plan::query::{AggregateKind, Expression, Function};

use crate::expression::{Frame, Outcome};
use crate::number::Number;
use crate::operators::Class;
use crate::{Computed, EvalFault};
use date_time::Part;
use string_search::LetterCase;

/// A call of a function: its arguments, and where they are evaluated.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) frame: Frame<'a>,
    pub(crate) arguments: &'a [Expression],
}

impl<'a> Call<'a> {
    /// Whether the call has an argument at `index`.
    fn has(self, index: usize) -> bool {
        index < self.arguments.len()
    }

    /// The n-th argument.
    fn value(self, index: usize) -> Outcome<'a> {
        self.arguments.get(index).map_or(Ok(None), |argument| self.frame.evaluate(argument))
    }

    /// The n-th argument, if it is a string.
    fn text(self, index: usize) -> Result<Option<Cow<'a, str>>, EvalFault> {
        Ok(self.value(index)?.and_then(Computed::into_text))
    }

    /// The n-th argument, if it is a number.
    fn number(self, index: usize) -> Result<Option<Number>, EvalFault> {
        Ok(self.value(index)?.and_then(|value| Number::of(value.as_ref())))
    }

    /// The n-th argument, if it is a whole number of 64 bits.
    fn integer(self, index: usize) -> Result<Option<i64>, EvalFault> {
        Ok(self.value(index)?.and_then(|value| value.as_ref().as_i64()))
    }

    /// The n-th argument, if it is an array.
    fn array(self, index: usize) -> Outcome<'a> {
        Ok(self.value(index)?.filter(|value| value.kind() == value::Kind::Array))
    }

    /// The n-th argument, if it is a boolean; false where the call has none.
    fn flag(self, index: usize) -> Result<Option<bool>, EvalFault> {
        if !self.has(index) {
            return Ok(Some(false));
        }
        Ok(self.value(index)?.and_then(|value| value.as_bool()))
    }

    fn conditional(self) -> Outcome<'a> {
        match self.arguments {
            [condition, then, otherwise] => self.frame.conditional(condition, then, otherwise),
            _ => Ok(None),
        }
    }

    fn now_ms(self) -> u64 {
        self.frame.context.ambient.now_ms()
    }

    fn now_static_ms(self) -> u64 {
        self.frame.context.now_static_ms
    }
}

/// Calls a function. Each arm is one call, so that a level of nesting takes little of the stack.
pub(crate) fn call(function: Function, call: Call<'_>) -> Outcome<'_> {
    match function {
        Function::IsArray => type_check::is(call, Class::Array),
        Function::IsBool => type_check::is(call, Class::Bool),
        Function::IsNull => type_check::is(call, Class::Null),
        Function::IsNumber => type_check::is(call, Class::Number),
        Function::IsObject => type_check::is(call, Class::Object),
        Function::IsString => type_check::is(call, Class::String),
        Function::IsPrimitive => type_check::is_primitive(call),
        Function::IsDefined => type_check::is_defined(call),
        Function::IsFiniteNumber => type_check::is_finite_number(call),
        Function::IsInteger => type_check::is_integer(call),
        Function::IsDateTime => type_check::is_date_time(call),
        Function::Concat => concatenate(call.frame, call.arguments),
        Function::Contains => string_search::compare(call, |text, part| text.contains(part)),
        Function::StartsWith => string_search::compare(call, |text, part| text.starts_with(part)),
        Function::EndsWith => string_search::compare(call, |text, part| text.ends_with(part)),
        Function::StringEquals => string_search::compare(call, |text, other| text == other),
        Function::IndexOf => string_search::index_of(call),
        Function::LastIndexOf => string_search::last_index_of(call),
        Function::Left => strings::left(call),
        Function::Right => strings::right(call),
        Function::Substring => strings::substring(call),
        Function::Length => strings::length(call),
        Function::Lower => strings::map(call, str::to_lowercase),
        Function::Upper => strings::map(call, str::to_uppercase),
        Function::Reverse => strings::map(call, |text| text.chars().rev().collect()),
        Function::Trim => strings::trim(call, true, true),
        Function::LeftTrim => strings::trim(call, true, false),
        Function::RightTrim => strings::trim(call, false, true),
        Function::Replace => strings::replace(call),
        Function::Replicate => strings::replicate(call),
        Function::RegexMatch => regex::matches(call),
        Function::RegexExtract => regex::extract(call),
        Function::RegexExtractAll => regex::extract_all(call),
        Function::StringJoin => strings::join(call),
        Function::StringSplit => strings::split(call),
        Function::SubstringBefore => string_search::cut(call, |text, mark| Some(text.split_once(mark)?.0)),
        Function::SubstringAfter => string_search::cut(call, |text, mark| Some(text.split_once(mark)?.1)),
        Function::LastSubstringBefore => {
            string_search::cut(call, |text, mark| Some(text.rsplit_once(mark)?.0))
        }
        Function::LastSubstringAfter => {
            string_search::cut(call, |text, mark| Some(text.rsplit_once(mark)?.1))
        }
        Function::ToString => string_conversion::to_string(call),
        Function::StringToNumber => string_conversion::parse(call, Class::Number),
        Function::StringToBoolean => string_conversion::parse(call, Class::Bool),
        Function::StringToNull => string_conversion::parse(call, Class::Null),
        Function::StringToArray => string_conversion::parse(call, Class::Array),
        Function::StringToObject => string_conversion::parse(call, Class::Object),
        Function::ContainsAllCi => string_search::contains_all(call, LetterCase::Ignored),
        Function::ContainsAllCs => string_search::contains_all(call, LetterCase::Kept),
        Function::ContainsAnyCi => string_search::contains_any(call, LetterCase::Ignored),
        Function::ContainsAnyCs => string_search::contains_any(call, LetterCase::Kept),
        Function::ArrayConcat => arrays::concat(call),
        Function::ArrayContains => arrays::contains(call),
        Function::ArrayContainsAny => arrays::contains_any(call),
        Function::ArrayContainsAll => arrays::contains_all(call),
        Function::ArrayLength => arrays::length(call),
        Function::ArraySlice => arrays::slice(call),
        Function::SetIntersect => sets::intersect(call),
        Function::SetUnion => sets::union(call),
        Function::SetDifference => sets::difference(call),
        Function::SetEqual => sets::equal(call),
        Function::Choose => arrays::choose(call),
        Function::ObjectToArray => arrays::object_to_array(call),
        Function::ArrayMin => arrays::aggregate(call, AggregateKind::Min),
        Function::ArrayMax => arrays::aggregate(call, AggregateKind::Max),
        Function::ArraySum => arrays::aggregate(call, AggregateKind::Sum),
        Function::ArrayAvg => arrays::aggregate(call, AggregateKind::Avg),
        Function::ArrayMedian => arrays::median(call),
        Function::Iif => call.conditional(),
        Function::Abs => math::abs(call),
        Function::Acos => math::unary(call, f64::acos),
        Function::Asin => math::unary(call, f64::asin),
        Function::Atan => math::unary(call, f64::atan),
        Function::Ceiling => math::rounding(call, f64::ceil),
        Function::Cos => math::unary(call, f64::cos),
        Function::Cot => math::unary(call, |angle| 1.0 / angle.tan()),
        Function::Degrees => math::unary(call, f64::to_degrees),
        Function::Exp => math::unary(call, f64::exp),
        Function::Floor => math::rounding(call, f64::floor),
        Function::Log10 => math::unary(call, f64::log10),
        Function::Radians => math::unary(call, f64::to_radians),
        Function::Sign => math::sign(call),
        Function::Sin => math::unary(call, f64::sin),
        Function::Sqrt => math::unary(call, f64::sqrt),
        Function::Square => math::square(call),
        Function::Tan => math::unary(call, f64::tan),
        Function::Trunc => math::rounding(call, f64::trunc),
        Function::Atn2 => math::binary(call, f64::atan2),
        Function::Log => math::log(call),
        Function::Pi => math::constant(std::f64::consts::PI),
        Function::Power => math::binary(call, f64::powf),
        Function::Rand => math::random(call),
        Function::Round => math::round(call),
        Function::NumberBin => math::number_bin(call),
        Function::IntAdd => integers::binary(call, |left, right| Some(left.wrapping_add(right))),
        Function::IntSub => integers::binary(call, |left, right| Some(left.wrapping_sub(right))),
        Function::IntMul => integers::binary(call, |left, right| Some(left.wrapping_mul(right))),
        Function::IntDiv => integers::binary(call, integers::divide),
        Function::IntMod => integers::binary(call, integers::modulo),
        Function::IntBitAnd => integers::binary(call, |left, right| Some(left & right)),
        Function::IntBitOr => integers::binary(call, |left, right| Some(left | right)),
        Function::IntBitXor => integers::binary(call, |left, right| Some(left ^ right)),
        Function::IntBitLeftShift => integers::binary(call, integers::shift_left),
        Function::IntBitRightShift => integers::binary(call, integers::shift_right),
        Function::IntBitNot => integers::not(call),
        Function::DateTimeAdd => date_time::add(call),
        Function::DateTimeDiff => date_time::difference(call),
        Function::DateTimePart => date_time::part(call),
        Function::DateTimeBin => date_time::bin(call),
        Function::DateTimeFromParts => date_time::from_parts(call),
        Function::DateTimeToTicks => date_time::to_ticks(call),
        Function::DateTimeToTimestamp => date_time::to_timestamp(call),
        Function::TicksToDateTime => date_time::from_ticks(call),
        Function::TimestampToDateTime => date_time::from_timestamp(call),
        Function::GetCurrentDateTime => current_time::date_time(call.now_ms()),
        Function::GetCurrentTicks => current_time::ticks(call.now_ms()),
        Function::GetCurrentTimestamp => current_time::timestamp(call.now_ms()),
        Function::GetCurrentDateTimeStatic => current_time::date_time(call.now_static_ms()),
        Function::GetCurrentTicksStatic => current_time::ticks(call.now_static_ms()),
        Function::GetCurrentTimestampStatic => current_time::timestamp(call.now_static_ms()),
        Function::DateTimeFormat => date_format::format(call),
        Function::Ago => current_time::ago(call),
        Function::Now => current_time::date_time(call.now_static_ms()),
        Function::Day => date_time::part_of(call, Part::Day),
        Function::Month => date_time::part_of(call, Part::Month),
        Function::Year => date_time::part_of(call, Part::Year),
        Function::StDistance => spatial::distance(call),
        Function::StWithin => spatial::within(call),
        Function::StIntersects => spatial::intersects(call),
        Function::StArea => spatial::area(call),
        Function::StIsValid => spatial::is_valid(call),
        Function::StIsValidDetailed => spatial::is_valid_detailed(call),
        Function::VectorDistance => vector::distance(call),
        Function::FullTextContains => full_text::contains(call),
        Function::FullTextContainsAll => full_text::contains_all(call),
        Function::FullTextContainsAny => full_text::contains_any(call),
        Function::FullTextScore => full_text::outside_rank(function),
        Function::Rrf => full_text::outside_rank(function),
        Function::DocumentId => item::document_id(call),
    }
}
