//! `$select`: the properties that an answer has.

/// Most names of a `$select`: the properties of the largest entity.
pub const SELECT_NAMES_MAX: usize = 255;

/// The selected properties.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Select {
    /// `None` selects all.
    names: Option<Vec<String>>,
}

impl Select {
    /// Parses a list of names with commas between them. An empty text and `*` select all. `None` if there are too many
    /// names, or if one is empty.
    pub fn parse(text: &str) -> Option<Select> {
        if text.trim().is_empty() {
            return Some(Select::default());
        }
        let mut names = Vec::new();
        for name in text.split(',').map(str::trim) {
            match name {
                "" => return None,
                "*" => return Some(Select::default()),
                _ if names.iter().any(|known| known == name) => {}
                _ if names.len() == SELECT_NAMES_MAX => return None,
                _ => names.push(name.to_owned()),
            }
        }
        Some(Select { names: Some(names) })
    }

    /// Whether a property is selected.
    pub fn contains(&self, property: &str) -> bool {
        self.names.as_ref().is_none_or(|names| names.iter().any(|name| name == property))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read() {
        let select = Select::parse("a, RowKey,a").unwrap();
        assert!(
            select.contains("a")
                && select.contains("RowKey")
                && !select.contains("b")
                && !select.contains("A")
        );
        for all in ["", " ", "*", "a,*"] {
            assert!(Select::parse(all).unwrap().contains("anything"), "{all:?}");
        }
        for malformed in [",", "a,", ",a", "a,,b"] {
            assert_eq!(Select::parse(malformed), None);
        }
        let names = |count: usize| (0..count).map(|index| format!("n{index}")).collect::<Vec<_>>().join(",");
        assert!(Select::parse(&names(SELECT_NAMES_MAX)).is_some());
        assert_eq!(Select::parse(&names(SELECT_NAMES_MAX + 1)), None);
    }
}
