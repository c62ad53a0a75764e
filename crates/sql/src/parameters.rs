//! The parameters of a query.

use std::collections::HashMap;
use value::Value;

/// Values by name; names include the `@`: `@limit`.
#[derive(Clone, Debug, Default)]
pub struct Parameters {
    values: HashMap<String, Value>,
}

impl Parameters {
    /// No values.
    pub fn none() -> Parameters {
        Parameters::default()
    }

    /// The value of a name, if it exists.
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }
}

impl FromIterator<(String, Value)> for Parameters {
    /// If a name occurs twice, the last value wins.
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(pairs: I) -> Parameters {
        Parameters { values: pairs.into_iter().collect() }
    }
}
