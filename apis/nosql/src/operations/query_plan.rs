//! `POST …/docs` as a request for a query plan, for clients that merge the answers of ranges themselves.
//!
//! The client then sends the rewritten query to each range of the plan. A client that lacks a feature that the plan
//! needs is refused.

use super::{Call, scope};
use crate::client_plan::{Extent, Unmergeable, client_plan, hybrid_plan};
use crate::faults::{NosqlFault, NosqlQueryFault, Refusal};
use crate::lower::QueryText;
use crate::route::ContainerPath;
use crate::wire::plan_document::{self, PlanRange};
use crate::wire::reply::Reply;
use crate::wire::{headers, names};
use engine::{Action, Container, Resource, Scope, pinned_keys};
use http::StatusCode;
use model::{Charge, EffectiveKey, EffectiveRange, PartitionKey};
use plan::query::{Order, Query, SortKey};
use std::sync::Arc;

pub(super) async fn perform(call: &Call<'_>, path: ContainerPath<'_>) -> Result<Reply, Refusal> {
    let container = call.owner(path, Action::QueryDocuments)?.resource;
    let features = headers::text(call.headers(), &names::SUPPORTED_FEATURES)?.unwrap_or_default();
    let scope = scope::of_headers(call, &container)?.unwrap_or(Scope::Container);
    call.authorise(Action::QueryDocuments, Resource::Container(&container, scope.reach()))?;
    let (headers, body) = (call.headers().clone(), call.body.clone());
    let (texts, sought) = (Arc::clone(call.texts), Arc::clone(&container));
    let plan = move || {
        let (tree, query) = QueryText::read(&headers, &body)?.without_values().tree_and_query(&texts)?;
        document(&sought, &scope, &tree, &query)
    };
    let (document, needed) = call.compute(plan).await?;
    refuse_missing_features(&needed, features)?;
    let mut reply = Reply::json(StatusCode::OK, Charge::MINIMUM, document.into_bytes());
    reply.owner(&container);
    Ok(reply)
}

/// The plan as JSON, and the features that the client needs for it.
pub(super) fn document(
    container: &Container,
    scope: &Scope,
    tree: &sql::ast::Query,
    query: &Query,
) -> Result<(String, Vec<&'static str>), NosqlFault> {
    let keys = match scope {
        Scope::Key(key) => Some(vec![key.clone()]),
        Scope::Container | Scope::Range(..) | Scope::Hashes(_) => {
            pinned_keys(query, &container.definition().partition_key)
        }
    };
    let ranges = ranges(container, query, keys.as_deref());
    if let Some(plan) = hybrid_plan(tree, query) {
        return Ok((plan_document::fused(&plan, &ranges), plan.features()));
    }
    let backwards = backwards_keys(container, query);
    let is_similarity = |position: usize| backwards.get(position).copied().unwrap_or(true);
    let plan = client_plan(tree, query, extent(container, keys.as_deref()), &is_similarity);
    let plan = plan.map_err(unmergeable)?;
    Ok((plan_document::joined(&plan, &ranges), plan.features()))
}

/// A query on one complete key is answered completely by its partition.
fn extent(container: &Container, keys: Option<&[PartitionKey]>) -> Extent {
    match keys {
        Some([key]) if container.definition().partition_key.is_complete(key) => Extent::OneKey,
        Some(_) | None => Extent::Ranges,
    }
}

/// Whether larger values come first, for each sort key. For distances it depends on what is nearer, according to the
/// options of the call or the policy of its path.
fn backwards_keys(container: &Container, query: &Query) -> Vec<bool> {
    let embeddings = container.definition().policies.vectors.as_ref().map(|policy| &policy.embeddings[..]);
    let query = query.with_distances(embeddings.unwrap_or_default());
    match &query.order {
        Order::Keys(keys) => keys.iter().map(SortKey::is_backwards).collect(),
        Order::None | Order::Rank(_) => Vec::new(),
    }
}

fn unmergeable(fault: Unmergeable) -> NosqlQueryFault {
    match fault {
        Unmergeable::Count(faults) => NosqlQueryFault::Text(faults),
        Unmergeable::Composition
        | Unmergeable::DistinctGroups
        | Unmergeable::FoldedSource
        | Unmergeable::Rank => NosqlQueryFault::Unmergeable(fault),
    }
}

fn refuse_missing_features(needed: &[&'static str], features: &str) -> Result<(), NosqlQueryFault> {
    let has = |wanted: &str| features.split(',').any(|feature| feature.trim().eq_ignore_ascii_case(wanted));
    let missing: Vec<&'static str> = needed.iter().copied().filter(|feature| !has(feature)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(NosqlQueryFault::FeaturesMissing { missing })
}

/// The ranges that can contain matching documents: in order, and not nested.
fn ranges(container: &Container, query: &Query, keys: Option<&[PartitionKey]>) -> Vec<PlanRange> {
    let Some(keys) = keys else {
        // Without a source there is one row, independent of the range.
        return vec![match query.sources.is_empty() {
            true => PlanRange::Point(EffectiveKey::MIN),
            false => PlanRange::Interval(EffectiveRange::full()),
        }];
    };
    let definition = &container.definition().partition_key;
    let mut ranges: Vec<PlanRange> = keys
        .iter()
        .map(|key| match definition.is_complete(key) {
            true => PlanRange::Point(definition.effective_key(key)),
            false => PlanRange::Interval(definition.effective_range(key)),
        })
        .collect();
    ranges.sort_by(|one, other| one.min().cmp(other.min()));
    ranges.dedup_by(|next, previous| previous.contains(next.min()));
    ranges
}
