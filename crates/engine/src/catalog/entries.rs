//! Entries of the catalog: databases, containers with their partition map, offers.

use super::partition_map::{CurrentMap, PartitionMap};
use crate::derived::Derived;
use crate::ledger::SharedThroughput;
use crate::slot::{Opening, PartitionSlot};
use exec::ParsedProperty;
use model::policy::ComputedProperty;
use model::{
    ContainerDefinition, ContainerNumber, DatabaseNumber, DefaultTtl, EffectiveRange, Etag, EvaluationFault,
    MissingFault, OfferNumber, PartitionOrdinal, QueryFault, Rid, SessionToken, Throughput,
};
use partition::index::{ComputedQueries, ComputedReader};
use partition::keyspace::PartitionId;
use partition::{ContainerShape, CurrentShape, PartitionSpec};
use plan::query::Query;
use std::sync::Arc;

/// When and by which catalog change something was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CatalogStamp {
    /// Count of catalog changes.
    pub(crate) change: u64,
    /// Seconds since 1970.
    pub(crate) ts: u64,
}

impl CatalogStamp {
    pub(super) fn etag(self) -> Etag {
        Etag { ordinal: PartitionOrdinal(0), stamp: self.change }
    }
}

/// A resource and how it was addressed.
#[derive(Clone, Debug)]
pub struct Addressed<T> {
    /// The resource.
    pub resource: T,
    /// Whether it was addressed by RID; then its children are addressed by RID too.
    pub by_rid: bool,
}

/// Which part of a list is requested.
#[derive(Clone, Debug)]
pub struct ListRequest {
    /// Maximum number of items.
    pub items_max: usize,
    /// Where to continue.
    pub continuation: Option<String>,
}

/// A part of a list.
#[derive(Clone, Debug)]
pub struct ListPage<T> {
    /// The items.
    pub items: Vec<T>,
    /// Where to continue, if there is more.
    pub continuation: Option<String>,
}

/// A database.
#[derive(Debug)]
pub struct Database {
    number: DatabaseNumber,
    id: String,
    stamp: CatalogStamp,
    shared: Arc<SharedThroughput>,
}

impl Database {
    pub(crate) fn new(number: DatabaseNumber, id: String, stamp: CatalogStamp) -> Database {
        Database { number, id, stamp, shared: Arc::default() }
    }

    /// Its number, never reused.
    pub fn number(&self) -> DatabaseNumber {
        self.number
    }

    /// Its name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its resource id.
    pub fn rid(&self) -> Rid {
        Rid::Database(self.number)
    }

    /// Its version.
    pub fn etag(&self) -> Etag {
        self.stamp.etag()
    }

    /// When it was written, in seconds since 1970.
    pub fn ts(&self) -> u64 {
        self.stamp.ts
    }

    pub(crate) fn stamp(&self) -> CatalogStamp {
        self.stamp
    }

    /// What the containers without throughput of their own share.
    pub(crate) fn shared(&self) -> &Arc<SharedThroughput> {
        &self.shared
    }
}

/// The content of a container, apart from its partitions.
#[derive(Clone, Debug)]
pub(crate) struct ContainerParts {
    pub(crate) number: ContainerNumber,
    pub(crate) database: Arc<Database>,
    pub(crate) definition: ContainerDefinition,
    pub(crate) stamp: CatalogStamp,
    /// The queries of its computed properties, parsed once for each definition.
    pub(crate) computed: ComputedQueries,
    /// Parses such queries in definitions that partitions have stored.
    pub(crate) computed_reader: ComputedReader,
}

impl ContainerParts {
    /// The shape for partitions that follows from this definition.
    fn shape(&self, is_expiry_pending: bool) -> ContainerShape {
        let mut shape = ContainerShape::with_queries(&self.definition, &self.computed, self.computed_reader);
        shape.change = self.stamp.change;
        shape.is_expiry_pending = is_expiry_pending;
        shape
    }

    /// The computed properties that queries see.
    fn computed(&self) -> Result<Arc<[ParsedProperty]>, String> {
        let properties = self.definition.policies.computed.iter().zip(&*self.computed);
        let query = |(property, query): (&ComputedProperty, &Option<Query>)| match query {
            Some(query) => Ok((property.name.clone(), query.clone())),
            None => Err(property.name.clone()),
        };
        properties.map(query).collect()
    }
}

/// A container. A replaced definition is a new value of this type that shares the partitions.
#[derive(Debug)]
pub struct Container {
    parts: ContainerParts,
    /// Whether expiry rows must be rewritten because the default time to live changed.
    pub(crate) expiry_pending: bool,
    pub(crate) shape: Arc<CurrentShape>,
    pub(crate) map: Arc<CurrentMap>,
    /// The computed properties with their queries, or the name of one that could not be parsed.
    computed: Result<Arc<[ParsedProperty]>, String>,
    rid: Rid,
    derived: Derived,
}

impl Container {
    pub(crate) fn new(parts: ContainerParts, expiry_pending: bool, map: PartitionMap) -> Container {
        let shape = Arc::new(CurrentShape::new(parts.shape(expiry_pending)));
        Container::assemble(parts, expiry_pending, shape, Arc::new(CurrentMap::new(map)))
    }

    pub(crate) fn replaced(
        &self,
        (definition, computed): (ContainerDefinition, ComputedQueries),
        stamp: CatalogStamp,
        expiry_changed: bool,
    ) -> Container {
        let parts = ContainerParts { definition, computed, stamp, ..self.parts.clone() };
        let pending = self.expiry_pending || expiry_changed;
        Container::assemble(parts, pending, Arc::clone(&self.shape), Arc::clone(&self.map))
    }

    /// The same container after the expiry rows were rewritten; clients do not see this as a change.
    pub(crate) fn rescheduled(&self) -> Container {
        Container::assemble(self.parts.clone(), false, Arc::clone(&self.shape), Arc::clone(&self.map))
    }

    fn assemble(
        parts: ContainerParts,
        expiry_pending: bool,
        shape: Arc<CurrentShape>,
        map: Arc<CurrentMap>,
    ) -> Container {
        let rid = Rid::Container(parts.database.number, parts.number);
        let computed = parts.computed();
        Container { parts, expiry_pending, shape, map, computed, rid, derived: Derived::default() }
    }

    /// This container, read from the store again, with the partitions that are in use. A split that was stored
    /// although its outcome was unknown takes effect.
    pub(crate) fn with_partitions_of(&self, old: &Container) -> Container {
        let (shape, map) = (Arc::clone(&old.shape), Arc::clone(&old.map));
        map.adopt(&self.map.load());
        Container::assemble(self.parts.clone(), self.expiry_pending, shape, map)
    }

    /// Whether expired documents may wait to be deleted. Rows written under an earlier default are processed too: they
    /// are deleted when their second has passed.
    pub(crate) fn is_sweep_due(&self, now: u64) -> bool {
        let has_expiry = self.parts.definition.default_ttl != DefaultTtl::Off || self.expiry_pending;
        has_expiry && self.shape.expiry_due() <= now
    }

    /// What is needed to open one of its partitions.
    pub(crate) fn opening(&self, slot: &PartitionSlot) -> Opening {
        Opening { spec: self.spec(slot), shape: Arc::clone(&self.shape) }
    }

    /// The id, range and ancestors of one of its partitions.
    pub(crate) fn spec(&self, slot: &PartitionSlot) -> PartitionSpec {
        let id = PartitionId { container: self.parts.number, ordinal: slot.ordinal };
        PartitionSpec { id, range: slot.range.clone(), ancestors: self.map.load().ancestors_of(slot) }
    }

    /// Makes the partitions use this definition unless they use a newer one.
    pub(super) fn adopt_shape(&self) {
        // A new container has its shape already.
        if !self.shape.is_older_than(self.parts.stamp.change, self.expiry_pending)
            || !self.shape.adopt(self.parts.shape(self.expiry_pending))
        {
            return;
        }
        for partition in self.map.load().entries.iter().filter_map(|slot| slot.current()) {
            partition.reshape();
        }
    }

    /// Makes the partitions use this definition, however old it is.
    #[cfg(feature = "planted-faults")]
    pub(crate) fn force_shape(&self) {
        self.shape.force(self.parts.shape(self.expiry_pending));
    }

    /// The hashes of a range, also of one that was split since; refused only if there never was such a range.
    pub fn range_of(&self, ordinal: PartitionOrdinal) -> Result<EffectiveRange, MissingFault> {
        self.map.load().range_of(ordinal).cloned()
    }

    /// The partitions that have the documents of one that was split.
    pub fn descendants_of(&self, ordinal: PartitionOrdinal) -> Vec<PartitionOrdinal> {
        let map = self.map.load();
        let is_descendant =
            |slot: &&Arc<PartitionSlot>| slot.ancestors.iter().any(|ancestor| ancestor.ordinal == ordinal);
        map.entries.iter().filter(is_descendant).map(|slot| slot.ordinal).collect()
    }

    /// The session tokens for a client that has addressed a range. If the range was split since, the client may not
    /// know its descendants; it gets one token for the range itself, with its last LSN. Not a later one: clients derive
    /// the tokens of descendants from it, and each descendant must have reached it.
    pub fn tokens_for_range(
        &self,
        ordinal: PartitionOrdinal,
        tokens: Vec<SessionToken>,
    ) -> Vec<SessionToken> {
        match self.map.load().last_lsn(ordinal) {
            Some(lsn) if !tokens.is_empty() => vec![SessionToken { ordinal, lsn }],
            Some(_) | None => tokens,
        }
    }

    /// Its number, never reused.
    pub fn number(&self) -> ContainerNumber {
        self.parts.number
    }

    /// Its name.
    pub fn id(&self) -> &str {
        &self.parts.definition.id
    }

    /// Its resource id.
    pub fn rid(&self) -> Rid {
        self.rid
    }

    /// What APIs have derived from this version of its definition.
    pub fn derived(&self) -> &Derived {
        &self.derived
    }

    /// The database it belongs to.
    pub fn database(&self) -> &Arc<Database> {
        &self.parts.database
    }

    /// Its definition.
    pub fn definition(&self) -> &ContainerDefinition {
        &self.parts.definition
    }

    /// The computed properties that queries over it see.
    pub(crate) fn computed(&self) -> Result<&Arc<[ParsedProperty]>, QueryFault> {
        self.computed
            .as_ref()
            .map_err(|name| QueryFault::Evaluation(EvaluationFault::ComputedUnread { name: name.clone() }))
    }

    /// Its version.
    pub fn etag(&self) -> Etag {
        self.parts.stamp.etag()
    }

    /// When its definition was written, in seconds since 1970.
    pub fn ts(&self) -> u64 {
        self.parts.stamp.ts
    }

    pub(crate) fn stamp(&self) -> CatalogStamp {
        self.parts.stamp
    }

    pub(crate) fn range_feed(&self) -> RangeFeed {
        let map = self.map.load();
        let count = map.entries.len();
        let range = |entry: &Arc<PartitionSlot>| PartitionRange {
            ordinal: entry.ordinal,
            range: entry.range.clone(),
            parents: entry.ancestors.iter().map(|ancestor| ancestor.ordinal).collect(),
            rid: Rid::Range(self.parts.database.number, self.parts.number, entry.ordinal),
            etag: entry.since.etag(),
            ts: entry.since.ts,
            throughput_fraction: 1.0 / count as f64,
        };
        let ranges = map.entries.iter().map(range).collect();
        RangeFeed { ranges, change: map.stamp.change }
    }
}

/// A container's partitions as clients see them: a feed whose ETag changes with the map.
#[derive(Clone, Debug)]
pub struct RangeFeed {
    /// The ranges, sorted, without gaps.
    pub ranges: Vec<PartitionRange>,
    /// The catalog change that last changed the ranges.
    pub change: u64,
}

impl RangeFeed {
    /// The ranges that came into being after a catalog change; none if they have not changed since.
    pub fn since(&self, change: u64) -> impl Iterator<Item = &PartitionRange> {
        self.ranges.iter().filter(move |range| range.etag.stamp > change)
    }
}

/// A partition key range.
#[derive(Clone, Debug)]
pub struct PartitionRange {
    /// Its id.
    pub ordinal: PartitionOrdinal,
    /// The hashes it owns.
    pub range: EffectiveRange,
    /// The ranges from which it was split, oldest first.
    pub parents: Vec<PartitionOrdinal>,
    /// Its resource id.
    pub rid: Rid,
    /// Its version.
    pub etag: Etag,
    /// When it was made, in seconds since 1970.
    pub ts: u64,
    /// Its share of the container's throughput.
    pub throughput_fraction: f64,
}

/// The owner of an offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferOwner {
    /// The database or container.
    pub rid: Rid,
}

impl OfferOwner {
    pub(crate) fn database(database: &Database) -> OfferOwner {
        OfferOwner { rid: database.rid() }
    }

    pub(crate) fn container(container: &Container) -> OfferOwner {
        OfferOwner { rid: container.rid() }
    }
}

/// Provisioned throughput of a database or container.
#[derive(Debug)]
pub struct Offer {
    number: OfferNumber,
    owner: OfferOwner,
    throughput: Throughput,
    highest: u64,
    stamp: CatalogStamp,
}

impl Offer {
    pub(crate) fn new(
        number: OfferNumber,
        owner: OfferOwner,
        throughput: Throughput,
        stamp: CatalogStamp,
    ) -> Offer {
        Offer { number, owner, throughput, highest: throughput.max(), stamp }
    }

    /// This offer with a highest rate of at least `highest`.
    pub(crate) fn with_highest(mut self, highest: u64) -> Offer {
        self.highest = self.highest.max(highest);
        self
    }

    /// Its number, never reused.
    pub(crate) fn number(&self) -> OfferNumber {
        self.number
    }

    /// Its resource id.
    pub fn rid(&self) -> Rid {
        Rid::Offer(self.number)
    }

    /// The resource it is for.
    pub fn owner(&self) -> &OfferOwner {
        &self.owner
    }

    /// The highest rate it ever had.
    pub fn highest(&self) -> u64 {
        self.highest
    }

    /// The rate.
    pub fn throughput(&self) -> Throughput {
        self.throughput
    }

    /// Its version.
    pub fn etag(&self) -> Etag {
        self.stamp.etag()
    }

    /// When it was written, in seconds since 1970.
    pub fn ts(&self) -> u64 {
        self.stamp.ts
    }

    pub(crate) fn stamp(&self) -> CatalogStamp {
        self.stamp
    }
}
