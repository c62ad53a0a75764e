//! Geometries on the earth: distance and area in metres on the WGS84 ellipsoid, what lies in what.
//!
//! Arguments that are no valid geometry make the result undefined, except for the functions that say so. Boundaries
//! belong to what they bound.

mod geometry;
mod outline;
mod sphere;

pub use self::outline::{Cap, Direction, Outline, angle_between, angle_of_metres};

use geographiclib_rs::{Geodesic, InverseGeodesic, PolygonArea, Winding};
use value::Value;

use self::geometry::{Geometry, Polygon, Position};
use self::sphere::{Side, Vector};
use super::Call;
use crate::EvalFault;
use crate::expression::{Outcome, defined};
use crate::number::double_value;

fn geometry(call: Call<'_>, index: usize) -> Result<Option<Geometry>, EvalFault> {
    Ok(call.value(index)?.and_then(|value| Geometry::read(value.as_ref()).ok()))
}

pub(super) fn is_valid(call: Call<'_>) -> Outcome<'_> {
    let value = defined!(call.value(0));
    Ok(Some(Geometry::read(value.as_ref()).is_ok().into()))
}

pub(super) fn is_valid_detailed(call: Call<'_>) -> Outcome<'_> {
    let value = defined!(call.value(0));
    let members = match Geometry::read(value.as_ref()) {
        Ok(_) => vec![("valid".to_owned(), Value::Bool(true))],
        Err(reason) => {
            vec![("valid".to_owned(), Value::Bool(false)), ("reason".to_owned(), Value::from(reason))]
        }
    };
    Ok(Some(Value::Object(members).into()))
}

/// Square metres; points and lines have none.
pub(super) fn area(call: Call<'_>) -> Outcome<'_> {
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
    // A hole is the smaller side of its ring, whichever way it runs.
    ring_area(&polygon.outer, false)
        - polygon.holes.iter().map(|hole| ring_area(hole, true).abs()).sum::<f64>()
}

/// Metres between the nearest points; 0 where the geometries meet.
pub(super) fn distance(call: Call<'_>) -> Outcome<'_> {
    let left = defined!(geometry(call, 0));
    let right = defined!(geometry(call, 1));
    if meet(&left, &right) {
        return Ok(Some(Value::Int64(0).into()));
    }
    let nearest = nearest_points(&left, &right).into_iter().chain(nearest_points(&right, &left));
    let nearest = nearest.min_by(|one, other| {
        sphere::chord_squared(one.0, one.1).total_cmp(&sphere::chord_squared(other.0, other.1))
    });
    let Some((from, to)) = nearest else {
        return Ok(None);
    };
    let (from, to) = (sphere::position(from), sphere::position(to));
    let metres: f64 = Geodesic::wgs84().inverse(from.latitude, from.longitude, to.latitude, to.longitude);
    Ok(Some(double_value(metres).into()))
}

/// The nearest pair of a vertex of one geometry and a point of the other.
fn nearest_points(vertices_of: &Geometry, other: &Geometry) -> Option<(Vector, Vector)> {
    let mut nearest: Option<(Vector, Vector)> = None;
    let mut offer = |vertex: Vector, point: Vector| {
        let is_nearer = nearest.is_none_or(|(vertex_before, point_before)| {
            sphere::chord_squared(vertex, point) < sphere::chord_squared(vertex_before, point_before)
        });
        if is_nearer {
            nearest = Some((vertex, point));
        }
    };
    for vertex in vertices(vertices_of).map(|position| sphere::vector(*position)) {
        if let Geometry::Points(points) = other {
            points.iter().for_each(|point| offer(vertex, sphere::vector(*point)));
        }
        for line in lines(other) {
            sphere::arcs(line).for_each(|(from, to)| offer(vertex, sphere::nearest_on_arc(vertex, from, to)));
        }
    }
    nearest
}

/// Whether the first lies in the second.
pub(super) fn within(call: Call<'_>) -> Outcome<'_> {
    let inner = defined!(geometry(call, 0));
    let outer = defined!(geometry(call, 1));
    let is_within = match &inner {
        Geometry::Points(points) => points.iter().all(|point| is_point_in(*point, &outer)),
        Geometry::Lines(inner_lines) => inner_lines.iter().all(|line| match &outer {
            Geometry::Points(_) => false,
            Geometry::Lines(outer_lines) => outer_lines.iter().any(|outer| is_line_on(line, outer)),
            Geometry::Polygons(polygons) => polygons.iter().any(|polygon| is_line_in(line, polygon)),
        }),
        Geometry::Polygons(inner_polygons) => inner_polygons.iter().all(|inner| match &outer {
            Geometry::Points(_) | Geometry::Lines(_) => false,
            Geometry::Polygons(polygons) => polygons.iter().any(|outer| is_polygon_in(inner, outer)),
        }),
    };
    Ok(Some(is_within.into()))
}

/// Whether the two have a point in common.
pub(super) fn intersects(call: Call<'_>) -> Outcome<'_> {
    let left = defined!(geometry(call, 0));
    let right = defined!(geometry(call, 1));
    Ok(Some(meet(&left, &right).into()))
}

fn meet(left: &Geometry, right: &Geometry) -> bool {
    let meet_at_edges = || {
        lines(left).any(|line| {
            sphere::arcs(line).any(|(from, to)| {
                lines(right).any(|other| {
                    sphere::arcs(other)
                        .any(|(other_from, other_to)| sphere::arcs_touch(from, to, other_from, other_to))
                })
            })
        })
    };
    vertices(left).any(|position| is_point_in(*position, right))
        || vertices(right).any(|position| is_point_in(*position, left))
        || meet_at_edges()
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

fn is_line_on(line: &[Position], outer: &[Position]) -> bool {
    let outer = Geometry::Lines(vec![outer.to_vec()]);
    probes(line).into_iter().all(|position| is_point_in(position, &outer))
}

/// All vertices and the middles of edges lie in the polygon, and no edge crosses a ring.
fn is_line_in(line: &[Position], polygon: &Polygon) -> bool {
    let is_in = |position| sphere::side(polygon, position) != Side::Outside;
    let crosses = || {
        sphere::arcs(line).any(|(from, to)| {
            rings(polygon).any(|ring| {
                sphere::arcs(ring)
                    .any(|(other_from, other_to)| sphere::arcs_cross(from, to, other_from, other_to))
            })
        })
    };
    probes(line).into_iter().all(is_in) && !crosses()
}

/// Its rings lie in the other polygon, and no hole of that opens inside it.
fn is_polygon_in(inner: &Polygon, outer: &Polygon) -> bool {
    let has_no_gap =
        |ring: &Vec<Position>| ring.iter().all(|position| sphere::side(inner, *position) != Side::Inside);
    rings(inner).all(|ring| is_line_in(ring, outer)) && rings(outer).all(has_no_gap)
}

/// Vertices and middles of edges.
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
