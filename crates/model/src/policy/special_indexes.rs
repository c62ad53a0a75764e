//! Indexes that a policy asks for beyond the one on every path: composite, spatial, vector, full-text.

use super::geospatial::GeospatialType;
use super::index_path::IndexPath;
use super::reader::{Reader, bad, name_of, repeated};
use super::vector::VectorEmbedding;
use crate::{DecodeFault, Decoder, Encoder, RequestFault};
use serde_json::{Value as Json, json};
use value::PropertyPath;

const POLICY: &str = "indexingPolicy";
/// Most paths of a composite index.
const COMPOSITE_PATHS_MAX: usize = 8;
/// Most dimensions of a flat vector index.
const FLAT_DIMENSIONS_MAX: u32 = 505;

/// An order over several properties.
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
    /// Whether large values come first.
    pub descending: bool,
}

const ORDERS: [(&str, bool); 2] = [("ascending", false), ("descending", true)];

impl CompositeIndex {
    pub(super) fn from_json(json: &Json) -> Result<CompositeIndex, RequestFault> {
        let Json::Array(list) = json else {
            return Err(bad(POLICY, "a composite index must be an array"));
        };
        if list.len() < 2 || list.len() > COMPOSITE_PATHS_MAX {
            let count = list.len();
            return Err(bad(
                POLICY,
                format!("{count} paths in a composite index, 2 to {COMPOSITE_PATHS_MAX} allowed"),
            ));
        }
        let mut paths = Vec::with_capacity(list.len());
        for json in list {
            let reader = Reader::new(POLICY, "a path of a composite index", json)?;
            reader.only(&["path", "order"])?;
            let descending = reader.choice("order", &ORDERS)?.unwrap_or(false);
            paths.push(CompositePath { path: reader.path("path")?, descending });
        }
        let places: Vec<_> = paths.iter().map(|path| &path.path).collect();
        if let Some(path) = repeated(&places) {
            return Err(bad(POLICY, format!("the path \"{path}\" is twice in a composite index")));
        }
        Ok(CompositeIndex { paths })
    }

    pub(super) fn to_json(&self) -> Json {
        let path = |path: &CompositePath| json!({ "path": path.path.to_string(), "order": name_of(&ORDERS, &path.descending) });
        self.paths.iter().map(path).collect()
    }
}

/// A kind of shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpatialType {
    /// A point.
    Point,
    /// A line.
    LineString,
    /// An area.
    Polygon,
    /// Several areas.
    MultiPolygon,
}

const SPATIAL_TYPES: [(&str, SpatialType); 4] = [
    ("Point", SpatialType::Point),
    ("LineString", SpatialType::LineString),
    ("Polygon", SpatialType::Polygon),
    ("MultiPolygon", SpatialType::MultiPolygon),
];

/// An index of shapes.
#[derive(Clone, Debug, PartialEq)]
pub struct SpatialIndex {
    /// Where the shapes are.
    pub path: IndexPath,
    /// Which shapes.
    pub types: Vec<SpatialType>,
    /// The part of the plane; of the earth all is indexed.
    pub bounding_box: Option<BoundingBox>,
}

/// A part of the plane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoundingBox {
    /// Lower left corner, then upper right: x and y each.
    pub corners: [f64; 4],
}

const CORNERS: [&str; 4] = ["xmin", "ymin", "xmax", "ymax"];

impl SpatialIndex {
    pub(super) fn from_json(json: &Json) -> Result<SpatialIndex, RequestFault> {
        let reader = Reader::new(POLICY, "a spatial index", json)?;
        reader.only(&["path", "types", "boundingBox"])?;
        let path = IndexPath::parse(reader.required_text("path")?).map_err(|reason| bad(POLICY, reason))?;
        let mut types = Vec::new();
        for json in reader.list("types")? {
            let text = json.as_str().ok_or_else(|| reader.bad("a spatial type must be a string"))?;
            types.push(reader.chosen("types", text, &SPATIAL_TYPES)?);
        }
        if let Some(twice) = repeated(&types) {
            return Err(
                reader.bad(format!("the spatial type {} is given twice", name_of(&SPATIAL_TYPES, twice)))
            );
        }
        if types.is_empty() {
            types = SPATIAL_TYPES.iter().map(|(_, spatial)| *spatial).collect();
        }
        let bounding_box = reader.get("boundingBox").map(BoundingBox::from_json).transpose()?;
        Ok(SpatialIndex { path, types, bounding_box })
    }

    /// A plane has no end, so its index needs a box; the earth has one.
    pub(super) fn check(&self, geospatial: GeospatialType) -> Result<(), RequestFault> {
        match (geospatial, self.bounding_box) {
            (GeospatialType::Geography, None) | (GeospatialType::Geometry, Some(_)) => Ok(()),
            (GeospatialType::Geometry, None) => {
                Err(bad(POLICY, format!("the spatial index \"{}\" needs a \"boundingBox\"", self.path)))
            }
            (GeospatialType::Geography, Some(_)) => Err(bad(
                POLICY,
                format!("the spatial index \"{}\" of a geography has no \"boundingBox\"", self.path),
            )),
        }
    }

    pub(super) fn to_json(&self) -> Json {
        let types: Vec<Json> = self.types.iter().map(|kind| name_of(&SPATIAL_TYPES, kind).into()).collect();
        let mut json = json!({ "path": self.path.to_string(), "types": types });
        if let Some(bounding_box) = self.bounding_box {
            json["boundingBox"] = bounding_box.to_json();
        }
        json
    }
}

impl BoundingBox {
    fn from_json(json: &Json) -> Result<BoundingBox, RequestFault> {
        let reader = Reader::new(POLICY, "\"boundingBox\"", json)?;
        reader.only(&CORNERS)?;
        let mut corners = [0.0; 4];
        for (corner, name) in corners.iter_mut().zip(CORNERS) {
            let number = reader.get(name).and_then(Json::as_f64);
            *corner = number.ok_or_else(|| reader.bad(format!("\"{name}\" must be a number")))?;
        }
        let [left, lower, right, upper] = corners;
        if left >= right || lower >= upper {
            return Err(reader.bad("\"boundingBox\" must have its minimum below its maximum"));
        }
        Ok(BoundingBox { corners })
    }

    fn to_json(self) -> Json {
        let member = |(name, corner): (&str, f64)| {
            // A whole number comes back as one.
            let whole = format!("{corner}").parse::<i64>();
            (name.to_owned(), whole.map_or_else(|_| json!(corner), Json::from))
        };
        Json::Object(CORNERS.into_iter().zip(self.corners).map(member).collect())
    }
}

/// How vectors are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VectorIndexKind {
    /// All of them, as they are.
    Flat,
    /// All of them, shortened.
    QuantizedFlat,
    /// Along a graph.
    DiskAnn,
}

const VECTOR_KINDS: [(&str, VectorIndexKind); 3] = [
    ("flat", VectorIndexKind::Flat),
    ("quantizedFlat", VectorIndexKind::QuantizedFlat),
    ("diskANN", VectorIndexKind::DiskAnn),
];

/// An index of vectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VectorIndex {
    /// Where the vectors are; the vector policy must have this path.
    pub path: PropertyPath,
    /// How they are searched.
    pub kind: VectorIndexKind,
    /// Bytes of a shortened vector.
    pub quantization_bytes: Option<u32>,
    /// Candidates that are looked at while the graph is built.
    pub search_list_size: Option<u32>,
    /// How vectors are shortened.
    quantizer: Option<&'static str>,
    /// The property by whose value there is a graph of its own.
    pub shard_key: Option<PropertyPath>,
}

const QUANTIZERS: [(&str, &str); 2] = [("product", "product"), ("spherical", "spherical")];

impl VectorIndex {
    pub(super) fn from_json(json: &Json) -> Result<VectorIndex, RequestFault> {
        let reader = Reader::new(POLICY, "a vector index", json)?;
        reader.only(&[
            "path",
            "type",
            "quantizationByteSize",
            "indexingSearchListSize",
            "quantizerType",
            "vectorIndexShardKey",
        ])?;
        let kind = reader
            .choice("type", &VECTOR_KINDS)?
            .ok_or_else(|| reader.bad("a vector index needs a \"type\""))?;
        let index = VectorIndex {
            path: reader.path("path")?,
            kind,
            quantization_bytes: reader.whole("quantizationByteSize", 1, 512)?,
            search_list_size: reader.whole("indexingSearchListSize", 10, 500)?,
            quantizer: reader.choice("quantizerType", &QUANTIZERS)?,
            shard_key: shard_key(&reader)?,
        };
        let shortens = index.quantization_bytes.is_some() || index.quantizer.is_some();
        match kind {
            VectorIndexKind::Flat if shortens => Err(reader.bad("a flat vector index is not quantized")),
            VectorIndexKind::Flat | VectorIndexKind::QuantizedFlat if index.search_list_size.is_some() => {
                Err(reader.bad("only a diskANN index has an \"indexingSearchListSize\""))
            }
            VectorIndexKind::Flat if index.shard_key.is_some() => {
                Err(reader.bad("a flat vector index has no \"vectorIndexShardKey\""))
            }
            VectorIndexKind::Flat | VectorIndexKind::QuantizedFlat | VectorIndexKind::DiskAnn => Ok(index),
        }
    }

    /// The index must have an embedding that it can hold.
    pub(super) fn check(&self, embeddings: &[VectorEmbedding]) -> Result<(), RequestFault> {
        let path = &self.path;
        let Some(embedding) = embeddings.iter().find(|embedding| embedding.path == *path) else {
            return Err(bad(
                POLICY,
                format!("the vector index on \"{path}\" has no path in the vector policy"),
            ));
        };
        let dimensions = embedding.dimensions;
        if self.kind == VectorIndexKind::Flat && dimensions > FLAT_DIMENSIONS_MAX {
            return Err(bad(
                POLICY,
                format!(
                    "the flat index on \"{path}\" holds {FLAT_DIMENSIONS_MAX} dimensions, not {dimensions}"
                ),
            ));
        }
        if self.quantization_bytes.is_some_and(|bytes| bytes > dimensions) {
            return Err(bad(
                POLICY,
                format!("\"quantizationByteSize\" of \"{path}\" exceeds its dimensions"),
            ));
        }
        Ok(())
    }

    pub(super) fn to_json(&self) -> Json {
        let mut json = json!({ "path": self.path.to_string(), "type": name_of(&VECTOR_KINDS, &self.kind) });
        if let Some(bytes) = self.quantization_bytes {
            json["quantizationByteSize"] = bytes.into();
        }
        if let Some(size) = self.search_list_size {
            json["indexingSearchListSize"] = size.into();
        }
        if let Some(quantizer) = self.quantizer {
            json["quantizerType"] = quantizer.into();
        }
        if let Some(path) = &self.shard_key {
            json["vectorIndexShardKey"] = json!([path.to_string()]);
        }
        json
    }
}

fn shard_key(reader: &Reader<'_>) -> Result<Option<PropertyPath>, RequestFault> {
    let name = "vectorIndexShardKey";
    let parse = |text: &str| {
        PropertyPath::parse(text)
            .map_err(|error| reader.bad(format!("the path \"{text}\" is invalid: {error}")))
    };
    match reader.list(name)? {
        [] => Ok(None),
        [Json::String(text)] => parse(text).map(Some),
        _ => Err(reader.bad(format!("\"{name}\" must be an array with one path"))),
    }
}

/// The path of a full-text index.
pub(super) fn full_text_path(json: &Json) -> Result<PropertyPath, RequestFault> {
    let reader = Reader::new(POLICY, "a full-text index", json)?;
    reader.only(&["path"])?;
    reader.path("path")
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
        input.choice("spatial type", SPATIAL_TYPES.map(|(_, kind)| kind), SpatialType::tag)
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
            path: IndexPath::decode(input)?,
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
        out.option(self.quantizer, Encoder::text);
        out.option(self.shard_key.as_ref(), Encoder::path);
    }

    pub(super) fn decode(input: &mut Decoder<'_>) -> Result<VectorIndex, DecodeFault> {
        Ok(VectorIndex {
            path: input.path("path of a vector index")?,
            kind: input.choice(
                "vector index kind",
                VECTOR_KINDS.map(|(_, kind)| kind),
                VectorIndexKind::tag,
            )?,
            quantization_bytes: input
                .option("quantization bytes", |input| input.number("quantization bytes"))?,
            search_list_size: input.option("search list size", |input| input.number("search list size"))?,
            quantizer: input.option("quantizer", |input| input.name("quantizer", &QUANTIZERS))?,
            shard_key: input.option("shard key", |input| input.path("shard key"))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn composite_indexes_have_two_to_eight_paths() {
        let index = |count: usize| -> Json {
            (0..count).map(|number| json!({ "path": format!("/p{number}") })).collect()
        };
        assert!(CompositeIndex::from_json(&index(1)).is_err());
        let read = CompositeIndex::from_json(&index(2)).unwrap().to_json();
        assert_eq!(read[0], json!({ "path": "/p0", "order": "ascending" }));
        assert!(
            CompositeIndex::from_json(&index(8)).is_ok() && CompositeIndex::from_json(&index(9)).is_err()
        );
        let same = json!([{ "path": "/a" }, { "path": "/\"a\"", "order": "Descending" }]);
        assert!(CompositeIndex::from_json(&same).is_err());
        let wildcard = json!([{ "path": "/a" }, { "path": "/b/?" }]);
        assert!(CompositeIndex::from_json(&wildcard).is_err());
    }

    #[test]
    fn a_spatial_index_has_all_types_unless_it_says_which() {
        let all = SpatialIndex::from_json(&json!({ "path": "/loc/*" })).unwrap();
        assert_eq!(all.to_json()["types"], json!(["Point", "LineString", "Polygon", "MultiPolygon"]));
        let some = SpatialIndex::from_json(&json!({ "path": "/loc/?", "types": ["point"] })).unwrap();
        assert_eq!(some.to_json()["types"], json!(["Point"]));
        assert!(SpatialIndex::from_json(&json!({ "path": "/loc/*", "types": ["Circle"] })).is_err());
    }

    #[test]
    fn a_plane_needs_a_box() {
        let corners = json!({ "xmin": 0, "ymin": -1.5, "xmax": 10, "ymax": 5 });
        let boxed = SpatialIndex::from_json(&json!({ "path": "/loc/*", "boundingBox": corners })).unwrap();
        assert_eq!(boxed.to_json()["boundingBox"], corners);
        assert!(
            boxed.check(GeospatialType::Geometry).is_ok() && boxed.check(GeospatialType::Geography).is_err()
        );
        let bare = SpatialIndex::from_json(&json!({ "path": "/loc/*" })).unwrap();
        assert!(
            bare.check(GeospatialType::Geometry).is_err() && bare.check(GeospatialType::Geography).is_ok()
        );
        let flat = json!({ "xmin": 0, "ymin": 1, "xmax": 10, "ymax": 1 });
        assert!(SpatialIndex::from_json(&json!({ "path": "/loc/*", "boundingBox": flat })).is_err());
    }

    #[test]
    fn vector_indexes_say_only_what_their_kind_has() {
        let read = |json: Json| VectorIndex::from_json(&json).map(|index| index.to_json());
        let full = json!({
            "path": "/v",
            "type": "diskANN",
            "quantizationByteSize": 96,
            "indexingSearchListSize": 100,
            "quantizerType": "product",
            "vectorIndexShardKey": ["/tenant"],
        });
        assert_eq!(read(full.clone()).unwrap(), full);
        assert_eq!(read(json!({ "path": "/v", "type": "DISKANN" })).unwrap()["type"], "diskANN");
        for bad in [
            json!({ "path": "/v" }),
            json!({ "path": "/v", "type": "tree" }),
            json!({ "path": "/v/*", "type": "flat" }),
            json!({ "path": "/v", "type": "flat", "quantizationByteSize": 4 }),
            json!({ "path": "/v", "type": "quantizedFlat", "indexingSearchListSize": 100 }),
            json!({ "path": "/v", "type": "diskANN", "quantizationByteSize": 513 }),
            json!({ "path": "/v", "type": "diskANN", "indexingSearchListSize": 9 }),
            json!({ "path": "/v", "type": "diskANN", "vectorIndexShardKey": ["/a", "/b"] }),
        ] {
            assert!(read(bad.clone()).is_err(), "{bad}");
        }
    }
}
