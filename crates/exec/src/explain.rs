//! A stable text of how a query is executed, for tests and for people.

use eval::Meter;
use model::Fault;
use plan::query::Order;
use std::fmt::Write;
use std::sync::Arc;

use crate::access_path::{self, AccessPath};
use crate::program::{Layer, LayerInput, Program, Shape};
use crate::task::{OpenPart, Part};

/// How a query is executed over parts of partitions for a page of at most `items_max` rows: the access path of each
/// part as it would be executed now, with the numbers that decided.
pub async fn explain(
    program: &Program,
    parts: &[Part],
    items_max: usize,
    meter: Arc<Meter>,
) -> Result<String, Fault> {
    let mut open = Vec::with_capacity(parts.len());
    for part in parts {
        open.push(Arc::new(OpenPart::for_inspection(part, true, Arc::clone(&meter)).await?));
    }
    let mut text = String::new();
    let count = program.layers.len();
    for (index, layer) in program.layers.iter().enumerate() {
        if count > 1 {
            line(&mut text, &format!("layer {}", index + 1));
        }
        match layer.input {
            LayerInput::Documents => {
                let paths =
                    access_path::choose(layer, &open, access_path::goal(program, index, items_max)).await?;
                for (open, path) in open.iter().zip(&paths) {
                    write_path(&mut text, (open, path), paths.len());
                }
                line(&mut text, &format!("evaluate on documents {}", layer.needs.name()));
            }
            LayerInput::Rows => line(&mut text, "read the results of the layer before"),
            LayerInput::Nothing => line(&mut text, "read nothing"),
        }
        for step in layer.query.to_string().lines() {
            // The results of the layer below take the place of the container.
            match (layer.input, step) {
                (LayerInput::Rows, "from container") => line(&mut text, "from each result"),
                (LayerInput::Rows, "from elements of container") => {
                    line(&mut text, "from elements of each result")
                }
                (LayerInput::Documents | LayerInput::Rows | LayerInput::Nothing, step) => {
                    line(&mut text, step)
                }
            }
        }
        if layer.input == LayerInput::Documents {
            line(&mut text, merge(layer, index + 1 == count));
        }
    }
    Ok(text)
}

/// The access path of one part of several.
fn write_path(text: &mut String, (open, path): (&OpenPart, &AccessPath<'_>), parts: usize) {
    let mut lines = path.lines().into_iter();
    let way = lines.next().unwrap_or_default();
    if parts > 1 {
        line(text, &format!("read in partition {}: {way}", open.part.source.ordinal().0));
    } else {
        line(text, &format!("read {way}"));
    }
    lines.for_each(|rejected| line(text, &format!("  {rejected}")));
}

/// How the results of partitions are merged.
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
