//! The built-in functions: one table from name to implementation, one file per family.
//!
//! Common rule: an argument that is undefined or of the wrong kind makes the result undefined. The number of arguments
//! is checked before; a missing one counts as undefined.

mod arrays;
mod current_time;
mod date_format;
mod date_time;
mod full_text;
mod integers;
mod item;
mod math;
mod moment;
mod rank;
mod regex;
mod sets;
mod spatial;
mod string_conversion;
mod string_search;
mod strings;
mod type_check;
mod vector;

pub(crate) use self::regex::Pattern;
pub use self::spatial::{Cap, Outline, UnitVector, angle_between, angle_of_metres};
pub(crate) use self::strings::concatenate;

use std::borrow::Cow;

use plan::query::{AggregateKind, Expression, Function};

use crate::expression::{EvalResult, Frame};
use crate::number::Number;
use crate::operators::Class;
use crate::{Computed, EvalFault};
use date_time::DatePart;
use string_search::LetterCase;

/// A function call: its arguments, and the frame in which they are evaluated.
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

    /// The n-th argument. Charged for one pass over it; a function that makes more charges for them.
    #[inline]
    fn value(self, index: usize) -> EvalResult<'a> {
        let Some(argument) = self.arguments.get(index) else {
            return Ok(None);
        };
        let value = self.frame.evaluate(argument)?;
        if let Some(value) = &value {
            self.frame.context.charge_bytes(value.as_ref().extent())?;
        }
        Ok(value)
    }

    /// Counts steps that the size of the arguments does not show.
    fn charge(self, steps: usize) -> Result<(), EvalFault> {
        self.frame.context.charge(steps)
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
    fn array(self, index: usize) -> EvalResult<'a> {
        let array = self.value(index)?.filter(|value| value.kind() == value::Kind::Array);
        if let Some(array) = &array {
            self.charge(array.as_ref().len())?;
        }
        Ok(array)
    }

    /// The n-th argument, if it is a boolean; false if the call has none.
    fn flag(self, index: usize) -> Result<Option<bool>, EvalFault> {
        if !self.has(index) {
            return Ok(Some(false));
        }
        Ok(self.value(index)?.and_then(|value| value.as_bool()))
    }

    fn conditional(self) -> EvalResult<'a> {
        match self.arguments {
            [condition, then, otherwise] => self.frame.conditional(condition, then, otherwise),
            _ => Ok(None),
        }
    }

    fn now_ms(self) -> u64 {
        self.frame.context.now_ms()
    }

    fn now_static_ms(self) -> u64 {
        self.frame.context.now_static_ms
    }
}

/// The implementation of a function.
type Implementation = for<'a> fn(Call<'a>) -> EvalResult<'a>;

pub(crate) fn call(function: Function, call: Call<'_>) -> EvalResult<'_> {
    implementation(function)(call)
}

/// The table of functions. It returns the implementation rather than calling it, so that it takes no stack while
/// arguments are evaluated.
fn implementation(function: Function) -> Implementation {
    match function {
        Function::IsArray => |call| type_check::is(call, Class::Array),
        Function::IsBool => |call| type_check::is(call, Class::Bool),
        Function::IsNull => |call| type_check::is(call, Class::Null),
        Function::IsNumber => |call| type_check::is(call, Class::Number),
        Function::IsObject => |call| type_check::is(call, Class::Object),
        Function::IsString => |call| type_check::is(call, Class::String),
        Function::IsPrimitive => type_check::is_primitive,
        Function::IsDefined => type_check::is_defined,
        Function::IsFiniteNumber => type_check::is_finite_number,
        Function::IsInteger => type_check::is_integer,
        Function::IsDateTime => type_check::is_date_time,
        Function::Concat => |call| concatenate(call.frame, call.arguments),
        Function::Contains => |call| string_search::compare(call, |text, part| text.contains(part)),
        Function::StartsWith => |call| string_search::compare(call, |text, part| text.starts_with(part)),
        Function::EndsWith => |call| string_search::compare(call, |text, part| text.ends_with(part)),
        Function::StringEquals => |call| string_search::compare(call, |text, other| text == other),
        Function::IndexOf => string_search::index_of,
        Function::LastIndexOf => string_search::last_index_of,
        Function::Left => strings::left,
        Function::Right => strings::right,
        Function::Substring => strings::substring,
        Function::Length => strings::length,
        Function::Lower => |call| strings::map(call, str::to_lowercase),
        Function::Upper => |call| strings::map(call, str::to_uppercase),
        Function::Reverse => |call| strings::map(call, |text| text.chars().rev().collect()),
        Function::Trim => |call| strings::trim(call, true, true),
        Function::LeftTrim => |call| strings::trim(call, true, false),
        Function::RightTrim => |call| strings::trim(call, false, true),
        Function::Replace => strings::replace,
        Function::Replicate => strings::replicate,
        Function::RegexMatch => regex::matches,
        Function::RegexExtract => regex::extract,
        Function::RegexExtractAll => regex::extract_all,
        Function::StringJoin => strings::join,
        Function::StringSplit => strings::split,
        Function::SubstringBefore => {
            |call| string_search::cut(call, |text, mark| Some(text.split_once(mark)?.0))
        }
        Function::SubstringAfter => {
            |call| string_search::cut(call, |text, mark| Some(text.split_once(mark)?.1))
        }
        Function::LastSubstringBefore => {
            |call| string_search::cut(call, |text, mark| Some(text.rsplit_once(mark)?.0))
        }
        Function::LastSubstringAfter => {
            |call| string_search::cut(call, |text, mark| Some(text.rsplit_once(mark)?.1))
        }
        Function::ToString => string_conversion::to_string,
        Function::StringToNumber => |call| string_conversion::parse(call, Class::Number),
        Function::StringToBoolean => |call| string_conversion::parse(call, Class::Bool),
        Function::StringToNull => |call| string_conversion::parse(call, Class::Null),
        Function::StringToArray => |call| string_conversion::parse(call, Class::Array),
        Function::StringToObject => |call| string_conversion::parse(call, Class::Object),
        Function::ContainsAllCi => |call| string_search::contains_all(call, LetterCase::Ignored),
        Function::ContainsAllCs => |call| string_search::contains_all(call, LetterCase::PatternCache),
        Function::ContainsAnyCi => |call| string_search::contains_any(call, LetterCase::Ignored),
        Function::ContainsAnyCs => |call| string_search::contains_any(call, LetterCase::PatternCache),
        Function::ArrayConcat => arrays::concat,
        Function::ArrayContains => arrays::contains,
        Function::ArrayContainsAny => arrays::contains_any,
        Function::ArrayContainsAll => arrays::contains_all,
        Function::ArrayLength => arrays::length,
        Function::ArraySlice => arrays::slice,
        Function::SetIntersect => sets::intersect,
        Function::SetUnion => sets::union,
        Function::SetDifference => sets::difference,
        Function::SetEqual => sets::equal,
        Function::Choose => arrays::choose,
        Function::ObjectToArray => arrays::object_to_array,
        Function::ArrayMin => |call| arrays::aggregate(call, AggregateKind::Min),
        Function::ArrayMax => |call| arrays::aggregate(call, AggregateKind::Max),
        Function::ArraySum => |call| arrays::aggregate(call, AggregateKind::Sum),
        Function::ArrayAvg => |call| arrays::aggregate(call, AggregateKind::Avg),
        Function::ArrayMedian => arrays::median,
        Function::Iif => |call| call.conditional(),
        Function::Abs => math::abs,
        Function::Acos => |call| math::unary(call, f64::acos),
        Function::Asin => |call| math::unary(call, f64::asin),
        Function::Atan => |call| math::unary(call, f64::atan),
        Function::Ceiling => |call| math::rounding(call, f64::ceil),
        Function::Cos => |call| math::unary(call, f64::cos),
        Function::Cot => |call| math::unary(call, |angle| 1.0 / angle.tan()),
        Function::Degrees => |call| math::unary(call, f64::to_degrees),
        Function::Exp => |call| math::unary(call, f64::exp),
        Function::Floor => |call| math::rounding(call, f64::floor),
        Function::Log10 => |call| math::unary(call, f64::log10),
        Function::Radians => |call| math::unary(call, f64::to_radians),
        Function::Sign => math::sign,
        Function::Sin => |call| math::unary(call, f64::sin),
        Function::Sqrt => |call| math::unary(call, f64::sqrt),
        Function::Square => math::square,
        Function::Tan => |call| math::unary(call, f64::tan),
        Function::Trunc => |call| math::rounding(call, f64::trunc),
        Function::Atn2 => |call| math::binary(call, f64::atan2),
        Function::Log => math::log,
        Function::Pi => |_| math::constant(std::f64::consts::PI),
        Function::Power => |call| math::binary(call, f64::powf),
        Function::Rand => math::random,
        Function::Round => math::round,
        Function::NumberBin => math::number_bin,
        Function::IntAdd => |call| integers::binary(call, |left, right| Some(left.wrapping_add(right))),
        Function::IntSub => |call| integers::binary(call, |left, right| Some(left.wrapping_sub(right))),
        Function::IntMul => |call| integers::binary(call, |left, right| Some(left.wrapping_mul(right))),
        Function::IntDiv => |call| integers::binary(call, integers::divide),
        Function::IntMod => |call| integers::binary(call, integers::modulo),
        Function::IntBitAnd => |call| integers::binary(call, |left, right| Some(left & right)),
        Function::IntBitOr => |call| integers::binary(call, |left, right| Some(left | right)),
        Function::IntBitXor => |call| integers::binary(call, |left, right| Some(left ^ right)),
        Function::IntBitLeftShift => |call| integers::binary(call, integers::shift_left),
        Function::IntBitRightShift => |call| integers::binary(call, integers::shift_right),
        Function::IntBitNot => integers::not,
        Function::DateTimeAdd => date_time::add,
        Function::DateTimeDiff => date_time::difference,
        Function::DateTimePart => date_time::part,
        Function::DateTimeBin => date_time::bin,
        Function::DateTimeFromParts => date_time::from_parts,
        Function::DateTimeToTicks => date_time::to_ticks,
        Function::DateTimeToTimestamp => date_time::to_timestamp,
        Function::TicksToDateTime => date_time::from_ticks,
        Function::TimestampToDateTime => date_time::from_timestamp,
        Function::GetCurrentDateTime => |call| current_time::date_time(call.now_ms()),
        Function::GetCurrentTicks => |call| current_time::ticks(call.now_ms()),
        Function::GetCurrentTimestamp => |call| current_time::timestamp(call.now_ms()),
        Function::GetCurrentDateTimeStatic => |call| current_time::date_time(call.now_static_ms()),
        Function::GetCurrentTicksStatic => |call| current_time::ticks(call.now_static_ms()),
        Function::GetCurrentTimestampStatic => |call| current_time::timestamp(call.now_static_ms()),
        Function::DateTimeFormat => date_format::format,
        Function::Ago => current_time::ago,
        Function::Now => |call| current_time::date_time(call.now_static_ms()),
        Function::Day => |call| date_time::part_of(call, DatePart::Day),
        Function::Month => |call| date_time::part_of(call, DatePart::Month),
        Function::Year => |call| date_time::part_of(call, DatePart::Year),
        Function::StDistance => spatial::distance,
        Function::StWithin => spatial::within,
        Function::StIntersects => spatial::intersects,
        Function::StArea => spatial::area,
        Function::StIsValid => spatial::is_valid,
        Function::StIsValidDetailed => spatial::is_valid_detailed,
        Function::VectorDistance => vector::distance,
        Function::FullTextContains => full_text::contains,
        Function::FullTextContainsAll => full_text::contains_all,
        Function::FullTextContainsAny => full_text::contains_any,
        Function::FullTextScore => |_| full_text::outside_rank(Function::FullTextScore),
        Function::Rrf => |_| full_text::outside_rank(Function::Rrf),
        Function::InternalVectorScore => vector::score,
        Function::InternalFullTextScore => full_text::score,
        Function::InternalRank => rank::rank,
        Function::InternalFullTextWordCount => full_text::word_count,
        Function::DocumentId => item::document_id,
    }
}
