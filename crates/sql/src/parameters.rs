//! The values that came beside a query's text.

use std::collections::HashMap;
use value::Value;

/// Values by name; names carry their sign: `@limit`.
#[derive(Clone, Debug, Default)]
pub struct Parameters {
    values: HashMap<String, Value>,
}

impl Parameters {
    /// No values.
    pub fn none() -> Parameters {
        Parameters::default()
    }

    /// The value of a name, if it has one.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }
}

impl FromIterator<(String, Value)> for Parameters {
    /// Of equal names the last counts.
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(pairs: I) -> Parameters {
        Parameters { values: pairs.into_iter().collect() }
    }
}
