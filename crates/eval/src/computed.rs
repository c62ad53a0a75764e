//! A computed value: borrowed from the document or the query where possible.

use value::{Kind, Value, ValueRef};

/// A value that an expression yields. Undefined is the `None` of an `Option<Computed>`.
#[derive(Debug, Clone)]
pub enum Computed<'a> {
    /// Part of a document or a constant of the query.
    Borrowed(ValueRef<'a>),
    /// Created by the evaluation.
    Owned(Value),
}

impl<'a> Computed<'a> {
    /// The value as a reference.
    #[inline]
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Computed::Borrowed(value) => *value,
            Computed::Owned(value) => value.as_ref(),
        }
    }

    /// The value as an owned tree.
    pub fn into_value(self) -> Value {
        match self {
            Computed::Borrowed(value) => value.to_value(),
            Computed::Owned(value) => value,
        }
    }

    /// Kind of the value.
    #[inline]
    pub fn kind(&self) -> Kind {
        self.as_ref().kind()
    }

    /// The boolean, if this is one.
    #[inline]
    pub fn as_bool(&self) -> Option<bool> {
        self.as_ref().as_bool()
    }

    /// The member `name`, if this is an object that has it.
    #[inline]
    pub(crate) fn member(self, name: &str) -> Option<Computed<'a>> {
        match self {
            Computed::Borrowed(value) => value.member(name).map(Computed::Borrowed),
            Computed::Owned(Value::Object(mut members)) => {
                // The last of equal names counts.
                let place = members.iter().rposition(|member| member.0 == name)?;
                Some(Computed::Owned(members.swap_remove(place).1))
            }
            Computed::Owned(_) => None,
        }
    }

    /// The element at `index`, if this is an array that long.
    pub(crate) fn element(self, index: usize) -> Option<Computed<'a>> {
        match self {
            Computed::Borrowed(value) => value.element(index).map(Computed::Borrowed),
            Computed::Owned(Value::Array(mut elements)) => {
                (index < elements.len()).then(|| Computed::Owned(elements.swap_remove(index)))
            }
            Computed::Owned(_) => None,
        }
    }
}

impl<'a> From<ValueRef<'a>> for Computed<'a> {
    fn from(value: ValueRef<'a>) -> Computed<'a> {
        Computed::Borrowed(value)
    }
}

impl From<Value> for Computed<'_> {
    fn from(value: Value) -> Self {
        Computed::Owned(value)
    }
}

impl From<bool> for Computed<'_> {
    fn from(value: bool) -> Self {
        Computed::Owned(Value::Bool(value))
    }
}
