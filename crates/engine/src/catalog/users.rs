//! Users of a database: names to which permissions are given.

use super::entries::{Addressed, Database, Page, PageRequest};
use super::shelf::Entry;
use super::small::{Creation, Wanted, Written};
use crate::access::{AdminPass, CatalogPass};
use crate::engine::Engine;
use model::{Fault, MissingFault, Rid};
use plan::Condition;
use std::sync::Arc;

/// A user: a name alone.
pub type User = Entry<()>;

impl Engine {
    /// Finds a user by name, or else by RID.
    pub fn find_user(&self, database: &Database, segment: &str) -> Result<Addressed<Arc<User>>, Fault> {
        let found = self.catalog.state().shelves.users.find(database.rid(), segment);
        found.ok_or_else(|| MissingFault::Resource.into())
    }

    /// Creates a user.
    pub async fn create_user(
        &self,
        _pass: AdminPass,
        database: &Database,
        id: &str,
        creation: &Creation,
    ) -> Result<Written<User>, Fault> {
        let id = model::checked_name(id)?;
        let mut change = self.catalog.begin(self).await?;
        change.state.database(database.number()).ok_or(MissingFault::Owner)?;
        let wanted = Wanted { parent: database.rid(), id, definition: () };
        let rid = |number| Rid::DatabaseChild(database.number(), number);
        let written = change.create_or_replace(|shelves| &mut shelves.users, creation, wanted, rid)?;
        change.commit().await?;
        Ok(written)
    }

    /// Gives a user another name. Permissions and tokens stay.
    pub async fn replace_user(
        &self,
        _pass: AdminPass,
        user: &User,
        id: &str,
        condition: &Condition,
    ) -> Result<Arc<User>, Fault> {
        let id = model::checked_name(id)?;
        let mut change = self.catalog.begin(self).await?;
        let current = change.current_entry(|shelves| &mut shelves.users, user, condition)?;
        let replaced = change.rename_or_replace(|shelves| &mut shelves.users, &current, id, ())?;
        change.commit().await?;
        Ok(replaced)
    }

    /// Deletes a user with all permissions, which ends their tokens.
    pub async fn delete_user(
        &self,
        _pass: AdminPass,
        user: &User,
        condition: &Condition,
    ) -> Result<(), Fault> {
        let mut change = self.catalog.begin(self).await?;
        let current = change.current_entry(|shelves| &mut shelves.users, user, condition)?;
        change.drop_user(&current);
        change.commit().await
    }

    /// The users of a database in order of creation.
    pub fn list_users(
        &self,
        _pass: CatalogPass,
        database: &Database,
        page: &PageRequest,
    ) -> Result<Page<Arc<User>>, Fault> {
        let users = self.catalog.state().shelves.users.children(database.rid());
        self.page_of_entries(page, "users", database.rid(), users)
    }
}
