//! A stable text of how a query is carried out, for tests and for people.

use plan::query::Order;
use std::fmt::Write;

use crate::access;
use crate::program::{Input, Layer, Program, Shape};

/// How a query is carried out over parts of partitions that are whole or not.
pub fn explain(program: &Program, is_whole: bool) -> String {
    let mut text = String::new();
    let count = program.layers.len();
    for (index, layer) in program.layers.iter().enumerate() {
        if count > 1 {
            line(&mut text, &format!("layer {}", index + 1));
        }
        let is_last = index + 1 == count;
        match layer.input {
            Input::Documents => {
                let path = access::choose(layer, is_last, is_whole);
                line(&mut text, &format!("read {path}"));
                line(&mut text, &format!("evaluate on documents {}", layer.needs.name()));
            }
            Input::Rows => line(&mut text, "read the results of the layer before"),
            Input::Nothing => line(&mut text, "read nothing"),
        }
        for step in layer.query.to_string().lines() {
            // What the layer before gives stands in the place of the container.
            match (layer.input, step) {
                (Input::Rows, "from container") => line(&mut text, "from each result"),
                (Input::Rows, "from elements of container") => {
                    line(&mut text, "from elements of each result")
                }
                (Input::Documents | Input::Rows | Input::Nothing, step) => line(&mut text, step),
            }
        }
        if layer.input == Input::Documents {
            line(&mut text, merge(layer));
        }
    }
    text
}

/// How the answers of partitions become one.
fn merge(layer: &Layer) -> &'static str {
    match (layer.shape, &layer.query.order) {
        (Shape::Rows, Order::None) => "merge rows by number",
        (Shape::Rows, Order::Keys(_) | Order::Rank(_)) => "merge the first rows by keys, then number",
        (Shape::Distinct, _) => "merge the first different results by hash",
        (Shape::DistinctOrdered, _) => "merge all different results by the keys of their first rows",
        (Shape::Groups, _)
            if layer.query.grouping.as_ref().is_some_and(|grouping| grouping.keys.is_empty()) =>
        {
            "merge aggregates"
        }
        (Shape::Groups, _) => "merge the first groups by hash",
        (Shape::AllGroups, _) => "merge all groups, then order their results",
    }
}

fn line(text: &mut String, line: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{line}");
}
