//! Which texts are JSON, and where the others are wrong.

use proptest::prelude::*;
use value::{Decimal128, Document, JSON_DEPTH_MAX, JsonErrorKind, Value};

use crate::generate;

#[track_caller]
fn refused(text: impl AsRef<[u8]>, kind: JsonErrorKind, offset: usize) {
    let error = Value::from_json(text.as_ref()).unwrap_err();
    assert_eq!((error.kind, error.offset), (kind, offset));
}

#[track_caller]
fn read(text: &str, expected: Value) {
    assert_eq!(format!("{:?}", Value::from_json(text.as_bytes()).unwrap()), format!("{expected:?}"));
}

#[test]
fn numbers_keep_their_kind() {
    read("0", Value::Int64(0));
    read("-0", Value::Double(-0.0));
    read("-0.0e5", Value::Double(-0.0));
    read("9223372036854775807", Value::Int64(i64::MAX));
    read("-9223372036854775808", Value::Int64(i64::MIN));
    read("9223372036854775808", Value::Decimal(Decimal128::from_u64(1 << 63)));
    read("18446744073709551615", Value::Decimal(Decimal128::from_u64(u64::MAX)));
    read("18446744073709551616", Value::Double(18_446_744_073_709_551_616.0));
    read("-9223372036854775809", Value::Double(-9_223_372_036_854_775_808.0));
    read("1.0", Value::Double(1.0));
    read("1e2", Value::Double(100.0));
    read("1e-999", Value::Double(0.0));
    read("123456789012345678901234567890", Value::Double(123_456_789_012_345_678_901_234_567_890.0));
    refused("1e999", JsonErrorKind::NumberOutOfRange, 0);
    refused("[1,-1e400]", JsonErrorKind::NumberOutOfRange, 3);
    for (text, offset) in [("01", 0), ("-", 1), ("1.", 2), ("1.e1", 2), ("1e", 2), ("1e+", 3), ("-a", 1)] {
        refused(text, JsonErrorKind::InvalidNumber, offset);
    }
}

#[test]
fn strings_are_unescaped() {
    read(r#""\"\\\/\b\f\n\r\t""#, Value::from("\"\\/\u{8}\u{c}\n\r\t"));
    read(r#""\u0041\u00e9\uD83D\ude00""#, Value::from("Aé😀"));
    read(
        r#"{"\u0061":{"b\\":1}}"#,
        Value::Object(vec![("a".to_owned(), Value::Object(vec![("b\\".to_owned(), Value::from(1))]))]),
    );
    for text in [r#""\ud800""#, r#""\ud800x""#, r#""\ud800\u0041""#, r#""\udc00""#, r#""\ud800\ud800""#] {
        refused(text, JsonErrorKind::LoneSurrogate, 1);
    }
    refused(r#""a\x""#, JsonErrorKind::InvalidEscape, 2);
    refused(r#""\u12g4""#, JsonErrorKind::InvalidEscape, 1);
    refused(r#""\u12"#, JsonErrorKind::InvalidEscape, 1);
    refused("\"long enough\n\"", JsonErrorKind::ControlCharacter, 12);
    refused(b"\"ab\xff\"", JsonErrorKind::InvalidUtf8, 3);
    refused("\"abc", JsonErrorKind::UnexpectedEnd, 4);
    refused("\"abc\\", JsonErrorKind::UnexpectedEnd, 5);
}

#[test]
fn structure_errors_say_what_was_expected() {
    let expected = |expected| JsonErrorKind::Unexpected { expected };
    refused("", JsonErrorKind::Empty, 0);
    refused(" \n", JsonErrorKind::Empty, 2);
    refused("1 2", JsonErrorKind::TrailingText, 2);
    refused("{}}", JsonErrorKind::TrailingText, 2);
    refused("[1", JsonErrorKind::UnexpectedEnd, 2);
    refused("{\"a\":", JsonErrorKind::UnexpectedEnd, 5);
    refused("[1 2]", expected("',' or ']'"), 3);
    refused("[1,]", expected("a value"), 3);
    refused("{\"a\" 1}", expected("':'"), 5);
    refused("{\"a\":1]", expected("',' or '}'"), 6);
    refused("{,}", expected("a member name or '}'"), 1);
    refused("{\"a\":1,}", expected("a member name"), 7);
    refused("nul", expected("a value"), 0);
    refused("\u{feff}{}", expected("a value"), 0);
}

#[test]
fn depth_is_bounded() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert!(Value::from_json(nested(JSON_DEPTH_MAX).as_bytes()).is_ok());
    let too_deep = JsonErrorKind::TooDeep { depth: JSON_DEPTH_MAX + 1 };
    refused(nested(JSON_DEPTH_MAX + 1), too_deep.clone(), JSON_DEPTH_MAX);
    refused("[".repeat(1_000_000), too_deep.clone(), JSON_DEPTH_MAX);
    refused("{\"a\":".repeat(1_000_000), too_deep, JSON_DEPTH_MAX * 5);
}

#[test]
fn documents_are_objects() {
    for text in ["[]", " 1", "null", "\"{}\""] {
        let error = Document::from_json(text.as_bytes()).unwrap_err();
        assert_eq!(error.kind, JsonErrorKind::NotAnObject);
        assert_eq!(error.offset, text.len() - text.trim_start().len());
    }
}

#[test]
fn kinds_without_json_have_their_text() {
    let check = |value: Value, text: &str| assert_eq!(value.to_json(), text);
    check(Value::Date(0), r#""1970-01-01T00:00:00.000Z""#);
    check(Value::Date(1_709_210_096_789), r#""2024-02-29T12:34:56.789Z""#);
    check(Value::Date(-1), r#""1969-12-31T23:59:59.999Z""#);
    check(Value::Date(-62_167_219_200_001), r#""-000001-12-31T23:59:59.999Z""#);
    check(Value::Date(253_402_300_800_000), r#""+010000-01-01T00:00:00.000Z""#);
    check(Value::Date(i64::MAX), r#""+292278994-08-17T07:12:55.807Z""#);
    check(Value::Ticks(0), r#""1970-01-01T00:00:00.0000000Z""#);
    check(Value::Ticks(17_069_330_467_890_001), r#""2024-02-03T04:04:06.7890001Z""#);
    check(Value::Ticks(-1), r#""1969-12-31T23:59:59.9999999Z""#);
    check(Value::Ticks(-621_355_968_000_000_000), r#""0001-01-01T00:00:00.0000000Z""#);
    check(Value::Ticks(2_534_023_007_999_999_999), r#""9999-12-31T23:59:59.9999999Z""#);
    check(Value::Ticks(i64::MIN), r#""-027258-04-19T21:11:54.5224192Z""#);
    check(Value::Ticks(i64::MAX), r#""+031197-09-14T02:48:05.4775807Z""#);
    check(
        Value::Guid(std::array::from_fn(|index| u8::try_from(index).unwrap() * 0x11)),
        r#""00112233-4455-6677-8899-aabbccddeeff""#,
    );
    check(Value::ObjectId([0xab; 12]), r#""abababababababababababab""#);
    check(Value::Binary { subtype: 4, bytes: vec![1, 2, 3, 4] }, r#""AQIDBA==""#);
    let decimal =
        |coefficient, exponent| Value::Decimal(Decimal128::from_parts(false, coefficient, exponent).unwrap());
    check(decimal(110, -2), "1.10");
    check(decimal(1, 400), r#""1E+400""#);
    check(Value::Double(f64::NAN), r#""NaN""#);
    check(Value::Double(f64::NEG_INFINITY), r#""-Infinity""#);
    check(Value::Double(5.0), "5.0");
    check(Value::Double(-0.0), "-0.0");
    check(Value::from("\u{0}\u{1f}\u{7f}/é"), "\"\\u0000\\u001f\u{7f}/é\"");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Texts that are nearly JSON are accepted exactly if another strict parser accepts them.
    #[test]
    fn accepts_what_another_strict_parser_accepts(
        value in generate::json_object(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(b"{}[]\",:0123e.-+\\u tfn\x01\xff".to_vec())), 0..3),
    ) {
        let mut text = value.to_json().into_bytes();
        for (place, byte) in changes {
            let place = place.index(text.len());
            text[place] = byte;
        }
        let other = serde_json::from_slice::<serde_json::Value>(&text);
        let ours = Value::from_json(&text);
        prop_assert_eq!(ours.is_ok(), other.is_ok(), "{} {:?} {:?}", String::from_utf8_lossy(&text), ours, other);
        if let (Ok(ours), Ok(other)) = (ours, other) {
            let other = Value::from_json(other.to_string().as_bytes()).unwrap();
            // The other parser keeps integers up to 2^64 and reads `-0` in the same way, so the trees agree.
            prop_assert_eq!(ours.to_json(), other.to_json());
        }
    }

    #[test]
    fn any_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let _ = Document::from_json(&bytes);
    }
}
