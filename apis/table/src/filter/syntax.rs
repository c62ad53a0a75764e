//! The syntax tree of a filter. Chains of `and` and `or` are one node, whatever their length.

use plan::query::Comparison;
use value::Value;

/// A condition on an entity.
#[derive(Clone, Debug, PartialEq)]
pub enum Filter {
    /// All of these, at least two.
    And(Vec<Filter>),
    /// One of these, at least two.
    Or(Vec<Filter>),
    /// The opposite.
    Not(Box<Filter>),
    /// A property compared with a literal. Comparisons with the literal on the left are turned around.
    Compare {
        /// The name of the property.
        property: String,
        /// The comparison.
        comparison: Comparison,
        /// The literal: a value of one of the Edm types.
        literal: Value,
    },
    /// A Boolean property alone.
    Property(String),
    /// `true` or `false` alone.
    Constant(bool),
}
