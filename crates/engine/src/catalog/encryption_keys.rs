//! Client encryption keys of a database: stored for clients, not interpreted here.

use super::entries::{Database, ListPage, ListRequest};
use super::shelf::Entry;
use super::small::{Creation, EntryDraft};
use crate::authorisation::{AdminPass, CatalogPass, check_parent};
use crate::engine::Engine;
use model::{ClientEncryptionKeyDefinition, Fault, MissingFault, RequestFault, Rid};
use plan::Condition;
use std::sync::Arc;

/// A wrapped data key.
pub type ClientEncryptionKey = Entry<ClientEncryptionKeyDefinition>;

impl Engine {
    /// Finds a key by name, or else by RID.
    pub fn find_encryption_key(
        &self,
        pass: &CatalogPass<&Database>,
        segment: &str,
    ) -> Result<Arc<ClientEncryptionKey>, Fault> {
        let found = self.catalog.state().shelves.encryption_keys.find(pass.resource.rid(), segment);
        found.map(|found| found.resource).ok_or_else(|| MissingFault::Resource.into())
    }

    /// Stores a new key.
    pub async fn create_encryption_key(
        &self,
        pass: AdminPass<&Database>,
        definition: ClientEncryptionKeyDefinition,
    ) -> Result<Arc<ClientEncryptionKey>, Fault> {
        let database = pass.resource;
        let mut change = self.catalog.begin(self).await?;
        change.state.database(database.number()).ok_or(MissingFault::Owner)?;
        let id = definition.id().to_owned();
        let wanted = EntryDraft { parent: database.rid(), id: &id, definition };
        let rid = |number| Rid::DatabaseChild(database.number(), number);
        let creation = Creation::OnlyNew;
        let written =
            change.create_or_replace(|shelves| &mut shelves.encryption_keys, &creation, wanted, rid)?;
        change.commit().await?;
        Ok(written.resource)
    }

    /// Replaces a key, which clients do when they wrap it again; its name stays.
    pub async fn replace_encryption_key(
        &self,
        pass: AdminPass<&Database>,
        key: &ClientEncryptionKey,
        definition: ClientEncryptionKeyDefinition,
        condition: &Condition,
    ) -> Result<Arc<ClientEncryptionKey>, Fault> {
        check_parent(key, pass.resource.rid())?;
        let mut change = self.catalog.begin(self).await?;
        let current = change.current_entry(|shelves| &mut shelves.encryption_keys, key, condition)?;
        if definition.id() != current.id() {
            return Err(RequestFault::ImmutableProperty { property: "id".to_owned() }.into());
        }
        let id = current.id();
        let replaced = change.replace_entry(|shelves| &mut shelves.encryption_keys, &current, id, definition);
        change.commit().await?;
        Ok(replaced)
    }

    /// The keys of a database in order of creation.
    pub fn list_encryption_keys(
        &self,
        pass: &CatalogPass<&Database>,
        page: &ListRequest,
    ) -> Result<ListPage<Arc<ClientEncryptionKey>>, Fault> {
        let database = pass.resource;
        let keys = self.catalog.state().shelves.encryption_keys.children(database.rid());
        self.page_of_entries(page, "clientencryptionkeys", database.rid(), keys)
    }
}
