//! What a partition must know of its container's definition, and which definition is in force.

use crate::index::{ComputedReader, Rules};
use arc_swap::{ArcSwap, Guard};
use model::{ContainerDefinition, DefaultTtl, PartitionKeyDefinition, UniqueKeyPolicy};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The part of a container's definition that decides how documents are stored.
#[derive(Clone, Debug)]
pub struct ContainerShape {
    /// The catalog change that wrote the definition: a later change has a greater one.
    pub change: u64,
    /// Where the partition key is; a stored document never leaves its key.
    pub partition_key: PartitionKeyDefinition,
    /// When documents expire that do not say it themselves.
    pub default_ttl: DefaultTtl,
    /// Whether expiry rows are being written anew because the default changed: until then some are missing.
    pub is_expiry_pending: bool,
    /// Which values may occur once only.
    pub unique_keys: UniqueKeyPolicy,
    /// How long the history of all versions is kept, in seconds; nothing is noted there without it.
    pub history_seconds: Option<u64>,
    /// Which values are indexed.
    pub(crate) rules: Arc<Rules>,
}

impl ContainerShape {
    /// What the definition says; the queries of its computed properties are read by `reader`.
    pub fn new(definition: &ContainerDefinition, reader: ComputedReader) -> ContainerShape {
        ContainerShape {
            change: 0,
            partition_key: definition.partition_key.clone(),
            default_ttl: definition.default_ttl,
            is_expiry_pending: false,
            unique_keys: definition.unique_keys.clone(),
            history_seconds: None,
            rules: Arc::new(Rules::of(&definition.policies.indexing, &definition.policies.computed, reader)),
        }
    }

    /// Orders the shapes of one container. Of one definition, the shape with complete expiry rows is the newer.
    fn version(&self) -> (u64, bool) {
        (self.change, !self.is_expiry_pending)
    }
}

impl From<&ContainerDefinition> for ContainerShape {
    /// The same for a container whose computed properties are not indexed.
    fn from(definition: &ContainerDefinition) -> ContainerShape {
        ContainerShape::new(definition, |_| None)
    }
}

/// The definition in force, shared by all partitions of a container. It never goes back to an older one.
#[derive(Debug)]
pub struct CurrentShape {
    shape: ArcSwap<ContainerShape>,
    /// No document of the container expires before this second, as far as is known.
    expiry_due: AtomicU64,
}

impl CurrentShape {
    /// Begins with `shape`.
    pub fn new(shape: ContainerShape) -> CurrentShape {
        CurrentShape { shape: ArcSwap::from_pointee(shape), expiry_due: AtomicU64::new(0) }
    }

    /// The definition in force now.
    pub fn load(&self) -> Guard<Arc<ContainerShape>> {
        self.shape.load()
    }

    /// The first second at which a document may have to be swept.
    pub fn expiry_due(&self) -> u64 {
        self.expiry_due.load(Ordering::Acquire)
    }

    /// A sweep begins: what is committed from now on is noted anew by the writers. The sweep takes its views after
    /// this, and notes what it leaves.
    pub fn begin_sweep(&self) {
        self.expiry_due.store(u64::MAX, Ordering::Release);
    }

    /// An expiry row of this second may be in the store.
    pub fn note_expiry(&self, second: u64) {
        self.expiry_due.fetch_min(second, Ordering::AcqRel);
    }

    /// Puts `shape` in force, however old it is.
    #[cfg(feature = "planted-faults")]
    pub fn force(&self, shape: ContainerShape) {
        self.shape.store(Arc::new(shape));
    }

    /// Whether a shape of this version would be put in force.
    pub fn is_older_than(&self, change: u64, is_expiry_pending: bool) -> bool {
        self.shape.load().version() < (change, !is_expiry_pending)
    }

    /// Changes how long the history is kept. It stays so when other definitions are put in force.
    pub fn keep_history(&self, seconds: Option<u64>) {
        self.shape.rcu(|current| {
            let mut shape = ContainerShape::clone(current);
            shape.history_seconds = seconds;
            shape
        });
    }

    /// Puts `shape` in force unless the one in force is as new or newer; returns whether it did.
    pub fn adopt(&self, shape: ContainerShape) -> bool {
        let before = self.shape.rcu(|current| {
            if shape.version() > current.version() {
                let mut shape = shape.clone();
                shape.history_seconds = current.history_seconds;
                Arc::new(shape)
            } else {
                Arc::clone(current)
            }
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
