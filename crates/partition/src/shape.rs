//! What a partition must know of its container's definition.

use crate::index::{ComputedReader, Rules, indexable};
use model::{ContainerDefinition, DefaultTtl, PartitionKeyDefinition, UniqueKeyPolicy};
use std::sync::Arc;

/// The part of a container's definition that decides how documents are stored.
#[derive(Clone, Debug)]
pub struct ContainerShape {
    /// Where the partition key is; a stored document never leaves its key.
    pub partition_key: PartitionKeyDefinition,
    /// When documents expire that do not say it themselves.
    pub default_ttl: DefaultTtl,
    /// Whether expiry rows are being written anew because the default changed: until then some are missing.
    pub is_expiry_pending: bool,
    /// Which values may occur once only.
    pub unique_keys: UniqueKeyPolicy,
    /// Which values are indexed.
    pub(crate) rules: Arc<Rules>,
}

impl ContainerShape {
    /// What the definition says; the queries of its computed properties are read by `reader`.
    pub fn new(definition: &ContainerDefinition, reader: ComputedReader) -> ContainerShape {
        let computed = indexable(&definition.policies.computed, reader);
        ContainerShape {
            partition_key: definition.partition_key.clone(),
            default_ttl: definition.default_ttl,
            is_expiry_pending: false,
            unique_keys: definition.unique_keys.clone(),
            rules: Arc::new(Rules::new(&definition.policies.indexing, computed)),
        }
    }
}

impl From<&ContainerDefinition> for ContainerShape {
    /// The same for a container whose computed properties are not indexed.
    fn from(definition: &ContainerDefinition) -> ContainerShape {
        ContainerShape::new(definition, |_| None)
    }
}
