//! Geometries on the earth: distance and area in metres on the WGS84 ellipsoid, containment and intersection.
//!
//! Arguments that are not valid geometries make the result undefined, except for the functions that report validity.
//! Boundaries belong to their geometries.

mod geometry;
mod outline;
mod sphere;

pub use self::outline::{Cap, Outline, UnitVector, angle_between, angle_of_metres};

use geographiclib_rs::{Geodesic, InverseGeodesic, PolygonArea, Winding};
use value::Value;

use self::geometry::{Geometry, Polygon, Position};
use self::sphere::{Side, Vector};
use super::Call;
use crate::EvalFault;
use crate::expression::{EvalResult, defined};
use crate::number::double_value;

fn geometry(call: Call<'_>, index: usize) -> Result<Option<Geometry>, EvalFault> {
    Ok(call.value(index)?.and_then(|value| Geometry::read(value.as_ref()).ok()))
}

pub(super) fn is_valid(call: Call<'_>) -> EvalResult<'_> {
    let value = defined!(call.value(0));
    Ok(Some(Geometry::read(value.as_ref()).is_ok().into()))
}

pub(super) fn is_valid_detailed(call: Call<'_>) -> EvalResult<'_> {
    let value = defined!(call.value(0));
    let members = match Geometry::read(value.as_ref()) {
        Ok(_) => vec![("valid".to_owned(), Value::Bool(true))],
        Err(reason) => {
            vec![("valid".to_owned(), Value::Bool(false)), ("reason".to_owned(), Value::from(reason))]
        }
    };
    Ok(Some(Value::Object(members).into()))
}

/// Area in square metres; 0 for points and lines.
pub(super) fn area(call: Call<'_>) -> EvalResult<'_> {
    let geometry = defined!(geometry(call, 0));
    let area = match geometry {
        Geometry::Points(_) | Geometry::Lines(_) => 0.0,
        Geometry::Polygons(polygons) => polygons.iter().map(polygon_area).sum(),
    };
    Ok(Some(double_value(area).into()))
}

fn polygon_area(polygon: &Polygon) -> f64 {
    let geodesic = Geodesic::wgs84();
    let ring_area = |ring: &[Position], is_signed: bool| {
        let mut area = PolygonArea::new(&geodesic, Winding::CounterClockwise);
        ring.iter().skip(1).for_each(|position| area.add_point(position.latitude, position.longitude));
        area.compute(is_signed).1
    };
    // A hole is the smaller side of its ring, whatever its direction.
    ring_area(&polygon.outer, false)
        - polygon.holes.iter().map(|hole| ring_area(hole, true).abs()).sum::<f64>()
}

/// Steps to compare two positions or edges.
const POSITION_STEPS: usize = 2;

/// Counts the steps to compare one position or edge with a whole geometry.
fn charge_one(call: Call<'_>, positions: usize) -> Result<(), EvalFault> {
    call.charge(positions.saturating_mul(POSITION_STEPS))
}

/// Whether one of several positions or edges passes a test against a geometry of `positions` positions.
fn any<T>(
    call: Call<'_>,
    items: impl IntoIterator<Item = T>,
    positions: usize,
    test: impl Fn(T) -> bool,
) -> Result<bool, EvalFault> {
    for item in items {
        charge_one(call, positions)?;
        if test(item) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Metres between the nearest points; 0 if the geometries intersect.
pub(super) fn distance(call: Call<'_>) -> EvalResult<'_> {
    let left = defined!(geometry(call, 0));
    let right = defined!(geometry(call, 1));
    if meet(call, &left, &right)? {
        return Ok(Some(Value::Int64(0).into()));
    }
    let forth = nearest_points(call, &left, &right)?;
    let back = nearest_points(call, &right, &left)?;
    let nearest = forth.into_iter().chain(back).min_by(|one, other| {
        sphere::chord_squared(one.0, one.1).total_cmp(&sphere::chord_squared(other.0, other.1))
    });
    let Some((from, to)) = nearest else {
        return Ok(None);
    };
    let (from, to) = (sphere::position(from), sphere::position(to));
    let metres: f64 = Geodesic::wgs84().inverse(from.latitude, from.longitude, to.latitude, to.longitude);
    Ok(Some(double_value(metres).into()))
}

/// A vertex and a point of another geometry.
type Pair = (Vector, Vector);

/// The nearest pair of a vertex of one geometry and a point of the other.
fn nearest_points(
    call: Call<'_>,
    vertices_of: &Geometry,
    other: &Geometry,
) -> Result<Option<Pair>, EvalFault> {
    let mut nearest: Option<Pair> = None;
    let mut offer = |vertex: Vector, point: Vector| {
        let is_nearer = nearest.is_none_or(|(vertex_before, point_before)| {
            sphere::chord_squared(vertex, point) < sphere::chord_squared(vertex_before, point_before)
        });
        if is_nearer {
            nearest = Some((vertex, point));
        }
    };
    let positions = vertices(other).count();
    for vertex in vertices(vertices_of).map(|position| sphere::vector(*position)) {
        charge_one(call, positions)?;
        if let Geometry::Points(points) = other {
            points.iter().for_each(|point| offer(vertex, sphere::vector(*point)));
        }
        for line in lines(other) {
            sphere::arcs(line).for_each(|(from, to)| offer(vertex, sphere::nearest_on_arc(vertex, from, to)));
        }
    }
    Ok(nearest)
}

/// Whether the first is within the second.
pub(super) fn within(call: Call<'_>) -> EvalResult<'_> {
    let inner = defined!(geometry(call, 0));
    let outer = defined!(geometry(call, 1));
    let positions = vertices(&outer).count();
    let is_within = match (&inner, &outer) {
        (Geometry::Points(points), _) => !any(call, points, positions, |point| !is_point_in(*point, &outer))?,
        (Geometry::Lines(inner), Geometry::Lines(outer)) => {
            each_in_some(inner, outer, |line, outer| is_line_on(call, line, outer))?
        }
        (Geometry::Lines(inner), Geometry::Polygons(outer)) => {
            each_in_some(inner, outer, |line, polygon| is_line_in(call, line, polygon))?
        }
        (Geometry::Polygons(inner), Geometry::Polygons(outer)) => {
            each_in_some(inner, outer, |inner, outer| is_polygon_in(call, inner, outer))?
        }
        (Geometry::Lines(_), Geometry::Points(_))
        | (Geometry::Polygons(_), Geometry::Points(_) | Geometry::Lines(_)) => false,
    };
    Ok(Some(is_within.into()))
}

/// Whether each of the first is within one of the second.
fn each_in_some<I, O>(
    inner: &[I],
    outer: &[O],
    is_in: impl Fn(&I, &O) -> Result<bool, EvalFault>,
) -> Result<bool, EvalFault> {
    for one in inner {
        let mut is_inside = false;
        for other in outer {
            is_inside = is_in(one, other)?;
            if is_inside {
                break;
            }
        }
        if !is_inside {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether the two have a common point.
pub(super) fn intersects(call: Call<'_>) -> EvalResult<'_> {
    let left = defined!(geometry(call, 0));
    let right = defined!(geometry(call, 1));
    Ok(Some(meet(call, &left, &right)?.into()))
}

fn meet(call: Call<'_>, left: &Geometry, right: &Geometry) -> Result<bool, EvalFault> {
    let (of_left, of_right) = (vertices(left).count(), vertices(right).count());
    let touches = |(from, to): (Vector, Vector)| {
        lines(right).any(|line| {
            sphere::arcs(line)
                .any(|(other_from, other_to)| sphere::arcs_touch(from, to, other_from, other_to))
        })
    };
    Ok(any(call, vertices(left), of_right, |position| is_point_in(*position, right))?
        || any(call, vertices(right), of_left, |position| is_point_in(*position, left))?
        || any(call, lines(left).flat_map(|line| sphere::arcs(line)), of_right, touches)?)
}

fn is_point_in(point: Position, geometry: &Geometry) -> bool {
    let at = sphere::vector(point);
    match geometry {
        Geometry::Points(points) => points.iter().any(|other| {
            let other = sphere::vector(*other);
            sphere::is_on_arc(at, other, other)
        }),
        Geometry::Lines(lines) => {
            lines.iter().any(|line| sphere::arcs(line).any(|(from, to)| sphere::is_on_arc(at, from, to)))
        }
        Geometry::Polygons(polygons) => {
            polygons.iter().any(|polygon| sphere::side(polygon, point) != Side::Outside)
        }
    }
}

fn is_line_on(call: Call<'_>, line: &[Position], outer: &[Position]) -> Result<bool, EvalFault> {
    let positions = outer.len();
    let outer = Geometry::Lines(vec![outer.to_vec()]);
    Ok(!any(call, probes(line), positions, |position| !is_point_in(position, &outer))?)
}

/// All vertices and midpoints of edges are in the polygon, and no edge crosses a ring.
fn is_line_in(call: Call<'_>, line: &[Position], polygon: &Polygon) -> Result<bool, EvalFault> {
    let positions = rings(polygon).map(Vec::len).sum();
    let is_out = |position| sphere::side(polygon, position) == Side::Outside;
    let crosses = |(from, to): (Vector, Vector)| {
        rings(polygon).any(|ring| {
            sphere::arcs(ring)
                .any(|(other_from, other_to)| sphere::arcs_cross(from, to, other_from, other_to))
        })
    };
    Ok(!any(call, probes(line), positions, is_out)? && !any(call, sphere::arcs(line), positions, crosses)?)
}

/// Its rings are in the other polygon, and no hole of that one is inside it.
fn is_polygon_in(call: Call<'_>, inner: &Polygon, outer: &Polygon) -> Result<bool, EvalFault> {
    for ring in rings(inner) {
        if !is_line_in(call, ring, outer)? {
            return Ok(false);
        }
    }
    let positions = rings(inner).map(Vec::len).sum();
    let is_gap = |position: &Position| sphere::side(inner, *position) == Side::Inside;
    Ok(!any(call, rings(outer).flatten(), positions, is_gap)?)
}

/// Vertices and midpoints of edges.
fn probes(line: &[Position]) -> Vec<Position> {
    let middles = sphere::arcs(line)
        .map(|(from, to)| sphere::position([from[0] + to[0], from[1] + to[1], from[2] + to[2]]));
    line.iter().copied().chain(middles).collect()
}

fn rings(polygon: &Polygon) -> impl Iterator<Item = &Vec<Position>> {
    std::iter::once(&polygon.outer).chain(&polygon.holes)
}

/// All lines and rings of a geometry.
fn lines(geometry: &Geometry) -> Box<dyn Iterator<Item = &Vec<Position>> + '_> {
    match geometry {
        Geometry::Points(_) => Box::new(std::iter::empty()),
        Geometry::Lines(lines) => Box::new(lines.iter()),
        Geometry::Polygons(polygons) => Box::new(polygons.iter().flat_map(rings)),
    }
}

fn vertices(geometry: &Geometry) -> Box<dyn Iterator<Item = &Position> + '_> {
    match geometry {
        Geometry::Points(points) => Box::new(points.iter()),
        Geometry::Lines(_) | Geometry::Polygons(_) => Box::new(lines(geometry).flatten()),
    }
}
