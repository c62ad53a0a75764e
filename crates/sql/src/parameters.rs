//! The parameters of a query.

use std::collections::HashMap;
use value::Value;

/// Values by name; names include the `@`: `@limit`.
#[derive(Clone, Debug, Default)]
pub struct Parameters {
    values: HashMap<String, Value>,
    missing_are_undefined: bool,
}

impl Parameters {
    /// No values.
    pub fn none() -> Parameters {
        Parameters::default()
    }

    /// The same values, where an expression may have a parameter without a value: it is undefined. For a query that is
    /// planned and not executed.
    #[must_use]
    pub fn or_undefined(self) -> Parameters {
        Parameters { missing_are_undefined: true, ..self }
    }

    pub(crate) fn missing_are_undefined(&self) -> bool {
        self.missing_are_undefined
    }

    /// The value of a name, if it exists.
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }
}

impl FromIterator<(String, Value)> for Parameters {
    /// If a name occurs twice, the last value wins.
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(pairs: I) -> Parameters {
        Parameters { values: pairs.into_iter().collect(), missing_are_undefined: false }
    }
}
