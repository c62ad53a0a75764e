//! `VectorDistance`: the distance of two arrays of numbers.
//!
//! The distance is always computed exactly, whatever the flag that forbids the use of an index. The container's policy
//! defines the function and the number format of a path and arrives here as the options of the call; the default is the
//! cosine of the unconverted numbers.

use value::{Kind, ValueRef};

use super::Call;
use crate::EvalFault;
use crate::expression::{EvalResult, defined};
use crate::number::double_value;

/// Sums needed by all three functions.
#[derive(Default)]
struct Sums {
    product: f64,
    left_squared: f64,
    right_squared: f64,
    difference_squared: f64,
}

/// The distance; undefined for anything but two number arrays of equal length.
pub(super) fn distance(call: Call<'_>) -> EvalResult<'_> {
    Ok(measured(call)?.map(|measured| double_value(measured.distance).into()))
}

/// The same as a score, where larger is better, for clients that merge by scores.
pub(super) fn score(call: Call<'_>) -> EvalResult<'_> {
    Ok(measured(call)?.map(|measured| {
        let sign = if measured.nearer_is_larger { 1.0 } else { -1.0 };
        double_value(sign * measured.distance).into()
    }))
}

struct Measured {
    distance: f64,
    nearer_is_larger: bool,
}

fn measured(call: Call<'_>) -> Result<Option<Measured>, EvalFault> {
    let left = defined!(call.array(0));
    let right = defined!(call.array(1));
    let _is_exact: bool = defined!(call.flag(2));
    let options = if call.has(3) { Some(defined!(call.value(3))) } else { None };
    let Some(sums) = sums(left.as_ref(), right.as_ref()) else {
        return Ok(None);
    };
    let function = match &options {
        Some(options) if options.kind() != Kind::Object => return Ok(None),
        Some(options) => option(options.as_ref(), "distanceFunction"),
        None => None,
    };
    let Some(function) = function.map_or(Some("cosine"), ValueRef::as_str) else {
        return Ok(None);
    };
    let (distance, nearer_is_larger) = if function.eq_ignore_ascii_case("cosine") {
        (cosine(&sums), true)
    } else if function.eq_ignore_ascii_case("dotproduct") {
        (sums.product, true)
    } else if function.eq_ignore_ascii_case("euclidean") {
        (sums.difference_squared.sqrt(), false)
    } else {
        return Ok(None);
    };
    Ok(Some(Measured { distance, nearer_is_larger }))
}

/// A member of the options, its name in any letter case.
fn option<'v>(options: ValueRef<'v>, name: &str) -> Option<ValueRef<'v>> {
    options.members().find(|member| member.0.eq_ignore_ascii_case(name)).map(|member| member.1)
}

fn sums(left: ValueRef<'_>, right: ValueRef<'_>) -> Option<Sums> {
    if left.len() != right.len() {
        return None;
    }
    left.elements().zip(right.elements()).try_fold(Sums::default(), |sums, (left, right)| {
        let (left, right) = (left.as_f64()?, right.as_f64()?);
        Some(Sums {
            product: sums.product + left * right,
            left_squared: sums.left_squared + left * left,
            right_squared: sums.right_squared + right * right,
            difference_squared: sums.difference_squared + (left - right) * (left - right),
        })
    })
}

/// From -1 to 1; 0 if a vector is zero.
fn cosine(sums: &Sums) -> f64 {
    let norm = sums.left_squared.sqrt() * sums.right_squared.sqrt();
    if norm == 0.0 { 0.0 } else { (sums.product / norm).clamp(-1.0, 1.0) }
}
