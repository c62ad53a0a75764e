//! Containers of the tests, as the text cases write them: members of a definition in JSON.
//!
//! Supports only what the cases need: any other member is a mistake in the case.

use model::policy::{
    CompositeIndex, ComputedProperty, IndexingPolicy, SpatialIndex, SpatialType, VectorEmbedding,
    VectorEmbeddingPolicy,
};
use model::{ContainerDefinition, ContainerDraft, DefaultTtl, PartitionKeyDefinition, PartitionKeyKind};
use serde_json::Value as Json;
use value::PropertyPath;

/// A container with further members, whose documents may expire. Its partition key is the id unless another path is
/// given.
pub(crate) fn definition(further: &Json) -> ContainerDefinition {
    let path = further["partitionKey"].as_str().unwrap_or("/id");
    let key = PartitionKeyDefinition::new(PartitionKeyKind::HashV2, [path]).unwrap();
    let mut draft = ContainerDraft::new("c", key);
    draft.default_ttl = DefaultTtl::OnDemand;
    for (name, member) in further.as_object().unwrap() {
        match name.as_str() {
            "indexingPolicy" => draft.policies.indexing = indexing(member),
            "computedProperties" => {
                let property = |json: &Json| ComputedProperty::new(text(json, "name"), text(json, "query"));
                draft.policies.computed = list(member).iter().map(property).collect();
            }
            "vectorEmbeddingPolicy" => {
                let embeddings = list(&member["vectorEmbeddings"]).iter().map(embedding).collect();
                draft.policies.vectors = Some(VectorEmbeddingPolicy { embeddings });
            }
            "partitionKey" => {}
            other => panic!("the cases know no \"{other}\""),
        }
    }
    draft.checked().unwrap()
}

fn indexing(json: &Json) -> IndexingPolicy {
    if json["indexingMode"] == "none" {
        return IndexingPolicy::none();
    }
    let paths = |name: &str| list(&json[name]).iter().map(|path| text(path, "path")).collect::<Vec<_>>();
    let mut policy = IndexingPolicy::by_texts(&paths("includedPaths"), &paths("excludedPaths")).unwrap();
    let composite = |json: &Json| {
        let paths = list(json).iter().map(|path| (text(path, "path"), path["order"] == "descending"));
        CompositeIndex::over(&paths.collect::<Vec<_>>()).unwrap()
    };
    policy.composite = list(&json["compositeIndexes"]).iter().map(composite).collect();
    policy.spatial = list(&json["spatialIndexes"]).iter().map(spatial).collect();
    policy
}

fn spatial(json: &Json) -> SpatialIndex {
    let named = |name: &Json| SpatialType::ALL.into_iter().find(|kind| *name == kind.name()).unwrap();
    let types: Vec<SpatialType> = list(&json["types"]).iter().map(named).collect();
    SpatialIndex::at(text(json, "path"), &types).unwrap()
}

fn embedding(json: &Json) -> VectorEmbedding {
    let path = PropertyPath::parse(text(json, "path")).unwrap();
    let dimensions = json["dimensions"].as_u64().map(|number| u32::try_from(number).unwrap());
    let dimensions = dimensions.unwrap_or(VectorEmbedding::DIMENSIONS_DEFAULT);
    VectorEmbedding { dimensions, ..VectorEmbedding::new(path) }
}

fn list(json: &Json) -> &[Json] {
    json.as_array().map_or(&[], Vec::as_slice)
}

fn text<'a>(json: &'a Json, name: &str) -> &'a str {
    json[name].as_str().unwrap()
}
