//! Operations on the partitions of a container.

use crate::faults::ControlFault;
use engine::{
    AdminPass, CatalogPass, Container, Engine, HotKey, PartitionLoad, PartitionState, PartitionStatus,
    SplitAt,
};
use model::{Charge, KeyComponent, PartitionOrdinal};
use serde_json::{Value as Json, json};
use std::time::Duration;

/// The partitions with their size and load.
pub(crate) async fn list(
    engine: &Engine,
    pass: &AdminPass<&Container>,
    reading: &CatalogPass<&Container>,
) -> Result<Json, ControlFault> {
    let loads = engine.partition_loads(pass);
    let statuses = engine.partition_list(reading).await?;
    let load = |ordinal| loads.iter().find(|load| load.ordinal == ordinal);
    let partitions: Vec<Json> =
        statuses.iter().map(|status| partition(status, load(status.ordinal))).collect();
    Ok(json!({ "partitions": partitions }))
}

/// Splits a partition.
pub(crate) async fn split(
    engine: &Engine,
    pass: AdminPass<&Container>,
    ordinal: PartitionOrdinal,
) -> Result<Json, ControlFault> {
    let children = engine.split_partition(&pass, ordinal, SplitAt::Documents).await?;
    Ok(json!({ "children": children.map(|child| child.to_string()) }))
}

/// Makes a partition refuse all requests for a while.
pub(crate) fn pause(
    engine: &Engine,
    pass: &AdminPass<&Container>,
    ordinal: PartitionOrdinal,
    time: Duration,
) -> Result<Json, ControlFault> {
    engine.pause_partition(pass, ordinal, time)?;
    Ok(json!({ "throttledMilliseconds": u64::try_from(time.as_millis()).unwrap_or(u64::MAX) }))
}

/// A partition that has just been split may have no load yet.
fn partition(status: &PartitionStatus, load: Option<&PartitionLoad>) -> Json {
    let units = |charge: fn(&PartitionLoad) -> Charge| {
        load.map_or(0.0, |load| charge(load).hundredths() as f64 / 100.0)
    };
    let hot_keys = load.map_or(&[][..], |load| &load.hot_keys);
    json!({
        "id": status.ordinal.to_string(),
        "state": match status.state {
            PartitionState::Serving => "serving",
            PartitionState::Splitting => "splitting",
            PartitionState::Separating => "separating",
        },
        "minInclusive": status.range.min.to_string(),
        "maxExclusive": status.range.max.to_string(),
        "parents": status.parents.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "documents": status.documents,
        "documentBytes": status.document_bytes,
        "requestUnitsLastSecond": units(|load| load.charged_last_second),
        "requestUnits": units(|load| load.charged),
        "throttledRequests": load.map_or(0, |load| load.throttled),
        "hottestKeys": hot_keys.iter().map(hot_key).collect::<Vec<_>>(),
    })
}

fn hot_key(hot: &HotKey) -> Json {
    let component = |component: &KeyComponent| match component {
        KeyComponent::Undefined => json!({}),
        KeyComponent::Null => Json::Null,
        KeyComponent::Bool(value) => json!(value),
        KeyComponent::Number(value) => json!(value),
        KeyComponent::String(value) => json!(value),
    };
    let key: Vec<Json> = hot.key.components.iter().map(component).collect();
    json!({ "partitionKey": key, "share": (hot.share * 1000.0).round() / 1000.0 })
}
