//! The location of a geometry on the sphere, for an index: what is near a point, and a cap around it.
//!
//! Conservative with respect to the functions: two geometries that intersect, or of which one contains the other, have
//! points within a small slack of each other. Two geometries that are at most some metres apart have points within the
//! corresponding angle. Knows nothing of index cells.

use value::ValueRef;

use super::geometry::{Geometry, Polygon};
use super::sphere::{self, Side};
use super::{lines, rings, vertices};

/// A unit vector from the centre of the sphere.
pub type UnitVector = [f64; 3];

/// Angle by which everything is enlarged; far above the tolerance of touching geometries and above rounding errors.
const SLACK: f64 = 1e-9;

/// Metres per radian where the ellipsoid is curved most: along the meridian at the equator.
const METRES_PER_RADIAN_MIN: f64 = 6_335_439.0;

/// Largest supported cap; less than a hemisphere, so that arcs between its points stay inside.
const CAP_MAX: f64 = 1.5;

/// Polygon edges longer than this in degrees of longitude pass so near to a pole, and edges longer than the angle so
/// near to the antipode, that the side of a point depends on rounding.
const EDGE_LONGITUDES_MAX: f64 = 179.99;
const EDGE_ANGLE_MAX: f64 = 3.1;

/// A geometry as the functions interpret it.
#[derive(Debug, Clone)]
pub struct Outline {
    geometry: Geometry,
    /// The ends of all edges, which are used repeatedly.
    edges: Vec<(UnitVector, UnitVector)>,
    cap: Option<Cap>,
    is_anywhere: bool,
}

/// All directions within an angle of a centre.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cap {
    /// The centre of the cap.
    pub centre: UnitVector,
    /// The angle, at most a little less than a right one.
    pub radius: f64,
}

impl Outline {
    /// Parses a geometry; `None` if the functions would not accept it.
    pub fn read(value: ValueRef<'_>) -> Option<Outline> {
        let geometry = Geometry::read(value).ok()?;
        let is_anywhere = match &geometry {
            Geometry::Points(_) | Geometry::Lines(_) => false,
            Geometry::Polygons(polygons) => polygons.iter().any(has_doubtful_edge),
        };
        let cap = if is_anywhere { None } else { cap_of(&geometry) };
        let edges = lines(&geometry).flat_map(|line| sphere::arcs(line)).collect();
        Some(Outline { geometry, edges, cap, is_anywhere })
    }

    /// The points of a geometry that consists of points only.
    pub fn points(&self) -> Option<Vec<UnitVector>> {
        match &self.geometry {
            Geometry::Points(points) => Some(points.iter().map(|point| sphere::vector(*point)).collect()),
            Geometry::Lines(_) | Geometry::Polygons(_) => None,
        }
    }

    /// A cap that contains the geometry; `None` if it may be too large.
    pub fn cap(&self) -> Option<Cap> {
        self.cap
    }

    /// Whether a point of the geometry may be within an angle of a direction.
    pub fn is_near(&self, direction: UnitVector, angle: f64) -> bool {
        if self.is_anywhere || angle + SLACK >= std::f64::consts::PI {
            return true;
        }
        let chord_max = 2.0 * ((angle + SLACK) / 2.0).sin();
        let is_within = |point| sphere::chord_squared(direction, point) <= chord_max * chord_max;
        let has_near_edge =
            self.edges.iter().any(|(from, to)| is_within(sphere::nearest_on_arc(direction, *from, *to)));
        has_near_edge
            || match &self.geometry {
                Geometry::Points(points) => points.iter().any(|point| is_within(sphere::vector(*point))),
                Geometry::Lines(_) => false,
                Geometry::Polygons(polygons) => polygons.iter().any(|polygon| is_inside(polygon, direction)),
            }
    }
}

/// The largest angle between two places that are at most `metres` apart.
pub fn angle_of_metres(metres: f64) -> f64 {
    metres.max(0.0) / METRES_PER_RADIAN_MIN
}

/// The angle between two directions.
pub fn angle_between(left: UnitVector, right: UnitVector) -> f64 {
    let half_chord = sphere::chord_squared(left, right).sqrt() / 2.0;
    2.0 * half_chord.min(1.0).asin()
}

fn is_inside(polygon: &Polygon, direction: UnitVector) -> bool {
    sphere::side(polygon, sphere::position(direction)) != Side::Outside
}

fn has_doubtful_edge(polygon: &Polygon) -> bool {
    rings(polygon).any(|ring| {
        ring.windows(2).any(|pair| match pair {
            [from, to] => {
                let longitudes = (to.longitude - from.longitude).abs();
                let angle = angle_between(sphere::vector(*from), sphere::vector(*to));
                longitudes.min(360.0 - longitudes) > EDGE_LONGITUDES_MAX || angle > EDGE_ANGLE_MAX
            }
            _ => false,
        })
    })
}

fn cap_of(geometry: &Geometry) -> Option<Cap> {
    let directions: Vec<UnitVector> = vertices(geometry).map(|position| sphere::vector(*position)).collect();
    let sum = directions.iter().fold([0.0; 3], |sum, direction| {
        [sum[0] + direction[0], sum[1] + direction[1], sum[2] + direction[2]]
    });
    let centre = sphere::normalised(sum)?;
    let radius = directions.iter().map(|direction| angle_between(centre, *direction)).fold(0.0, f64::max);
    if radius + SLACK > CAP_MAX {
        return None;
    }
    // No edge is outside the cap, so the antipode is representative of everything outside.
    let is_complement = match geometry {
        Geometry::Points(_) | Geometry::Lines(_) => false,
        Geometry::Polygons(polygons) => {
            polygons.iter().any(|polygon| is_inside(polygon, centre.map(|part| -part)))
        }
    };
    (!is_complement).then_some(Cap { centre, radius: radius + SLACK })
}

#[cfg(test)]
mod tests {
    use super::*;
    use value::Value;

    fn outline(json: &str) -> Option<Outline> {
        Outline::read(Value::from_json(json.as_bytes()).unwrap().as_ref())
    }

    fn direction(longitude: f64, latitude: f64) -> UnitVector {
        sphere::vector(super::super::geometry::Position { longitude, latitude })
    }

    #[test]
    fn only_geometries_are_read() {
        assert!(outline(r#"{"type":"Point","coordinates":[1,2,3]}"#).is_some());
        for bad in ["7", r#"{"type":"Point"}"#, r#"{"type":"Point","coordinates":[1,91]}"#] {
            assert!(outline(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_polygon_is_near_inside_and_around() {
        let square =
            |ring: &str| outline(&format!(r#"{{"type":"Polygon","coordinates":[{ring}]}}"#)).unwrap();
        let polygon = square("[[0,0],[10,0],[10,10],[0,10],[0,0]]");
        assert!(polygon.is_near(direction(5.0, 5.0), 0.0));
        assert!(!polygon.is_near(direction(11.0, 5.0), 0.5_f64.to_radians()));
        assert!(polygon.is_near(direction(11.0, 5.0), 1.5_f64.to_radians()));
        let cap = polygon.cap().unwrap();
        assert!(cap.radius.to_degrees() > 7.0 && cap.radius.to_degrees() < 9.0);
        // In the other direction, it is the rest of the earth.
        let rest = square("[[0,0],[0,10],[10,10],[10,0],[0,0]]");
        assert!(rest.cap().is_none());
        assert!(rest.is_near(direction(-120.0, -40.0), 0.0) && !rest.is_near(direction(5.0, 5.0), 0.01));
        // An edge over the pole gives no bound.
        let polar = square("[[0,80],[180,80],[90,70],[0,80]]");
        assert!(polar.cap().is_none() && polar.is_near(direction(0.0, -80.0), 0.0));
    }

    #[test]
    fn metres_are_never_taken_for_a_smaller_angle() {
        let geodesic = geographiclib_rs::Geodesic::wgs84();
        let cases =
            [(0.0, 0.0, 0.0, 0.001), (0.0, 0.0, 1.0, 0.0), (10.0, 50.0, 12.0, 80.0), (0.0, 0.0, 179.0, 0.5)];
        for (longitude, latitude, to_longitude, to_latitude) in cases {
            let metres: f64 = geographiclib_rs::InverseGeodesic::inverse(
                &geodesic,
                latitude,
                longitude,
                to_latitude,
                to_longitude,
            );
            let angle = angle_between(direction(longitude, latitude), direction(to_longitude, to_latitude));
            assert!(angle <= angle_of_metres(metres) + 1e-12, "{angle} {metres}");
        }
    }
}
