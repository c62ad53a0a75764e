//! Texts of filters: what is read, what is refused, and that no text overflows the stack.

use crate::edm::EdmType;
use crate::filter::{FILTER_BYTES_MAX, FILTER_DEPTH_MAX, Filter, FilterFault, lower, parse};
use plan::query::Comparison;
use proptest::prelude::*;
use value::Value;

fn parsed(text: &str) -> Filter {
    parse(text).unwrap().unwrap()
}

/// A form in which precedence is visible.
fn show(filter: &Filter) -> String {
    let all = |members: &[Filter]| members.iter().map(show).collect::<Vec<_>>();
    match filter {
        Filter::And(members) => format!("({})", all(members).join(" & ")),
        Filter::Or(members) => format!("({})", all(members).join(" | ")),
        Filter::Not(inner) => format!("!{}", show(inner)),
        Filter::Compare { property, comparison, literal } => {
            format!("{property} {} {literal:?}", comparison.sign())
        }
        Filter::Property(name) => name.clone(),
        Filter::Constant(value) => value.to_string(),
    }
}

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(show(&parsed(text)), expected, "{text}");
}

#[track_caller]
fn refused(text: &str, expected: FilterFault) {
    assert_eq!(parse(text), Err(expected), "{text}");
}

#[test]
fn an_empty_text_is_no_filter() {
    for text in ["", " ", "\t\n"] {
        assert_eq!(parse(text), Ok(None));
    }
}

#[test]
fn literals_have_types() {
    check("a eq 5", "a = Int32(5)");
    check("a eq -5", "a = Int32(-5)");
    check("a eq 2147483648", "a = Int64(2147483648)");
    check("a eq 5L", "a = Int64(5)");
    check("a eq 5.0", "a = Double(5.0)");
    check("a eq 1e3", "a = Double(1000.0)");
    check("a eq 1.5E-3", "a = Double(0.0015)");
    check("a eq 5d", "a = Double(5.0)");
    check("a eq NaN", "a = Double(NaN)");
    check("a lt Infinity", "a < Double(inf)");
    check("a gt -Infinity", "a > Double(-inf)");
    check("a eq -INF", "a = Double(-inf)");
    check("a eq true", "a = Bool(true)");
    check("a eq False", "a = Bool(false)");
    check("a eq ''", "a = String(\"\")");
    check("a eq 'it''s'", "a = String(\"it's\")");
    check("a eq ''''", "a = String(\"'\")");
    check("a eq '''x'''''", "a = String(\"'x''\")");
    check("a eq 'a and (b'", "a = String(\"a and (b\")");
    check("a ge datetime'1970-01-01T00:00:00.0000001Z'", "a >= Ticks(1)");
    check("a eq X'00ff'", "a = Binary { subtype: 0, bytes: [0, 255] }");
    check("a eq binary'FF'", "a = Binary { subtype: 0, bytes: [255] }");
    let guid = parsed("a eq guid'01010101-0101-0101-0101-010101010101'");
    let literal = Value::Guid([1; 16]);
    assert_eq!(guid, Filter::Compare { property: "a".to_owned(), comparison: Comparison::Equal, literal });
}

#[test]
fn operators_bind_as_in_odata() {
    check("a eq 1 and b ne 2 or c lt 3", "((a = Int32(1) & b != Int32(2)) | c < Int32(3))");
    check("a eq 1 or b le 2 and c gt 3", "(a = Int32(1) | (b <= Int32(2) & c > Int32(3)))");
    check("not a eq 1 and b eq 2", "(!a = Int32(1) & b = Int32(2))");
    check("not (a eq 1 and b eq 2)", "!(a = Int32(1) & b = Int32(2))");
    check("(a eq 1)and(b eq 2)", "(a = Int32(1) & b = Int32(2))");
    check("not not a", "!!a");
    check("5 lt a", "a > Int32(5)");
    check("'x' ge a", "a <= String(\"x\")");
    check("a AND b Or c", "((a & b) | c)");
    check("true", "true");
    check("not false or größe eq 1", "(!false | größe = Int32(1))");
    check("and eq 1", "and = Int32(1)");
}

#[test]
fn malformed_texts_are_refused_with_their_place() {
    let unexpected = |offset, expected| FilterFault::Unexpected { offset, expected };
    refused("a eq", unexpected(4, "a property or a literal"));
    refused("a eq 1 and", unexpected(10, "a property or a literal"));
    refused("(a eq 1", unexpected(7, "\"and\", \"or\" or \")\""));
    refused("a eq 1)", unexpected(6, "\"and\", \"or\" or the end"));
    refused("()", unexpected(1, "a property or a literal"));
    refused("aaa bbb ccc", unexpected(4, "a comparison operator"));
    refused("a eq 1 b eq 2", unexpected(7, "\"and\", \"or\" or the end"));
    refused("a foo 1", unexpected(2, "a comparison operator"));
    refused("a = 1", unexpected(2, "a comparison operator"));
    refused("a eq \"x\"", unexpected(5, "a property or a literal"));
    refused("a eq foo'x'", unexpected(8, "a space"));
    refused("a eq 'x", FilterFault::UnterminatedText { offset: 5 });
    refused("a eq 'x''", FilterFault::UnterminatedText { offset: 5 });
    refused("a eq b", FilterFault::NotPropertyAndLiteral { offset: 0 });
    refused("1 eq 1", FilterFault::NotPropertyAndLiteral { offset: 0 });
    refused("a and 'x'", FilterFault::NotPropertyAndLiteral { offset: 6 });
    let malformed = |edm_type| FilterFault::MalformedLiteral { offset: 5, edm_type };
    refused("a eq 5x", malformed(EdmType::Double));
    refused("a eq 0x10", malformed(EdmType::Double));
    refused("a eq 1e999", malformed(EdmType::Double));
    refused("a eq 9223372036854775808", malformed(EdmType::Int64));
    refused("a eq 9223372036854775808L", malformed(EdmType::Int64));
    refused("a eq datetime'yesterday'", malformed(EdmType::DateTime));
    refused("a eq guid'1'", malformed(EdmType::Guid));
    refused("a eq X'0'", malformed(EdmType::Binary));
    refused("a eq X'zz'", malformed(EdmType::Binary));
    refused("startswith(a,'x')", FilterFault::Function { name: "startswith".to_owned(), offset: 0 });
    refused("a eq tolower(b)", FilterFault::Function { name: "tolower".to_owned(), offset: 5 });
}

#[test]
fn length_and_depth_end_on_both_sides() {
    let nested = |levels: usize| format!("{}a eq 1{}", "(".repeat(levels), ")".repeat(levels));
    check(&nested(FILTER_DEPTH_MAX), "a = Int32(1)");
    let offset = FILTER_DEPTH_MAX;
    refused(&nested(FILTER_DEPTH_MAX + 1), FilterFault::TooDeep { offset, depth_max: FILTER_DEPTH_MAX });
    assert!(parse(&format!("{}a", "not ".repeat(FILTER_DEPTH_MAX))).is_ok());
    let offset = 4 * FILTER_DEPTH_MAX;
    let fault = FilterFault::TooDeep { offset, depth_max: FILTER_DEPTH_MAX };
    refused(&format!("{}a", "not ".repeat(FILTER_DEPTH_MAX + 1)), fault);
    let of_length = |bytes: usize| format!("a eq '{}'", "x".repeat(bytes - 7));
    assert!(parse(&of_length(FILTER_BYTES_MAX)).is_ok());
    let bytes = FILTER_BYTES_MAX + 1;
    refused(&of_length(bytes), FilterFault::TooLong { bytes, bytes_max: FILTER_BYTES_MAX });
}

#[test]
fn long_texts_do_not_overflow() {
    for text in ["(".repeat(10_000), ")".repeat(10_000), "not ".repeat(10_000), "'".repeat(10_001)] {
        assert!(parse(&text).is_err());
    }
    for operator in ["and", "or"] {
        let text = vec!["a eq 1"; 10_000].join(&format!(" {operator} "));
        let filter = parsed(&text);
        let (Filter::And(members) | Filter::Or(members)) = &filter else { panic!("no chain") };
        assert_eq!(members.len(), 10_000);
        assert!(lower(Some(&filter)).query.filter.is_some());
    }
    let text = format!("a eq '{}'", "é''".repeat(30_000));
    assert!(parse(&text).is_ok());
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,60}|[a-c0-9'() eqandorti.L]{0,60}") {
        if let Ok(Some(filter)) = parse(&text) {
            lower(Some(&filter));
        }
    }
}
