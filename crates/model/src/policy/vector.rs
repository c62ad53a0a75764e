//! The vector policy: where vectors are, how long they are and what near means.

use super::check::{bad, repeated, within};
use crate::{DecodeFault, Decoder, Encoder, OpaqueMembers, RequestFault};
use value::PropertyPath;

const POLICY: &str = "vectorEmbeddingPolicy";

/// Where vectors are.
#[derive(Clone, Debug, Default, PartialEq)]
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
    /// What makes them: settings that are kept and not acted on.
    pub source: Option<OpaqueMembers>,
}

/// How the numbers of a vector are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VectorDataType {
    /// 32 bits with a fraction.
    #[default]
    Float32,
    /// 16 bits with a fraction.
    Float16,
    /// 8 bits with a sign.
    Int8,
    /// 8 bits without a sign.
    Uint8,
}

/// What near means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DistanceFunction {
    /// The angle.
    #[default]
    Cosine,
    /// The product.
    DotProduct,
    /// The way between them.
    Euclidean,
}

impl VectorEmbeddingPolicy {
    /// Refuses dimensions out of their bounds, and a path that is given twice.
    pub fn check(&self) -> Result<(), RequestFault> {
        for embedding in &self.embeddings {
            within(POLICY, "dimensions", embedding.dimensions, VectorEmbedding::DIMENSIONS)?;
        }
        let paths: Vec<_> = self.embeddings.iter().map(|embedding| &embedding.path).collect();
        match repeated(&paths) {
            Some(path) => Err(bad(POLICY, format!("the path \"{path}\" is given twice"))),
            None => Ok(()),
        }
    }
}

impl VectorEmbedding {
    /// The least and the most dimensions of a vector.
    pub const DIMENSIONS: std::ops::RangeInclusive<u32> = 1..=4096;
    /// Dimensions of a vector when nobody says anything.
    pub const DIMENSIONS_DEFAULT: u32 = 1536;

    /// Vectors at `path` with the defaults of the service.
    pub fn new(path: PropertyPath) -> VectorEmbedding {
        VectorEmbedding {
            path,
            data_type: VectorDataType::default(),
            dimensions: VectorEmbedding::DIMENSIONS_DEFAULT,
            distance: DistanceFunction::default(),
            source: None,
        }
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
        out.option(self.source.as_ref(), |out, source| source.encode(out));
    }

    fn decode(input: &mut Decoder<'_>) -> Result<VectorEmbedding, DecodeFault> {
        Ok(VectorEmbedding {
            path: input.path("path of a vector embedding")?,
            data_type: input.choice("vector data type", VectorDataType::ALL, VectorDataType::tag)?,
            dimensions: input.number("vector dimensions")?,
            distance: input.choice("distance function", DistanceFunction::ALL, DistanceFunction::tag)?,
            source: input
                .option("embedding source", |input| OpaqueMembers::decode(input, "embedding source"))?,
        })
    }
}

impl VectorDataType {
    /// All of them.
    pub const ALL: [VectorDataType; 4] =
        [VectorDataType::Float32, VectorDataType::Float16, VectorDataType::Int8, VectorDataType::Uint8];

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
    /// All of them.
    pub const ALL: [DistanceFunction; 3] =
        [DistanceFunction::Cosine, DistanceFunction::DotProduct, DistanceFunction::Euclidean];

    fn tag(self) -> u8 {
        match self {
            DistanceFunction::Cosine => 0,
            DistanceFunction::DotProduct => 1,
            DistanceFunction::Euclidean => 2,
        }
    }
}
