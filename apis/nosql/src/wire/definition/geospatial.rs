//! `geospatialConfig`

use super::name_in;
use super::reader::Reader;
use crate::faults::NosqlFault;
use model::policy::GeospatialType;
use serde_json::{Value as Json, json};

const TYPES: [(&str, GeospatialType); 2] =
    [("Geography", GeospatialType::Geography), ("Geometry", GeospatialType::Geometry)];

/// Absent means geography.
pub(super) fn read(json: Option<&Json>) -> Result<GeospatialType, NosqlFault> {
    let Some(json) = json else { return Ok(GeospatialType::default()) };
    let reader = Reader::new("geospatialConfig", "it", json)?;
    reader.only(&["type"])?;
    Ok(reader.choice("type", &TYPES)?.unwrap_or_default())
}

pub(super) fn write(kind: GeospatialType) -> Json {
    json!({ "type": name_in(&TYPES, &kind) })
}
