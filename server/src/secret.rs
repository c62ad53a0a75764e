//! Text that must not be printed by accident.

/// A key or token. It has no `Display`, and its `Debug` is redacted; [`Secret::reveal`] is easy to search for.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

impl Secret {
    pub(crate) fn new(text: String) -> Secret {
        Secret(text)
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

#[test]
fn a_secret_is_not_printed() {
    assert_eq!(format!("{:?}", Some(Secret::new("hidden".to_owned()))), "Some(Secret(…))");
}
