//! `vectorEmbeddingPolicy`

use super::reader::Reader;
use super::{name_in, opaque};
use crate::faults::NosqlFault;
use model::policy::{DistanceFunction, VectorDataType, VectorEmbedding, VectorEmbeddingPolicy};
use model::{DefinitionNumber, DefinitionPart};
use serde_json::{Value as Json, json};

const POLICY: &str = "vectorEmbeddingPolicy";

const DATA_TYPES: [(&str, VectorDataType); 4] = [
    ("float32", VectorDataType::Float32),
    ("float16", VectorDataType::Float16),
    ("int8", VectorDataType::Int8),
    ("uint8", VectorDataType::Uint8),
];

const DISTANCES: [(&str, DistanceFunction); 3] = [
    ("cosine", DistanceFunction::Cosine),
    ("dotproduct", DistanceFunction::DotProduct),
    ("euclidean", DistanceFunction::Euclidean),
];

pub(super) fn read(json: &Json) -> Result<VectorEmbeddingPolicy, NosqlFault> {
    let reader = Reader::new(POLICY, "it", json)?;
    reader.only(&["vectorEmbeddings"])?;
    let embeddings = reader.list("vectorEmbeddings")?.iter().map(read_embedding);
    let policy = VectorEmbeddingPolicy { embeddings: embeddings.collect::<Result<_, _>>()? };
    policy.check()?;
    Ok(policy)
}

fn read_embedding(json: &Json) -> Result<VectorEmbedding, NosqlFault> {
    let reader = Reader::new(POLICY, "a vector embedding", json)?;
    reader.only(&["path", "dataType", "dimensions", "distanceFunction", "embeddingSource"])?;
    let source = match reader.get("embeddingSource") {
        None => None,
        Some(Json::Object(source)) => Some(opaque::read_members(source)),
        Some(_) => return Err(reader.bad("\"embeddingSource\" must be an object")),
    };
    let bounds = VectorEmbedding::DIMENSIONS;
    reader.check_bounds("dimensions", DefinitionPart::Vectors, DefinitionNumber::Dimensions, &bounds)?;
    let dimensions = |reader: &Reader<'_>| reader.whole("dimensions", bounds.clone());
    Ok(VectorEmbedding {
        path: reader.path("path")?,
        data_type: chosen(&reader, "dataType", "DataType", &DATA_TYPES)?,
        dimensions: dimensions(&reader)?.unwrap_or(VectorEmbedding::DIMENSIONS_DEFAULT),
        distance: chosen(&reader, "distanceFunction", "DistanceFunction", &DISTANCES)?,
        source,
    })
}

/// One of `choices`; the refusal has the words that clients look for.
fn chosen<T: Copy + Default>(
    reader: &Reader<'_>,
    name: &str,
    said: &str,
    choices: &[(&str, T)],
) -> Result<T, NosqlFault> {
    let Some(text) = reader.text(name)? else { return Ok(T::default()) };
    let refused = |fault: NosqlFault| {
        reader.bad(format!("The Vector Embedding Policy has an invalid {said}:{text}: {fault}"))
    };
    reader.chosen(name, text, choices).map_err(refused)
}

pub(super) fn write(policy: &VectorEmbeddingPolicy) -> Json {
    json!({ "vectorEmbeddings": policy.embeddings.iter().map(write_embedding).collect::<Vec<_>>() })
}

fn write_embedding(embedding: &VectorEmbedding) -> Json {
    let mut json = json!({
        "path": embedding.path.to_string(),
        "dataType": name_in(&DATA_TYPES, &embedding.data_type),
        "dimensions": embedding.dimensions,
        "distanceFunction": name_in(&DISTANCES, &embedding.distance),
    });
    if let Some(source) = &embedding.source {
        json["embeddingSource"] = opaque::write_members(source).into();
    }
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(embedding: Json) -> Result<Json, NosqlFault> {
        super::read(&json!({ "vectorEmbeddings": [embedding] })).map(|policy| write(&policy))
    }

    #[test]
    fn defaults_are_filled_in_and_names_are_in_one_letter_case() {
        let filled = read(json!({ "path": "/v" })).unwrap();
        let expected =
            json!({ "path": "/v", "dataType": "float32", "dimensions": 1536, "distanceFunction": "cosine" });
        assert_eq!(filled["vectorEmbeddings"][0], expected);
        let shouted =
            read(json!({ "path": "/v", "dataType": "UINT8", "distanceFunction": "DotProduct" })).unwrap();
        assert_eq!(shouted["vectorEmbeddings"][0]["distanceFunction"], "dotproduct");
    }

    #[test]
    fn bounds_and_paths_are_checked() {
        assert!(read(json!({ "path": "/v", "dimensions": 4096 })).is_ok());
        for bad in [
            json!({}),
            json!({ "path": "/v/*" }),
            json!({ "path": "/v/[]/x" }),
            json!({ "path": "/v", "dimensions": 0 }),
            json!({ "path": "/v", "dimensions": 4097 }),
            json!({ "path": "/v", "dataType": "float64" }),
            json!({ "path": "/v", "distanceFunction": "manhattan" }),
            json!({ "path": "/v", "embeddingSource": 1 }),
        ] {
            assert!(read(bad.clone()).is_err(), "{bad}");
        }
        let twice = json!({ "vectorEmbeddings": [{ "path": "/v" }, { "path": "/\"v\"" }] });
        assert!(super::read(&twice).is_err());
    }
}
