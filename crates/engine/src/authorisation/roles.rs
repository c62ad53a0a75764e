//! Roles: which holder of an identity provider's token may do what, and where.
//!
//! A role lists data actions, an assignment gives a role to a principal at a scope, and
//! everything else is denied. Roles are about data. Databases, containers, scripts, users and permissions are changed
//! with a key, whatever the roles say.

use super::{Action, Resource, Sought};
use model::{AccessFault, DataAction, ScopeName};

/// A role.
#[derive(Clone, Debug)]
pub struct RoleDefinition {
    /// Its name.
    pub name: String,
    /// What it allows.
    pub actions: Vec<DataAction>,
}

/// A role that is assigned.
#[derive(Clone, Debug)]
pub struct RoleAssignment {
    /// The assignee.
    pub assignee: Assignee,
    /// The name of a role.
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
    actions: Vec<DataAction>,
    scope: ScopeName,
}

impl RoleTable {
    /// Checks roles and assignments; the error names the invalid one.
    pub fn new(roles: Vec<RoleDefinition>, assignments: Vec<RoleAssignment>) -> Result<RoleTable, String> {
        for (index, role) in roles.iter().enumerate() {
            let is_same = |other: &RoleDefinition| other.name == role.name;
            if roles[..index].iter().any(is_same) {
                return Err(format!("the role \"{}\" is defined twice", role.name));
            }
        }
        let assignments = assignments.into_iter().map(|assignment| {
            let role = roles.iter().find(|role| role.name == assignment.role);
            let role = role.ok_or_else(|| format!("the role \"{}\" is not defined", assignment.role))?;
            let grant = RoleGrant { actions: role.actions.clone(), scope: assignment.scope };
            Ok((assignment.assignee, grant))
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
        let needed = data_action(action).ok_or(AccessFault::RoleImpossible { needed: action.describe() })?;
        // Every client reads the account first, whatever scope its roles have.
        let anywhere = action == Action::ReadAccount;
        let allows = |grant: &RoleGrant| {
            grant.actions.contains(&needed) && (anywhere || includes(&grant.scope, resource))
        };
        if self.grants.iter().any(allows) {
            return Ok(());
        }
        Err(self.missing(needed, scope_name(resource)))
    }

    /// Whether the holder may know if the sought resource exists: only inside the scope of a role. Outside of them the
    /// answer is the same whether it exists, which is `found`, or not.
    pub(super) fn reveal(
        &self,
        action: Action,
        sought: Sought<'_>,
        found: Option<Resource<'_>>,
    ) -> Result<(), AccessFault> {
        let needed = data_action(action).ok_or(AccessFault::RoleImpossible { needed: action.describe() })?;
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
        Err(self.missing(needed, scope))
    }

    fn missing(&self, action: DataAction, scope: ScopeName) -> AccessFault {
        AccessFault::RoleMissing { principal: self.principal.clone(), action, scope: Box::new(scope) }
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

/// The data action that an action needs; `None` if no role grants it.
fn data_action(action: Action) -> Option<DataAction> {
    match action {
        Action::ReadAccount | Action::ReadMetadata => Some(DataAction::ReadMetadata),
        Action::ReadDocument => Some(DataAction::ReadDocument),
        // Listing is a query for all documents.
        Action::ListDocuments | Action::QueryDocuments => Some(DataAction::Query),
        Action::ReadChangeFeed => Some(DataAction::ReadChangeFeed),
        Action::CreateDocument => Some(DataAction::CreateDocument),
        Action::UpsertDocument => Some(DataAction::UpsertDocument),
        Action::ReplaceDocument => Some(DataAction::ReplaceDocument),
        Action::DeleteDocument => Some(DataAction::DeleteDocument),
        Action::ExecuteProcedure => Some(DataAction::ExecuteProcedure),
        Action::ReadConflicts | Action::DeleteConflicts => Some(DataAction::ManageConflicts),
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

    fn role(name: &str, actions: &[DataAction]) -> RoleDefinition {
        RoleDefinition { name: name.to_owned(), actions: actions.to_vec() }
    }

    fn reader() -> Vec<RoleDefinition> {
        vec![role("reader", &[DataAction::ReadMetadata, DataAction::Query])]
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
            let rights = rights(&[(assignee.clone(), "reader", ScopeName::Account)], reader()).unwrap();
            let answer = rights.authorise(Action::ReadMetadata, Resource::Account);
            assert_eq!(answer.is_ok(), expected, "{assignee:?}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        assert!(rights(&[(ada(), "owner", ScopeName::Account)], reader()).unwrap_err().contains("owner"));
        assert!(rights(&[], [reader(), reader()].concat()).unwrap_err().contains("reader"));
    }

    #[test]
    fn the_account_itself_is_read_by_whoever_reads_a_part_of_it() {
        let scope = ScopeName::Container { database: "d".to_owned(), container: "c".to_owned() };
        let part = rights(&[(ada(), "reader", scope)], reader()).unwrap();
        assert!(part.authorise(Action::ReadAccount, Resource::Account).is_ok());
        assert!(part.authorise(Action::ReadMetadata, Resource::Account).is_err());
        let nothing =
            rights(&[(ada(), "own", ScopeName::Account)], vec![role("own", &[DataAction::ReadDocument])])
                .unwrap();
        assert!(nothing.authorise(Action::ReadAccount, Resource::Account).is_err());
    }

    #[test]
    fn no_role_changes_the_catalog() {
        let all = vec![role("contributor", &DataAction::ALL)];
        let rights = rights(&[(ada(), "contributor", ScopeName::Account)], all).unwrap();
        for action in [Action::ChangeMetadata, Action::ReadPermissions, Action::ChangePermissions] {
            let answer = rights.authorise(action, Resource::Account);
            assert!(matches!(answer, Err(AccessFault::RoleImpossible { .. })), "{action:?}");
        }
        assert!(rights.authorise(Action::ExecuteProcedure, Resource::Account).is_ok());
    }
}
