//! Geometries that often intersect: around few places, some of them at the edges of maps.

use super::random_query::{Filter, Spatial};
use crate::random::Random;
use serde_json::{Value as Json, json};

/// A city, the date line, a pole, a corner of the cube that the index projects the earth on.
const PLACES: [(f64, f64); 4] = [(7.44, 46.95), (180.0, -17.0), (30.0, 90.0), (45.0, 35.264)];
/// Degrees around a place.
const SPREADS: [f64; 4] = [0.002, 0.2, 3.0, 40.0];
/// Distances used in filters, in metres.
const METRES: [f64; 6] = [0.0, 50.0, 10_000.0, 150_000.0, 2_000_000.0, 30_000_000.0];

/// A geometry, or sometimes a value that only looks like one.
pub(super) fn geometry(random: &mut Random) -> Json {
    let place = *random.pick(&PLACES);
    let spread = *random.pick(&SPREADS);
    let mut list =
        |count: u64| -> Vec<[f64; 2]> { (0..count).map(|_| position(random, place, spread)).collect() };
    let points = list(3);
    match random.below(12) {
        0 => json!({ "type": "LineString", "coordinates": points }),
        1 => json!({ "type": "MultiPoint", "coordinates": points }),
        2..=4 => {
            let mut comparison = points;
            comparison.push(comparison[0]);
            json!({ "type": "Polygon", "coordinates": [comparison] })
        }
        5 => json!({ "type": "Point", "coordinates": [place.0, 95] }),
        _ => json!({ "type": "Point", "coordinates": points[0] }),
    }
}

/// Discrete steps around a place, so that some positions are equal.
fn position(random: &mut Random, (longitude, latitude): (f64, f64), spread: f64) -> [f64; 2] {
    let mut step = || random.below(9) as f64 / 4.0 - 1.0;
    let longitude = (longitude + spread * step() + 540.0).rem_euclid(360.0) - 180.0;
    [longitude, (latitude + spread * step()).clamp(-90.0, 90.0)]
}

/// A condition on `loc`.
pub(super) fn filter(random: &mut Random) -> Filter {
    let relation = match random.below(6) {
        0 => Spatial::Meets,
        1 => Spatial::LiesIn,
        2 => Spatial::LiesAround,
        _ => {
            let operator = random.pick(&["<", "<=", "<=", "=", ">"]);
            Spatial::Distance(operator, *random.pick(&METRES))
        }
    };
    Filter::Spatial(relation, geometry(random))
}
