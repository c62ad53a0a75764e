//! Prints how long a filter takes for a document of about one kilobyte.
//!
//! `cargo run --release -p perihelion-eval --example measure_expressions`
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::hint::black_box;
use std::time::Instant;

use eval::{Budget, Context, Row, evaluate};
use model::Ambient;
use plan::query::{BinaryOperator, Expression, Function, LikePattern, SlotId};
use value::{Document, Value};

const TEXT: &str = r#"{"id":"order-2024-000017","customerId":"c-58213","customerName":"Ada Lovelace","createdAt":"2024-02-29T12:34:56.789Z","status":"shipped","total":1234.56,"currency":"EUR","paid":true,"discount":null,"a":5,"items":[{"sku":"A-1001","name":"Mechanical keyboard, 87 keys","quantity":1,"price":129.9,"tags":["input","usb"]},{"sku":"B-2002","name":"Monitor arm","quantity":2,"price":89.5,"tags":["desk","steel"]},{"sku":"C-3003","name":"Cable, 2 m","quantity":10,"price":4.25,"tags":[]}],"address":{"street":"12 Example Road","city":"Zurich","zip":"8001","country":"CH","location":{"type":"Point","coordinates":[8.5417,47.3769]}},"notes":"Leave at the door; ring twice. Call +41 44 000 00 00 if nobody answers within five minutes.","history":[{"at":1709210096,"event":"created"},{"at":1709213696,"event":"paid"},{"at":1709300096,"event":"shipped"}],"b":7,"score":0.87}"#;

#[derive(Debug)]
struct Still;

impl Ambient for Still {
    fn now_ms(&self) -> u64 {
        0
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        bytes.fill(0);
    }
}

fn main() {
    let document = Document::from_json(TEXT.as_bytes()).unwrap();
    let context = Context::new(&Still, Budget::new(1 << 20, u64::MAX));
    let path = |names: &[&str]| Expression::path(SlotId(0), names.iter().map(|name| (*name).to_owned()));
    let constant = |value: Value| Expression::Constant(value);
    let compare = |operator, left, right| Expression::Binary(operator, Box::new(left), Box::new(right));

    let equal = compare(BinaryOperator::Equal, path(&["a"]), constant(Value::Int64(5)));
    let greater = compare(BinaryOperator::Greater, path(&["b"]), constant(Value::Int64(3)));
    let cases = [
        ("c.a = 5", equal.clone()),
        ("c.a = 5 AND c.b > 3", Expression::And(vec![equal, greater])),
        ("c.address.city", path(&["address", "city"])),
        (
            "c.status IN ('open', 'paid', 'shipped')",
            Expression::In(
                Box::new(path(&["status"])),
                ["open", "paid", "shipped"].into_iter().map(|text| constant(Value::from(text))).collect(),
            ),
        ),
        (
            "c.status IN (a thousand)",
            Expression::In(
                Box::new(path(&["status"])),
                (0..1000).map(|number| constant(Value::from(format!("status {number}").as_str()))).collect(),
            ),
        ),
        (
            "c.status = 'status 0' AND c.a = 0 OR … (a thousand)",
            Expression::Or(
                (0..1000)
                    .map(|number| {
                        let status = constant(Value::from(format!("status {number}").as_str()));
                        Expression::And(vec![
                            compare(BinaryOperator::Equal, path(&["status"]), status),
                            compare(BinaryOperator::Equal, path(&["a"]), constant(Value::Int64(number))),
                        ])
                    })
                    .collect(),
            ),
        ),
        (
            "CONTAINS(c.notes, 'five')",
            Expression::Call(Function::Contains, vec![path(&["notes"]), constant(Value::from("five"))]),
        ),
        (
            "c.notes LIKE '%ring%five%'",
            Expression::Like(
                Box::new(path(&["notes"])),
                LikePattern { pattern: Box::new(constant(Value::from("%ring%five%"))), escape: None },
            ),
        ),
        (
            "RegexMatch(c.notes, 'f[a-z]+e')",
            Expression::Call(Function::RegexMatch, vec![path(&["notes"]), constant(Value::from("f[a-z]+e"))]),
        ),
    ];
    for (name, expression) in &cases {
        measure(name, || {
            let slots = [black_box(&document).root()];
            black_box(evaluate(&context, black_box(expression), Row::of_document(&slots, 1)).unwrap());
        });
    }
}

/// Prints the best of many rounds, each about a fifth of a millisecond long.
fn measure(name: &str, mut action: impl FnMut()) {
    let start = Instant::now();
    (0..1_000).for_each(|_| action());
    let each = start.elapsed().as_nanos().max(1_000) / 1_000;
    let count = u32::try_from(200_000 / each).unwrap_or(1).max(1);
    let best = (0..500).map(|_| {
        let start = Instant::now();
        (0..count).for_each(|_| action());
        start.elapsed().as_nanos() / u128::from(count)
    });
    println!("{:>6} ns  {name}", best.min().unwrap_or(0));
}
