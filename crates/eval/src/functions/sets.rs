//! Arrays as sets: deep equality, duplicates removed.
//!
//! The service guarantees no order; here the elements keep the order of their first occurrence. NaN is a member of no
//! set, as it equals nothing; duplicates of it are removed like those of any other value.

use std::cmp::Ordering;

use value::{ValueRef, compare};

use super::Call;
use super::arrays::{SORT_STEPS, array_of, sorted_distinct};
use crate::EvalFault;
use crate::expression::{EvalResult, defined};
use crate::operators;

pub(super) fn intersect(call: Call<'_>) -> EvalResult<'_> {
    combine(call, |left, right| {
        let members = sorted_distinct(right);
        distinct(left.elements().filter(|element| is_member(&members, *element)))
    })
}

pub(super) fn union(call: Call<'_>) -> EvalResult<'_> {
    combine(call, |left, right| distinct(left.elements().chain(right.elements())))
}

pub(super) fn difference(call: Call<'_>) -> EvalResult<'_> {
    combine(call, |left, right| {
        let members = sorted_distinct(right);
        distinct(left.elements().filter(|element| !is_member(&members, *element)))
    })
}

pub(super) fn equal(call: Call<'_>) -> EvalResult<'_> {
    let left = defined!(call.array(0));
    let right = defined!(call.array(1));
    charge_sorts(call, left.as_ref(), right.as_ref())?;
    let (left, right) = (sorted_distinct(left.as_ref()), sorted_distinct(right.as_ref()));
    let is_equal = left.len() == right.len()
        && left.iter().zip(&right).all(|(left, right)| operators::equal(*left, *right));
    Ok(Some(is_equal.into()))
}

fn combine<'a>(
    call: Call<'a>,
    choose: impl for<'v> Fn(ValueRef<'v>, ValueRef<'v>) -> Vec<ValueRef<'v>>,
) -> EvalResult<'a> {
    let left = defined!(call.array(0));
    let right = defined!(call.array(1));
    charge_sorts(call, left.as_ref(), right.as_ref())?;
    Ok(Some(array_of(choose(left.as_ref(), right.as_ref()).into_iter())?.into()))
}

/// Both arrays are sorted, one of them twice.
fn charge_sorts(call: Call<'_>, left: ValueRef<'_>, right: ValueRef<'_>) -> Result<(), EvalFault> {
    call.charge(left.len().saturating_add(right.len()).saturating_mul(2 * SORT_STEPS))
}

fn is_member(sorted: &[ValueRef<'_>], element: ValueRef<'_>) -> bool {
    sorted.binary_search_by(|member| compare(*member, element)).is_ok() && !operators::holds_nan(element)
}

/// Each distinct element at its first occurrence.
fn distinct<'v>(elements: impl Iterator<Item = ValueRef<'v>>) -> Vec<ValueRef<'v>> {
    let mut placed: Vec<_> = elements.enumerate().collect();
    placed.sort_by(|left, right| compare(left.1, right.1).then(left.0.cmp(&right.0)));
    placed.dedup_by(|later, earlier| compare(later.1, earlier.1) == Ordering::Equal);
    placed.sort_by_key(|element| element.0);
    placed.into_iter().map(|element| element.1).collect()
}
