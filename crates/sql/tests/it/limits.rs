//! Every limit on both sides, and texts designed to overflow something.

use sql::limits::{
    AGGREGATES_MAX, CHAIN_MEMBERS_MAX, EXPRESSION_DEPTH_MAX, GROUP_KEYS_MAX, IN_VALUES_MAX, JOINS_MAX,
    SUBQUERY_DEPTH_MAX, TEXT_BYTES_MAX, USER_CALLS_MAX,
};
use sql::{FaultKind, Limit, Parameters, SqlFaults};

fn compile(text: &str) -> Result<plan::query::Query, SqlFaults> {
    let query = sql::parse(text)?;
    let printed = sql::print(&query);
    if printed.len() <= TEXT_BYTES_MAX {
        assert_eq!(sql::parse(&printed).unwrap_or_else(|faults| panic!("{faults}")), query);
    }
    let plan = sql::lower(&query, &Parameters::none());
    if let Ok(plan) = &plan {
        assert!(!plan.to_string().is_empty());
    }
    plan
}

#[track_caller]
fn check(limit: Limit, most: usize, text: impl Fn(usize) -> String) {
    if let Err(faults) = compile(&text(most)) {
        panic!("{most} of {limit:?}: {faults}");
    }
    let faults = compile(&text(most + 1)).unwrap_err();
    assert_eq!(faults.0[0].kind, FaultKind::Limit { limit }, "{}", most + 1);
}

fn list(count: usize, separator: &str, item: &str) -> String {
    vec![item; count].join(separator)
}

#[test]
fn joins() {
    check(Limit::Joins, JOINS_MAX, |count| {
        let joins: String = (0..count).map(|index| format!(" JOIN x{index} IN c.a")).collect();
        format!("SELECT VALUE 1 FROM c{joins}")
    });
}

#[test]
fn chains_are_one_level() {
    for separator in [" AND ", " OR ", " || "] {
        check(Limit::Chain, CHAIN_MEMBERS_MAX, |count| {
            format!("SELECT VALUE {}", list(count, separator, "true"))
        });
    }
}

#[test]
fn values_of_in_lists() {
    check(Limit::InValues, IN_VALUES_MAX, |count| format!("SELECT VALUE 1 IN ({})", list(count, ",", "2")));
}

#[test]
fn user_calls() {
    check(Limit::UserCalls, USER_CALLS_MAX, |count| {
        format!("SELECT VALUE [{}]", list(count, ",", "udf.f()"))
    });
}

#[test]
fn group_keys() {
    check(Limit::GroupKeys, GROUP_KEYS_MAX, |count| {
        format!("SELECT COUNT(1) FROM c GROUP BY {}", list(count, ",", "c.a"))
    });
}

#[test]
fn aggregates_that_differ() {
    check(Limit::Aggregates, AGGREGATES_MAX, |count| {
        let items: Vec<String> = (0..count).map(|index| format!("SUM({index})")).collect();
        format!("SELECT {}, SUM(0)", items.join(","))
    });
}

#[test]
fn subqueries() {
    check(Limit::Subqueries, SUBQUERY_DEPTH_MAX, |count| {
        format!("{}SELECT VALUE 1{}", "SELECT VALUE (".repeat(count), ")".repeat(count))
    });
    check(Limit::Subqueries, SUBQUERY_DEPTH_MAX, |count| {
        format!("{}SELECT * FROM c{}", "SELECT * FROM (".repeat(count), ") AS t".repeat(count))
    });
}

/// The depth of an expression with `count` levels around one leaf.
#[test]
fn depth() {
    let most = EXPRESSION_DEPTH_MAX - 1;
    let nested = |open: &'static str, leaf: &'static str, close: &'static str| {
        move |count: usize| format!("SELECT VALUE {}{leaf}{} FROM c", open.repeat(count), close.repeat(count))
    };
    check(Limit::Depth, most, nested("[", "1", "]"));
    check(Limit::Depth, most, nested("{a:", "1", "}"));
    check(Limit::Depth, most, nested("ABS(", "1", ")"));
    check(Limit::Depth, most, nested("", "c", ".a"));
    check(Limit::Depth, most, nested("NOT ", "true", ""));
    check(Limit::Depth, most, nested("- ", "c", ""));
    check(Limit::Depth, most, nested("~", "1", ""));
    check(Limit::Depth, most, nested("", "c", "[0]"));
    check(Limit::Depth, most, nested("", "1", " + 1"));
    check(Limit::Depth, most, nested("", "1", " ?? 1"));
    check(Limit::Depth, most, nested("1 ? 2 : ", "1", ""));
    check(Limit::Depth, most, nested("1 ? ", "1", " : 2"));
    check(Limit::Depth, most, nested("1 + (", "1", ")"));
    check(Limit::Depth, most, nested("(true AND ", "true", ")"));
    check(Limit::Depth, most, nested("(", "true", " OR false)"));
}

/// Whatever is repeated up to the longest text, the result is a fault and not an overflow.
#[test]
fn endless_texts() {
    let parts = [
        "(",
        "[",
        "{",
        "{a:",
        "-",
        "- ",
        "+",
        "~",
        "NOT ",
        "1+",
        "1 ? ",
        "1 ?? ",
        "c.",
        "c[",
        "a.b",
        ".a",
        "f(",
        "(SELECT ",
        "(SELECT VALUE ",
        "EXISTS(SELECT ",
        "SELECT * FROM (",
        "1 IN (",
        "1 BETWEEN ",
        "1 LIKE ",
        "'",
        "\\",
        "\"",
        "1,",
        "c.a,",
        "SUM(c.a),",
        "NOSUCH(),",
        "x AND ",
        "a||",
        "JOIN x ",
        "0",
        "0x",
        "9",
        "e9",
        "@",
        "@p,",
        "?",
        "ORDER BY ",
        "udf.f(",
        "ALL(SELECT ",
        "😀",
        "--",
        "--\n",
        "\u{0}",
        "*",
        "1 OR (",
        "x = (y OR (",
    ];
    let starts = ["", "SELECT ", "SELECT * FROM c WHERE ", "SELECT * FROM ", "SELECT 1 FROM c GROUP BY "]
        .map(|start| (start, 16_384));
    for part in parts {
        for (start, length) in starts.into_iter().chain([("SELECT VALUE ", TEXT_BYTES_MAX)]) {
            let mut text = start.to_owned();
            text.push_str(&part.repeat((length - start.len()) / part.len()));
            compile(&text).ok();
        }
    }
}

#[test]
fn text() {
    assert_eq!(compile("").unwrap_err().0[0].kind, FaultKind::UnexpectedEnd);
    let padded = |length: usize| format!("SELECT 1{}", " ".repeat(length - 8));
    assert!(compile(&padded(TEXT_BYTES_MAX)).is_ok());
    let faults = compile(&padded(TEXT_BYTES_MAX + 1)).unwrap_err();
    assert_eq!(faults.0[0].kind, FaultKind::TextTooLong { given: TEXT_BYTES_MAX + 1 });
}

#[test]
fn faults_are_told_up_to_a_number() {
    let faults = compile(&format!("SELECT {}", list(1000, ",", "x"))).unwrap_err();
    assert_eq!(faults.0.len(), sql::limits::FAULTS_MAX);
}

#[test]
fn faults_are_shown_with_their_spans() {
    let faults = compile("SELECT BADFUNC(1), x").unwrap_err();
    assert_eq!(
        faults.to_string(),
        "no function is called 'BADFUNC' (at 7 to 14); no source is called 'x' (at 19 to 20)"
    );
}
