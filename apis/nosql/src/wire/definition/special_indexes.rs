//! The composite, spatial, vector and full-text indexes of an `indexingPolicy`.

use super::reader::Reader;
use super::{bad, name_in};
use crate::faults::NosqlFault;
use model::policy::{
    BoundingBox, CompositeIndex, CompositePath, PolicyPath, Quantizer, SpatialIndex, SpatialType,
    VectorIndex, VectorIndexKind,
};
use model::{DefinitionNumber, DefinitionPart};
use serde_json::{Value as Json, json};
use value::PropertyPath;

const POLICY: &str = "indexingPolicy";

/// Whether the order is descending.
const ORDERS: [(&str, bool); 2] = [("ascending", false), ("descending", true)];

const CORNERS: [&str; 4] = ["xmin", "ymin", "xmax", "ymax"];

const VECTOR_KINDS: [(&str, VectorIndexKind); 3] = [
    ("flat", VectorIndexKind::Flat),
    ("quantizedFlat", VectorIndexKind::QuantizedFlat),
    ("diskANN", VectorIndexKind::DiskAnn),
];

pub(super) fn read_composite(json: &Json) -> Result<CompositeIndex, NosqlFault> {
    let Json::Array(list) = json else {
        return Err(bad(POLICY, "a composite index must be an array"));
    };
    CompositeIndex::check_count(list.len())?;
    let mut paths = Vec::with_capacity(list.len());
    for json in list {
        let reader = Reader::new(POLICY, "a path of a composite index", json)?;
        reader.only(&["path", "order"])?;
        let descending = reader.choice("order", &ORDERS)?.unwrap_or(false);
        paths.push(CompositePath { path: reader.path("path")?, descending });
    }
    let index = CompositeIndex { paths };
    index.check()?;
    Ok(index)
}

pub(super) fn write_composite(index: &CompositeIndex) -> Json {
    let path = |path: &CompositePath| json!({ "path": path.path.to_string(), "order": name_in(&ORDERS, &path.descending) });
    index.paths.iter().map(path).collect()
}

pub(super) fn read_spatial(json: &Json) -> Result<SpatialIndex, NosqlFault> {
    let reader = Reader::new(POLICY, "a spatial index", json)?;
    reader.only(&["path", "types", "boundingBox"])?;
    let path = PolicyPath::parse(reader.required_text("path")?)?;
    let known = SpatialType::ALL.map(|kind| (kind.name(), kind));
    let mut types = Vec::new();
    for json in reader.list("types")? {
        let text = json.as_str().ok_or_else(|| reader.bad("a spatial type must be a string"))?;
        types.push(reader.chosen("types", text, &known)?);
    }
    let mut index = SpatialIndex::new(path, &types);
    index.check()?;
    index.bounding_box = reader.get("boundingBox").map(read_box).transpose()?;
    index.check()?;
    Ok(index)
}

fn read_box(json: &Json) -> Result<BoundingBox, NosqlFault> {
    let reader = Reader::new(POLICY, "\"boundingBox\"", json)?;
    reader.only(&CORNERS)?;
    let mut corners = [0.0; 4];
    for (corner, name) in corners.iter_mut().zip(CORNERS) {
        let number = reader.get(name).and_then(Json::as_f64);
        *corner = number.ok_or_else(|| reader.bad(format!("\"{name}\" must be a number")))?;
    }
    Ok(BoundingBox { corners })
}

pub(super) fn write_spatial(index: &SpatialIndex) -> Json {
    let types: Vec<Json> = index.types.iter().map(|kind| kind.name().into()).collect();
    let mut json = json!({ "path": index.path.to_string(), "types": types });
    if let Some(bounding_box) = index.bounding_box {
        json["boundingBox"] = write_box(bounding_box);
    }
    json
}

fn write_box(bounding_box: BoundingBox) -> Json {
    let member = |(name, corner): (&str, f64)| {
        // An integer is returned as an integer.
        let whole = format!("{corner}").parse::<i64>();
        (name.to_owned(), whole.map_or_else(|_| json!(corner), Json::from))
    };
    Json::Object(CORNERS.into_iter().zip(bounding_box.corners).map(member).collect())
}

pub(super) fn read_vector(json: &Json) -> Result<VectorIndex, NosqlFault> {
    let reader = Reader::new(POLICY, "a vector index", json)?;
    reader.only(&[
        "path",
        "type",
        "quantizationByteSize",
        "indexingSearchListSize",
        "quantizerType",
        "vectorIndexShardKey",
    ])?;
    let kind = reader.text("type")?.ok_or_else(|| reader.bad("a vector index needs a \"type\""))?;
    let refused = |fault: NosqlFault| {
        reader.bad(format!("The Vector Indexing Policy's Index Type::{kind} is invalid: {fault}"))
    };
    let kind = reader.chosen("type", kind, &VECTOR_KINDS).map_err(refused)?;
    for (name, number, bounds) in [
        ("quantizationByteSize", DefinitionNumber::QuantizationBytes, VectorIndex::QUANTIZATION_BYTES),
        ("indexingSearchListSize", DefinitionNumber::SearchListSize, VectorIndex::SEARCH_LIST_SIZE),
    ] {
        reader.check_bounds(name, DefinitionPart::Indexing, number, &bounds)?;
    }
    let quantizers = Quantizer::ALL.map(|quantizer| (quantizer.name(), quantizer));
    let index = VectorIndex {
        path: reader.path("path")?,
        kind,
        quantization_bytes: reader.whole("quantizationByteSize", VectorIndex::QUANTIZATION_BYTES)?,
        search_list_size: reader.whole("indexingSearchListSize", VectorIndex::SEARCH_LIST_SIZE)?,
        quantizer: reader.choice("quantizerType", &quantizers)?,
        shard_key: shard_key(&reader)?,
    };
    index.check()?;
    Ok(index)
}

fn shard_key(reader: &Reader<'_>) -> Result<Option<PropertyPath>, NosqlFault> {
    let name = "vectorIndexShardKey";
    let parse = |text: &str| {
        PropertyPath::parse(text).map_err(|error| {
            reader.bad(format!("The Vector Indexing Policy has an invalid Shard Path: {text}. ({error})"))
        })
    };
    match reader.list(name)? {
        [] => Ok(None),
        [Json::String(text)] => parse(text).map(Some),
        several @ [_, _, ..] => Err(reader.bad(format!(
            "The number of shard paths defined in the Vector Indexing Policy: {} exceeds the maximum: 1.",
            several.len()
        ))),
        _ => Err(reader.bad(format!("\"{name}\" must be an array with one path"))),
    }
}

pub(super) fn write_vector(index: &VectorIndex) -> Json {
    let mut json = json!({ "path": index.path.to_string(), "type": name_in(&VECTOR_KINDS, &index.kind) });
    if let Some(bytes) = index.quantization_bytes {
        json["quantizationByteSize"] = bytes.into();
    }
    if let Some(size) = index.search_list_size {
        json["indexingSearchListSize"] = size.into();
    }
    if let Some(quantizer) = index.quantizer {
        json["quantizerType"] = quantizer.name().into();
    }
    if let Some(path) = &index.shard_key {
        json["vectorIndexShardKey"] = json!([path.to_string()]);
    }
    json
}

/// The path of a full-text index.
pub(super) fn read_full_text(json: &Json) -> Result<PropertyPath, NosqlFault> {
    let reader = Reader::new(POLICY, "a full-text index", json)?;
    reader.only(&["path"])?;
    reader.path("path")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn composite_indexes_have_two_to_eight_paths() {
        let index = |count: usize| -> Json {
            (0..count).map(|number| json!({ "path": format!("/p{number}") })).collect()
        };
        assert!(read_composite(&index(1)).is_err());
        let read = write_composite(&read_composite(&index(2)).unwrap());
        assert_eq!(read[0], json!({ "path": "/p0", "order": "ascending" }));
        assert!(read_composite(&index(8)).is_ok() && read_composite(&index(9)).is_err());
        let same = json!([{ "path": "/a" }, { "path": "/\"a\"", "order": "Descending" }]);
        assert!(read_composite(&same).is_err());
        let wildcard = json!([{ "path": "/a" }, { "path": "/b/?" }]);
        assert!(read_composite(&wildcard).is_err());
    }

    #[test]
    fn a_spatial_index_has_all_types_unless_it_says_which() {
        let all = read_spatial(&json!({ "path": "/loc/*" })).unwrap();
        assert_eq!(write_spatial(&all)["types"], json!(["Point", "LineString", "Polygon", "MultiPolygon"]));
        let some = read_spatial(&json!({ "path": "/loc/?", "types": ["point"] })).unwrap();
        assert_eq!(write_spatial(&some)["types"], json!(["Point"]));
        assert!(read_spatial(&json!({ "path": "/loc/*", "types": ["Circle"] })).is_err());
    }

    #[test]
    fn a_box_comes_back_as_it_was_written() {
        let corners = json!({ "xmin": 0, "ymin": -1.5, "xmax": 10, "ymax": 5 });
        let boxed = read_spatial(&json!({ "path": "/loc/*", "boundingBox": corners })).unwrap();
        assert_eq!(write_spatial(&boxed)["boundingBox"], corners);
        let flat = json!({ "xmin": 0, "ymin": 1, "xmax": 10, "ymax": 1 });
        assert!(read_spatial(&json!({ "path": "/loc/*", "boundingBox": flat })).is_err());
    }

    #[test]
    fn vector_indexes_say_only_what_their_kind_has() {
        let read = |json: Json| read_vector(&json).map(|index| write_vector(&index));
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
