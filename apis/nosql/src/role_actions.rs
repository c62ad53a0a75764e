//! Data actions and built-in roles by the names that the service gives them.

use engine::RoleDefinition;
use model::DataAction;

/// The roles that every account has: the short name, the service's name and its id there.
const BUILT_IN: [([&str; 3], &[&str]); 2] = [
    (
        ["reader", "Cosmos DB Built-in Data Reader", "00000000-0000-0000-0000-000000000001"],
        &[
            name(DataAction::ReadMetadata),
            name(DataAction::ReadDocument),
            name(DataAction::Query),
            name(DataAction::ReadChangeFeed),
        ],
    ),
    (
        ["contributor", "Cosmos DB Built-in Data Contributor", "00000000-0000-0000-0000-000000000002"],
        &[
            name(DataAction::ReadMetadata),
            "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/*",
            "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/*",
        ],
    ),
];

/// The service's name of an action.
pub(crate) const fn name(action: DataAction) -> &'static str {
    match action {
        DataAction::ReadMetadata => "Microsoft.DocumentDB/databaseAccounts/readMetadata",
        DataAction::ReadDocument => {
            "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/read"
        }
        DataAction::CreateDocument => {
            "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/create"
        }
        DataAction::UpsertDocument => {
            "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/upsert"
        }
        DataAction::ReplaceDocument => {
            "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/replace"
        }
        DataAction::DeleteDocument => {
            "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/delete"
        }
        DataAction::Query => "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/executeQuery",
        DataAction::ReadChangeFeed => {
            "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/readChangeFeed"
        }
        DataAction::ExecuteProcedure => {
            "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/executeStoredProcedure"
        }
        DataAction::ManageConflicts => {
            "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/manageConflicts"
        }
    }
}

/// The roles that every account has, one for each of their names.
pub fn built_in_roles() -> Vec<RoleDefinition> {
    let role = |name: &&str, patterns: &[&str]| RoleDefinition {
        name: (*name).to_owned(),
        actions: patterns.iter().flat_map(|pattern| matching(pattern)).collect(),
    };
    BUILT_IN.iter().flat_map(|(names, patterns)| names.iter().map(move |name| role(name, patterns))).collect()
}

/// A role from the names of its data actions; the last segment of one may be `*`. The error names an unknown action.
pub fn role(name: String, patterns: &[String]) -> Result<RoleDefinition, String> {
    let mut actions = Vec::new();
    for pattern in patterns {
        let before = actions.len();
        actions.extend(matching(pattern));
        if actions.len() == before {
            return Err(format!("the role \"{name}\" has the unknown data action \"{pattern}\""));
        }
    }
    Ok(RoleDefinition { name, actions })
}

fn matching(pattern: &str) -> impl Iterator<Item = DataAction> {
    DataAction::ALL.into_iter().filter(move |action| matches(pattern, name(*action)))
}

/// Whether an action is the one that a role lists, or matches its `*`, which stands for a single segment.
fn matches(pattern: &str, action: &str) -> bool {
    match pattern.strip_suffix('*') {
        None => pattern.eq_ignore_ascii_case(action),
        Some(start) if start.ends_with('/') => {
            let begins = action.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start));
            begins && action.get(start.len()..).is_some_and(|rest| !rest.contains('/'))
        }
        Some(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ_METADATA: &str = name(DataAction::ReadMetadata);
    const READ_ITEM: &str = name(DataAction::ReadDocument);
    const EXECUTE_QUERY: &str = name(DataAction::Query);
    const ALL_OF_CONTAINERS: &str = BUILT_IN[1].1[1];
    const ALL_OF_ITEMS: &str = BUILT_IN[1].1[2];

    #[test]
    fn a_star_stands_for_one_part() {
        for (pattern, action, expected) in [
            (ALL_OF_ITEMS, READ_ITEM, true),
            (ALL_OF_ITEMS, EXECUTE_QUERY, false),
            (ALL_OF_CONTAINERS, EXECUTE_QUERY, true),
            (ALL_OF_CONTAINERS, READ_ITEM, false),
            ("Microsoft.DocumentDB/databaseAccounts/*", READ_METADATA, true),
            ("Microsoft.DocumentDB/databaseAccounts/*", READ_ITEM, false),
            ("microsoft.documentdb/DATABASEACCOUNTS/readmetadata", READ_METADATA, true),
            ("*", READ_METADATA, false),
            ("Microsoft.DocumentDB/databaseAccounts/read*", READ_METADATA, false),
            ("", READ_METADATA, false),
        ] {
            assert_eq!(matches(pattern, action), expected, "{pattern} {action}");
        }
    }

    #[test]
    fn unknown_actions_are_refused() {
        for action in
            ["", "*", "Microsoft.DocumentDB/*", "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/write"]
        {
            let refused = role("own".to_owned(), &[READ_ITEM.to_owned(), action.to_owned()]);
            assert!(refused.unwrap_err().contains(action), "{action}");
        }
        let known = role("own".to_owned(), &[READ_ITEM.to_owned(), EXECUTE_QUERY.to_owned()]).unwrap();
        assert_eq!(known.actions, [DataAction::ReadDocument, DataAction::Query]);
    }

    #[test]
    fn built_in_roles_are_known_by_three_names() {
        let roles = built_in_roles();
        assert_eq!(roles.len(), 6);
        for role in &roles {
            match role.name.as_str() {
                "reader" | "Cosmos DB Built-in Data Reader" | "00000000-0000-0000-0000-000000000001" => {
                    assert_eq!(role.actions.len(), 4, "{role:?}");
                }
                _ => assert_eq!(role.actions.len(), DataAction::ALL.len(), "{role:?}"),
            }
        }
    }
}
