//! The policies between which a simulated container changes.

use crate::naive::DefaultTtl;
use model::RequestFault;
use model::policy::{
    ChangeFeedPolicy, CompositeIndex, ComputedProperty, IndexingPolicy, SpatialIndex, SpatialType,
};

/// Retention of the history in minutes, if enabled.
pub(crate) const HISTORY_MINUTES: u32 = 1;

/// The indexing policy with an index below `scenario::POLICIES`.
pub(crate) fn policy_of(policy: usize) -> Result<IndexingPolicy, RequestFault> {
    Ok(match policy {
        0 => IndexingPolicy {
            spatial: vec![SpatialIndex::at("/at/*", &[])?],
            ..IndexingPolicy::by_texts(&["/*", "/next/?"], &[])?
        },
        1 => IndexingPolicy::by_texts(&[], &["/first/?", "/pad/*"])?,
        2 => IndexingPolicy::none(),
        _ => IndexingPolicy {
            composite: vec![CompositeIndex::over(&[("/mail", false), ("/next", true)])?],
            spatial: vec![SpatialIndex::at("/at/?", &[SpatialType::Point])?],
            ..IndexingPolicy::by_texts(&["/last/?"], &["/*"])?
        },
    })
}

/// The computed property of a policy.
pub(crate) fn computed_of(policy: usize) -> Vec<ComputedProperty> {
    let step = if policy < 2 { 1 } else { 2 };
    vec![ComputedProperty::new("next", format!("SELECT VALUE c.n + {step} FROM c"))]
}

/// Retention of the history; it changes together with the default TTL.
pub(crate) fn history_of(default_ttl: DefaultTtl) -> Option<ChangeFeedPolicy> {
    match default_ttl {
        DefaultTtl::Off | DefaultTtl::Seconds(_) => {
            Some(ChangeFeedPolicy { retention_minutes: HISTORY_MINUTES })
        }
        DefaultTtl::OnDemand => None,
    }
}
