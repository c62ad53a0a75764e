//! A stable text of how a query is carried out, for tests and for people.

use eval::Meter;
use model::Fault;
use plan::query::Order;
use std::fmt::Write;
use std::sync::Arc;

use crate::access;
use crate::program::{Input, Layer, Program, Shape};
use crate::task::{OpenPart, Part, PartScope};

/// How a query is carried out over parts of partitions, as the index of the first of them stands.
pub async fn explain(program: &Program, parts: &[Part], meter: Arc<Meter>) -> Result<String, Fault> {
    let open = match parts.first() {
        Some(part) => Some(OpenPart::alone(part, meter).await?),
        None => None,
    };
    let mut text = String::new();
    let count = program.layers.len();
    for (index, layer) in program.layers.iter().enumerate() {
        if count > 1 {
            line(&mut text, &format!("layer {}", index + 1));
        }
        match layer.input {
            Input::Documents => {
                line(&mut text, &format!("read {}", way(layer, index + 1 == count, open.as_ref())));
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
            line(&mut text, merge(layer, index + 1 == count));
        }
    }
    Ok(text)
}

/// How documents are reached.
fn way(layer: &Layer, is_last: bool, open: Option<&OpenPart>) -> String {
    let known = open.and_then(|open| access::known(layer, open));
    let has_index = open.is_some_and(|open| open.view.index().is_some());
    if let Some(text) = open.and_then(|open| access::covered_text(layer, open)) {
        return text;
    }
    let scope = match open.map(|open| &open.part.scope) {
        Some(PartScope::Logical(_)) if has_index => Some("the logical partition".to_owned()),
        Some(PartScope::Hashes(_)) if has_index => Some("the stretch of hashes".to_owned()),
        Some(PartScope::Whole | PartScope::Logical(_) | PartScope::Hashes(_)) | None => None,
    };
    let narrowed: Vec<String> = scope.into_iter().chain(known.and_then(|known| known.text)).collect();
    let named = (!narrowed.is_empty())
        .then(|| format!("documents that the index names by {}", narrowed.join(" and ")));
    let can_order = open.is_some_and(|open| access::ordering(layer, open).is_some());
    if is_last && access::comes_by_number(layer) {
        let all = if access::has_tests(layer, open) { ", or all documents if that is cheaper," } else { "" };
        let named = named.map_or_else(|| "documents".to_owned(), |named| format!("{named}{all}"));
        return format!("{named} by number, until the page is full");
    }
    let named = named.map_or_else(
        || "all records".to_owned(),
        |named| format!("{named}, or all records if that is cheaper"),
    );
    if is_last && can_order {
        format!("{named}, or in the order of the index until the page is full")
    } else {
        named
    }
}

/// How the answers of partitions become one.
fn merge(layer: &Layer, is_last: bool) -> &'static str {
    match (layer.shape, &layer.query.order) {
        (Shape::Rows, Order::None) if is_last => "append ranges, rows by number",
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
