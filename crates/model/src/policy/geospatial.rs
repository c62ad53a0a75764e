//! What coordinates mean.

use super::reader::{Reader, name_of};
use crate::{DecodeFault, Decoder, Encoder, RequestFault};
use serde_json::{Value as Json, json};

/// What coordinates mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GeospatialType {
    /// Places on the earth.
    Geography,
    /// Places in a plane.
    Geometry,
}

const TYPES: [(&str, GeospatialType); 2] =
    [("Geography", GeospatialType::Geography), ("Geometry", GeospatialType::Geometry)];

impl GeospatialType {
    /// Absent means places on the earth.
    pub(super) fn from_json(json: Option<&Json>) -> Result<GeospatialType, RequestFault> {
        let Some(json) = json else { return Ok(GeospatialType::Geography) };
        let reader = Reader::new("geospatialConfig", "it", json)?;
        reader.only(&["type"])?;
        Ok(reader.choice("type", &TYPES)?.unwrap_or(GeospatialType::Geography))
    }

    pub(super) fn to_json(self) -> Json {
        json!({ "type": name_of(&TYPES, &self) })
    }
}

impl GeospatialType {
    pub(super) fn encode(self, out: &mut Encoder) {
        out.byte(self.tag());
    }

    pub(super) fn decode(input: &mut Decoder<'_>) -> Result<GeospatialType, DecodeFault> {
        input.choice("geospatial type", TYPES.map(|(_, kind)| kind), GeospatialType::tag)
    }

    fn tag(self) -> u8 {
        match self {
            GeospatialType::Geography => 0,
            GeospatialType::Geometry => 1,
        }
    }
}
