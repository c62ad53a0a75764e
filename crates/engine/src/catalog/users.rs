//! Users of a database: names to which permissions are given.

use super::entries::{ListPage, ListRequest};
use super::shelf::Entry;
use super::small::{Creation, EntryDraft, Written};
use crate::authorisation::{AdminPass, CatalogPass, Users, check_parent};
use crate::engine::Engine;
use model::{Fault, MissingFault, Rid};
use plan::Condition;
use std::sync::Arc;

/// A user, which consists only of a name.
pub type User = Entry<()>;

impl Engine {
    /// Finds a user by name, or else by RID.
    pub fn find_user(&self, pass: &CatalogPass<Users<'_>>, segment: &str) -> Result<Arc<User>, Fault> {
        let found = self.catalog.state().shelves.users.find(pass.resource.database.rid(), segment);
        found.map(|found| found.resource).ok_or_else(|| MissingFault::Resource.into())
    }

    /// Creates a user.
    pub async fn create_user(
        &self,
        pass: AdminPass<Users<'_>>,
        id: &str,
        creation: &Creation,
    ) -> Result<Written<User>, Fault> {
        let database = pass.resource.database;
        let id = model::checked_name(id)?;
        let mut change = self.catalog.begin(self).await?;
        change.state.database(database.number()).ok_or(MissingFault::Owner)?;
        let wanted = EntryDraft { parent: database.rid(), id, definition: () };
        let rid = |number| Rid::DatabaseChild(database.number(), number);
        let written = change.create_or_replace(|shelves| &mut shelves.users, creation, wanted, rid)?;
        change.commit().await?;
        Ok(written)
    }

    /// Gives a user another name. Permissions and tokens stay.
    pub async fn replace_user(
        &self,
        pass: AdminPass<Users<'_>>,
        user: &User,
        id: &str,
        condition: &Condition,
    ) -> Result<Arc<User>, Fault> {
        check_parent(user, pass.resource.database.rid())?;
        let id = model::checked_name(id)?;
        let mut change = self.catalog.begin(self).await?;
        let current = change.current_entry(|shelves| &mut shelves.users, user, condition)?;
        let replaced = change.rename_or_replace(|shelves| &mut shelves.users, &current, id, ())?;
        change.commit().await?;
        Ok(replaced)
    }

    /// Deletes a user with all permissions, which revokes their tokens.
    pub async fn delete_user(
        &self,
        pass: AdminPass<Users<'_>>,
        user: &User,
        condition: &Condition,
    ) -> Result<(), Fault> {
        check_parent(user, pass.resource.database.rid())?;
        let mut change = self.catalog.begin(self).await?;
        let current = change.current_entry(|shelves| &mut shelves.users, user, condition)?;
        change.drop_user(&current);
        change.commit().await
    }

    /// The users of a database in order of creation.
    pub fn list_users(
        &self,
        pass: &CatalogPass<Users<'_>>,
        page: &ListRequest,
    ) -> Result<ListPage<Arc<User>>, Fault> {
        let database = pass.resource.database;
        let users = self.catalog.state().shelves.users.children(database.rid());
        self.page_of_entries(page, "users", database.rid(), users)
    }
}
