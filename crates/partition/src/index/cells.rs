//! Cells of the sphere, and the few of them that cover a geometry.
//!
//! The sphere is projected onto a cube; each face is a square that is recursively divided into quarters. The id of a
//! cell is its face, two bits per division and a one bit, so that the ids of all cells inside a cell are an interval
//! around its own id. The ids have the form of S2 cell ids, but the order of the quarters is simpler (by bits, not
//! along a Hilbert curve), because queries read few, large intervals. An S2 library would have its own rules for what
//! is inside a polygon; here the rules of the query functions must hold.
//!
//! Intersection with a geometry is tested with the circle around a cell. The cover may therefore contain more cells
//! than necessary, but never too few.

use eval::{Cap, Outline, UnitVector, angle_between};
use std::collections::BTreeSet;

/// Divisions that an id has room for.
const LEVELS: u32 = 30;
/// Divisions of the smallest cells that are used, which are about half a metre wide.
const LEVEL_MAX: u32 = 24;
const FACES: u64 = 6;
const FACE_SHIFT: u32 = 61;

/// Maximum number of cells of a geometry in a document.
pub(crate) const DOCUMENT_CELLS_MAX: usize = 8;
/// Maximum number of cells that a query looks up.
const QUERY_CELLS_MAX: usize = 12;

/// Edges are tested only for cells whose circle is at most this many times larger than the cap around the geometry.
const EDGES_MATTER: f64 = 2.0;

/// A cell, or the whole sphere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cell(u64);

impl Cell {
    /// The whole sphere.
    pub(crate) const SPHERE: Cell = Cell(0);

    fn face(face: u64) -> Cell {
        Cell(face << FACE_SHIFT | lowest_bit(0))
    }

    /// The smallest cell that contains a direction.
    fn at(direction: UnitVector) -> Cell {
        let (face, u, v) = face_of(direction);
        let steps = f64::from(1_u32 << LEVEL_MAX);
        // The last step includes the far edge of the face.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // from 0 to the number of steps
        let step = |coordinate: f64| ((on_square(coordinate) * steps) as u32).min((1 << LEVEL_MAX) - 1);
        let (across, up) = (step(u), step(v));
        let mut id = face << FACE_SHIFT;
        for level in 1..=LEVEL_MAX {
            let bit = |step: u32| u64::from(step >> (LEVEL_MAX - level) & 1);
            id |= (bit(across) << 1 | bit(up)) << (FACE_SHIFT - 2 * level);
        }
        Cell(id | lowest_bit(LEVEL_MAX))
    }

    fn level(self) -> u32 {
        LEVELS - self.0.trailing_zeros() / 2
    }

    fn children(self) -> [Cell; 4] {
        let bit = lowest_bit(self.level() + 1);
        let first = self.0 - (bit << 2) + bit;
        [0, 1, 2, 3].map(|child| Cell(first + 2 * child * bit))
    }

    fn parent(self) -> Cell {
        match self.level() {
            0 => Cell::SPHERE,
            level => {
                let bit = lowest_bit(level - 1);
                Cell(self.0 & !(2 * bit - 1) | bit)
            }
        }
    }

    /// All cells that contain this one; the sphere is last.
    pub(crate) fn ancestors(self) -> impl Iterator<Item = Cell> {
        let up = |cell: &Cell| (*cell != Cell::SPHERE).then(|| cell.parent());
        std::iter::successors(up(&self), up)
    }

    /// The first and last id of the cells in this one, including itself.
    pub(crate) fn inside(self) -> (Cell, Cell) {
        let around = (self.0 & self.0.wrapping_neg()).saturating_sub(1);
        (Cell(self.0 - around), Cell(self.0 + around))
    }

    /// The id as bytes with the same order.
    pub(crate) fn code(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }

    /// A circle around the cell.
    fn circle(self) -> Cap {
        let level = self.level();
        let (mut across, mut up) = (0_u32, 0_u32);
        for step in 1..=level {
            let bits = self.0 >> (FACE_SHIFT - 2 * step);
            across = across << 1 | (bits >> 1 & 1) as u32;
            up = up << 1 | (bits & 1) as u32;
        }
        let face = self.0 >> FACE_SHIFT;
        let width = f64::from(1_u32 << level);
        let point = |right: f64, above: f64| {
            let u = off_square((f64::from(across) + right) / width);
            let v = off_square((f64::from(up) + above) / width);
            direction_of(face, u, v)
        };
        let centre = point(0.5, 0.5);
        let corners = [point(0.0, 0.0), point(0.0, 1.0), point(1.0, 0.0), point(1.0, 1.0)];
        let radius = corners.into_iter().map(|corner| angle_between(centre, corner)).fold(0.0, f64::max);
        Cap { centre, radius }
    }
}

fn lowest_bit(level: u32) -> u64 {
    1 << (2 * (LEVELS - level))
}

/// The face that a direction points to, and the coordinates there, from -1 to 1.
fn face_of(direction: UnitVector) -> (u64, f64, f64) {
    let [x, y, z] = direction;
    let (across, up, ahead, axis) = if x.abs() >= y.abs() && x.abs() >= z.abs() {
        (y, z, x, 0)
    } else if y.abs() >= z.abs() {
        (x, z, y, 1)
    } else {
        (x, y, z, 2)
    };
    let face = if ahead < 0.0 { axis + 3 } else { axis };
    (face, across / ahead.abs(), up / ahead.abs())
}

fn direction_of(face: u64, u: f64, v: f64) -> UnitVector {
    let ahead = if face < 3 { 1.0 } else { -1.0 };
    let [x, y, z] = match face % 3 {
        0 => [ahead, u, v],
        1 => [u, ahead, v],
        _ => [u, v, ahead],
    };
    let length = (x * x + y * y + z * z).sqrt();
    [x / length, y / length, z / length]
}

/// From -1…1 on the cube to 0…1 on the square: makes the cells of a level nearly equal in size.
fn on_square(coordinate: f64) -> f64 {
    let half = 0.5 * (1.0 + 3.0 * coordinate.abs()).sqrt();
    if coordinate >= 0.0 { half } else { 1.0 - half }
}

/// The inverse of [`on_square`].
fn off_square(coordinate: f64) -> f64 {
    if coordinate >= 0.5 {
        (4.0 * coordinate * coordinate - 1.0) / 3.0
    } else {
        (1.0 - 4.0 * (1.0 - coordinate) * (1.0 - coordinate)) / 3.0
    }
}

/// The cells of a geometry in a document. A point has one cell. The query looks up the neighbours, because two equal
/// points, at 180 degrees west and east, may have different cells.
pub(crate) fn cover_document(outline: &Outline) -> Vec<Cell> {
    match outline.points() {
        Some(points) if points.len() <= DOCUMENT_CELLS_MAX => {
            let cells: BTreeSet<Cell> = points.into_iter().map(Cell::at).collect();
            cells.into_iter().collect()
        }
        Some(_) | None => cover(outline, 0.0, DOCUMENT_CELLS_MAX),
    }
}

/// At most `cells_max` cells that cover everything within an angle of a geometry, with a small margin.
fn cover(outline: &Outline, angle: f64, cells_max: usize) -> Vec<Cell> {
    let meets = |cell: &Cell| may_meet(outline, angle, *cell);
    let quarters = |cell: &Cell| -> Vec<Cell> { cell.children().into_iter().filter(meets).collect() };
    let mut cells: Vec<Cell> = (0..FACES).map(Cell::face).filter(meets).collect();
    for _ in 0..LEVEL_MAX {
        let finer: Vec<Vec<Cell>> = cells.iter().map(quarters).collect();
        if finer.iter().map(Vec::len).sum::<usize>() <= cells_max {
            // A cell none of whose quarters intersects does not intersect either; only its circle does.
            cells = finer.concat();
            continue;
        }
        let replace = |(cell, finer): (&Cell, Vec<Cell>)| if finer.len() <= 1 { finer } else { vec![*cell] };
        cells = cells.iter().zip(finer).flat_map(replace).collect();
        break;
    }
    joined(cells)
}

/// The cells that cover everything a query may look for within an angle of a geometry.
pub(crate) fn cover_query(outline: &Outline, angle: f64) -> Vec<Cell> {
    cover(outline, angle, QUERY_CELLS_MAX)
}

fn may_meet(outline: &Outline, angle: f64, cell: Cell) -> bool {
    let circle = cell.circle();
    let reach = circle.radius + angle;
    if let Some(cap) = outline.cap() {
        if angle_between(cap.centre, circle.centre) > reach + cap.radius {
            return false;
        }
        if circle.radius > EDGES_MATTER * (cap.radius + angle) {
            return true;
        }
    }
    outline.is_near(circle.centre, reach)
}

/// Replaces four quarters by their cell.
fn joined(mut cells: Vec<Cell>) -> Vec<Cell> {
    cells.sort_unstable();
    loop {
        let parent = cells.iter().find_map(|cell| {
            let parent = cell.parent();
            let is_full = || parent.children().iter().all(|child| cells.binary_search(child).is_ok());
            (parent != Cell::SPHERE && is_full()).then_some(parent)
        });
        let Some(parent) = parent else { break };
        cells.retain(|cell| cell.parent() != parent);
        cells.push(parent);
        cells.sort_unstable();
    }
    let all_faces: Vec<Cell> = (0..FACES).map(Cell::face).collect();
    if cells == all_faces { vec![Cell::SPHERE] } else { cells }
}

#[cfg(test)]
mod tests {
    use super::*;
    use value::Value;

    fn direction(longitude: f64, latitude: f64) -> UnitVector {
        let (longitude, latitude) = (longitude.to_radians(), latitude.to_radians());
        [latitude.cos() * longitude.cos(), latitude.cos() * longitude.sin(), latitude.sin()]
    }

    fn contains(cells: &[Cell], cell: Cell) -> bool {
        cells.iter().any(|outer| {
            let (first, last) = outer.inside();
            *outer == Cell::SPHERE || first <= cell && cell <= last
        })
    }

    fn outline(json: &str) -> Outline {
        Outline::read(Value::from_json(json.as_bytes()).unwrap().as_ref()).unwrap()
    }

    fn places() -> impl Iterator<Item = (f64, f64)> {
        let longitudes = (-12..=12).map(|step| f64::from(step) * 15.0);
        longitudes.flat_map(|longitude| {
            (-9..=9).map(move |step| (longitude, f64::from(step) * 10.0)).chain([(longitude + 0.37, 35.26)])
        })
    }

    #[test]
    fn a_cell_lies_in_its_ancestors_and_in_no_other() {
        for (longitude, latitude) in places() {
            let at = direction(longitude, latitude);
            let cell = Cell::at(at);
            assert_eq!(cell.level(), LEVEL_MAX);
            let ancestors: Vec<Cell> = cell.ancestors().collect();
            assert_eq!((ancestors.len(), ancestors.last()), (25, Some(&Cell::SPHERE)));
            for outer in &ancestors[..24] {
                let (first, last) = outer.inside();
                assert!(first <= cell && cell <= last);
                let circle = outer.circle();
                assert!(angle_between(circle.centre, at) <= circle.radius + 1e-12);
                let holders = outer.children().into_iter().filter(|child| contains(&[*child], cell));
                assert_eq!(holders.count(), 1);
                assert!(outer.children().iter().all(|child| child.parent() == *outer));
            }
        }
    }

    #[test]
    fn a_cover_holds_all_places_within_its_angle() {
        for (longitude, latitude) in places() {
            let point = outline(&format!(
                r#"{{"type":"Point","coordinates":[{},{latitude}]}}"#,
                longitude.clamp(-180.0, 180.0)
            ));
            assert_eq!(
                cover_document(&point),
                [Cell::at(direction(longitude.clamp(-180.0, 180.0), latitude))]
            );
            for degrees in [0.00001, 0.01, 1.0, 30.0] {
                let cells = cover(&point, f64::to_radians(degrees), QUERY_CELLS_MAX);
                assert!(!cells.is_empty() && cells.len() <= QUERY_CELLS_MAX);
                for (east, north) in
                    [(0.0, 0.0), (0.0, 0.99), (0.0, -0.99), (0.99, 0.0), (-0.99, 0.0), (0.6, 0.6)]
                {
                    let latitude = (latitude + north * degrees).clamp(-90.0, 90.0);
                    let at = direction(longitude.clamp(-180.0, 180.0) + east * degrees, latitude);
                    assert!(contains(&cells, Cell::at(at)), "{longitude} {latitude} {degrees}");
                }
            }
            // Nor is the cover much larger: a cell is at most of the size of the circle.
            let small = cover(&point, 0.001, QUERY_CELLS_MAX);
            assert!(small.iter().all(|cell| cell.circle().radius < 0.004), "{small:?}");
        }
    }

    #[test]
    fn polygons_and_lines_are_covered_by_few_cells() {
        let square =
            outline(r#"{"type":"Polygon","coordinates":[[[10,50],[11,50],[11,51],[10,51],[10,50]]]}"#);
        let cells = cover_document(&square);
        assert!(cells.len() <= DOCUMENT_CELLS_MAX && !cells.contains(&Cell::SPHERE));
        for step in 0..=10 {
            let coordinate = f64::from(step) / 10.0;
            for at in [direction(10.0 + coordinate, 50.0 + coordinate), direction(10.0 + coordinate, 50.0)] {
                assert!(contains(&cells, Cell::at(at)));
            }
        }
        assert!(!contains(&cells, Cell::at(direction(14.0, 50.5))));
        let rest = outline(r#"{"type":"Polygon","coordinates":[[[10,50],[10,51],[11,51],[11,50],[10,50]]]}"#);
        assert!(contains(&cover_document(&rest), Cell::at(direction(-100.0, -20.0))));
        let line = outline(r#"{"type":"LineString","coordinates":[[179,0],[-179,1]]}"#);
        let cells = cover_document(&line);
        assert!(
            contains(&cells, Cell::at(direction(180.0, 0.5)))
                && !contains(&cells, Cell::at(direction(0.0, 0.0)))
        );
    }
}
