//! Permissions of a user: each names a resource of the user's database, which is looked up when it is written.

use super::entries::{Addressed, Container, Page, PageRequest};
use super::shelf::Entry;
use super::small::{Creation, Wanted, Written};
use super::state::CatalogState;
use super::users::User;
use crate::access::{AdminPass, CatalogPass, Grant, GrantScope, Named, Permissions, check_parent};
use crate::engine::Engine;
use model::{ConflictFault, Fault, MissingFault, PermissionDefinition, RequestFault, Rid, ScriptKind};
use plan::Condition;
use std::borrow::Cow;
use std::sync::Arc;

/// A permission with what it grants.
pub type Permission = Entry<Grant>;

impl Engine {
    /// Finds a permission of `user` by name, or else by RID.
    pub fn find_permission(
        &self,
        pass: &CatalogPass<Permissions<'_>>,
        user: &User,
        segment: &str,
    ) -> Result<Arc<Permission>, Fault> {
        check_parent(user, pass.resource.database.rid())?;
        let found = self.catalog.state().shelves.permissions.find(user.rid(), segment);
        found.map(|found| found.resource).ok_or_else(|| MissingFault::Resource.into())
    }

    /// Creates a permission for a resource that exists.
    pub async fn create_permission(
        &self,
        pass: AdminPass<Permissions<'_>>,
        user: &User,
        definition: PermissionDefinition,
        creation: &Creation,
    ) -> Result<Written<Permission>, Fault> {
        check_parent(user, pass.resource.database.rid())?;
        let mut change = self.catalog.begin(self).await?;
        change.state.shelves.users.get(user.number()).ok_or(MissingFault::Owner)?;
        let grant = resolved(&change.state, user, definition)?;
        let Rid::DatabaseChild(database, of_user) = user.rid() else {
            return Err(Fault::Internal("a user has a RID of another kind".to_owned()));
        };
        let id = grant.definition.id.clone();
        let existing = change.state.shelves.permissions.find_by_name(user.rid(), &id).cloned();
        refuse_second(&change.state, user.rid(), &grant, existing.as_deref())?;
        let wanted = Wanted { parent: user.rid(), id: &id, definition: grant };
        let rid = |number| Rid::Permission(database, of_user, number);
        let written = change.create_or_replace(|shelves| &mut shelves.permissions, creation, wanted, rid)?;
        change.commit().await?;
        Ok(written)
    }

    /// Replaces a permission, which ends its tokens.
    pub async fn replace_permission(
        &self,
        pass: AdminPass<Permissions<'_>>,
        user: &User,
        permission: &Permission,
        definition: PermissionDefinition,
        condition: &Condition,
    ) -> Result<Arc<Permission>, Fault> {
        check_parent(user, pass.resource.database.rid())?;
        check_parent(permission, user.rid())?;
        let mut change = self.catalog.begin(self).await?;
        let current = change.current_entry(|shelves| &mut shelves.permissions, permission, condition)?;
        let grant = resolved(&change.state, user, definition)?;
        refuse_second(&change.state, user.rid(), &grant, Some(&current))?;
        let id = grant.definition.id.clone();
        let replaced = change.rename_or_replace(|shelves| &mut shelves.permissions, &current, &id, grant)?;
        change.commit().await?;
        Ok(replaced)
    }

    /// Deletes a permission, which ends its tokens.
    pub async fn delete_permission(
        &self,
        pass: AdminPass<Permissions<'_>>,
        permission: &Permission,
        condition: &Condition,
    ) -> Result<(), Fault> {
        pass.resource.check(permission)?;
        self.delete_entry(|shelves| &mut shelves.permissions, permission, condition).await
    }

    /// The permissions of a user in order of creation.
    pub fn list_permissions(
        &self,
        pass: &CatalogPass<Permissions<'_>>,
        user: &User,
        page: &PageRequest,
    ) -> Result<Page<Arc<Permission>>, Fault> {
        check_parent(user, pass.resource.database.rid())?;
        let permissions = self.catalog.state().shelves.permissions.children(user.rid());
        self.page_of_entries(page, "permissions", user.rid(), permissions)
    }
}

/// Finds what the definition names.
fn resolved(state: &CatalogState, user: &User, definition: PermissionDefinition) -> Result<Grant, Fault> {
    let bad = |reason: &str| RequestFault::BadDefinition {
        field: "resource".to_owned(),
        reason: reason.to_owned(),
    };
    let segments = definition.resource_segments()?;
    let names: Vec<&str> = segments.iter().map(Cow::as_ref).collect();
    let (database, container, below) = match names[..] {
        ["dbs", database, "colls", container] => (database, container, None),
        ["dbs", database, "colls", container, kind, id] => (database, container, Some((kind, id))),
        ["dbs", _, "colls", _, "docs", _, "attachments", ..] => {
            return Err(
                RequestFault::NotSupported { feature: "a permission for an attachment".to_owned() }.into()
            );
        }
        _ => return Err(bad("it must be the link of a container, an item or a script").into()),
    };
    let database = state.find_database(database).ok_or(MissingFault::Resource)?;
    if Some(database.resource.rid()) != user.rid().parent() {
        return Err(bad("it is in another database than the user").into());
    }
    let found = state.find_container(database.resource, container).ok_or(MissingFault::Resource)?;
    let scope = match below {
        None => GrantScope::Container,
        Some((kind, id)) => scope_below(state, &found, kind, id)?
            .ok_or_else(|| bad("its last part names nothing that can be granted"))?,
    };
    let container = found.resource;
    let key = definition.key.as_deref();
    let key = key.map(|text| container.definition().partition_key.parse_header(text)).transpose()?;
    Ok(Grant { container: container.number(), scope, key, definition })
}

/// What the last two segments of a link name. A script must be there; an item may come later.
fn scope_below(
    state: &CatalogState,
    owner: &Addressed<Arc<Container>>,
    kind: &str,
    id: &str,
) -> Result<Option<GrantScope>, Fault> {
    let container = owner.resource.rid();
    if kind == "docs" {
        let number = match Rid::parse(id).filter(|rid| owner.by_rid && rid.parent() == Some(container)) {
            Some(Rid::Document(_, _, number)) => Some(number),
            Some(_) | None => None,
        };
        let item = number.map_or_else(|| Named::Id(id.to_owned()), |number| Named::Number(number.raw()));
        return Ok((!id.is_empty()).then_some(GrantScope::Document(item)));
    }
    let Some(kind) = ScriptKind::ALL.into_iter().find(|script| script.segment() == kind) else {
        return Ok(None);
    };
    let script = state.shelves.scripts(kind).find(container, id).ok_or(MissingFault::Resource)?;
    Ok(Some(GrantScope::Script(kind, script.resource.id().to_owned())))
}

/// A user has one permission for a resource and key, or it would be unclear which one holds.
fn refuse_second(
    state: &CatalogState,
    user: Rid,
    grant: &Grant,
    replaced: Option<&Permission>,
) -> Result<(), Fault> {
    let same = |other: &&Arc<Permission>| {
        let is_itself = replaced.is_some_and(|replaced| replaced.number() == other.number());
        !is_itself && other.definition().covers_same_as(grant)
    };
    match state.shelves.permissions.children(user).iter().find(same) {
        Some(other) => Err(ConflictFault::Permission { id: other.id().to_owned() }.into()),
        None => Ok(()),
    }
}
