//! GeoJSON geometries: parsing, and reasons why a value is invalid.

use value::ValueRef;

/// Most positions of one polygon.
const POLYGON_POSITIONS_MAX: usize = 4_096;

/// Fewest positions of a ring; the last repeats the first.
const RING_POSITIONS_MIN: usize = 4;

/// A position in degrees.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Position {
    pub(super) longitude: f64,
    pub(super) latitude: f64,
}

/// Closed rings: the outer boundary of the polygon and its holes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Polygon {
    pub(super) outer: Vec<Position>,
    pub(super) holes: Vec<Vec<Position>>,
}

/// The supported geometries.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Geometry {
    Points(Vec<Position>),
    Lines(Vec<Vec<Position>>),
    Polygons(Vec<Polygon>),
}

/// Why a value is not a geometry, as returned by ST_ISVALIDDETAILED.
pub(super) type InvalidReason = &'static str;

const NOT_A_GEOMETRY: InvalidReason = "Input is not a valid GeoJSON geometry.";
const NO_COORDINATES: InvalidReason = "The coordinates of the geometry are missing or not an array.";
const NOT_A_POSITION: InvalidReason = "A position must be an array of two or three numbers.";

impl Geometry {
    /// Parses a geometry, or returns what is wrong with it.
    pub(super) fn read(value: ValueRef<'_>) -> Result<Geometry, InvalidReason> {
        let kind = value.member("type").and_then(ValueRef::as_str).ok_or(NOT_A_GEOMETRY)?;
        let coordinates = value.member("coordinates").ok_or(NO_COORDINATES)?;
        match kind {
            "Point" => Ok(Geometry::Points(vec![position(coordinates)?])),
            "MultiPoint" => Ok(Geometry::Points(positions(coordinates)?)),
            "LineString" => Ok(Geometry::Lines(vec![line(coordinates)?])),
            "MultiLineString" => Ok(Geometry::Lines(list(coordinates, line)?)),
            "Polygon" => Ok(Geometry::Polygons(vec![polygon(coordinates)?])),
            "MultiPolygon" => Ok(Geometry::Polygons(list(coordinates, polygon)?)),
            _ => Err(NOT_A_GEOMETRY),
        }
    }
}

/// Reads each element of a non-empty array.
fn list<'v, T>(
    value: ValueRef<'v>,
    read: fn(ValueRef<'v>) -> Result<T, InvalidReason>,
) -> Result<Vec<T>, InvalidReason> {
    if value.kind() != value::Kind::Array || value.is_empty() {
        return Err(NO_COORDINATES);
    }
    value.elements().map(read).collect()
}

fn position(value: ValueRef<'_>) -> Result<Position, InvalidReason> {
    // A third number is the height, which is ignored.
    let numbers: Option<Vec<f64>> = value.elements().take(4).map(ValueRef::as_f64).collect();
    let (longitude, latitude) = match numbers.as_deref() {
        Some([longitude, latitude] | [longitude, latitude, _]) => (*longitude, *latitude),
        Some(_) | None => return Err(NOT_A_POSITION),
    };
    if !(-90.0..=90.0).contains(&latitude) {
        return Err("Latitude values must be between -90 and 90 degrees.");
    }
    if !(-180.0..=180.0).contains(&longitude) {
        return Err("Longitude values must be between -180 and 180 degrees.");
    }
    Ok(Position { longitude, latitude })
}

fn positions(value: ValueRef<'_>) -> Result<Vec<Position>, InvalidReason> {
    list(value, position)
}

fn line(value: ValueRef<'_>) -> Result<Vec<Position>, InvalidReason> {
    let line = positions(value)?;
    if line.len() < 2 { Err("A LineString must have at least two positions.") } else { Ok(line) }
}

fn ring(value: ValueRef<'_>) -> Result<Vec<Position>, InvalidReason> {
    let ring = positions(value)?;
    if ring.len() < RING_POSITIONS_MIN {
        return Err("A ring of a Polygon must have at least four positions.");
    }
    if ring.first() != ring.last() {
        return Err("The first and the last position of a ring must be the same.");
    }
    Ok(ring)
}

fn polygon(value: ValueRef<'_>) -> Result<Polygon, InvalidReason> {
    let mut rings = list(value, ring)?;
    if rings.iter().map(Vec::len).sum::<usize>() > POLYGON_POSITIONS_MAX {
        return Err("A Polygon must not have more than 4096 positions.");
    }
    let holes = rings.split_off(1);
    rings.pop().map(|outer| Polygon { outer, holes }).ok_or(NO_COORDINATES)
}
