//! Points, arcs and rings on a sphere. Edges are great circles; degrees of WGS84 are used as degrees of the sphere.
//!
//! Distances in metres are computed on the ellipsoid, in `measure`; this file only decides containment and crossings.

use super::geometry::{Polygon, Position};

/// Angle below which a point counts as being on an arc: less than a tenth of a millimetre.
const TOUCH: f64 = 1e-11;

/// A direction from the centre of the sphere.
pub(super) type Vector = [f64; 3];

/// The direction of a position.
pub(super) fn vector(position: Position) -> Vector {
    let (longitude, latitude) = (position.longitude.to_radians(), position.latitude.to_radians());
    [latitude.cos() * longitude.cos(), latitude.cos() * longitude.sin(), latitude.sin()]
}

/// The position of a direction.
pub(super) fn position(vector: Vector) -> Position {
    let [x, y, z] = vector;
    Position { longitude: y.atan2(x).to_degrees(), latitude: z.atan2(x.hypot(y)).to_degrees() }
}

fn dot(left: Vector, right: Vector) -> f64 {
    left[0] * right[0] + left[1] * right[1] + left[2] * right[2]
}

fn cross(left: Vector, right: Vector) -> Vector {
    [
        left[1] * right[2] - left[2] * right[1],
        left[2] * right[0] - left[0] * right[2],
        left[0] * right[1] - left[1] * right[0],
    ]
}

/// The unit vector of a vector, unless it is zero.
pub(super) fn normalised(vector: Vector) -> Option<Vector> {
    let length = dot(vector, vector).sqrt();
    (length > f64::MIN_POSITIVE.sqrt()).then(|| vector.map(|part| part / length))
}

/// The squared chord length between two points of the sphere; grows with the angle.
pub(super) fn chord_squared(left: Vector, right: Vector) -> f64 {
    let difference = [left[0] - right[0], left[1] - right[1], left[2] - right[2]];
    dot(difference, difference)
}

/// The point of an arc that is nearest to a point.
pub(super) fn nearest_on_arc(point: Vector, from: Vector, to: Vector) -> Vector {
    if let Some(pole) = normalised(cross(from, to)) {
        let height = dot(point, pole);
        let foot = [point[0] - height * pole[0], point[1] - height * pole[1], point[2] - height * pole[2]];
        if let Some(foot) = normalised(foot)
            && is_between(foot, from, to, pole)
        {
            return foot;
        }
    }
    if chord_squared(point, from) <= chord_squared(point, to) { from } else { to }
}

/// Whether a point of the great circle with this pole is on the arc.
fn is_between(point: Vector, from: Vector, to: Vector, pole: Vector) -> bool {
    dot(cross(from, point), pole) >= 0.0 && dot(cross(point, to), pole) >= 0.0
}

/// Whether a point is on an arc.
pub(super) fn is_on_arc(point: Vector, from: Vector, to: Vector) -> bool {
    chord_squared(point, nearest_on_arc(point, from, to)) <= TOUCH * TOUCH
}

/// Whether two arcs cross at an inner point of both.
pub(super) fn arcs_cross(from: Vector, to: Vector, other_from: Vector, other_to: Vector) -> bool {
    let (Some(pole), Some(other_pole)) =
        (normalised(cross(from, to)), normalised(cross(other_from, other_to)))
    else {
        return false;
    };
    let Some(point) = normalised(cross(pole, other_pole)) else {
        return false;
    };
    [point, point.map(|part| -part)].into_iter().any(|point| {
        let is_inner = |end: Vector| chord_squared(point, end) > TOUCH * TOUCH;
        is_between(point, from, to, pole)
            && is_between(point, other_from, other_to, other_pole)
            && [from, to, other_from, other_to].into_iter().all(is_inner)
    })
}

/// Whether two arcs have a common point.
pub(super) fn arcs_touch(from: Vector, to: Vector, other_from: Vector, other_to: Vector) -> bool {
    is_on_arc(from, other_from, other_to)
        || is_on_arc(to, other_from, other_to)
        || is_on_arc(other_from, from, to)
        || is_on_arc(other_to, from, to)
        || arcs_cross(from, to, other_from, other_to)
}

/// The arcs of a line or ring.
pub(super) fn arcs(line: &[Position]) -> impl Iterator<Item = (Vector, Vector)> {
    line.windows(2).filter_map(|pair| match pair {
        [from, to] => Some((vector(*from), vector(*to))),
        _ => None,
    })
}

/// Position of a point relative to a polygon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Inside,
    Boundary,
    Outside,
}

/// On which side of a polygon's rings a point is.
pub(super) fn side(polygon: &Polygon, position: Position) -> Side {
    let point = vector(position);
    let mut rings = std::iter::once(&polygon.outer).chain(&polygon.holes);
    if rings.any(|ring| arcs(ring).any(|(from, to)| is_on_arc(point, from, to))) {
        return Side::Boundary;
    }
    let is_in_hole = |hole: &Vec<Position>| {
        // A hole is the smaller side of its ring, whatever its direction.
        is_left_of(hole, position) == (signed_area(hole) > 0.0 || circles_pole(hole) != 0)
    };
    if is_left_of(&polygon.outer, position) && !polygon.holes.iter().any(is_in_hole) {
        Side::Inside
    } else {
        Side::Outside
    }
}

/// Whether a point is left of a ring: inside a counter-clockwise one, outside a clockwise one.
///
/// Follows the meridian from the point to the north pole; each crossing of the ring changes the side.
fn is_left_of(ring: &[Position], position: Position) -> bool {
    let is_pole_left = match circles_pole(ring) {
        0 => signed_area(ring) < 0.0,
        turns => turns > 0,
    };
    let crossings =
        ring.windows(2).filter(|pair| matches!(pair, [from, to] if crosses_north(*from, *to, position)));
    (crossings.count() % 2 == 0) == is_pole_left
}

/// Whether an edge crosses the meridian of a position north of it.
fn crosses_north(from: Position, to: Position, position: Position) -> bool {
    let west = wrapped(from.longitude - position.longitude);
    let east = wrapped(to.longitude - position.longitude);
    // Half open, so that a ring through a vertex on the meridian is counted once.
    if (west < 0.0) == (east < 0.0) || (west - east).abs() >= 180.0 {
        return false;
    }
    let (west, east) = (west.to_radians(), east.to_radians());
    let tangent = (from.latitude.to_radians().tan() * east.sin()
        - to.latitude.to_radians().tan() * west.sin())
        / (east - west).sin();
    tangent > position.latitude.to_radians().tan()
}

/// How often a ring runs eastwards around the poles: 1, -1 or 0.
fn circles_pole(ring: &[Position]) -> i8 {
    let turn: f64 = ring
        .windows(2)
        .map(|pair| match pair {
            [from, to] => wrapped(to.longitude - from.longitude),
            _ => 0.0,
        })
        .sum();
    if turn > 180.0 {
        1
    } else if turn < -180.0 {
        -1
    } else {
        0
    }
}

/// The area of a ring that does not enclose a pole, on the unit sphere: positive if it runs counter-clockwise.
fn signed_area(ring: &[Position]) -> f64 {
    // The sum of the areas between each edge and the equator; eastward edges add, westward edges subtract.
    let below: f64 = ring
        .windows(2)
        .map(|pair| match pair {
            [from, to] => {
                let turn = (wrapped(to.longitude - from.longitude).to_radians() / 2.0).tan();
                let from = (from.latitude.to_radians() / 2.0).tan();
                let to = (to.latitude.to_radians() / 2.0).tan();
                2.0 * (turn * (from + to)).atan2(1.0 + from * to)
            }
            _ => 0.0,
        })
        .sum();
    -below
}

/// A difference of longitudes as an angle from -180 to 180.
fn wrapped(degrees: f64) -> f64 {
    let turned = (degrees + 180.0).rem_euclid(360.0) - 180.0;
    if turned == -180.0 && degrees > 0.0 { 180.0 } else { turned }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(positions: &[(f64, f64)]) -> Vec<Position> {
        positions.iter().map(|&(longitude, latitude)| Position { longitude, latitude }).collect()
    }

    #[track_caller]
    fn check(outer: &[(f64, f64)], inside: &[(f64, f64)], outside: &[(f64, f64)]) {
        let mut polygon = Polygon { outer: ring(outer), holes: Vec::new() };
        for (points, expected) in [(inside, Side::Inside), (outside, Side::Outside)] {
            for point in ring(points) {
                assert_eq!(side(&polygon, point), expected, "{point:?}");
            }
        }
        // In the other direction, the polygon is everything else.
        polygon.outer.reverse();
        for point in ring(inside) {
            assert_eq!(side(&polygon, point), Side::Outside, "{point:?}, clockwise");
        }
        for point in ring(outside) {
            assert_eq!(side(&polygon, point), Side::Inside, "{point:?}, clockwise");
        }
    }

    #[test]
    fn sides_of_rings() {
        let square = [(0.0, 0.0), (10.0, 0.0), (10.0, 10.0), (0.0, 10.0), (0.0, 0.0)];
        check(
            &square,
            &[(5.0, 5.0), (0.001, 0.001)],
            &[(-1.0, 5.0), (11.0, 5.0), (5.0, -80.0), (-175.0, -5.0)],
        );
        let date_line = [(170.0, -10.0), (-170.0, -10.0), (-170.0, 10.0), (170.0, 10.0), (170.0, -10.0)];
        check(
            &date_line,
            &[(180.0, 0.0), (-180.0, 1.0), (175.0, 9.0)],
            &[(0.0, 0.0), (169.0, 0.0), (-169.0, 0.0)],
        );
        let arctic = [(0.0, 80.0), (90.0, 80.0), (180.0, 80.0), (-90.0, 80.0), (0.0, 80.0)];
        check(
            &arctic,
            &[(0.0, 90.0), (45.0, 89.0), (10.0, 82.0)],
            &[(10.0, 81.0), (0.0, 79.0), (0.0, -90.0), (45.0, 0.0)],
        );
        let antarctic = [(0.0, -80.0), (-90.0, -80.0), (180.0, -80.0), (90.0, -80.0), (0.0, -80.0)];
        check(&antarctic, &[(0.0, -90.0), (45.0, -89.0)], &[(0.0, -79.0), (0.0, 90.0)]);
    }

    #[test]
    fn holes_and_boundaries() {
        let outer = ring(&[(0.0, 0.0), (10.0, 0.0), (10.0, 10.0), (0.0, 10.0), (0.0, 0.0)]);
        let mut hole = ring(&[(4.0, 4.0), (4.0, 6.0), (6.0, 6.0), (6.0, 4.0), (4.0, 4.0)]);
        for _ in 0..2 {
            let polygon = Polygon { outer: outer.clone(), holes: vec![hole.clone()] };
            let at = |longitude, latitude| side(&polygon, Position { longitude, latitude });
            assert_eq!((at(5.0, 5.0), at(1.0, 1.0)), (Side::Outside, Side::Inside));
            assert_eq!(
                (at(0.0, 5.0), at(10.0, 10.0), at(4.0, 5.0)),
                (Side::Boundary, Side::Boundary, Side::Boundary)
            );
            hole.reverse();
        }
    }

    #[test]
    fn arcs_that_cross() {
        let at = |longitude, latitude| vector(Position { longitude, latitude });
        assert!(arcs_cross(at(-1.0, 0.0), at(1.0, 0.0), at(0.0, -1.0), at(0.0, 1.0)));
        assert!(!arcs_cross(at(-1.0, 0.0), at(1.0, 0.0), at(180.0, -1.0), at(180.0, 1.0)));
        assert!(!arcs_cross(at(-1.0, 0.0), at(1.0, 0.0), at(0.0, 0.0), at(0.0, 1.0)));
        assert!(arcs_touch(at(-1.0, 0.0), at(1.0, 0.0), at(0.0, 0.0), at(0.0, 1.0)));
    }
}
