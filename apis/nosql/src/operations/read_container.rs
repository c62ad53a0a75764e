//! `GET /dbs/{database}/colls/{container}`, with quota, usage and statistics if the client requests them.

use super::Call;
use crate::faults::Refusal;
use crate::route::ContainerPath;
use crate::wire::reply::Reply;
use crate::wire::{headers, names};
use engine::{Action, ContainerUsage, PartitionUsage};
use model::ScriptKind;
use model::limits::{ITEM_BYTES_MAX, PARTITION_BYTES_MAX};
use serde_json::{Value as Json, json};

pub(super) async fn perform(call: &Call<'_>, path: ContainerPath<'_>) -> Result<Reply, Refusal> {
    let wants_usage = headers::flag(call.headers(), &names::POPULATE_QUOTA)?;
    let wants_statistics = headers::flag(call.headers(), &names::POPULATE_STATISTICS)?;
    let container = call.container(path, Action::ReadMetadata)?.resource;
    let pass = call.read_catalog(&*container)?;
    let mut resource = call.container_json(&container);
    if wants_statistics {
        let usage = call.engine.partition_usage(&pass).await?;
        resource["statistics"] = usage.iter().map(statistics).collect();
    }
    let mut reply = call.read_reply(&resource, container.etag())?;
    reply.owner_of_container(&container);
    if wants_usage {
        let usage = call.engine.container_usage(&pass).await?;
        reply.text(&names::RESOURCE_QUOTA, quota(&usage));
        reply.text(&names::RESOURCE_USAGE, used(&usage));
        reply.number(&names::INDEX_PROGRESS, call.engine.index_progress(&pass).await?);
    }
    Ok(reply)
}

/// The statistics of one partition. Partition keys are not sampled.
fn statistics(usage: &PartitionUsage) -> Json {
    json!({
        "id": usage.ordinal.to_string(),
        "sizeInKB": usage.document_bytes.div_ceil(1024),
        "documentCount": usage.documents,
        "sampledDistinctPartitionKeyCount": 0,
        "partitionKeys": [],
    })
}

/// Sizes are in kilobytes; -1 means no limit.
pub(crate) fn quota(usage: &ContainerUsage) -> String {
    let bytes_max = PARTITION_BYTES_MAX.saturating_mul(usage.partitions as u64);
    format!(
        "functions={};storedProcedures={};triggers={};documentSize={};documentsSize={kilobytes};documentsCount=-1;\
         collectionSize={kilobytes};",
        ScriptKind::UserDefinedFunction.count_max(),
        ScriptKind::StoredProcedure.count_max(),
        ScriptKind::Trigger.count_max(),
        ITEM_BYTES_MAX / 1024,
        kilobytes = bytes_max / 1024,
    )
}

/// What is used of the quota, in the same units.
pub(crate) fn used(usage: &ContainerUsage) -> String {
    format!(
        "functions={};storedProcedures={};triggers={};documentSize=0;documentsSize={kilobytes};documentsCount={};\
         collectionSize={kilobytes};",
        usage.functions,
        usage.stored_procedures,
        usage.triggers,
        usage.documents,
        kilobytes = usage.document_bytes.div_ceil(1024),
    )
}
