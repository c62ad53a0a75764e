//! Indexes in addition to the one on every path: composite, spatial, vector.

use super::check::{repeated, within};
use super::geospatial::GeospatialType;
use super::index_path::PolicyPath;
use super::vector::VectorEmbedding;
use crate::{
    DecodeFault, Decoder, DefinitionNumber, DefinitionPart, DefinitionRule, Encoder, IndexRule, RequestFault,
};
use std::ops::RangeInclusive;
use value::PropertyPath;

const PART: DefinitionPart = DefinitionPart::Indexing;
/// Most paths of a composite index.
const COMPOSITE_PATHS_MAX: usize = 8;
/// Most dimensions of a flat vector index.
const FLAT_DIMENSIONS_MAX: u32 = 505;

/// An index of the order by several properties.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CompositeIndex {
    /// The properties, most significant first; at least two.
    pub paths: Vec<CompositePath>,
}

/// A property of a composite index.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CompositePath {
    /// The property.
    pub path: PropertyPath,
    /// Whether the order is descending.
    pub descending: bool,
}

impl CompositeIndex {
    /// An index of the properties at these paths; `true` means descending.
    pub fn over(paths: &[(&str, bool)]) -> Result<CompositeIndex, RequestFault> {
        let path = |(text, descending): &(&str, bool)| {
            let path = PropertyPath::parse(text)
                .map_err(|error| PART.violates(DefinitionRule::Path { path: (*text).to_owned(), error }))?;
            Ok(CompositePath { path, descending: *descending })
        };
        Ok(CompositeIndex { paths: paths.iter().map(path).collect::<Result<_, RequestFault>>()? })
    }

    /// Refuses `count` properties if they are too few or too many.
    pub fn check_count(count: usize) -> Result<(), RequestFault> {
        if (2..=COMPOSITE_PATHS_MAX).contains(&count) {
            return Ok(());
        }
        Err(PART.violates(DefinitionRule::PathCount { given: count, min: 2, max: COMPOSITE_PATHS_MAX }))
    }

    /// Refuses too few or too many properties, and duplicates.
    pub fn check(&self) -> Result<(), RequestFault> {
        CompositeIndex::check_count(self.paths.len())?;
        let places: Vec<_> = self.paths.iter().map(|path| &path.path).collect();
        match repeated(&places) {
            Some(path) => Err(PART.violates(IndexRule::RepeatedCompositePath(path.to_string()))),
            None => Ok(()),
        }
    }
}

/// A type of geometry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpatialType {
    /// A point.
    Point,
    /// A line.
    LineString,
    /// A polygon.
    Polygon,
    /// Several polygons.
    MultiPolygon,
}

impl SpatialType {
    /// All types.
    pub const ALL: [SpatialType; 4] =
        [SpatialType::Point, SpatialType::LineString, SpatialType::Polygon, SpatialType::MultiPolygon];

    /// Its name in GeoJSON.
    pub fn name(self) -> &'static str {
        match self {
            SpatialType::Point => "Point",
            SpatialType::LineString => "LineString",
            SpatialType::Polygon => "Polygon",
            SpatialType::MultiPolygon => "MultiPolygon",
        }
    }
}

/// An index of geometries.
#[derive(Clone, Debug, PartialEq)]
pub struct SpatialIndex {
    /// The path of the geometries.
    pub path: PolicyPath,
    /// The indexed types.
    pub types: Vec<SpatialType>,
    /// The indexed part of the plane; geography is indexed without a box.
    pub bounding_box: Option<BoundingBox>,
}

/// A rectangle in the plane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoundingBox {
    /// Lower left corner, then upper right corner, each as x and y.
    pub corners: [f64; 4],
}

impl SpatialIndex {
    /// An index of these types at `path`; of all types if none is given.
    pub fn new(path: PolicyPath, types: &[SpatialType]) -> SpatialIndex {
        let types = if types.is_empty() { &SpatialType::ALL } else { types };
        SpatialIndex { path, types: types.to_vec(), bounding_box: None }
    }

    /// The same, from the text of the path.
    pub fn at(path: &str, types: &[SpatialType]) -> Result<SpatialIndex, RequestFault> {
        let path = PolicyPath::parse(path)?;
        Ok(SpatialIndex::new(path, types))
    }

    /// Refuses duplicate types and an empty box.
    pub fn check(&self) -> Result<(), RequestFault> {
        if let Some(twice) = repeated(&self.types) {
            return Err(PART.violates(IndexRule::RepeatedSpatialType(*twice)));
        }
        self.bounding_box.map_or(Ok(()), BoundingBox::check)
    }

    /// A plane is unbounded, so its index needs a box; the earth is bounded.
    pub(super) fn check_box(&self, geospatial: GeospatialType) -> Result<(), RequestFault> {
        match (geospatial, self.bounding_box) {
            (GeospatialType::Geography, None) | (GeospatialType::Geometry, Some(_)) => Ok(()),
            (GeospatialType::Geometry, None) => {
                Err(PART.violates(IndexRule::MissingBox(self.path.to_string())))
            }
            (GeospatialType::Geography, Some(_)) => {
                Err(PART.violates(IndexRule::UnexpectedBox(self.path.to_string())))
            }
        }
    }
}

impl BoundingBox {
    fn check(self) -> Result<(), RequestFault> {
        let [left, lower, right, upper] = self.corners;
        if left < right && lower < upper {
            return Ok(());
        }
        Err(PART.violates(IndexRule::EmptyBox))
    }
}

/// How vectors are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VectorIndexKind {
    /// Exhaustively, without quantization.
    Flat,
    /// Exhaustively, quantized.
    QuantizedFlat,
    /// With a graph.
    DiskAnn,
}

/// How vectors are quantized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantizer {
    /// Product quantization.
    Product,
    /// Spherical quantization.
    Spherical,
}

impl Quantizer {
    /// All quantizers.
    pub const ALL: [Quantizer; 2] = [Quantizer::Product, Quantizer::Spherical];

    /// Its name, as in definitions and in stored rows.
    pub fn name(self) -> &'static str {
        match self {
            Quantizer::Product => "product",
            Quantizer::Spherical => "spherical",
        }
    }
}

/// An index of vectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VectorIndex {
    /// The path of the vectors; the vector policy must contain it.
    pub path: PropertyPath,
    /// How they are searched.
    pub kind: VectorIndexKind,
    /// Bytes of a quantized vector.
    pub quantization_bytes: Option<u32>,
    /// Number of candidates while the graph is built.
    pub search_list_size: Option<u32>,
    /// The quantizer.
    pub quantizer: Option<Quantizer>,
    /// A property for whose values there are separate graphs.
    pub shard_key: Option<PropertyPath>,
}

impl VectorIndex {
    /// Allowed bytes of a quantized vector.
    pub const QUANTIZATION_BYTES: RangeInclusive<u32> = 1..=512;
    /// Allowed numbers of candidates while the graph is built.
    pub const SEARCH_LIST_SIZE: RangeInclusive<u32> = 25..=500;

    /// An index of the vectors at `path` with default settings.
    pub fn new(path: PropertyPath, kind: VectorIndexKind) -> VectorIndex {
        VectorIndex {
            path,
            kind,
            quantization_bytes: None,
            search_list_size: None,
            quantizer: None,
            shard_key: None,
        }
    }

    /// Refuses settings that do not apply to its kind, and sizes out of bounds.
    pub fn check(&self) -> Result<(), RequestFault> {
        if let Some(bytes) = self.quantization_bytes {
            within(PART, DefinitionNumber::QuantizationBytes, bytes, VectorIndex::QUANTIZATION_BYTES)?;
        }
        if let Some(size) = self.search_list_size {
            within(PART, DefinitionNumber::SearchListSize, size, VectorIndex::SEARCH_LIST_SIZE)?;
        }
        let shortens = self.quantization_bytes.is_some() || self.quantizer.is_some();
        match self.kind {
            VectorIndexKind::Flat if shortens => Err(PART.violates(IndexRule::QuantizedFlat)),
            VectorIndexKind::Flat | VectorIndexKind::QuantizedFlat if self.search_list_size.is_some() => {
                Err(PART.violates(IndexRule::SearchListWithoutGraph))
            }
            VectorIndexKind::Flat if self.shard_key.is_some() => Err(PART.violates(IndexRule::ShardedFlat)),
            VectorIndexKind::Flat | VectorIndexKind::QuantizedFlat | VectorIndexKind::DiskAnn => Ok(()),
        }
    }

    /// Requires an embedding that the index supports.
    pub(super) fn check_embedding(&self, embeddings: &[VectorEmbedding]) -> Result<(), RequestFault> {
        let path = &self.path;
        let Some(embedding) = embeddings.iter().find(|embedding| embedding.path == *path) else {
            return Err(PART.violates(IndexRule::MissingEmbedding(path.to_string())));
        };
        let dimensions = embedding.dimensions;
        if self.kind == VectorIndexKind::Flat && dimensions > FLAT_DIMENSIONS_MAX {
            return Err(PART.violates(IndexRule::FlatDimensions {
                path: path.to_string(),
                dimensions,
                max: FLAT_DIMENSIONS_MAX,
            }));
        }
        let bytes_max = dimensions.min(*VectorIndex::QUANTIZATION_BYTES.end());
        match self.quantization_bytes {
            Some(bytes) => within(PART, DefinitionNumber::QuantizationBytes, bytes, 1..=bytes_max),
            None => Ok(()),
        }
    }
}

impl CompositeIndex {
    pub(super) fn encode(&self, out: &mut Encoder) {
        out.list(&self.paths, |out, path| {
            out.path(&path.path);
            out.flag(path.descending);
        });
    }

    pub(super) fn decode(input: &mut Decoder<'_>) -> Result<CompositeIndex, DecodeFault> {
        let path = |input: &mut Decoder<'_>| {
            Ok(CompositePath {
                path: input.path("path of a composite index")?,
                descending: input.flag("order of a composite index")?,
            })
        };
        Ok(CompositeIndex { paths: input.list("paths of a composite index", path)? })
    }
}

impl SpatialType {
    /// Its tag in encodings.
    pub fn tag(self) -> u8 {
        match self {
            SpatialType::Point => 0,
            SpatialType::LineString => 1,
            SpatialType::Polygon => 2,
            SpatialType::MultiPolygon => 3,
        }
    }

    fn decode(input: &mut Decoder<'_>) -> Result<SpatialType, DecodeFault> {
        input.choice("spatial type", SpatialType::ALL, SpatialType::tag)
    }
}

impl SpatialIndex {
    pub(super) fn encode(&self, out: &mut Encoder) {
        self.path.encode(out);
        out.list(&self.types, |out, kind| out.byte(kind.tag()));
        out.option(self.bounding_box, |out, bounding_box| {
            bounding_box.corners.into_iter().for_each(|corner| out.double(corner));
        });
    }

    pub(super) fn decode(input: &mut Decoder<'_>) -> Result<SpatialIndex, DecodeFault> {
        Ok(SpatialIndex {
            path: PolicyPath::decode(input)?,
            types: input.list("spatial types", SpatialType::decode)?,
            bounding_box: input.option("bounding box", BoundingBox::decode)?,
        })
    }
}

impl BoundingBox {
    fn decode(input: &mut Decoder<'_>) -> Result<BoundingBox, DecodeFault> {
        let mut corners = [0.0; 4];
        for corner in &mut corners {
            *corner = input.double("corner of a bounding box")?;
        }
        Ok(BoundingBox { corners })
    }
}

impl VectorIndexKind {
    /// All kinds.
    pub(crate) const ALL: [VectorIndexKind; 3] =
        [VectorIndexKind::Flat, VectorIndexKind::QuantizedFlat, VectorIndexKind::DiskAnn];

    fn tag(self) -> u8 {
        match self {
            VectorIndexKind::Flat => 0,
            VectorIndexKind::QuantizedFlat => 1,
            VectorIndexKind::DiskAnn => 2,
        }
    }
}

impl VectorIndex {
    pub(super) fn encode(&self, out: &mut Encoder) {
        out.path(&self.path);
        out.byte(self.kind.tag());
        out.option(self.quantization_bytes, Encoder::number);
        out.option(self.search_list_size, Encoder::number);
        out.option(self.quantizer.map(Quantizer::name), Encoder::text);
        out.option(self.shard_key.as_ref(), Encoder::path);
    }

    pub(super) fn decode(input: &mut Decoder<'_>) -> Result<VectorIndex, DecodeFault> {
        Ok(VectorIndex {
            path: input.path("path of a vector index")?,
            kind: input.choice("vector index kind", VectorIndexKind::ALL, VectorIndexKind::tag)?,
            quantization_bytes: input
                .option("quantization bytes", |input| input.number("quantization bytes"))?,
            search_list_size: input.option("search list size", |input| input.number("search list size"))?,
            quantizer: input
                .option("quantizer", |input| input.name("quantizer", Quantizer::ALL, Quantizer::name))?,
            shard_key: input.option("shard key", |input| input.path("shard key"))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn composite_indexes_have_two_to_eight_paths() {
        let names: Vec<String> = (0..9).map(|number| format!("/p{number}")).collect();
        let check = |count: usize| {
            let paths: Vec<_> = names[..count].iter().map(|name| (name.as_str(), false)).collect();
            CompositeIndex::over(&paths).unwrap().check()
        };
        assert!(check(1).is_err() && check(2).is_ok() && check(8).is_ok() && check(9).is_err());
        assert!(CompositeIndex::over(&[("/a", false), ("/\"a\"", true)]).unwrap().check().is_err());
        assert!(CompositeIndex::over(&[("/a", false), ("/b/?", false)]).is_err());
    }

    #[test]
    fn a_plane_needs_a_box_with_an_inside() {
        let bare = SpatialIndex::new(PolicyPath::parse("/loc/*").unwrap(), &[]);
        let boxed = |corners| SpatialIndex { bounding_box: Some(BoundingBox { corners }), ..bare.clone() };
        let good = boxed([0.0, -1.5, 10.0, 5.0]);
        assert!(good.check().is_ok() && boxed([0.0, 1.0, 10.0, 1.0]).check().is_err());
        assert!(boxed([0.0, f64::NAN, 10.0, 1.0]).check().is_err());
        assert!(good.check_box(GeospatialType::Geometry).is_ok());
        assert!(good.check_box(GeospatialType::Geography).is_err());
        assert!(bare.check_box(GeospatialType::Geometry).is_err());
        assert!(bare.check_box(GeospatialType::Geography).is_ok());
        let twice = SpatialIndex { types: vec![SpatialType::Point; 2], ..bare };
        assert!(twice.check().is_err());
    }

    #[test]
    fn vector_indexes_have_only_the_settings_of_their_kind() {
        let path = || PropertyPath::parse("/v").unwrap();
        let check = |kind, set: fn(&mut VectorIndex)| {
            let mut index = VectorIndex::new(path(), kind);
            set(&mut index);
            index.check().is_ok()
        };
        let [flat, quantized, graph] = VectorIndexKind::ALL;
        assert!(check(flat, |_| {}) && check(quantized, |_| {}) && check(graph, |_| {}));
        assert!(!check(flat, |index| index.quantization_bytes = Some(4)));
        assert!(!check(flat, |index| index.quantizer = Some(Quantizer::Product)));
        assert!(!check(flat, |index| index.shard_key = Some(index.path.clone())));
        assert!(!check(quantized, |index| index.search_list_size = Some(100)));
        assert!(check(graph, |index| index.quantization_bytes = Some(512)));
        assert!(!check(graph, |index| index.quantization_bytes = Some(513)));
        assert!(check(graph, |index| index.search_list_size = Some(25)));
        assert!(!check(graph, |index| index.search_list_size = Some(24)));
    }
}
