//! Spatial terms: the cells that a geometry intersects, under a path of their own, and the cells that a query looks
//! up.
//!
//! `eval` decides what is a geometry and what is near it. A value that its functions do not accept as a geometry has
//! no cells, because they return undefined for it. A geometry of a kind that the policy does not name gets the cell of
//! the whole sphere, which every query looks up. A query therefore finds every document for which its function can be
//! true, and others, which it checks. That also holds for planes, whose coordinates the functions treat as degrees.

use crate::index::cells::{Cell, cover_document, cover_query};
use crate::index::lookup::Lookup;
use crate::index::path::{IndexPath, IndexStep, PATH_BYTES_MAX};
use eval::{Outline, angle_of_metres};
use model::Encoder;
use model::policy::{IndexEnd, IndexSegment, SpatialIndex, SpatialType};
use std::collections::BTreeSet;
use std::ops::Bound;
use value::{JSON_DEPTH_MAX, Kind, ValueRef};

/// The member of a geometry that contains only numbers.
const COORDINATES: &str = "coordinates";

/// Appends the properties that determine the terms of an index: equal bytes for indexes with the same terms.
pub(crate) fn encode_terms(index: &SpatialIndex, out: &mut Encoder) {
    index.path.encode_place(out);
    let mut types: Vec<u8> = index.types.iter().map(|kind| kind.tag()).collect();
    types.sort_unstable();
    out.bytes(&types);
}

/// Whether the index contains the geometries at a path.
pub(crate) fn is_at(index: &SpatialIndex, path: &IndexPath) -> bool {
    let mut wanted = index.path.segments.iter();
    let (mut differs, mut goes_on) = (false, false);
    path.visit_steps(|step| match (wanted.next(), step) {
        (_, IndexStep::Computed(_)) => differs = true,
        (Some(IndexSegment::Name(name)), IndexStep::Name(step)) => differs |= name != step,
        (Some(IndexSegment::Elements), IndexStep::Elements) => {}
        (Some(_), IndexStep::Name(_) | IndexStep::Elements) => differs = true,
        (None, IndexStep::Name(_) | IndexStep::Elements) => goes_on = true,
    });
    !differs && wanted.next().is_none() && (index.path.end == IndexEnd::Below || !goes_on)
}

/// Calls `take` with the terms of all indexed geometries of a document.
pub(crate) fn walk(index: &SpatialIndex, root: ValueRef<'_>, take: &mut impl FnMut(&[u8], &[u8])) {
    let mut walk = GeometryWalk { index, steps: Vec::new(), take };
    walk.follow(&index.path.segments, root);
}

struct GeometryWalk<'a, Take> {
    index: &'a SpatialIndex,
    steps: Vec<IndexStep<'a>>,
    take: &'a mut Take,
}

impl<'a, Take: FnMut(&[u8], &[u8])> GeometryWalk<'a, Take> {
    /// Descends to the path that the policy names.
    fn follow(&mut self, segments: &'a [IndexSegment], value: ValueRef<'a>) {
        let Some((first, rest)) = segments.split_first() else {
            return self.arrive(value, JSON_DEPTH_MAX);
        };
        match first {
            IndexSegment::Name(name) => {
                if let Some(member) = value.member(name) {
                    self.within(IndexStep::Name(name), |walk| walk.follow(rest, member));
                }
            }
            IndexSegment::Elements if value.kind() == Kind::Array => {
                self.within(IndexStep::Elements, |walk| {
                    value.elements().for_each(|element| walk.follow(rest, element));
                });
            }
            IndexSegment::Elements => {}
        }
    }

    /// Processes the geometry at a path and those below it.
    fn arrive(&mut self, value: ValueRef<'a>, levels_left: usize) {
        let Some(levels_left) = levels_left.checked_sub(1) else {
            return;
        };
        let is_below = self.index.path.end == IndexEnd::Below;
        match value.kind() {
            Kind::Object => {
                let is_geometry = self.geometry(value);
                if !is_below {
                    return;
                }
                for (name, member) in value.members() {
                    if !(is_geometry && name == COORDINATES) {
                        self.within(IndexStep::Name(name), |walk| walk.arrive(member, levels_left));
                    }
                }
            }
            Kind::Array if is_below => self.within(IndexStep::Elements, |walk| {
                value.elements().for_each(|element| walk.arrive(element, levels_left));
            }),
            Kind::Array
            | Kind::Null
            | Kind::Bool
            | Kind::Int32
            | Kind::Int64
            | Kind::Double
            | Kind::Decimal
            | Kind::String
            | Kind::Binary
            | Kind::Date
            | Kind::Ticks
            | Kind::Guid
            | Kind::ObjectId => {}
        }
    }

    fn within(&mut self, step: IndexStep<'a>, visit: impl FnOnce(&mut Self)) {
        self.steps.push(step);
        visit(self);
        self.steps.pop();
    }

    /// Processes a geometry. Returns whether the value is one.
    fn geometry(&mut self, value: ValueRef<'_>) -> bool {
        let Some(outline) = Outline::read(value) else {
            return false;
        };
        let path = IndexPath::spatial(self.steps.iter().copied());
        if path.code().len() > PATH_BYTES_MAX {
            return true;
        }
        let is_named = kind_of(value).is_some_and(|kind| self.index.types.contains(&kind));
        let cells = if is_named { cover_document(&outline) } else { vec![Cell::SPHERE] };
        cells.into_iter().for_each(|cell| (self.take)(path.code(), &cell.code()));
        true
    }
}

/// The kind that a policy can name; a multi-point counts as a point and a multi-line as a line.
fn kind_of(geometry: ValueRef<'_>) -> Option<SpatialType> {
    match geometry.member("type")?.as_str()? {
        "Point" | "MultiPoint" => Some(SpatialType::Point),
        "LineString" | "MultiLineString" => Some(SpatialType::LineString),
        "Polygon" => Some(SpatialType::Polygon),
        "MultiPolygon" => Some(SpatialType::MultiPolygon),
        _ => None,
    }
}

/// The documents that may have a geometry at the path within a distance in metres of this one. Returns `None` if that
/// could be all documents, or if the value is not a geometry.
pub fn near(path: &IndexPath, geometry: ValueRef<'_>, metres: f64) -> Option<Lookup> {
    let outline = Outline::read(geometry)?;
    let cells = cover_query(&outline, angle_of_metres(metres));
    if cells.contains(&Cell::SPHERE) {
        return None;
    }
    let around: BTreeSet<Cell> = cells.iter().flat_map(|cell| cell.ancestors()).collect();
    let around =
        around.into_iter().map(|cell| Lookup::Term { path: path.clone(), code: cell.code().to_vec() });
    let inside = cells.iter().map(|cell| {
        let (first, last) = cell.inside();
        let bound = |cell: Cell| Bound::Included(cell.code().to_vec());
        Lookup::Range { path: path.clone(), low: bound(first), high: bound(last) }
    });
    Some(Lookup::Or(inside.chain(around).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::cells::DOCUMENT_CELLS_MAX;
    use plan::query::{Expression, Function};
    use serde_json::json;
    use std::ops::RangeBounds;
    use value::Value;

    fn index(path: &str, types: &[SpatialType]) -> SpatialIndex {
        SpatialIndex::at(path, types).unwrap()
    }

    fn terms(index: &SpatialIndex, document: serde_json::Value) -> Vec<(IndexPath, usize)> {
        let document = Value::from_json(document.to_string().as_bytes()).unwrap();
        let mut found: Vec<(Vec<u8>, usize)> = Vec::new();
        walk(index, document.as_ref(), &mut |path, _| match found.last_mut() {
            Some((last, count)) if *last == path => *count += 1,
            Some(_) | None => found.push((path.to_vec(), 1)),
        });
        let path = |code: &[u8]| {
            let names = [&["loc"][..], &["o", "loc"], &["locs", "[]"], &["loc", "extra"]];
            let paths = names.map(spatial_path);
            paths.into_iter().find(|path| path.code() == code).unwrap()
        };
        found.into_iter().map(|(code, count)| (path(&code), count)).collect()
    }

    fn spatial_path(names: &[&'static str]) -> IndexPath {
        let step =
            |name: &&'static str| if *name == "[]" { IndexStep::Elements } else { IndexStep::Name(name) };
        IndexPath::spatial(names.iter().map(step))
    }

    #[test]
    fn geometries_are_found_where_the_policy_says() {
        let point = json!({ "type": "Point", "coordinates": [1, 2] });
        let below = index("/loc/*", &[]);
        assert_eq!(
            terms(&below, json!({ "loc": point, "o": { "loc": point } })),
            [(spatial_path(&["loc"]), 1)]
        );
        let nested = json!({ "loc": { "type": "Point", "coordinates": [1, 2], "extra": point } });
        let both = [(spatial_path(&["loc"]), 1), (spatial_path(&["loc", "extra"]), 1)];
        assert_eq!(terms(&below, nested.clone()), both);
        let here = index("/loc/?", &[]);
        assert_eq!(terms(&here, nested), both[..1]);
        let elements = index("/locs/[]/*", &[]);
        assert_eq!(
            terms(&elements, json!({ "locs": [point, 1, point] })),
            [(spatial_path(&["locs", "[]"]), 2)]
        );
        assert_eq!(terms(&below, json!({ "loc": { "type": "Point", "coordinates": [1, 200] } })), []);
        let everywhere = index("/*", &[]);
        assert_eq!(terms(&everywhere, json!({ "o": { "loc": point } })), [(spatial_path(&["o", "loc"]), 1)]);
    }

    #[test]
    fn paths_are_covered_as_they_are_walked() {
        let below = index("/loc/*", &[]);
        let here = index("/loc/?", &[]);
        assert!(is_at(&below, &spatial_path(&["loc"])) && is_at(&here, &spatial_path(&["loc"])));
        assert!(
            is_at(&below, &spatial_path(&["loc", "extra"]))
                && !is_at(&here, &spatial_path(&["loc", "extra"]))
        );
        assert!(!is_at(&below, &spatial_path(&["o", "loc"])) && !is_at(&below, &spatial_path(&["o"])));
        let elements = index("/locs/[]/*", &[]);
        assert!(
            is_at(&elements, &spatial_path(&["locs", "[]"])) && !is_at(&elements, &spatial_path(&["locs"]))
        );
    }

    #[test]
    fn kinds_that_the_policy_leaves_out_are_found_by_every_query() {
        let points = index("/loc/*", &[SpatialType::Point]);
        let line = json!({ "loc": { "type": "LineString", "coordinates": [[1, 2], [3, 4]] } });
        let document = Value::from_json(line.to_string().as_bytes()).unwrap();
        let mut codes = Vec::new();
        walk(&points, document.as_ref(), &mut |_, code| codes.push(code.to_vec()));
        assert_eq!(codes, [Cell::SPHERE.code()]);
        let far = Value::from_json(br#"{"type":"Point","coordinates":[100,-50]}"#).unwrap();
        let Some(Lookup::Or(parts)) = near(&spatial_path(&["loc"]), far.as_ref(), 10.0) else { panic!() };
        assert!(parts.iter().any(|part| matches!(part, Lookup::Term { code, .. } if *code == codes[0])));
        assert!(near(&spatial_path(&["loc"]), far.as_ref(), 3e7).is_none());
    }

    /// A small seeded generator of numbers.
    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % bound
        }

        fn unit(&mut self) -> f64 {
            self.below(1 << 30) as f64 / f64::from(1 << 29) - 1.0
        }
    }

    /// Degrees around a position, often those of the edges of faces and cells.
    fn position(random: &mut Random, (longitude, latitude): (f64, f64), spread: f64) -> (f64, f64) {
        let snap = |degrees: f64, step: f64| (degrees / step).round() * step;
        let longitude = (longitude + spread * random.unit() + 540.0).rem_euclid(360.0) - 180.0;
        let latitude = (latitude + spread * random.unit()).clamp(-90.0, 90.0);
        match random.below(6) {
            0 => (snap(longitude, 45.0), latitude),
            1 => (longitude, snap(latitude, 45.0)),
            2 => (snap(longitude, 0.5), snap(latitude, 0.5)),
            _ => (longitude, latitude),
        }
    }

    fn geometry(random: &mut Random, middle: (f64, f64)) -> serde_json::Value {
        let spread = [1e-7, 1e-4, 0.01, 1.0, 20.0, 90.0, 180.0][usize::try_from(random.below(7)).unwrap()];
        let list = |random: &mut Random, count: u64| -> Vec<[f64; 2]> {
            (0..count).map(|_| position(random, middle, spread).into()).collect()
        };
        let ring = |random: &mut Random| {
            let count = 3 + random.below(4);
            let mut ring = list(random, count);
            if random.below(4) > 0 {
                // Mostly simple rings: points sorted by the angle around the centre, in either direction.
                ring.sort_by(|one, other| {
                    let angle = |at: &[f64; 2]| (at[1] - middle.1).atan2(at[0] - middle.0);
                    angle(one).total_cmp(&angle(other))
                });
                if random.below(4) == 0 {
                    ring.reverse();
                }
            }
            ring.push(ring[0]);
            ring
        };
        match random.below(6) {
            0 | 1 => json!({ "type": "Point", "coordinates": list(random, 1)[0] }),
            2 => json!({ "type": "MultiPoint", "coordinates": list(random, 12) }),
            3 => json!({ "type": "LineString", "coordinates": list(random, 3) }),
            4 => json!({ "type": "Polygon", "coordinates": [ring(random)] }),
            _ => {
                json!({ "type": "MultiPolygon", "coordinates": [[ring(random)], [ring(random), ring(random)]] })
            }
        }
    }

    fn finds(lookup: Option<&Lookup>, codes: &[Vec<u8>]) -> bool {
        let Some(Lookup::Or(parts)) = lookup else { return true };
        let is_in = |part: &Lookup, code: &Vec<u8>| {
            if let Lookup::Range { low, high, .. } = part {
                return (low.as_ref(), high.as_ref()).contains(&code);
            }
            matches!(part, Lookup::Term { code: wanted, .. } if wanted == code)
        };
        codes.iter().any(|code| parts.iter().any(|part| is_in(part, code)))
    }

    /// The results of the functions for two geometries: distance in metres, whether they intersect, whether one is
    /// within the other.
    fn said(left: &Value, right: &Value) -> (f64, bool, bool) {
        #[derive(Debug)]
        struct Still;
        impl model::Ambient for Still {
            fn now_ms(&self) -> u64 {
                0
            }
            fn fill_random(&self, _: &mut [u8]) {}
        }
        let context = eval::Context::new(&Still, eval::Budget::new(1 << 20, 1));
        let call = |function| {
            let arguments = [left, right].map(|value| Expression::Constant(value.clone()));
            let call = Expression::Call(function, arguments.to_vec());
            let value = eval::evaluate(&context, &call, eval::Row::default()).unwrap();
            value.map(eval::Computed::into_value).unwrap()
        };
        let truth = |function| call(function).as_ref().as_bool().unwrap();
        let metres = call(Function::StDistance).as_ref().as_f64().unwrap();
        (metres, truth(Function::StIntersects), truth(Function::StWithin))
    }

    #[test]
    fn a_point_on_the_date_line_is_found_from_both_sides() {
        let everything = index("/loc/*", &[]);
        let body = json!({ "loc": { "type": "Point", "coordinates": [180, -23] } });
        let body = Value::from_json(body.to_string().as_bytes()).unwrap();
        let mut codes = Vec::new();
        walk(&everything, body.as_ref(), &mut |_, code| codes.push(code.to_vec()));
        let west = Value::from_json(br#"{"type":"Point","coordinates":[-180,-23]}"#).unwrap();
        assert!(said(body.member("loc").unwrap(), &west).1);
        assert!(finds(near(&spatial_path(&["loc"]), west.as_ref(), 0.0).as_ref(), &codes));
    }

    #[test]
    fn whatever_a_function_is_true_for_is_found() {
        let everything = index("/loc/*", &[]);
        let path = spatial_path(&["loc"]);
        let (mut meetings, mut spared) = (0, 0);
        for seed in 0..3000 {
            let mut random = Random(seed);
            let middle = (random.unit() * 180.0, random.unit() * 90.0);
            let middle = position(&mut random, middle, 1.0);
            let (document, wanted) = (geometry(&mut random, middle), geometry(&mut random, middle));
            let body = Value::from_json(json!({ "loc": document }).to_string().as_bytes()).unwrap();
            let wanted = Value::from_json(wanted.to_string().as_bytes()).unwrap();
            let mut codes = Vec::new();
            walk(&everything, body.as_ref(), &mut |_, code| codes.push(code.to_vec()));
            assert!(!codes.is_empty() && codes.len() <= DOCUMENT_CELLS_MAX);
            let (metres, meets, lies_in) = said(body.member("loc").unwrap(), &wanted);
            let meeting = near(&path, wanted.as_ref(), 0.0);
            if meets || lies_in {
                assert!(finds(meeting.as_ref(), &codes), "seed {seed}: {document} {}", wanted.to_json());
                meetings += 1;
            } else if !finds(meeting.as_ref(), &codes) {
                spared += 1;
            }
            let around = near(&path, wanted.as_ref(), metres);
            assert!(
                finds(around.as_ref(), &codes),
                "seed {seed}: {metres} m, {document} {}",
                wanted.to_json()
            );
        }
        assert!(meetings > 300 && spared > 300, "{meetings} {spared}");
    }
}
