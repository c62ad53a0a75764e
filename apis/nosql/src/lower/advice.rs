//! Advice on how a query is written: `x-ms-cosmos-query-advice`.
//!
//! The header lists ids of rules; clients have a text for each. The advice depends only on the query, not on the data.

use crate::wire::percent;
use plan::query::{Expression, Function, Predicate, Query, Requirement, Source, TextPattern};
use serde_json::{Value as Json, json};
use sql::limits::EXPRESSION_DEPTH_MAX;
use std::collections::BTreeSet;
use value::Value;

/// Levels of a query that are searched, including subqueries.
const LEVELS_MAX: usize = 2 * EXPRESSION_DEPTH_MAX;

/// A pattern in a query for which there is a better alternative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rule {
    /// `ARRAY_CONTAINS` with partial matches.
    PartialArrayContains,
    /// `DISTINCT` over a `JOIN`.
    DistinctJoin,
    /// `CONTAINS`, where `STARTSWITH` may be sufficient.
    Contains,
    /// Case-insensitive `STARTSWITH` or `StringEquals`.
    CaseInsensitiveStart,
    /// Case-insensitive `ENDSWITH`.
    CaseInsensitiveEnd,
    /// A computed group key.
    ComputedGroupKey,
    /// A comparison with the result of `UPPER` or `LOWER`.
    UpperOrLower,
    /// `GetCurrentDateTime`, which is evaluated for each document.
    CurrentDateTime,
    /// `GetCurrentTicks`, likewise.
    CurrentTicks,
    /// `GetCurrentTimestamp`, likewise.
    CurrentTimestamp,
}

impl Rule {
    /// The id that clients know.
    fn id(self) -> &'static str {
        match self {
            Rule::PartialArrayContains => "QA1000",
            Rule::DistinctJoin => "QA1001",
            Rule::Contains => "QA1002",
            Rule::CaseInsensitiveStart => "QA1003",
            Rule::CaseInsensitiveEnd => "QA1004",
            Rule::ComputedGroupKey => "QA1005",
            Rule::UpperOrLower => "QA1006",
            Rule::CurrentDateTime => "QA1007",
            Rule::CurrentTicks => "QA1008",
            Rule::CurrentTimestamp => "QA1009",
        }
    }
}

/// The text of the header; `None` if there is no advice.
pub(crate) fn advice(query: &Query) -> Option<String> {
    let rules = rules(query);
    let entry = |rule: &Rule| json!({ "Id": rule.id(), "Params": [] });
    let entries: Json = rules.iter().map(entry).collect();
    (!rules.is_empty()).then(|| percent::strictly_encoded(&entries.to_string()))
}

fn rules(query: &Query) -> BTreeSet<Rule> {
    let mut rules = BTreeSet::new();
    look_at_query(query, LEVELS_MAX, &mut rules);
    rules
}

fn look_at_query(query: &Query, levels_left: usize, rules: &mut BTreeSet<Rule>) {
    let Some(levels_left) = levels_left.checked_sub(1) else {
        return;
    };
    if query.distinct && query.sources.len() > 1 {
        rules.insert(Rule::DistinctJoin);
    }
    if query.grouping.iter().flat_map(|grouping| &grouping.keys).any(is_computed) {
        rules.insert(Rule::ComputedGroupKey);
    }
    for below in query.sources.iter().filter_map(Source::query) {
        look_at_query(below, levels_left, rules);
    }
    if let Some(filter) = &query.filter {
        look_at_filter(filter, levels_left, rules);
    }
}

fn look_at_filter(expression: &Expression, levels_left: usize, rules: &mut BTreeSet<Rule>) {
    let Some(levels_left) = levels_left.checked_sub(1) else {
        return;
    };
    if let Expression::Call(function, arguments) = expression {
        rules.extend(rule_of_call(*function, arguments));
    }
    if compared(expression).into_iter().flatten().any(changes_letter_case) {
        rules.insert(Rule::UpperOrLower);
    }
    if let Expression::Subquery(_, query) = expression {
        look_at_query(query, levels_left, rules);
    }
    expression.children().into_iter().for_each(|child| look_at_filter(child, levels_left, rules));
}

fn rule_of_call(function: Function, arguments: &[Expression]) -> Option<Rule> {
    // The third argument requests partial matches of elements, or a case-insensitive match.
    let is_wide = matches!(arguments.get(2), Some(Expression::Constant(Value::Bool(true))));
    match (function, is_wide) {
        (Function::ArrayContains, true) => Some(Rule::PartialArrayContains),
        (Function::Contains, _) => Some(Rule::Contains),
        (Function::StartsWith | Function::StringEquals, true) => Some(Rule::CaseInsensitiveStart),
        (Function::EndsWith, true) => Some(Rule::CaseInsensitiveEnd),
        (Function::GetCurrentDateTime, _) => Some(Rule::CurrentDateTime),
        (Function::GetCurrentTicks, _) => Some(Rule::CurrentTicks),
        (Function::GetCurrentTimestamp, _) => Some(Rule::CurrentTimestamp),
        _ => None,
    }
}

/// The values that a condition compares with something.
fn compared(condition: &Expression) -> [Option<&Expression>; 2] {
    match Requirement::of_filter(condition).predicate() {
        Predicate::Compare { operand, .. }
        | Predicate::Listed { operand, .. }
        | Predicate::Text { operand, pattern: TextPattern::Like(..), .. } => [Some(operand), None],
        Predicate::CompareValues { left, right, .. } => [Some(left), Some(right)],
        Predicate::All(_)
        | Predicate::Any(_)
        | Predicate::Truth { .. }
        | Predicate::Between { .. }
        | Predicate::Defined { .. }
        | Predicate::OfKind { .. }
        | Predicate::Text { .. }
        | Predicate::Contains { .. }
        | Predicate::Meets { .. }
        | Predicate::Other => [None, None],
    }
}

fn changes_letter_case(expression: &Expression) -> bool {
    matches!(expression, Expression::Call(Function::Upper | Function::Lower, _))
}

/// Whether a group key is more than a path or a constant.
fn is_computed(key: &Expression) -> bool {
    let mut base = key;
    while let Expression::Member(inner, _) | Expression::Index(inner, _) = base {
        base = inner;
    }
    !matches!(base, Expression::Slot(_) | Expression::Constant(_) | Expression::UserCall(..))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sql::Parameters;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let query = sql::lower(&sql::parse(text).unwrap(), &Parameters::none()).unwrap();
        let found: Vec<&str> = rules(&query).into_iter().map(Rule::id).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn every_rule_is_found_where_it_is_broken() {
        check("SELECT * FROM c WHERE ARRAY_CONTAINS(c.a, {x: 1}, true)", &["QA1000"]);
        check("SELECT * FROM c WHERE ARRAY_CONTAINS(c.a, 1) AND ARRAY_CONTAINS(c.b, 1, false)", &[]);
        check("SELECT DISTINCT c.id FROM c JOIN t IN c.tags", &["QA1001"]);
        check("SELECT DISTINCT c.id FROM c", &[]);
        check("SELECT * FROM c WHERE c.n > 1 AND CONTAINS(c.name, 'x')", &["QA1002"]);
        check("SELECT * FROM c WHERE STARTSWITH(c.a, 'x') AND ENDSWITH(c.a, 'x')", &[]);
        check(
            "SELECT * FROM c WHERE StringEquals(c.a, 'x', true) OR ENDSWITH(c.a, 'x', true)",
            &["QA1003", "QA1004"],
        );
        check("SELECT COUNT(1) FROM c GROUP BY LOWER(c.a)", &["QA1005"]);
        check("SELECT c.a.b FROM c GROUP BY c.a.b", &[]);
        check("SELECT * FROM c WHERE 'x' = LOWER(c.a)", &["QA1006"]);
        check("SELECT * FROM c WHERE UPPER(c.a) IN ('X', 'Y')", &["QA1006"]);
        check(
            "SELECT * FROM c WHERE c.a < GetCurrentDateTime() AND c.b < GetCurrentTicks() AND \
             c.c < GetCurrentTimestamp()",
            &["QA1007", "QA1008", "QA1009"],
        );
        check("SELECT GetCurrentTicks() FROM c WHERE c.a < GetCurrentTicksStatic()", &[]);
        check("SELECT * FROM c WHERE EXISTS (SELECT 1 FROM t IN c.tags WHERE CONTAINS(t, 'x'))", &["QA1002"]);
    }

    #[test]
    fn the_header_is_json_with_percent_signs() {
        let text = "SELECT * FROM c WHERE CONTAINS(c.a, 'x')";
        let query = sql::lower(&sql::parse(text).unwrap(), &Parameters::none()).unwrap();
        assert_eq!(advice(&query).unwrap(), "%5B%7B%22Id%22%3A%22QA1002%22%2C%22Params%22%3A%5B%5D%7D%5D");
    }
}
