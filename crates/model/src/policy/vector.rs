//! The vector policy: where vectors are, how long they are and what near means.

use super::reader::{Reader, bad, name_of, repeated};
use crate::{DecodeFault, Decoder, Encoder, RequestFault};
use serde_json::{Map, Value as Json, json};
use value::PropertyPath;

const POLICY: &str = "vectorEmbeddingPolicy";
/// Most dimensions of a vector.
const DIMENSIONS_MAX: u32 = 4096;
/// Dimensions of a vector when nobody says anything.
const DIMENSIONS_DEFAULT: u32 = 1536;

/// Where vectors are.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorEmbeddingPolicy {
    /// One entry for each path.
    pub embeddings: Vec<VectorEmbedding>,
}

/// The vectors at one path.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorEmbedding {
    /// Where they are.
    pub path: PropertyPath,
    /// How their numbers are compared.
    pub data_type: VectorDataType,
    /// How many numbers they have.
    pub dimensions: u32,
    /// What near means.
    pub distance: DistanceFunction,
    /// Who makes them, in words that are kept and not acted on.
    source: Option<Map<String, Json>>,
}

/// How the numbers of a vector are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VectorDataType {
    /// 32 bits with a fraction.
    Float32,
    /// 16 bits with a fraction.
    Float16,
    /// 8 bits with a sign.
    Int8,
    /// 8 bits without a sign.
    Uint8,
}

const DATA_TYPES: [(&str, VectorDataType); 4] = [
    ("float32", VectorDataType::Float32),
    ("float16", VectorDataType::Float16),
    ("int8", VectorDataType::Int8),
    ("uint8", VectorDataType::Uint8),
];

/// What near means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DistanceFunction {
    /// The angle.
    Cosine,
    /// The product.
    DotProduct,
    /// The way between them.
    Euclidean,
}

const DISTANCES: [(&str, DistanceFunction); 3] = [
    ("cosine", DistanceFunction::Cosine),
    ("dotproduct", DistanceFunction::DotProduct),
    ("euclidean", DistanceFunction::Euclidean),
];

impl VectorEmbeddingPolicy {
    pub(super) fn from_json(json: &Json) -> Result<VectorEmbeddingPolicy, RequestFault> {
        let reader = Reader::new(POLICY, "it", json)?;
        reader.only(&["vectorEmbeddings"])?;
        let embeddings = reader.list("vectorEmbeddings")?.iter().map(VectorEmbedding::from_json);
        let embeddings: Vec<VectorEmbedding> = embeddings.collect::<Result<_, _>>()?;
        let paths: Vec<_> = embeddings.iter().map(|embedding| &embedding.path).collect();
        match repeated(&paths) {
            Some(path) => Err(bad(POLICY, format!("the path \"{path}\" is given twice"))),
            None => Ok(VectorEmbeddingPolicy { embeddings }),
        }
    }

    pub(super) fn to_json(&self) -> Json {
        json!({ "vectorEmbeddings": self.embeddings.iter().map(VectorEmbedding::to_json).collect::<Vec<_>>() })
    }
}

impl VectorEmbedding {
    fn from_json(json: &Json) -> Result<VectorEmbedding, RequestFault> {
        let reader = Reader::new(POLICY, "a vector embedding", json)?;
        reader.only(&["path", "dataType", "dimensions", "distanceFunction", "embeddingSource"])?;
        let source = match reader.get("embeddingSource") {
            None => None,
            Some(Json::Object(source)) => Some(source.clone()),
            Some(_) => return Err(reader.bad("\"embeddingSource\" must be an object")),
        };
        Ok(VectorEmbedding {
            path: reader.path("path")?,
            data_type: reader.choice("dataType", &DATA_TYPES)?.unwrap_or(VectorDataType::Float32),
            dimensions: reader.whole("dimensions", 1, DIMENSIONS_MAX)?.unwrap_or(DIMENSIONS_DEFAULT),
            distance: reader.choice("distanceFunction", &DISTANCES)?.unwrap_or(DistanceFunction::Cosine),
            source,
        })
    }

    fn to_json(&self) -> Json {
        let mut json = json!({
            "path": self.path.to_string(),
            "dataType": name_of(&DATA_TYPES, &self.data_type),
            "dimensions": self.dimensions,
            "distanceFunction": name_of(&DISTANCES, &self.distance),
        });
        if let Some(source) = &self.source {
            json["embeddingSource"] = source.clone().into();
        }
        json
    }
}

impl VectorEmbeddingPolicy {
    pub(super) fn encode(&self, out: &mut Encoder) {
        out.list(&self.embeddings, |out, embedding| embedding.encode(out));
    }

    pub(super) fn decode(input: &mut Decoder<'_>) -> Result<VectorEmbeddingPolicy, DecodeFault> {
        let embeddings = input.list("vector embeddings", VectorEmbedding::decode)?;
        Ok(VectorEmbeddingPolicy { embeddings })
    }
}

impl VectorEmbedding {
    fn encode(&self, out: &mut Encoder) {
        out.path(&self.path);
        out.byte(self.data_type.tag());
        out.number(self.dimensions);
        out.byte(self.distance.tag());
        out.option(self.source.as_ref(), Encoder::json_members);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<VectorEmbedding, DecodeFault> {
        let data_types = DATA_TYPES.map(|(_, data_type)| data_type);
        let distances = DISTANCES.map(|(_, distance)| distance);
        Ok(VectorEmbedding {
            path: input.path("path of a vector embedding")?,
            data_type: input.choice("vector data type", data_types, VectorDataType::tag)?,
            dimensions: input.number("vector dimensions")?,
            distance: input.choice("distance function", distances, DistanceFunction::tag)?,
            source: input.option("embedding source", |input| input.json_members("embedding source"))?,
        })
    }
}

impl VectorDataType {
    fn tag(self) -> u8 {
        match self {
            VectorDataType::Float32 => 0,
            VectorDataType::Float16 => 1,
            VectorDataType::Int8 => 2,
            VectorDataType::Uint8 => 3,
        }
    }
}

impl DistanceFunction {
    fn tag(self) -> u8 {
        match self {
            DistanceFunction::Cosine => 0,
            DistanceFunction::DotProduct => 1,
            DistanceFunction::Euclidean => 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(embedding: Json) -> Result<Json, RequestFault> {
        VectorEmbeddingPolicy::from_json(&json!({ "vectorEmbeddings": [embedding] }))
            .map(|policy| policy.to_json())
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
        assert!(VectorEmbeddingPolicy::from_json(&twice).is_err());
    }
}
