//! The scope of a role assignment as text, in the service's form: `/`, `/dbs/NAME` or `/dbs/NAME/colls/NAME`.

use model::ScopeName;

/// Parses a scope.
pub fn role_scope(text: &str) -> Option<ScopeName> {
    let parts: Vec<&str> = text.strip_prefix('/')?.split('/').collect();
    let is_named = |name: &str| !name.is_empty();
    match parts[..] {
        [""] => Some(ScopeName::Account),
        ["dbs", database] if is_named(database) => Some(ScopeName::Database(database.to_owned())),
        ["dbs", database, "colls", container] if is_named(database) && is_named(container) => {
            Some(ScopeName::Container { database: database.to_owned(), container: container.to_owned() })
        }
        _ => None,
    }
}

/// The text of a scope.
pub(crate) fn text(scope: &ScopeName) -> String {
    match scope {
        ScopeName::Account => "/".to_owned(),
        ScopeName::Database(database) => format!("/dbs/{database}"),
        ScopeName::Container { database, container } => format!("/dbs/{database}/colls/{container}"),
    }
}

#[test]
fn a_scope_is_the_account_a_database_or_a_container() {
    for scope in ["/", "/dbs/d", "/dbs/d/colls/c"] {
        assert_eq!(text(&role_scope(scope).unwrap()), scope);
    }
    for scope in [
        "",
        "dbs/d",
        "/dbs",
        "/dbs/",
        "/dbs/d/",
        "/dbs/d/colls",
        "/dbs/d/colls/",
        "/dbs//colls/c",
        "/dbs/d/colls/c/",
        "/dbs/d/colls/c/docs/i",
        "//",
        "/x/d",
    ] {
        assert_eq!(role_scope(scope), None, "{scope}");
    }
}
