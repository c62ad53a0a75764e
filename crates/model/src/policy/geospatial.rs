//! The coordinate system of spatial data.

use crate::{DecodeFault, Decoder, Encoder};

/// The coordinate system of spatial data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GeospatialType {
    /// Points on the earth.
    #[default]
    Geography,
    /// Points in a plane.
    Geometry,
}

impl GeospatialType {
    /// All types.
    pub(crate) const ALL: [GeospatialType; 2] = [GeospatialType::Geography, GeospatialType::Geometry];

    pub(super) fn encode(self, out: &mut Encoder) {
        out.byte(self.tag());
    }

    pub(super) fn decode(input: &mut Decoder<'_>) -> Result<GeospatialType, DecodeFault> {
        input.choice("geospatial type", GeospatialType::ALL, GeospatialType::tag)
    }

    fn tag(self) -> u8 {
        match self {
            GeospatialType::Geography => 0,
            GeospatialType::Geometry => 1,
        }
    }
}
