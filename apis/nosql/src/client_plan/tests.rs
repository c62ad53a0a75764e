//! Runs the text files of `tests-data/query-plans`: a query and its client plan.
//!
//! A case is a few lines: `key` if the query stays inside one partition key, `@name = JSON` for parameters, the query,
//! a line `=>`, and the expected text up to the next empty line: the rewritten query, or `as it is`, and what differs
//! from a plan that merges nothing. Lines that begin with `#` are comments.

use super::{ClientPlan, Distinct, Extent, Fold, Unmergeable, client_plan, hybrid_plan};
use crate::faults::text_errors;
use crate::text_cases::TextCases;
use plan::query::{Expression, Order, Query};
use sql::Parameters;
use value::Value;

/// Fewer would mean that files are not found.
const CASES_MIN: usize = 80;

#[test]
fn every_plan_is_the_expected_one() {
    let mut cases = TextCases::of("query-plans");
    for block in cases.files().into_iter().flatten() {
        let Some((input, _)) = block.text.split_once("\n=>") else { continue };
        let found = shown(input);
        cases.check(&block, &format!("{input}\n=>\n{found}"));
    }
    cases.finish(CASES_MIN);
}

/// The plan of a case, or the reason why there is none.
fn shown(input: &str) -> String {
    let mut extent = Extent::Ranges;
    let mut parameters = Vec::new();
    let mut query = Vec::new();
    for line in input.lines().filter(|line| !line.starts_with('#')) {
        match line.split_once(" = ") {
            Some((name, value)) if name.starts_with('@') => {
                parameters.push((name.to_owned(), Value::from_json(value.as_bytes()).unwrap()));
            }
            _ if line == "key" => extent = Extent::OneKey,
            _ => query.push(line),
        }
    }
    let parameters: Parameters = parameters.into_iter().collect();
    let tree = match sql::parse(&query.join("\n")) {
        Ok(tree) => tree,
        Err(faults) => return text_errors(&faults),
    };
    let lowered = match sql::lower(&tree, &parameters) {
        Ok(lowered) => lowered,
        Err(faults) => return text_errors(&faults),
    };
    if let Some(plan) = hybrid_plan(&tree, &lowered) {
        let mut shown = vec![format!("skip {:?} take {:?} weights {:?}", plan.skip, plan.take, plan.weights)];
        shown.extend(plan.statistics.as_ref().map(sql::print));
        for component in &plan.components {
            check_text(component, &parameters);
            shown.extend(lines(component));
        }
        shown.push(format!("needs {}", plan.features().join(", ")));
        return shown.join("\n");
    }
    match client_plan(&tree, &lowered, extent, &|position| is_similarity(&lowered, position)) {
        Ok(plan) => {
            check_text(&plan, &parameters);
            lines(&plan).join("\n")
        }
        Err(Unmergeable::Count(faults)) => format!("refused: {}", text_errors(&faults)),
        Err(fault) => format!("refused: {fault}"),
    }
}

/// In these cases vectors at `c.e` have a distance, all others a similarity.
fn is_similarity(query: &Query, position: usize) -> bool {
    let Order::Keys(keys) = &query.order else { return false };
    let Expression::Call(_, arguments) = &keys[position].expression else { return false };
    arguments[0].document_path().is_none_or(|path| path.last() != Some(&"e"))
}

/// The server must accept a rewritten query, whatever the client puts into it.
fn check_text(plan: &ClientPlan, parameters: &Parameters) {
    let Some(rewritten) = &plan.rewritten else { return };
    let text = sql::print(rewritten);
    for filter in ["true", "1 > 2 OR (1 = 2 AND IS_DEFINED(3))"] {
        let mut text = text.replace("{documentdb-formattableorderbyquery-filter}", filter);
        for (number, filled) in [("totalwordcount", "30"), ("hitcountsarray", "[1, 2]")] {
            for index in 0..3 {
                let place = format!("{{documentdb-formattablehybridsearchquery-{number}-{index}}}");
                text = text.replace(&place, filled);
            }
        }
        let text = text.replace("{documentdb-formattablehybridsearchquery-totaldocumentcount}", "20");
        let tree = sql::parse(&text).unwrap_or_else(|faults| panic!("{text}: {faults}"));
        sql::lower(&tree, parameters).unwrap_or_else(|faults| panic!("{text}: {faults}"));
    }
}

fn lines(plan: &ClientPlan) -> Vec<String> {
    let mut lines = vec![plan.rewritten.as_ref().map_or_else(|| "as it is".to_owned(), sql::print)];
    match plan.distinct {
        Distinct::None => {}
        kind @ (Distinct::Ordered | Distinct::Unordered) => lines.push(format!("distinct {kind:?}")),
    }
    for (name, count) in [("top", plan.top), ("offset", plan.offset), ("limit", plan.limit)] {
        lines.extend(count.map(|count| format!("{name} {count}")));
    }
    for key in &plan.order {
        lines.push(format!("order {}{}", key.expression, if key.descending { " descending" } else { "" }));
    }
    if plan.is_order_unstable {
        lines.push("order unstable".to_owned());
    }
    lines.extend(plan.group_keys.iter().map(|key| format!("group {key}")));
    lines.extend(plan.aggregates.iter().map(|fold| format!("aggregate {}", fold.name())));
    for (name, fold) in &plan.columns {
        lines.push(format!("column {name}: {}", fold.map_or("first", Fold::name)));
    }
    if plan.selects_value {
        lines.push("value".to_owned());
    }
    lines.extend(plan.distinct_count.iter().map(|alias| format!("count distinct \"{alias}\"")));
    let features = plan.features();
    if !features.is_empty() {
        lines.push(format!("needs {}", features.join(", ")));
    }
    lines
}
