//! Files of recorded histories: the valid one passes, each of the invalid ones is found, and so is an invalid file.

use model::{ContainerNumber, DatabaseNumber, DocumentNumber, Etag, PartitionOrdinal, Rid};
use serde_json::{Value as Json, json};
use sim::recorded::check;

fn item(id: &str, mark: u64, lsn: u64, number: u64) -> Json {
    let number = DocumentNumber::new(PartitionOrdinal(0), number).unwrap();
    let rid = Rid::Document(DatabaseNumber(1), ContainerNumber(1), number);
    let etag = Etag { ordinal: PartitionOrdinal(0), stamp: lsn };
    json!({
        "id": id, "pk": "k", "w": mark, "n": mark,
        "_rid": rid.to_string(), "_self": "", "_etag": etag.to_string(), "_attachments": "", "_ts": 5,
    })
}

fn body(id: &str, mark: u64) -> Json {
    json!({ "id": id, "pk": "k", "w": mark, "n": mark })
}

fn etag(lsn: u64) -> String {
    Etag { ordinal: PartitionOrdinal(0), stamp: lsn }.to_string()
}

fn operation(span: (u64, u64), step: Json, answer: (&str, Json)) -> Json {
    let mut line = json!({ "wave": 0, "key": "k", "invoked": span.0, "answered": span.1, "steps": [step] });
    line[answer.0] = answer.1;
    line
}

fn created(item: Json) -> (&'static str, Json) {
    ("done", json!([{ "kind": "created", "item": item }]))
}

fn replaced(item: Json) -> (&'static str, Json) {
    ("done", json!([{ "kind": "replaced", "item": item }]))
}

fn read(item: Json) -> (&'static str, Json) {
    ("done", json!([{ "kind": "read", "item": item }]))
}

fn refused(status: u64) -> (&'static str, Json) {
    ("refused", json!({ "step": 0, "status": status }))
}

fn create(id: &str, mark: u64) -> Json {
    json!({ "kind": "create", "id": id, "body": body(id, mark) })
}

fn replace(id: &str, mark: u64, if_match: Option<u64>) -> Json {
    json!({ "kind": "replace", "id": id, "body": body(id, mark), "if_match": if_match.map(etag) })
}

fn reading(id: &str) -> Json {
    json!({ "kind": "read", "id": id })
}

fn found(items: Json) -> Json {
    json!({ "wave": 0, "key": "k", "found": items })
}

fn operations_of(lines: &[Json]) -> Result<usize, String> {
    let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
    check(&text.join("\n")).map(|checked| checked.operations)
}

/// A create, two concurrent conditional replaces of which one wins, and reads before and after.
fn good() -> Vec<Json> {
    vec![
        operation((1, 2), create("a", 1), created(item("a", 1, 10, 1))),
        operation((3, 9), replace("a", 2, Some(10)), replaced(item("a", 2, 11, 1))),
        operation((3, 8), replace("a", 3, Some(10)), refused(412)),
        operation((4, 5), reading("a"), read(item("a", 1, 10, 1))),
        operation((10, 11), reading("a"), read(item("a", 2, 11, 1))),
        found(json!([item("a", 2, 11, 1)])),
    ]
}

#[test]
fn a_good_history_is_explained() {
    assert_eq!(operations_of(&good()), Ok(5));
}

#[test]
fn an_unknown_outcome_may_be_either() {
    let mut lines = good();
    lines[1] = operation((3, 9), replace("a", 2, Some(10)), ("unknown", json!(true)));
    assert_eq!(operations_of(&lines), Ok(5));
    lines.remove(4);
    // The other replace was refused, so the one of unknown outcome must have won.
    assert_eq!(operations_of(&lines), Ok(4));
    lines[4] = found(json!([item("a", 1, 10, 1)]));
    assert!(operations_of(&lines).is_err());
}

#[track_caller]
fn noticed(change: impl FnOnce(&mut Vec<Json>)) {
    let mut lines = good();
    change(&mut lines);
    let verdict = operations_of(&lines);
    assert!(verdict.as_ref().is_err_and(|failure| failure.contains("no order explains")), "{verdict:?}");
}

#[test]
fn bad_histories_are_noticed() {
    // A read after the replace was answered returns the version before it.
    noticed(|lines| lines[4] = operation((10, 11), reading("a"), read(item("a", 1, 10, 1))));
    // Both conditional replaces win.
    noticed(|lines| {
        lines[2] = operation((3, 8), replace("a", 3, Some(10)), replaced(item("a", 3, 12, 1)));
        lines[5] = found(json!([item("a", 3, 12, 1)]));
        lines.remove(4);
    });
    // Neither wins, though there was no other write.
    noticed(|lines| {
        lines[1] = operation((3, 9), replace("a", 2, Some(10)), refused(412));
        lines[4] = operation((10, 11), reading("a"), read(item("a", 1, 10, 1)));
        lines[5] = found(json!([item("a", 1, 10, 1)]));
    });
    // An acknowledged write is missing afterwards.
    noticed(|lines| lines[5] = found(json!([item("a", 1, 10, 1)])));
    noticed(|lines| lines[5] = found(json!([])));
    // A document that was never written.
    noticed(|lines| lines[5] = found(json!([item("a", 2, 11, 1), item("b", 7, 12, 2)])));
    // A version that was never written is read.
    noticed(|lines| lines[3] = operation((4, 5), reading("a"), read(item("a", 9, 10, 1))));
    // A read finds nothing while the document exists.
    noticed(|lines| lines[3] = operation((4, 5), reading("a"), refused(404)));
    // A second create of the same id succeeds.
    noticed(|lines| {
        lines.push(operation((12, 13), create("a", 4), created(item("a", 4, 13, 2))));
        lines[5] = found(json!([item("a", 4, 13, 2)]));
    });
    // A later write has an earlier LSN.
    noticed(|lines| {
        lines.push(operation((12, 13), replace("a", 4, None), replaced(item("a", 4, 9, 1))));
        lines[5] = found(json!([item("a", 4, 9, 1)]));
    });
    // A replace changes the document's number.
    noticed(|lines| {
        lines[1] = operation((3, 9), replace("a", 2, Some(10)), replaced(item("a", 2, 11, 2)));
        lines[4] = operation((10, 11), reading("a"), read(item("a", 2, 11, 2)));
        lines[5] = found(json!([item("a", 2, 11, 2)]));
    });
}

#[test]
fn half_a_batch_is_noticed() {
    let steps = json!([create("a", 1), create("b", 2)]);
    let done = json!([
        { "kind": "created", "item": item("a", 1, 10, 1) },
        { "kind": "created", "item": item("b", 2, 11, 2) },
    ]);
    let batch = json!({ "wave": 0, "key": "k", "invoked": 1, "answered": 4, "steps": steps, "done": done });
    let whole = found(json!([item("a", 1, 10, 1), item("b", 2, 11, 2)]));
    assert_eq!(operations_of(&[batch.clone(), whole.clone()]), Ok(1));
    assert!(operations_of(&[batch.clone(), found(json!([item("a", 1, 10, 1)]))]).is_err());
    let between = operation((2, 3), reading("b"), refused(404));
    let first = operation((1, 2), reading("a"), read(item("a", 1, 10, 1)));
    // One read after the other sees the first half and misses the second.
    let mut late = between.clone();
    late["invoked"] = 3.into();
    late["answered"] = 4.into();
    assert!(operations_of(&[batch, first, late, whole]).is_err());
}

#[test]
fn a_bad_file_is_no_good_history() {
    assert!(check("{").is_err_and(|failure| failure.starts_with("line 1: ")));
    assert!(operations_of(&good()[..5]).is_err_and(|failure| failure.contains("has no state after it")));
    let strange = operation((1, 2), json!({ "kind": "melt" }), refused(409));
    assert!(operations_of(&[strange]).is_err_and(|failure| failure.contains("melt")));
}
