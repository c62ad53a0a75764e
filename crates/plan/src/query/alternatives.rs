//! The candidates of an IN and the members of an OR, with a search by value.
//!
//! Clients that look for a thousand documents at once send lists and chains of a thousand members. If all members
//! compare the same path with constants, they are sorted by these constants once, and an evaluation only looks at the
//! members that match the value.

use super::{BinaryOperator, Expression};
use std::cmp::Ordering;
use std::ops::Deref;
use std::sync::OnceLock;
use value::{Value, ValueRef, compare};

/// Up to this number, members are evaluated one after the other instead of being sorted.
const FEW: usize = 8;

/// The candidates of an IN or the members of an OR. The sorted form is a cache and not part of the value.
#[derive(Clone, Debug, Default)]
pub struct Alternatives {
    members: Vec<Expression>,
    /// Filled at the first use.
    sorted: OnceLock<Option<Box<Sorted>>>,
}

#[derive(Clone, Debug)]
struct Sorted {
    /// The expression that the members compare; `None` if they are constants themselves.
    key: Option<Expression>,
    /// The members by their constants.
    positions: Box<[ConstantPosition]>,
}

/// The position of a constant.
#[derive(Clone, Copy, Debug)]
struct ConstantPosition {
    member: usize,
    /// Index in the AND of the member; `None` if the member is not an AND.
    part: Option<usize>,
}

impl Alternatives {
    /// The expression that all members compare with constants, so that [`Alternatives::picked`] can select by its
    /// value; `None` if the members are not sorted by a key. If it is defined, members that are not picked are neither
    /// true nor undefined.
    pub fn key(&self) -> Option<&Expression> {
        self.sorted()?.key.as_ref()
    }

    /// Whether the members are constants that [`Alternatives::picked`] can select from.
    pub fn are_constants(&self) -> bool {
        self.sorted().is_some_and(|sorted| sorted.key.is_none())
    }

    /// The members whose constant compares as equal to a value; all members if they are not sorted.
    pub fn picked<'a>(&'a self, value: ValueRef<'_>) -> impl Iterator<Item = &'a Expression> {
        let (sorted, few): (&[ConstantPosition], &[Expression]) = match self.sorted() {
            Some(sorted) => (&sorted.positions, &[]),
            None => (&[], &self.members),
        };
        let order = |position: &ConstantPosition| {
            self.constant(*position).map_or(Ordering::Less, |constant| compare(constant.as_ref(), value))
        };
        let first = sorted.partition_point(|position| order(position).is_lt());
        let last = first + sorted[first..].partition_point(|position| order(position).is_eq());
        sorted[first..last].iter().filter_map(|position| self.members.get(position.member)).chain(few)
    }

    /// The members, mutable.
    pub(crate) fn members_mut(&mut self) -> &mut [Expression] {
        self.sorted = OnceLock::new();
        &mut self.members
    }

    fn sorted(&self) -> Option<&Sorted> {
        if self.members.len() <= FEW {
            return None;
        }
        self.sorted.get_or_init(|| self.sort().map(Box::new)).as_deref()
    }

    fn sort(&self) -> Option<Sorted> {
        if self.members.iter().all(|member| matches!(member, Expression::Constant(_))) {
            let positions = (0..self.members.len()).map(|member| ConstantPosition { member, part: None });
            return Some(Sorted { key: None, positions: self.by_constant(positions.collect()) });
        }
        if !self.members.iter().flat_map(parts).all(is_plain_comparison) {
            return None;
        }
        // Of several keys, take the one that distinguishes most members.
        let keys = parts(self.members.first()?).iter().filter_map(equality).map(|(key, _)| key);
        let sorted = keys.filter_map(|key| {
            let positions: Option<Vec<ConstantPosition>> =
                (0..self.members.len()).map(|member| self.position(member, key)).collect();
            let positions = self.by_constant(positions?);
            let is_other = |pair: &&[ConstantPosition]| self.order(pair[0], pair[1]).is_ne();
            let different = positions.windows(2).filter(is_other).count();
            Some((different, Sorted { key: Some(key.clone()), positions }))
        });
        let (different, sorted) = sorted.max_by_key(|(different, _)| *different)?;
        (different > 0).then_some(sorted)
    }

    fn by_constant(&self, mut positions: Vec<ConstantPosition>) -> Box<[ConstantPosition]> {
        positions.sort_by(|one, other| self.order(*one, *other));
        positions.into()
    }

    fn order(&self, one: ConstantPosition, other: ConstantPosition) -> Ordering {
        match (self.constant(one), self.constant(other)) {
            (Some(one), Some(other)) => compare(one.as_ref(), other.as_ref()),
            (one, other) => one.is_some().cmp(&other.is_some()),
        }
    }

    /// The position where a member compares `key` with a constant.
    fn position(&self, member: usize, key: &Expression) -> Option<ConstantPosition> {
        let expression = self.members.get(member)?;
        let is_key = |part: &Expression| equality(part).is_some_and(|(compared, _)| compared == key);
        let part = parts(expression).iter().position(is_key)?;
        Some(ConstantPosition { member, part: matches!(expression, Expression::And(_)).then_some(part) })
    }

    fn constant(&self, position: ConstantPosition) -> Option<&Value> {
        let member = self.members.get(position.member)?;
        if let Expression::Constant(constant) = member {
            return Some(constant);
        }
        let part = match position.part {
            Some(part) => parts(member).get(part)?,
            None => member,
        };
        equality(part).map(|(_, constant)| constant)
    }
}

/// The members of an AND, or the expression itself.
fn parts(member: &Expression) -> &[Expression] {
    if let Expression::And(parts) = member {
        return parts;
    }
    std::slice::from_ref(member)
}

/// A path and the constant that it must equal.
fn equality(part: &Expression) -> Option<(&Expression, &Value)> {
    let Expression::Binary(BinaryOperator::Equal, left, right) = part else {
        return None;
    };
    if let (key, Expression::Constant(constant)) = (&**left, &**right) {
        return is_path(key).then_some((key, constant));
    }
    if let (Expression::Constant(constant), key) = (&**left, &**right) {
        return is_path(key).then_some((key, constant));
    }
    None
}

/// Whether this compares paths and constants, and so never fails: skipping it has no visible effect.
fn is_plain_comparison(part: &Expression) -> bool {
    let is_plain = |side: &Expression| matches!(side, Expression::Constant(_)) || is_path(side);
    matches!(part, Expression::Binary(_, left, right) if is_plain(left) && is_plain(right))
}

fn is_path(expression: &Expression) -> bool {
    let mut base = expression;
    while let Expression::Member(inner, _) = base {
        base = inner;
    }
    matches!(base, Expression::Slot(_))
}

impl Deref for Alternatives {
    type Target = [Expression];

    fn deref(&self) -> &[Expression] {
        &self.members
    }
}

impl PartialEq for Alternatives {
    fn eq(&self, other: &Alternatives) -> bool {
        self.members == other.members
    }
}

impl From<Vec<Expression>> for Alternatives {
    fn from(members: Vec<Expression>) -> Alternatives {
        Alternatives { members, sorted: OnceLock::new() }
    }
}

impl FromIterator<Expression> for Alternatives {
    fn from_iter<I: IntoIterator<Item = Expression>>(members: I) -> Alternatives {
        members.into_iter().collect::<Vec<_>>().into()
    }
}

impl IntoIterator for Alternatives {
    type Item = Expression;
    type IntoIter = std::vec::IntoIter<Expression>;

    fn into_iter(self) -> Self::IntoIter {
        self.members.into_iter()
    }
}

impl<'a> IntoIterator for &'a Alternatives {
    type Item = &'a Expression;
    type IntoIter = std::slice::Iter<'a, Expression>;

    fn into_iter(self) -> Self::IntoIter {
        self.members.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::SlotId;

    fn path(name: &str) -> Expression {
        Expression::path(SlotId(0), [name.to_owned()])
    }

    fn equals(name: &str, value: Value) -> Expression {
        Expression::Binary(BinaryOperator::Equal, Box::new(path(name)), Box::new(Expression::Constant(value)))
    }

    fn picked(alternatives: &Alternatives, value: Value) -> Vec<usize> {
        let all: Vec<&Expression> = alternatives.iter().collect();
        let index = |found: &Expression| all.iter().position(|member| std::ptr::eq(*member, found)).unwrap();
        let mut picked: Vec<usize> = alternatives.picked(value.as_ref()).map(index).collect();
        picked.sort_unstable();
        picked
    }

    #[test]
    fn constants_are_picked_by_equality() {
        let values = [7, 1, 9, 3, 1, 8, 2, 6, 5, 4].map(Value::Int64).into_iter();
        let list: Alternatives = values.chain([Value::from("1")]).map(Expression::Constant).collect();
        assert!(list.are_constants() && list.key().is_none());
        assert_eq!(picked(&list, Value::Double(1.0)), [1, 4]);
        assert_eq!(picked(&list, Value::from("1")), [10]);
        assert_eq!(picked(&list, Value::Int64(10)), [0; 0]);
        let few: Alternatives = vec![Expression::Constant(Value::Null)].into();
        assert!(!few.are_constants());
        assert_eq!(picked(&few, Value::Int64(1)), [0]);
    }

    #[test]
    fn members_of_a_chain_are_picked_by_the_key_that_tells_them_apart() {
        let pair = |number: i64| {
            Expression::And(vec![equals("pk", Value::from("same")), equals("id", Value::Int64(number % 10))])
        };
        let mut chain: Alternatives = (0..20).map(pair).collect();
        assert_eq!(chain.key(), Some(&path("id")));
        assert_eq!(picked(&chain, Value::Int64(4)), [4, 14]);
        // Changed members are sorted again.
        chain.members_mut()[0] = equals("id", Value::Int64(4));
        assert_eq!(picked(&chain, Value::Int64(4)), [0, 4, 14]);
        chain.members_mut()[0] = equals("other", Value::Int64(4));
        assert!(chain.key().is_none());
        let same: Alternatives = (0..20).map(|_| equals("id", Value::Null)).collect();
        assert!(same.key().is_none());
    }
}
