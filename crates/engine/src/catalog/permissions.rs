//! Permissions of a user: each names a resource of the user's database, which is resolved when the permission is
//! written. A permission for a resource that does not exist then is stored and grants nothing.

use super::entries::{Addressed, Container, ListPage, ListRequest};
use super::shelf::Entry;
use super::small::{Creation, EntryDraft, Written};
use super::state::CatalogState;
use super::users::User;
use crate::authorisation::{
    AdminPass, CatalogPass, Grant, GrantScope, ItemReference, Permissions, check_parent,
};
use crate::engine::Engine;
use model::{
    ConflictFault, DefinitionPart, DefinitionRule, Fault, KeyComponent, MissingFault, PermissionDefinition,
    Rid, ScriptKind,
};
use plan::Condition;
use std::sync::Arc;

/// A permission with what it grants.
pub type Permission = Entry<Grant>;

/// A permission to be written.
#[derive(Clone, Debug)]
pub struct WantedPermission<'a> {
    /// Its name and mode, and the texts that are returned with it.
    pub definition: PermissionDefinition,
    /// The resource it is for.
    pub resource: PermissionResource<'a>,
    /// The key, or the prefix of a hierarchical key, to which it is restricted.
    pub key: Option<Vec<KeyComponent>>,
}

/// The resource of a permission. Databases, containers, documents and scripts are addressed by id or by RID.
#[derive(Clone, Copy, Debug)]
pub struct PermissionResource<'a> {
    /// The database, which is that of the user.
    pub database: &'a str,
    /// The container.
    pub container: &'a str,
    /// The part of it.
    pub part: PermissionPart<'a>,
}

/// The part of a container that a permission is for.
#[derive(Clone, Copy, Debug)]
pub enum PermissionPart<'a> {
    /// All documents.
    Whole,
    /// One document, which need not exist yet.
    Document(&'a str),
    /// One script.
    Script(ScriptKind, &'a str),
}

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

    /// Creates a permission.
    pub async fn create_permission(
        &self,
        pass: AdminPass<Permissions<'_>>,
        user: &User,
        wanted: WantedPermission<'_>,
        creation: &Creation,
    ) -> Result<Written<Permission>, Fault> {
        check_parent(user, pass.resource.database.rid())?;
        let mut change = self.catalog.begin(self).await?;
        change.state.shelves.users.get(user.number()).ok_or(MissingFault::Owner)?;
        let grant = resolved(&change.state, user, wanted)?;
        let Rid::DatabaseChild(database, of_user) = user.rid() else {
            return Err(Fault::Internal("a user has a RID of another kind".to_owned()));
        };
        let id = grant.definition.id.clone();
        let existing = change.state.shelves.permissions.find_by_name(user.rid(), &id).cloned();
        refuse_second(&change.state, user.rid(), &grant, existing.as_deref())?;
        let wanted = EntryDraft { parent: user.rid(), id: &id, definition: grant };
        let rid = |number| Rid::Permission(database, of_user, number);
        let written = change.create_or_replace(|shelves| &mut shelves.permissions, creation, wanted, rid)?;
        change.commit().await?;
        Ok(written)
    }

    /// Replaces a permission, which revokes its tokens.
    pub async fn replace_permission(
        &self,
        pass: AdminPass<Permissions<'_>>,
        user: &User,
        permission: &Permission,
        wanted: WantedPermission<'_>,
        condition: &Condition,
    ) -> Result<Arc<Permission>, Fault> {
        check_parent(user, pass.resource.database.rid())?;
        check_parent(permission, user.rid())?;
        let mut change = self.catalog.begin(self).await?;
        let current = change.current_entry(|shelves| &mut shelves.permissions, permission, condition)?;
        let grant = resolved(&change.state, user, wanted)?;
        refuse_second(&change.state, user.rid(), &grant, Some(&current))?;
        let id = grant.definition.id.clone();
        let replaced = change.rename_or_replace(|shelves| &mut shelves.permissions, &current, &id, grant)?;
        change.commit().await?;
        Ok(replaced)
    }

    /// Deletes a permission, which revokes its tokens.
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
        page: &ListRequest,
    ) -> Result<ListPage<Arc<Permission>>, Fault> {
        check_parent(user, pass.resource.database.rid())?;
        let permissions = self.catalog.state().shelves.permissions.children(user.rid());
        self.page_of_entries(page, "permissions", user.rid(), permissions)
    }
}

/// Resolves the resource of the permission.
fn resolved(state: &CatalogState, user: &User, wanted: WantedPermission<'_>) -> Result<Grant, Fault> {
    let WantedPermission { definition, resource, key } = wanted;
    let Some(database) = state.find_database(resource.database) else {
        return Ok(Grant::nothing(definition));
    };
    if Some(database.resource.rid()) != user.rid().parent() {
        return Err(DefinitionPart::PermissionResource.violates(DefinitionRule::OtherDatabase).into());
    }
    let Some(found) = state.find_container(database.resource, resource.container) else {
        return Ok(Grant::nothing(definition));
    };
    let scope = match resource.part {
        PermissionPart::Whole => GrantScope::Container,
        PermissionPart::Document(id) => GrantScope::Document(document(&found, id)),
        PermissionPart::Script(kind, id) => {
            let scripts = state.shelves.scripts(kind);
            match scripts.find(found.resource.rid(), id) {
                Some(script) => GrantScope::Script(kind, script.resource.id().to_owned()),
                None => return Ok(Grant::nothing(definition)),
            }
        }
    };
    let container = found.resource;
    let key = key.map(|components| container.definition().partition_key.key(components)).transpose()?;
    Ok(Grant { container: container.number(), scope, key, definition })
}

/// The addressed document: below a container that is addressed by RID it is a RID, otherwise an id.
fn document(owner: &Addressed<Arc<Container>>, id: &str) -> ItemReference {
    let here = |rid: &Rid| owner.by_rid && rid.parent() == Some(owner.resource.rid());
    match Rid::parse(id).filter(here) {
        Some(Rid::Document(_, _, number)) => ItemReference::Number(number.raw()),
        Some(_) | None => ItemReference::Id(id.to_owned()),
    }
}

/// A user has at most one permission for a resource and key, as the client names them.
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
