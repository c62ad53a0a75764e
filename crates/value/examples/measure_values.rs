//! Prints how long the crate takes for a document of about one kilobyte.
//!
//! `cargo run --release -p perihelion-value --example measure_values`
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::hint::black_box;
use std::time::Instant;

use value::{Document, PropertyPath};

const TEXT: &str = r#"{"id":"order-2024-000017","customerId":"c-58213","customerName":"Ada Lovelace","createdAt":"2024-02-29T12:34:56.789Z","status":"shipped","total":1234.56,"currency":"EUR","paid":true,"discount":null,"items":[{"sku":"A-1001","name":"Mechanical keyboard, 87 keys","quantity":1,"price":129.9,"tags":["input","usb"]},{"sku":"B-2002","name":"Monitor arm","quantity":2,"price":89.5,"tags":["desk","steel"]},{"sku":"C-3003","name":"Cable, 2 m","quantity":10,"price":4.25,"tags":[]}],"address":{"street":"12 Example Road","city":"Zurich","zip":"8001","country":"CH","location":{"type":"Point","coordinates":[8.5417,47.3769]}},"notes":"Leave at the door; ring twice. Call +41 44 000 00 00 if nobody answers within five minutes.","history":[{"at":1709210096,"event":"created"},{"at":1709213696,"event":"paid"},{"at":1709300096,"event":"shipped"}],"version":7,"score":0.87}"#;

fn main() {
    let document = Document::from_json(TEXT.as_bytes()).unwrap();
    println!("text {} bytes, encoded {} bytes", TEXT.len(), document.bytes().len());

    measure("sonic-rs, visitor that keeps nothing", || {
        sonic_rs::from_slice::<serde::de::IgnoredAny>(black_box(TEXT.as_bytes())).unwrap();
    });
    measure("sonic-rs, its own tree", || {
        black_box(sonic_rs::from_slice::<sonic_rs::Value>(black_box(TEXT.as_bytes())).unwrap());
    });
    measure("from_json", || {
        black_box(Document::from_json(black_box(TEXT.as_bytes())).unwrap());
    });
    let skip = ["_rid", "_self", "_etag", "_attachments", "_ts", "_lsn"];
    measure("from_json_without six names", || {
        black_box(Document::from_json_without(black_box(TEXT.as_bytes()), &skip).unwrap());
    });
    for text in ["/id", "/score", "/address/city", "/address/location/type"] {
        let path = PropertyPath::parse(text).unwrap();
        measure(&format!("get {text}"), || {
            black_box(black_box(&document).get(black_box(&path)));
        });
    }
    let mut out = Vec::with_capacity(2048);
    measure("write_json", || {
        out.clear();
        black_box(&document).write_json(&mut out);
        black_box(&out);
    });
    measure("from_stored", || {
        black_box(Document::from_stored(black_box(document.bytes().clone())).unwrap());
    });
    measure("validate", || {
        black_box(&document).validate().unwrap();
    });
    measure("to_value", || {
        black_box(black_box(&document).to_value());
    });
    measure("without", || {
        black_box(black_box(&document).without(&["status"]));
    });
}

/// Prints the best of many rounds.
///
/// A round takes about a fifth of a millisecond whatever the action: long compared with reading the clock, short
/// compared with a scheduler time slice, so that on a busy machine some rounds run undisturbed.
fn measure(name: &str, mut action: impl FnMut()) {
    const ROUNDS: usize = 2_000;
    const ROUND_NS: u128 = 200_000;
    let mut round = |calls: u128| {
        let start = Instant::now();
        (0..calls).for_each(|_| action());
        start.elapsed().as_nanos()
    };
    let calls = (ROUND_NS * 1_000 / round(1_000).max(1)).max(1);
    let best = (0..ROUNDS).map(|_| round(calls)).min().unwrap_or_default();
    println!("{name:40} {:>6} ns", best / calls);
}
