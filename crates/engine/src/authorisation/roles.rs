//! Roles: which holder of an identity provider's token may do what, and where.
//!
//! As in the service: a role lists data actions by name, an assignment gives a role to a principal at a scope, and
//! everything else is denied. Roles are about data. Databases, containers, scripts, users and permissions are changed
//! with a key, whatever the roles say.

use super::{Action, Resource, Sought};
use model::{AccessFault, ScopeName};

const READ_METADATA: &str = "Microsoft.DocumentDB/databaseAccounts/readMetadata";
const READ_ITEM: &str = "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/read";
const CREATE_ITEM: &str = "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/create";
const UPSERT_ITEM: &str = "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/upsert";
const REPLACE_ITEM: &str = "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/replace";
const DELETE_ITEM: &str = "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/delete";
const ALL_OF_ITEMS: &str = "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/*";
const EXECUTE_QUERY: &str = "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/executeQuery";
const READ_CHANGE_FEED: &str = "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/readChangeFeed";
const EXECUTE_PROCEDURE: &str =
    "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/executeStoredProcedure";
const MANAGE_CONFLICTS: &str =
    "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/manageConflicts";
const ALL_OF_CONTAINERS: &str = "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/*";

/// All data actions that have a name.
const DATA_ACTIONS: [&str; 10] = [
    READ_METADATA,
    READ_ITEM,
    CREATE_ITEM,
    UPSERT_ITEM,
    REPLACE_ITEM,
    DELETE_ITEM,
    EXECUTE_QUERY,
    READ_CHANGE_FEED,
    EXECUTE_PROCEDURE,
    MANAGE_CONFLICTS,
];

/// The roles that every account has: the short name, the service's name and its id there.
const BUILT_IN: [([&str; 3], &[&str]); 2] = [
    (
        ["reader", "Cosmos DB Built-in Data Reader", "00000000-0000-0000-0000-000000000001"],
        &[READ_METADATA, READ_ITEM, EXECUTE_QUERY, READ_CHANGE_FEED],
    ),
    (
        ["contributor", "Cosmos DB Built-in Data Contributor", "00000000-0000-0000-0000-000000000002"],
        &[READ_METADATA, ALL_OF_CONTAINERS, ALL_OF_ITEMS],
    ),
];

/// A role that the operator defines.
#[derive(Clone, Debug)]
pub struct RoleDefinition {
    /// Its name.
    pub name: String,
    /// Data actions; the last segment of one may be `*`.
    pub actions: Vec<String>,
}

/// A role that is assigned.
#[derive(Clone, Debug)]
pub struct RoleAssignment {
    /// The assignee.
    pub assignee: Assignee,
    /// A built-in role or one that is defined.
    pub role: String,
    /// The scope in which it is valid.
    pub scope: ScopeName,
}

/// The assignee of an assignment, identified by claims of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Assignee {
    /// The principal with this object id or, if tokens have none, this subject.
    Principal(String),
    /// The members of a group.
    Group(String),
    /// Principals to whom the identity provider gave a role of this name.
    AppRole(String),
}

/// All roles and assignments, checked.
#[derive(Clone, Debug, Default)]
pub struct RoleTable {
    assignments: Vec<(Assignee, RoleGrant)>,
}

/// The claims of a token about its holder.
pub(super) struct Claimant {
    pub(super) id: String,
    pub(super) groups: Vec<String>,
    pub(super) roles: Vec<String>,
}

/// What the roles of a principal allow.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RoleRights {
    principal: String,
    grants: Vec<RoleGrant>,
}

/// Actions that are allowed at a scope.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RoleGrant {
    actions: Vec<String>,
    scope: ScopeName,
}

impl RoleTable {
    /// Checks roles and assignments; the error names the invalid one.
    pub fn new(roles: Vec<RoleDefinition>, assignments: Vec<RoleAssignment>) -> Result<RoleTable, String> {
        for (index, role) in roles.iter().enumerate() {
            let is_same = |other: &RoleDefinition| other.name == role.name;
            if built_in(&role.name).is_some() || roles[..index].iter().any(is_same) {
                return Err(format!("the role \"{}\" is defined twice", role.name));
            }
            for action in &role.actions {
                if !DATA_ACTIONS.iter().any(|known| matches(action, known)) {
                    return Err(format!(
                        "the role \"{}\" has the unknown data action \"{action}\"",
                        role.name
                    ));
                }
            }
        }
        let assignments = assignments.into_iter().map(|assignment| {
            let own = roles.iter().find(|role| role.name == assignment.role).map(|role| role.actions.clone());
            let actions = own.or_else(|| built_in(&assignment.role));
            let actions =
                actions.ok_or_else(|| format!("the role \"{}\" is not defined", assignment.role))?;
            Ok((assignment.assignee, RoleGrant { actions, scope: assignment.scope }))
        });
        Ok(RoleTable { assignments: assignments.collect::<Result<_, String>>()? })
    }

    /// All rights that are assigned to the holder of a token.
    pub(super) fn rights_of(&self, claimant: Claimant) -> RoleRights {
        let is_given = |assignee: &Assignee| match assignee {
            Assignee::Principal(id) => *id == claimant.id,
            Assignee::Group(group) => claimant.groups.contains(group),
            Assignee::AppRole(role) => claimant.roles.contains(role),
        };
        let given = self.assignments.iter().filter(|(assignee, _)| is_given(assignee));
        let grants = given.map(|(_, grant)| grant.clone()).collect();
        RoleRights { principal: claimant.id, grants }
    }
}

impl RoleRights {
    pub(super) fn principal(&self) -> &str {
        &self.principal
    }

    /// Whether any role allows `action` on `resource`.
    pub(super) fn authorise(&self, action: Action, resource: Resource<'_>) -> Result<(), AccessFault> {
        let name = data_action(action).ok_or(AccessFault::RoleImpossible { needed: action.describe() })?;
        // Every client reads the account first, whatever scope its roles have.
        let anywhere = action == Action::ReadAccount;
        let allows = |grant: &RoleGrant| {
            grant.actions.iter().any(|pattern| matches(pattern, name))
                && (anywhere || includes(&grant.scope, resource))
        };
        if self.grants.iter().any(allows) {
            return Ok(());
        }
        Err(self.missing(name, scope_name(resource)))
    }

    /// Whether the holder may know if the sought resource exists: only inside the scope of a role. Outside of them the
    /// answer is the same whether it exists, which is `found`, or not.
    pub(super) fn reveal(
        &self,
        action: Action,
        sought: Sought<'_>,
        found: Option<Resource<'_>>,
    ) -> Result<(), AccessFault> {
        let name = data_action(action).ok_or(AccessFault::RoleImpossible { needed: action.describe() })?;
        let sees = |grant: &RoleGrant| match found {
            Some(resource) => includes(&grant.scope, resource),
            None => includes_sought(&grant.scope, sought),
        };
        if self.grants.iter().any(sees) {
            return Ok(());
        }
        let database = sought.database.to_owned();
        let scope = match sought.container {
            None => ScopeName::Database(database),
            Some(container) => ScopeName::Container { database, container: container.to_owned() },
        };
        Err(self.missing(name, scope))
    }

    fn missing(&self, action: &'static str, scope: ScopeName) -> AccessFault {
        let is_metadata = action == READ_METADATA;
        AccessFault::RoleMissing {
            principal: self.principal.clone(),
            action,
            scope: Box::new(scope),
            is_metadata,
        }
    }
}

/// Whether `resource` is inside `scope`. Names are the current ones: a container that is created again is a new one, but
/// its name was assigned to the same principals.
fn includes(scope: &ScopeName, resource: Resource<'_>) -> bool {
    match (scope, resource) {
        (ScopeName::Account, _) => true,
        (ScopeName::Database(name), Resource::Database(database)) => name == database.id(),
        (ScopeName::Database(name), Resource::Container(container, _)) => name == container.database().id(),
        (ScopeName::Container { database, container: name }, Resource::Container(container, _)) => {
            database == container.database().id() && name == container.id()
        }
        (ScopeName::Database(_), Resource::Account)
        | (ScopeName::Container { .. }, Resource::Account | Resource::Database(_)) => false,
    }
}

/// Whether a resource with these names would be inside `scope`.
fn includes_sought(scope: &ScopeName, sought: Sought<'_>) -> bool {
    match scope {
        ScopeName::Account => true,
        ScopeName::Database(name) => name == sought.database,
        ScopeName::Container { database, container } => {
            database == sought.database && sought.container == Some(container.as_str())
        }
    }
}

fn built_in(name: &str) -> Option<Vec<String>> {
    let found = BUILT_IN.iter().find(|(names, _)| names.contains(&name));
    found.map(|(_, actions)| actions.iter().map(|action| (*action).to_owned()).collect())
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

/// The data action that an action needs; `None` if no role grants it.
fn data_action(action: Action) -> Option<&'static str> {
    match action {
        Action::ReadAccount | Action::ReadMetadata => Some(READ_METADATA),
        Action::ReadDocument => Some(READ_ITEM),
        // Listing is a query for all documents.
        Action::ListDocuments | Action::QueryDocuments => Some(EXECUTE_QUERY),
        Action::ReadChangeFeed => Some(READ_CHANGE_FEED),
        Action::CreateDocument => Some(CREATE_ITEM),
        Action::UpsertDocument => Some(UPSERT_ITEM),
        Action::ReplaceDocument => Some(REPLACE_ITEM),
        Action::DeleteDocument => Some(DELETE_ITEM),
        Action::ExecuteProcedure => Some(EXECUTE_PROCEDURE),
        Action::ReadConflicts | Action::DeleteConflicts => Some(MANAGE_CONFLICTS),
        Action::ChangeMetadata | Action::ReadUsers | Action::ReadPermissions | Action::ChangePermissions => {
            None
        }
    }
}

fn scope_name(resource: Resource<'_>) -> ScopeName {
    match resource {
        Resource::Account => ScopeName::Account,
        Resource::Database(database) => ScopeName::Database(database.id().to_owned()),
        Resource::Container(container, _) => ScopeName::Container {
            database: container.database().id().to_owned(),
            container: container.id().to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rights(
        assignments: &[(Assignee, &str, ScopeName)],
        roles: Vec<RoleDefinition>,
    ) -> Result<RoleRights, String> {
        let assignments = assignments.iter().map(|(assignee, role, scope)| RoleAssignment {
            assignee: assignee.clone(),
            role: (*role).to_owned(),
            scope: scope.clone(),
        });
        let table = RoleTable::new(roles, assignments.collect())?;
        let (groups, roles) = (vec!["staff".to_owned()], vec!["Readers".to_owned()]);
        Ok(table.rights_of(Claimant { id: "ada".to_owned(), groups, roles }))
    }

    fn own(actions: &[&str]) -> Vec<RoleDefinition> {
        let actions = actions.iter().map(|action| (*action).to_owned()).collect();
        vec![RoleDefinition { name: "own".to_owned(), actions }]
    }

    fn ada() -> Assignee {
        Assignee::Principal("ada".to_owned())
    }

    #[test]
    fn roles_come_by_name_group_or_claim() {
        for (assignee, expected) in [
            (ada(), true),
            (Assignee::Principal("bob".to_owned()), false),
            (Assignee::Group("staff".to_owned()), true),
            (Assignee::Group("ada".to_owned()), false),
            (Assignee::AppRole("Readers".to_owned()), true),
            (Assignee::AppRole("staff".to_owned()), false),
        ] {
            let rights = rights(&[(assignee.clone(), "reader", ScopeName::Account)], Vec::new()).unwrap();
            let answer = rights.authorise(Action::ReadMetadata, Resource::Account);
            assert_eq!(answer.is_ok(), expected, "{assignee:?}");
        }
    }

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
    fn what_cannot_be_meant_is_refused() {
        assert!(rights(&[(ada(), "owner", ScopeName::Account)], Vec::new()).unwrap_err().contains("owner"));
        for action in
            ["", "*", "Microsoft.DocumentDB/*", "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/write"]
        {
            assert!(rights(&[], own(&[action])).unwrap_err().contains(action), "{action}");
        }
        assert!(rights(&[], [own(&[READ_ITEM]), own(&[READ_ITEM])].concat()).is_err());
        let named = RoleDefinition { name: "reader".to_owned(), actions: Vec::new() };
        assert!(rights(&[], vec![named]).is_err());
    }

    #[test]
    fn the_account_itself_is_read_by_whoever_reads_a_part_of_it() {
        let scope = ScopeName::Container { database: "d".to_owned(), container: "c".to_owned() };
        let part = rights(&[(ada(), "reader", scope)], Vec::new()).unwrap();
        assert!(part.authorise(Action::ReadAccount, Resource::Account).is_ok());
        assert!(part.authorise(Action::ReadMetadata, Resource::Account).is_err());
        let nothing = rights(&[(ada(), "own", ScopeName::Account)], own(&[READ_ITEM])).unwrap();
        assert!(nothing.authorise(Action::ReadAccount, Resource::Account).is_err());
    }

    #[test]
    fn no_role_changes_the_catalog() {
        let rights = rights(&[(ada(), "contributor", ScopeName::Account)], Vec::new()).unwrap();
        for action in [Action::ChangeMetadata, Action::ReadPermissions, Action::ChangePermissions] {
            let answer = rights.authorise(action, Resource::Account);
            assert!(matches!(answer, Err(AccessFault::RoleImpossible { .. })), "{action:?}");
        }
        assert!(rights.authorise(Action::ExecuteProcedure, Resource::Account).is_ok());
    }
}
