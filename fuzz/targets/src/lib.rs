//! What the fuzzer calls. Each function takes any bytes and panics if a promise is broken.
//!
//! The binaries beside this crate hand it what the fuzzer makes up; the test of this crate replays what was worth
//! keeping, with any compiler and without the fuzzer.

use bytes::Bytes;
use partition::{HistoryEntry, LogEntry, keyspace, stored_document};
use std::cmp::Ordering;
use value::{Document, PATCH_OPERATIONS_MAX, PatchOperation, Value, ValueRef};

/// A target with its name.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 13] = [
    ("json_in", json_in),
    ("binary_json_in", binary_json_in),
    ("key_code", key_code),
    ("record", record),
    ("rows", rows),
    ("patch", patch),
    ("auth_header", auth_header),
    ("definition", definition),
    ("sql_text", sql_text),
    ("query_body", query_body),
    ("table_filter", table_filter),
    ("table_batch", table_batch),
    ("table_entity", table_entity),
];

/// Separates the two parts of an input; no byte of UTF-8 text.
const SEPARATOR: u8 = 0xFF;

/// JSON text: what is taken comes back as it was, to the bit of every number.
pub fn json_in(data: &[u8]) {
    let Ok(document) = Document::from_json(data) else {
        return;
    };
    assert!(document.validate().is_ok(), "a new document is whole");
    let text = text_of(&document);
    let again = Document::from_json(&text).expect("our own text is JSON");
    assert_eq!(again.bytes(), document.bytes(), "text and document are one");
    assert_eq!(text_of(&again), text);
    let tree = Document::from_value(&document.to_value()).expect("a document's tree is a document");
    assert_eq!(tree.bytes(), document.bytes(), "tree and document are one");
    // Another reader agrees that it was JSON, and on what it says; of two members of a name both keep the last.
    let theirs: serde_json::Value = serde_json::from_slice(data).expect("what we take is JSON");
    let ours: serde_json::Value = serde_json::from_slice(&text).expect("what we write is JSON");
    assert!(same_json(&ours, &theirs), "another reader sees the same");
}

/// Binary JSON: what is taken is a whole document whose text says the same.
pub fn binary_json_in(data: &[u8]) {
    let Ok(document) = Document::from_binary_json_without(data, &["_rid"]) else {
        return;
    };
    assert!(document.validate().is_ok(), "a new document is whole");
    let again = Document::from_json(&text_of(&document)).expect("our own text is JSON");
    assert_eq!(again.bytes(), document.bytes(), "text and document are one");
}

/// Key codes: any bytes are decoded or refused; order of codes is order of values, both ways.
pub fn key_code(data: &[u8]) {
    let decoded = value::decode_key(data).ok();
    if let Some((value, rest)) = &decoded {
        assert!(rest.len() < data.len(), "a code has a byte");
        check_order(value, value);
        if let Ok((second, _)) = value::decode_key(rest) {
            check_order(value, &second);
            check_order(&second, value);
        }
    }
    value::decode_key_descending(data).ok();
    value::decode_key_optional(data).ok();
    let (one, other) = parts(data);
    if let (Ok(one), Ok(other)) = (Value::from_json(one), Value::from_json(other)) {
        check_order(&one, &other);
        check_order(&other, &one);
    }
}

/// Stored records: whatever the bytes, reading them ends and never panics.
pub fn record(data: &[u8]) {
    let row = Bytes::copy_from_slice(data);
    if let Ok(stored) = stored_document(&row) {
        walk(&stored.document);
    }
    if let Ok(document) = Document::from_stored(row) {
        walk(&document);
    }
}

/// Rows and keys around the records.
pub fn rows(data: &[u8]) {
    LogEntry::decode(data).ok();
    HistoryEntry::decode(&Bytes::copy_from_slice(data)).ok();
    model::IdCode::decode(data);
    if let Some((second, number)) = keyspace::parse_expiry_key(data) {
        let container = keyspace::parse_container(data).expect("an expiry key begins with a container");
        assert_eq!(keyspace::expiry_key(container, second, number), data);
    }
    keyspace::parse_log_key(data);
    keyspace::parse_consumer_key(data);
    keyspace::parse_catalog_number(data);
    if let Ok(text) = std::str::from_utf8(data) {
        nosql::fuzzing::header_texts(text);
        if let Some(rid) = model::Rid::parse(text) {
            assert_eq!(model::Rid::parse(&rid.to_string()), Some(rid));
        }
        model::ContinuationKey::new([7; 32]).open(b"context", text).ok();
    }
}

/// Patches: what comes of one is a document, the same every time, and all or nothing.
pub fn patch(data: &[u8]) {
    let (document, operations) = parts(data);
    let Ok(document) = Document::from_json(document) else {
        return;
    };
    let Ok(list) = Value::from_json(operations) else {
        return;
    };
    let Ok(operations) = PatchOperation::list_from_json(ValueRef::from(&list)) else {
        return;
    };
    if operations.len() > PATCH_OPERATIONS_MAX {
        return;
    }
    let before = document.bytes().clone();
    let patched = value::apply(&document, &operations);
    assert_eq!(*document.bytes(), before);
    match &patched {
        Ok(patched) => {
            assert!(patched.validate().is_ok(), "a patched document is whole");
            let again = Document::from_json(&text_of(patched)).expect("a patched document is JSON");
            assert_eq!(value::compare(again.root(), patched.root()), Ordering::Equal);
        }
        Err(error) => assert!(error.operation_index < operations.len().max(1)),
    }
    // One operation after the other comes to the same.
    let one_by_one = operations.iter().try_fold(document, |document, operation| {
        value::apply(&document, std::slice::from_ref(operation)).ok()
    });
    let together = patched.ok();
    assert_eq!(
        together.map(|document| document.bytes().clone()),
        one_by_one.map(|document| document.bytes().clone())
    );
}

/// The authorization header and the path it speaks of; parts are separated by 0xFF.
pub fn auth_header(data: &[u8]) {
    let (header, rest) = parts(data);
    let (date, path) = parts(rest);
    nosql::fuzzing::authenticate(header, date, &String::from_utf8_lossy(path));
}

/// Definitions of containers and small resources: what is taken comes back as it was and can be sent again.
pub fn definition(data: &[u8]) {
    nosql::fuzzing::definition(data);
}

/// Text of a query: it is refused with a place inside it, or it has a text that says the same, and a plan or faults.
pub fn sql_text(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let query = match sql::parse(text) {
        Ok(query) => query,
        Err(faults) => return check_faults(text, &faults),
    };
    let printed = sql::print(&query);
    // Brackets and blanks may make it longer than a text may be.
    if printed.len() <= sql::limits::TEXT_BYTES_MAX {
        let again = sql::parse(&printed).expect("our own text is a query");
        assert_eq!(again, query, "text and query are one");
        assert_eq!(sql::print(&again), printed);
    }
    let values =
        [("@p", Value::from(7)), ("@q", Value::from("x")), ("@r", Value::from(vec![Value::from(0.5)]))];
    let parameters = values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    match sql::lower(&query, &parameters) {
        Ok(plan) => assert!(!plan.to_string().is_empty()),
        Err(faults) => check_faults(text, &faults),
    }
}

/// The body of a query and a continuation beside it: the body is read or refused, and nobody can make a continuation.
pub fn query_body(data: &[u8]) {
    let (body, continuation) = parts(data);
    nosql::fuzzing::query_body(body);
    let key = model::ContinuationKey::new([7; 32]);
    if let Ok(text) = std::str::from_utf8(continuation) {
        assert!(key.open(b"a query", text).is_err(), "a forged continuation was accepted");
    }
}

/// A filter of the Table API and an entity beside it, separated by 0xFF.
pub fn table_filter(data: &[u8]) {
    let (text, entity) = parts(data);
    if let Ok(text) = std::str::from_utf8(text) {
        table::fuzzing::filter(text, entity);
    }
}

/// A batch of the Table API after its content type, separated by 0xFF.
pub fn table_batch(data: &[u8]) {
    let (content_type, body) = parts(data);
    table::fuzzing::batch(&String::from_utf8_lossy(content_type), body);
}

/// An entity of the Table API: what is taken comes back as it was.
pub fn table_entity(data: &[u8]) {
    table::fuzzing::entity(data);
}

fn check_faults(text: &str, faults: &sql::SqlFaults) {
    assert!((1..=sql::limits::FAULTS_MAX).contains(&faults.0.len()));
    for fault in &faults.0 {
        let end = usize::try_from(fault.span.end).expect("a span has offsets of the text");
        assert!(fault.span.start <= fault.span.end && end <= text.encode_utf16().count());
    }
    assert!(!faults.to_string().is_empty(), "faults have a text");
    nosql::fuzzing::query_faults(faults);
}

fn parts(data: &[u8]) -> (&[u8], &[u8]) {
    match data.iter().position(|byte| *byte == SEPARATOR) {
        Some(at) => (&data[..at], &data[at + 1..]),
        None => (data, &[]),
    }
}

fn text_of(document: &Document) -> Vec<u8> {
    let mut text = Vec::new();
    document.write_json(&mut text);
    text
}

/// Whether two trees of the other reader agree. It keeps integers beyond 63 bits, which we read as doubles.
fn same_json(ours: &serde_json::Value, theirs: &serde_json::Value) -> bool {
    use serde_json::Value as Json;
    match (ours, theirs) {
        (Json::Number(one), Json::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Json::Array(one), Json::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same_json(one, other))
        }
        (Json::Object(one), Json::Object(other)) => {
            let same = |(name, one)| other.get(name).is_some_and(|other| same_json(one, other));
            one.len() == other.len() && one.iter().all(same)
        }
        _ => ours == theirs,
    }
}

fn check_order(one: &Value, other: &Value) {
    let code = |value: &Value| {
        let mut code = Vec::new();
        value::encode_key_value(value, &mut code);
        code
    };
    let descending = |value: &Value| {
        let mut code = Vec::new();
        value::encode_key_descending(Some(ValueRef::from(value)), &mut code);
        code
    };
    let (one_code, other_code) = (code(one), code(other));
    let order = value::compare(ValueRef::from(one), ValueRef::from(other));
    assert_eq!(one_code.cmp(&other_code), order, "order of codes");
    assert_eq!(descending(other).cmp(&descending(one)), order, "order of descending codes");
    let joined = [&one_code[..], &other_code[..]].concat();
    let (first, behind) = value::decode_key(&joined).expect("our own code is a code");
    assert_eq!(behind, other_code, "a code ends by itself");
    let same = value::compare(ValueRef::from(&first), ValueRef::from(one));
    assert_eq!(same, Ordering::Equal, "a value comes back from its code");
}

/// Everything that reads a document.
fn walk(document: &Document) {
    let tree = document.to_value();
    let text = text_of(document);
    let mut code = Vec::new();
    value::encode_key(document.root(), &mut code);
    for (name, member) in document.root().members() {
        let found = document.root().member(name);
        assert!(document.validate().is_err() || found.is_some(), "a member is found by its name");
        member.to_value();
    }
    if document.validate().is_ok() {
        let again = Document::from_value(&tree).expect("a whole document's tree is a document");
        assert_eq!(value::compare(again.root(), document.root()), Ordering::Equal);
        serde_json::from_slice::<serde_json::Value>(&text).expect("a whole document's text is JSON");
    }
}
