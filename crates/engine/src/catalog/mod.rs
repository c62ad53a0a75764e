//! The catalog: databases, containers, offers, the map of each container's partitions, and the small resources: users,
//! permissions, scripts, client encryption keys.
//!
//! One immutable state, replaced as a whole after each durable change. Changes are serialised.

mod annotations;
mod change;
mod encryption_keys;
mod entries;
mod load;
mod offers;
mod partition_map;
mod permissions;
mod rates;
mod rows;
mod scripts;
mod shelf;
mod skip;
mod small;
mod state;
mod usage;
mod users;

pub use annotations::{Annotation, AnnotationDefinition};
pub use encryption_keys::ClientEncryptionKey;
pub(crate) use entries::CatalogStamp;
pub use entries::{
    Addressed, Container, Database, ListPage, ListRequest, Offer, OfferOwner, PartitionRange, RangeFeed,
};
pub(crate) use partition_map::{PARTITIONS_MAX, PartitionMap, PlannedSplit};
pub use permissions::{Permission, PermissionPart, PermissionResource, WantedPermission};
pub use scripts::{NamedScript, Script};
pub use shelf::Entry;
pub(crate) use skip::skip_numbers;
pub use small::{Creation, Written};
pub(crate) use state::{Catalog, CatalogState, Dropped};
pub use usage::{ContainerUsage, PartitionUsage};
pub use users::User;

use crate::authorisation::{Account, Action, AdminPass, CatalogPass, Principal, Reach, Resource, Sought};
use crate::engine::{Engine, EngineOptions};
use entries::ContainerParts;
use model::policy::ComputedProperty;
use model::{
    ComputedRule, ConflictFault, ContainerChange, ContainerDefinition, ContinuationFault, DefinitionPart,
    EncryptionRule, Fault, LimitFault, MissingFault, RequestFault, Rid, Throughput, Ticks,
};
use partition::index::{ComputedQueries, parse_computed};
use plan::Condition;
use std::sync::Arc;

/// Maximum number of containers of a store: the top bit of their number in a RID is used otherwise.
const CONTAINERS_MAX: u32 = (1 << 31) - 1;
/// Maximum number of partitions of a new container.
const NEW_PARTITIONS_MAX: u64 = 1024;

impl Engine {
    /// Finds a database by name, or else by RID, for a caller who may know of it and wants to perform `action` on it.
    pub fn find_database(
        &self,
        principal: &Principal,
        action: Action,
        segment: &str,
    ) -> Result<Arc<Database>, Fault> {
        let state = self.catalog.state();
        let found = state.find_database(segment).map(|found| Arc::clone(found.resource));
        let found = found.ok_or_else(|| MissingFault::Resource.into());
        let sought = Sought { database: segment, container: None };
        self.access.reveal(principal, action, sought, found, |database| Resource::Database(database))
    }

    /// Finds a container by names, or else by RIDs, for a caller who may know of it and wants to perform `action` on
    /// it.
    pub fn find_container(
        &self,
        principal: &Principal,
        action: Action,
        database: &str,
        container: &str,
    ) -> Result<Addressed<Arc<Container>>, Fault> {
        let sought = Sought { database, container: Some(container) };
        let state = self.catalog.state();
        let found = match state.find_database(database) {
            None => Err(MissingFault::Owner.into()),
            Some(database) => state
                .find_container(database.resource, container)
                .ok_or_else(|| MissingFault::Resource.into()),
        };
        self.access.reveal(principal, action, sought, found, |found| {
            Resource::Container(&found.resource, Reach::Whole)
        })
    }

    /// Creates a database.
    pub async fn create_database(
        &self,
        _pass: AdminPass<Account>,
        id: &str,
        throughput: Option<Throughput>,
    ) -> Result<Arc<Database>, Fault> {
        let id = model::checked_name(id)?;
        let mut change = self.catalog.begin(self).await?;
        if change.state.find_database_by_name(id).is_some() {
            return Err(ConflictFault::Id.into());
        }
        let database = Arc::new(Database::new(change.next_database()?, id.to_owned(), change.stamp()));
        change.put_database(Arc::clone(&database));
        if let Some(throughput) = throughput {
            change.put_offer(OfferOwner::database(&database), throughput)?;
        }
        change.commit().await?;
        Ok(database)
    }

    /// Deletes a database with all its containers.
    pub async fn delete_database(
        &self,
        pass: AdminPass<&Database>,
        condition: &Condition,
    ) -> Result<(), Fault> {
        let mut change = self.catalog.begin(self).await?;
        let current = change.state.database(pass.resource.number()).ok_or(MissingFault::Resource)?;
        condition.check(current.etag(), Ticks::from_seconds(current.ts()), None)?;
        for container in change.state.containers_of(&current) {
            change.drop_container(&container);
        }
        change.drop_database(&current);
        change.commit().await?;
        self.jobs.wake();
        Ok(())
    }

    /// The databases in order of creation.
    pub fn list_databases(
        &self,
        _pass: &CatalogPass<Account>,
        page: &ListRequest,
    ) -> Result<ListPage<Arc<Database>>, Fault> {
        let databases = self.catalog.state().databases();
        self.page_of(page, b"databases", databases, |database| database.number().0)
    }

    /// Creates a container with the number of partitions that its throughput requires.
    pub async fn create_container(
        &self,
        pass: AdminPass<&Database>,
        definition: ContainerDefinition,
        throughput: Option<Throughput>,
    ) -> Result<Arc<Container>, Fault> {
        let computed = self.computed_queries(&definition.policies.computed)?;
        let mut change = self.catalog.begin(self).await?;
        let database = change.state.database(pass.resource.number()).ok_or(MissingFault::Owner)?;
        if change.state.find_container_by_name(&database, &definition.id).is_some() {
            return Err(ConflictFault::Id.into());
        }
        check_encryption_keys(&change.state, &database, &definition)?;
        let shared = change.state.offer_of(&Rid::Database(database.number())).is_some();
        let number = change.next_container()?;
        let throughput_or_default = throughput.unwrap_or(Throughput::DEFAULT);
        let count = partition_count(throughput_or_default, &self.options)?;
        let stamp = change.stamp();
        let map = PartitionMap::initial(&definition.partition_key, count, stamp);
        let computed_reader = self.options.computed_reader;
        let parts = ContainerParts {
            number,
            database: Arc::clone(&database),
            definition,
            stamp,
            computed,
            computed_reader,
        };
        let container = Arc::new(Container::new(parts, false, map));
        change.put_new_container(&container).await?;
        // A container of a database with shared throughput has its own offer only if one is requested.
        if throughput.is_some() || !shared {
            change.put_offer(OfferOwner::container(&container), throughput_or_default)?;
        }
        change.commit().await?;
        Ok(container)
    }

    /// Replaces a container's definition.
    pub async fn replace_container(
        &self,
        pass: AdminPass<&Container>,
        wanted: ContainerChange,
        condition: &Condition,
    ) -> Result<Arc<Container>, Fault> {
        let computed = self.computed_queries(&wanted.wanted.policies.computed)?;
        let mut change = self.catalog.begin(self).await?;
        let current = change.state.container(pass.resource.number()).ok_or(MissingFault::Resource)?;
        condition.check(current.etag(), Ticks::from_seconds(current.ts()), None)?;
        let definition = wanted.applied(current.definition())?;
        let expiry_changed = definition.default_ttl != current.definition().default_ttl;
        let replaced = Arc::new(current.replaced((definition, computed), change.stamp(), expiry_changed));
        change.put_container(&replaced);
        change.commit().await?;
        if expiry_changed {
            self.jobs.wake();
        }
        Ok(replaced)
    }

    /// Parses the queries of computed properties, or refuses them.
    fn computed_queries(&self, properties: &[ComputedProperty]) -> Result<ComputedQueries, RequestFault> {
        let queries = parse_computed(properties, self.options.computed_reader);
        match properties.iter().zip(&*queries).find(|(_, query)| query.is_none()) {
            Some((property, _)) => Err(DefinitionPart::ComputedProperties
                .violates(ComputedRule::Query { query: property.query.clone() })),
            None => Ok(queries),
        }
    }

    /// Deletes a container; its rows are deleted in the background.
    pub async fn delete_container(
        &self,
        pass: AdminPass<&Container>,
        condition: &Condition,
    ) -> Result<(), Fault> {
        let mut change = self.catalog.begin(self).await?;
        let current = change.state.container(pass.resource.number()).ok_or(MissingFault::Resource)?;
        condition.check(current.etag(), Ticks::from_seconds(current.ts()), None)?;
        change.drop_container(&current);
        change.commit().await?;
        self.jobs.wake();
        Ok(())
    }

    /// The containers of a database in order of creation.
    pub fn list_containers(
        &self,
        pass: &CatalogPass<&Database>,
        page: &ListRequest,
    ) -> Result<ListPage<Arc<Container>>, Fault> {
        let database = pass.resource;
        let context = format!("containers {}", database.number().0);
        let containers = self.catalog.state().containers_of(database);
        self.page_of(page, context.as_bytes(), containers, |container| container.number().0)
    }

    /// The partitions of a container as clients see them.
    pub fn ranges(&self, pass: &CatalogPass<&Container>) -> RangeFeed {
        pass.resource.range_feed()
    }

    /// One page of a list that is sorted by `number`; the continuation is the last number returned.
    fn page_of<T>(
        &self,
        page: &ListRequest,
        context: &[u8],
        all: Vec<T>,
        number: impl Fn(&T) -> u32,
    ) -> Result<ListPage<T>, Fault> {
        let last = match &page.continuation {
            None => 0,
            Some(text) => {
                let position = self.continuation_key.open(context, text)?;
                let position = position.try_into().map(u32::from_be_bytes);
                position.map_err(|_| RequestFault::BadContinuation(ContinuationFault::OtherList))?
            }
        };
        let mut rest = all.into_iter().filter(|item| number(item) > last);
        let items: Vec<T> = rest.by_ref().take(page.items_max).collect();
        let more = rest.next().is_some();
        let continuation = items
            .last()
            .filter(|_| more)
            .map(|item| self.continuation_key.seal(context, &number(item).to_be_bytes()));
        Ok(ListPage { items, continuation })
    }
}

/// A policy must name keys of its database; otherwise no client could decrypt anything.
fn check_encryption_keys(
    state: &CatalogState,
    database: &Database,
    definition: &ContainerDefinition,
) -> Result<(), RequestFault> {
    let paths = definition.policies.encryption.as_ref().map_or(&[][..], |policy| &policy.paths);
    let absent = |key: &str| state.shelves.encryption_keys.find_by_name(database.rid(), key).is_none();
    match paths.iter().find(|path| absent(&path.key_id)) {
        Some(path) => {
            Err(DefinitionPart::ClientEncryption.violates(EncryptionRule::UnknownKey(path.key_id.clone())))
        }
        None => Ok(()),
    }
}

/// One partition as long as it can serve the throughput; above that as many as give each the rate of a new one.
fn partition_count(throughput: Throughput, options: &EngineOptions) -> Result<u32, Fault> {
    let count = match throughput.max() {
        rate if rate <= options.partition_throughput_max => 1,
        rate => rate.div_ceil(options.partition_throughput_new.max(1)).max(1),
    };
    if count > NEW_PARTITIONS_MAX {
        return Err(LimitFault::Exhausted { what: "partitions" }.into());
    }
    Ok(u32::try_from(count).unwrap_or(1))
}
