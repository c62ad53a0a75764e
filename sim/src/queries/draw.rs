//! Random documents with frequently equal values, and random queries over them.

use super::geometries;
use super::random_query::{Filter, Fold, Now, Projection, RandomQuery, Reach, Shape, Term};
use crate::random::Random;
use serde_json::{Map, Value as Json, json};

/// Distinct ids of a container.
const IDS: u64 = 40;
/// Distinct partition keys.
const KEYS: u64 = 9;
const FILTER_LEVELS: usize = 3;

/// Members used by filters, orders and groups.
const PATHS: [&[&str]; 15] = [
    &["a"],
    &["b"],
    &["n"],
    &["g"],
    &["o"],
    &["o", "x"],
    &["s"],
    &["id"],
    &["pk"],
    &["_ts"],
    &["missing"],
    &["cp_g"],
    &["cp_n"],
    &["cp_o"],
    &["cp_o", "x"],
];

/// The current time as users can write it.
const NOW: [Now; 4] = [
    Now::Page,
    Now::Query("GetCurrentTimestampStatic()"),
    Now::Query("DateTimeToTimestamp(Now())"),
    Now::Query("DateTimeToTimestamp(Ago(\"second\", 0))"),
];

/// A document: its partition key, its id and its body.
pub(super) fn document(random: &mut Random) -> (String, String, Map<String, Json>) {
    let number = random.below(IDS);
    let (key, id) = (format!("k{}", number % KEYS), format!("d{number}"));
    let mut body = Map::new();
    body.insert("id".to_owned(), id.clone().into());
    body.insert("pk".to_owned(), key.clone().into());
    for name in ["a", "b"] {
        if random.chance(85) {
            body.insert(name.to_owned(), any_value(random, 2));
        }
    }
    if random.chance(90) {
        body.insert("n".to_owned(), number_value(random));
    }
    if random.chance(90) {
        body.insert("g".to_owned(), random.pick(&["x", "y", "z"]).to_string().into());
    }
    if random.chance(50) {
        let inner =
            if random.chance(80) { json!({ "x": any_value(random, 1) }) } else { any_value(random, 1) };
        body.insert("o".to_owned(), inner);
    }
    if random.chance(70) {
        let count = random.below(4);
        let tags: Json = (0..count).map(|_| any_value(random, 1)).collect();
        body.insert("tags".to_owned(), if random.chance(95) { tags } else { "none".into() });
    }
    if random.chance(40) {
        body.insert("s".to_owned(), long_text(random).into());
    }
    if random.chance(60) {
        body.insert("loc".to_owned(), geometries::geometry(random));
    }
    if random.chance(8) {
        body.insert("ttl".to_owned(), random.between(1, 30).into());
    }
    (key, id, body)
}

/// Texts that differ after the position where an index or a continuation truncates them.
fn long_text(random: &mut Random) -> String {
    let length = *random.pick(&[0usize, 3, 190, 205, 450, 1500]);
    format!("{}{}", "m".repeat(length), random.below(6))
}

fn number_value(random: &mut Random) -> Json {
    match random.below(4) {
        0 => json!(random.between(0, 8) as f64 / 2.0 - 1.0),
        _ => Json::from(random.between(0, 7) as i64 - 2),
    }
}

fn any_value(random: &mut Random, levels: usize) -> Json {
    match random.below(if levels == 0 { 10 } else { 13 }) {
        0 => Json::Null,
        1 => random.chance(50).into(),
        2..=5 => number_value(random),
        6..=8 => random.pick(&["", "x", "xy", "y", "é", "x\u{0}"]).to_string().into(),
        9 => long_text(random).into(),
        10 | 11 => (0..random.below(3)).map(|_| any_value(random, levels - 1)).collect(),
        _ => json!({ "x": any_value(random, levels - 1), "y": 1 }),
    }
}

/// `None` if documents do not expire, -1 if only those with a TTL of their own do.
pub(super) fn default_ttl(random: &mut Random) -> Option<i64> {
    match random.below(10) {
        0..=3 => None,
        4..=8 => Some(-1),
        _ => Some(i64::try_from(random.between(10, 40)).unwrap_or(-1)),
    }
}

pub(super) fn random_query(random: &mut Random, partitions: u32) -> RandomQuery {
    let is_of_one_path = random.chance(30);
    let joins = !is_of_one_path && random.chance(25);
    let filter = random.chance(75).then(|| filter(random, joins, FILTER_LEVELS));
    let shape = match random.below(10) {
        _ if is_of_one_path => of_one_path(random),
        0 => Shape::Folds(folds(random, joins)),
        1 | 2 => {
            let count = random.between(1, 2);
            Shape::Groups {
                keys: (0..count).map(|_| term(random, joins)).collect(),
                folds: folds(random, joins),
            }
        }
        _ => rows(random, joins),
    };
    let bounds = random.chance(20).then(|| (random.below(12), random.between(0, 15)));
    let reach = match random.below(10) {
        0 => Reach::Key(format!("k{}", random.below(KEYS))),
        1 => Reach::Partition(u32::try_from(random.below(u64::from(partitions))).unwrap_or(0)),
        _ => Reach::All,
    };
    RandomQuery { reach, joins, filter, shape, bounds }
}

/// Shapes that an index with the path, or with a few, can answer without documents.
fn of_one_path(random: &mut Random) -> Shape {
    let term = term(random, false);
    match random.below(3) {
        0 => Shape::Folds(folds(random, false)),
        1 => {
            let folds = match random.below(4) {
                0 | 1 => vec![Fold::Count],
                2 => vec![Fold::Count, Fold::CountOf(term.clone()), Fold::Sum(term.clone())],
                _ => vec![Fold::Min(term.clone()), Fold::Average(term.clone()), Fold::Count],
            };
            Shape::Groups { keys: vec![term], folds }
        }
        _ => {
            let order = if random.chance(40) { vec![(term.clone(), random.chance(50))] } else { Vec::new() };
            let projection = match random.below(3) {
                0 => Projection::Value(term),
                1 => Projection::Named(vec![term]),
                _ => Projection::Named(vec![term, Term::Path(random.pick(&PATHS).to_vec())]),
            };
            Shape::Rows { projection, order, distinct: true }
        }
    }
}

fn rows(random: &mut Random, joins: bool) -> Shape {
    let projection = match random.below(4) {
        0 if !joins => Projection::Star,
        1 => Projection::Value(term(random, joins)),
        _ => {
            let mut terms = vec![Term::Path(vec!["id"])];
            terms.extend((0..random.below(3)).map(|_| term(random, joins)));
            Projection::Named(terms)
        }
    };
    let distinct = random.chance(20) && !matches!(projection, Projection::Star);
    let keys = if random.chance(50) { random.between(1, 2) } else { 0 };
    let mut order: Vec<_> = (0..keys).map(|_| (term(random, false), random.chance(40))).collect();
    if keys == 2 && random.chance(60) {
        // Orders of the composite indexes.
        let pairs: [[&[&str]; 2]; 5] = [
            [&["g"], &["n"]],
            [&["g"], &["a"]],
            [&["a"], &["s"]],
            [&["cp_g"], &["n"]],
            [&["n"], &["cp_o", "x"]],
        ];
        for (key, path) in order.iter_mut().zip(random.pick(&pairs)) {
            key.0 = Term::Path(path.to_vec());
        }
    }
    Shape::Rows { projection, order, distinct }
}

fn folds(random: &mut Random, joins: bool) -> Vec<Fold> {
    let fold = |random: &mut Random| {
        let number = || Term::Path(vec!["n"]);
        match random.below(7) {
            0 | 1 => Fold::Count,
            2 => Fold::CountOf(term(random, joins)),
            3 => Fold::Sum(number()),
            4 => Fold::Average(number()),
            5 => Fold::Min(term(random, joins)),
            _ => Fold::Max(term(random, joins)),
        }
    };
    (0..random.between(1, 3)).map(|_| fold(random)).collect()
}

fn term(random: &mut Random, joins: bool) -> Term {
    if joins && random.chance(40) { Term::Element } else { Term::Path(random.pick(&PATHS).to_vec()) }
}

fn filter(random: &mut Random, joins: bool, levels: usize) -> Filter {
    let deeper = |random: &mut Random| filter(random, joins, levels.saturating_sub(1));
    match random.below(if levels == 0 { 19 } else { 25 }) {
        0..=5 => {
            let term = term(random, joins);
            let operator = random.pick(&["=", "=", "!=", "<", "<=", ">", ">="]);
            let constant = constant(random, &term);
            Filter::Compare(term, operator, constant)
        }
        6 => {
            let term = term(random, joins);
            let constants = (0..random.between(1, 4)).map(|_| constant(random, &term)).collect();
            Filter::In(term, constants)
        }
        7 => {
            let term = term(random, joins);
            let (low, high) = (constant(random, &term), constant(random, &term));
            Filter::Between(term, low, high)
        }
        8 => {
            let tests = [
                "IS_DEFINED",
                "IS_NUMBER",
                "IS_STRING",
                "IS_NULL",
                "IS_BOOL",
                "IS_ARRAY",
                "IS_OBJECT",
                "IS_PRIMITIVE",
            ];
            let test = *random.pick(&tests);
            Filter::Test(test, term(random, joins))
        }
        9 => {
            let starts = ["", "x", "d1", "mmm", "é"];
            let start = if random.chance(70) { (*random.pick(&starts)).to_owned() } else { "m".repeat(300) };
            Filter::StartsWith(term(random, joins), start)
        }
        10 => Filter::Contains(Term::Path(vec!["tags"]), any_value(random, 1)),
        11 => Filter::Truth(term(random, joins)),
        12 => {
            let function = random.pick(&["CONTAINS", "STARTSWITH", "ENDSWITH", "StringEquals"]);
            let text = random.pick(&["", "x", "X", "é", "É", "1", "m2", "M3", "d1"]).to_string();
            Filter::Text(function, term(random, joins), text, random.chance(40))
        }
        13 => Filter::Like(term(random, joins), pattern(random)),
        14 => {
            let operator = random.pick(&["=", "!=", "<", ">="]);
            let number = random.between(0, 3) as i64 - 1;
            Filter::Plus(term(random, joins), number, operator, number_value(random))
        }
        15 => {
            let constants = (0..random.between(1, 3)).map(|_| any_value(random, 1)).collect();
            Filter::ContainsEach(Term::Path(vec!["tags"]), constants, random.chance(50))
        }
        16 | 17 => geometries::filter(random),
        18 => {
            let term = if random.chance(80) { Term::Path(vec!["_ts"]) } else { term(random, joins) };
            let operator = random.pick(&["<", "<=", ">", ">=", "="]);
            Filter::Since(term, operator, *random.pick(&NOW), random.below(40))
        }
        19 | 20 => Filter::Not(Box::new(deeper(random))),
        21 | 22 => Filter::And((0..random.between(2, 3)).map(|_| deeper(random)).collect()),
        _ => Filter::Or((0..random.between(2, 3)).map(|_| deeper(random)).collect()),
    }
}

fn pattern(random: &mut Random) -> String {
    let places = ["x", "y", "d", "1", "m", "mm", "%", "%", "_", "é"];
    (0..random.below(5)).map(|_| *random.pick(&places)).collect()
}

/// A constant that values of the term sometimes equal.
fn constant(random: &mut Random, term: &Term) -> Json {
    match term {
        Term::Path(names) if names[..] == ["id"] => format!("d{}", random.below(IDS)).into(),
        Term::Path(names) if names[..] == ["pk"] => format!("k{}", random.below(KEYS)).into(),
        Term::Path(names) if names[..] == ["g"] => random.pick(&["x", "y", "z"]).to_string().into(),
        Term::Path(names) if names[..] == ["cp_g"] => random.pick(&["X", "Y", "xy", "zy"]).to_string().into(),
        Term::Path(names) if matches!(names[..], ["n"] | ["cp_n"]) && random.chance(80) => {
            number_value(random)
        }
        Term::Path(names) if names[..] == ["s"] => long_text(random).into(),
        Term::Path(names) if names[..] == ["_ts"] => {
            (crate::ambient::START_SECONDS + random.below(40)).into()
        }
        Term::Path(_) | Term::Element => any_value(random, 1),
    }
}
