//! `tests-data/eval/expressions/*.txt`: one case per line, `expression => value`.
//!
//! `document {…}` sets `c` for the following lines; `undefined` and `fault: text` are literal; a number that ends in
//! `~` is compared to twelve digits.

use std::path::Path;

use eval::{
    Budget, Context, EvalFault, Row, UserCall, UserCallResult, UserCalls, UserFunctionFault, evaluate,
};
use plan::query::{Expression, Function};
use value::{Document, Value};

use crate::ambient::Still;
use crate::text;

/// How often calls of a case may depend on each other.
const ROUNDS_MAX: usize = 20;

/// Evaluates something that may call the user-defined functions of the cases.
pub(crate) fn with_functions<T>(
    context: Context<'_>,
    evaluate: impl Fn(&Context<'_>) -> Result<T, EvalFault>,
) -> Result<T, EvalFault> {
    let calls = UserCalls::at(context.ambient.now_ms());
    calls.begin(context.budget.holding());
    let context = Context { user_calls: Some(calls), ..context };
    let calls = context.user_calls.as_ref().unwrap();
    for _ in 0..ROUNDS_MAX {
        let result = evaluate(&context);
        if !matches!(result, Err(EvalFault::CallPending)) {
            return result;
        }
        let wanted = calls.take_wanted();
        calls.add_results(wanted.iter().map(call).collect())?;
    }
    Err(EvalFault::CallPending)
}

fn call(UserCall { function, arguments }: &UserCall) -> UserCallResult {
    match &function[..] {
        "first" => Ok(arguments.first().cloned().flatten()),
        "count" => Ok(Some(Value::Int64(i64::try_from(arguments.iter().flatten().count()).unwrap()))),
        "throw" => Err(UserFunctionFault::Failed { message: "thrown".to_owned(), stack: String::new() }),
        _ => Err(UserFunctionFault::NotFound),
    }
}

/// Fewest cases of all files together; a missing file would otherwise go unnoticed.
const CASES_MIN: usize = 900;

#[test]
fn every_case_of_every_file() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests-data/eval/expressions");
    let mut failures = Vec::new();
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let lines = std::fs::read_to_string(&path).unwrap();
        let mut document = Document::from_json(b"{}").unwrap();
        for (line_number, line) in lines.lines().enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(json) = line.strip_prefix("document ") {
                document = Document::from_json(json.as_bytes()).unwrap();
                continue;
            }
            let (expression, expected) =
                line.rsplit_once(" => ").unwrap_or_else(|| panic!("{}:{}", path.display(), line_number + 1));
            count += 1;
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let found = compute(expression, &document);
            if !is_met(expected.trim(), &found) {
                failures.push(format!("{name}:{}: {expression}\n    gives {found}", line_number + 1));
            }
        }
    }
    assert!(failures.is_empty(), "{} of {count} fail\n{}", failures.len(), failures.join("\n"));
    assert!(count >= CASES_MIN, "only {count} cases");
}

fn compute(expression: &str, document: &Document) -> String {
    let ambient = Still::default();
    let context = Context::new(&ambient, Budget::new(1 << 20, 1_000));
    let expression = text::expression(expression);
    let slots = [document.root()];
    let found = with_functions(context, |context| {
        let found = evaluate(context, &expression, Row::of_document(&slots, 77))?;
        Ok(found.map(|value| value.into_value().to_json()))
    });
    match found {
        Ok(Some(json)) => json,
        Ok(None) => "undefined".to_owned(),
        Err(fault) => format!("fault: {fault}"),
    }
}

fn is_met(expected: &str, found: &str) -> bool {
    let Some(expected) = expected.strip_suffix('~') else {
        return expected == found;
    };
    let expected: f64 = expected.parse().unwrap();
    found.parse().is_ok_and(|found: f64| (found - expected).abs() <= expected.abs() * 1e-12)
}

/// The parser refuses these earlier.
#[test]
fn scores_exist_only_in_ranks() {
    let ambient = Still::default();
    let context = Context::new(&ambient, Budget::new(0, 0));
    for (function, name) in [(Function::FullTextScore, "FullTextScore"), (Function::Rrf, "RRF")] {
        let found = evaluate(&context, &Expression::Call(function, Vec::new()), Row::default()).err();
        assert_eq!(found, Some(EvalFault::ScoreOutsideRank { function: name }));
    }
}
