//! The vector policy: paths, dimensions and distance functions of vectors.

use super::check::{repeated, within};
use crate::{
    DecodeFault, Decoder, DefinitionNumber, DefinitionPart, DefinitionRule, Encoder, OpaqueMembers,
    RequestFault,
};
use value::PropertyPath;

const PART: DefinitionPart = DefinitionPart::Vectors;

/// The paths of vectors.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VectorEmbeddingPolicy {
    /// One entry per path.
    pub embeddings: Vec<VectorEmbedding>,
}

/// The vectors at one path.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorEmbedding {
    /// The path.
    pub path: PropertyPath,
    /// The type of their components.
    pub data_type: VectorDataType,
    /// The number of components.
    pub dimensions: u32,
    /// The distance function.
    pub distance: DistanceFunction,
    /// How they are produced: settings that are stored but not used.
    pub source: Option<OpaqueMembers>,
}

/// The type of the components of a vector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VectorDataType {
    /// 32-bit floating point.
    #[default]
    Float32,
    /// 16-bit floating point.
    Float16,
    /// Signed 8-bit integer.
    Int8,
    /// Unsigned 8-bit integer.
    Uint8,
}

/// The distance function of vectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DistanceFunction {
    /// Cosine of the angle.
    #[default]
    Cosine,
    /// Dot product.
    DotProduct,
    /// Euclidean distance.
    Euclidean,
}

impl VectorEmbeddingPolicy {
    /// Refuses dimensions out of bounds, and duplicate paths.
    pub fn check(&self) -> Result<(), RequestFault> {
        for embedding in &self.embeddings {
            within(PART, DefinitionNumber::Dimensions, embedding.dimensions, VectorEmbedding::DIMENSIONS)?;
        }
        let paths: Vec<_> = self.embeddings.iter().map(|embedding| &embedding.path).collect();
        match repeated(&paths) {
            Some(path) => Err(PART.violates(DefinitionRule::RepeatedPath(path.to_string()))),
            None => Ok(()),
        }
    }
}

impl VectorEmbedding {
    /// Allowed dimensions of a vector.
    pub const DIMENSIONS: std::ops::RangeInclusive<u32> = 1..=4096;
    /// Default dimensions of a vector.
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
    /// All types.
    pub(crate) const ALL: [VectorDataType; 4] =
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
    /// All functions.
    pub(crate) const ALL: [DistanceFunction; 3] =
        [DistanceFunction::Cosine, DistanceFunction::DotProduct, DistanceFunction::Euclidean];

    fn tag(self) -> u8 {
        match self {
            DistanceFunction::Cosine => 0,
            DistanceFunction::DotProduct => 1,
            DistanceFunction::Euclidean => 2,
        }
    }
}
