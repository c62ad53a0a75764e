//! The part of a container's definition that a partition needs, and the current one.

use crate::index::{ComputedReader, Rules, parse_computed};
use arc_swap::{ArcSwap, Guard};
use model::policy::ChangeFeedPolicy;
use model::{ContainerDefinition, DefaultTtl, PartitionKeyDefinition, UniqueKeyPolicy};
use plan::query::Query;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The part of a container's definition that decides how documents are stored.
#[derive(Clone, Debug)]
pub struct ContainerShape {
    /// The catalog change that wrote the definition; later changes have greater numbers.
    pub change: u64,
    /// The partition key definition; the key of a stored document never changes.
    pub partition_key: PartitionKeyDefinition,
    /// Expiry of documents without a ttl of their own.
    pub default_ttl: DefaultTtl,
    /// Whether expiry rows are being rewritten because the default changed; some may be missing until then.
    pub is_expiry_pending: bool,
    /// The unique key constraints.
    pub unique_keys: UniqueKeyPolicy,
    /// Retention of the history, in seconds; without it no history is written.
    pub history_seconds: Option<u64>,
    /// The index rules.
    pub(crate) rules: Arc<Rules>,
}

impl ContainerShape {
    /// The shape of a definition. `reader` parses the queries of its computed properties.
    pub fn new(definition: &ContainerDefinition, reader: ComputedReader) -> ContainerShape {
        let queries = parse_computed(&definition.policies.computed, reader);
        ContainerShape::with_queries(definition, &queries, reader)
    }

    /// The same, with the parsed queries of its computed properties.
    pub fn with_queries(
        definition: &ContainerDefinition,
        queries: &[Option<Query>],
        reader: ComputedReader,
    ) -> ContainerShape {
        let policies = &definition.policies;
        ContainerShape {
            change: 0,
            partition_key: definition.partition_key.clone(),
            default_ttl: definition.default_ttl,
            is_expiry_pending: false,
            unique_keys: definition.unique_keys.clone(),
            history_seconds: policies.change_feed.and_then(ChangeFeedPolicy::retention_seconds),
            rules: Arc::new(Rules::of(&policies.indexing, (&policies.computed, queries), reader)),
        }
    }

    /// Orders the shapes of one container. Of one definition, the shape with complete expiry rows is the newer.
    fn version(&self) -> (u64, bool) {
        (self.change, !self.is_expiry_pending)
    }
}

impl From<&ContainerDefinition> for ContainerShape {
    /// The shape of a container whose computed properties are not indexed.
    fn from(definition: &ContainerDefinition) -> ContainerShape {
        ContainerShape::new(definition, |_| None)
    }
}

/// The current shape, shared by all partitions of a container. It is never replaced by an older one.
#[derive(Debug)]
pub struct CurrentShape {
    shape: ArcSwap<ContainerShape>,
    /// No document of the container expires before this second, as far as is known.
    expiry_due: AtomicU64,
}

impl CurrentShape {
    /// Starts with `shape`.
    pub fn new(shape: ContainerShape) -> CurrentShape {
        CurrentShape { shape: ArcSwap::from_pointee(shape), expiry_due: AtomicU64::new(0) }
    }

    /// The current shape.
    pub fn load(&self) -> Guard<Arc<ContainerShape>> {
        self.shape.load()
    }

    /// The first second at which a document may have to be swept.
    pub fn expiry_due(&self) -> u64 {
        self.expiry_due.load(Ordering::Acquire)
    }

    /// A sweep starts: writers note again what they commit from now on. The sweep takes its views after this call and
    /// notes what it leaves.
    pub fn begin_sweep(&self) {
        self.expiry_due.store(u64::MAX, Ordering::Release);
    }

    /// An expiry row of this second may be in the store.
    pub fn note_expiry(&self, second: u64) {
        self.expiry_due.fetch_min(second, Ordering::AcqRel);
    }

    /// Sets `shape`, however old it is.
    #[cfg(feature = "planted-faults")]
    pub fn force(&self, shape: ContainerShape) {
        self.shape.store(Arc::new(shape));
    }

    /// Whether a shape of this version would replace the current one.
    pub fn is_older_than(&self, change: u64, is_expiry_pending: bool) -> bool {
        self.shape.load().version() < (change, !is_expiry_pending)
    }

    /// Sets `shape` unless the current one is as new or newer. Returns whether it did.
    pub fn adopt(&self, shape: ContainerShape) -> bool {
        let before = self.shape.rcu(|current| {
            if shape.version() > current.version() { Arc::new(shape.clone()) } else { Arc::clone(current) }
        });
        shape.version() > before.version()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{ContainerDraft, PartitionKeyKind};

    #[test]
    fn an_older_definition_never_replaces_a_newer() {
        let key = PartitionKeyDefinition::new(PartitionKeyKind::HashV1, ["/pk"]).unwrap();
        let definition = ContainerDraft::new("c", key).checked().unwrap();
        let shape = |change, is_expiry_pending| ContainerShape {
            change,
            is_expiry_pending,
            ..ContainerShape::from(&definition)
        };
        let current = CurrentShape::new(shape(3, true));
        assert!(!current.adopt(shape(3, true)) && !current.adopt(shape(2, false)));
        assert!(!current.is_older_than(3, true) && !current.is_older_than(2, false));
        assert!(current.is_older_than(3, false) && current.is_older_than(4, true));
        assert!(current.adopt(shape(3, false)), "its expiry rows are complete now");
        assert!(!current.adopt(shape(3, true)), "they stay complete");
        assert!(current.adopt(shape(5, true)));
        assert!(!current.adopt(shape(4, false)));
        assert_eq!(current.load().version(), (5, false));
    }
}
