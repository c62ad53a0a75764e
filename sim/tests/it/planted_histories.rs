//! Histories with a planted error: each must be found, and the same history without it must pass.

use serde_json::json;
use sim::history::{Judged, Operation, Seen, Stored, Verdict, explain, quiescent, version_of};
use sim::identity::{Identities, Shown};
use sim::naive::{Body, DefaultTtl, Logical, Precondition, Refusal, Rules, Selector, Step};
use std::collections::BTreeMap;
use std::slice::from_ref;
use std::sync::Arc;

const NOW: u64 = 1_000;

fn rules() -> Rules {
    Rules { unique: vec![vec!["mail"]], default_ttl: DefaultTtl::OnDemand, now: NOW }
}

fn body(id: &str, mark: u64, mail: &str) -> Body {
    let json = json!({ "id": id, "w": mark, "mail": mail });
    json.as_object().unwrap().clone()
}

fn stored(lsn: u64, body: Body) -> Stored {
    Stored { number: 100 + lsn, ordinal: 0, lsn, stamp: lsn, etag: format!("\"{lsn}\""), ts: NOW, body }
}

fn start() -> Logical {
    let version = version_of(&stored(1, body("a", 1, "x")));
    Logical::from([("a".to_owned(), Arc::new(version))])
}

fn operation(span: (u64, u64), step: Step, verdict: Verdict) -> Operation {
    Operation { invoked: span.0, answered: Some(span.1), steps: vec![step], verdict }
}

fn create(body: Body) -> Step {
    Step::Create { body }
}

fn read(id: &str) -> Step {
    Step::Read { selector: Selector::Id(id.to_owned()), precondition: Precondition::None }
}

fn delete(id: &str) -> Step {
    Step::Delete { selector: Selector::Id(id.to_owned()), precondition: Precondition::None }
}

fn replace(body: Body, precondition: Precondition) -> Step {
    let selector = Selector::Id(body["id"].as_str().unwrap().to_owned());
    Step::Replace { selector, body, precondition }
}

fn done(seen: Seen) -> Verdict {
    Verdict::Done(vec![seen])
}

/// A new version of document `a`.
fn next_version(lsn: u64, mark: u64) -> Stored {
    Stored { number: 101, ..stored(lsn, body("a", mark, "x")) }
}

fn explained(operations: &[Operation], found: &[Stored]) -> bool {
    let found: BTreeMap<String, Stored> =
        found.iter().map(|stored| (stored.body["id"].as_str().unwrap().to_owned(), stored.clone())).collect();
    let rules = rules();
    let accept = |moments: &[sim::history::Moment]| {
        quiescent(&moments.last()?.state, &found, |_, version| rules.is_expired(version))
    };
    explain(&rules, &start(), operations, Judged::End, accept).is_ok()
}

/// A crash reverts to a moment between a deletion and a write that ran at the same time. Both orders end in the same
/// state, and only one of them has this moment.
#[test]
fn a_state_between_operations_that_were_reverted() {
    let operations = [
        operation(
            (1, 4),
            replace(body("b", 3, "y"), Precondition::None),
            done(Seen::Replaced(stored(3, body("b", 3, "y")))),
        ),
        operation((2, 3), delete("a"), done(Seen::Deleted)),
    ];
    let mut start = start();
    start.insert(
        "b".to_owned(),
        Arc::new(version_of(&Stored { number: 103, ..stored(2, body("b", 2, "y")) })),
    );
    let reverts_to = |marks: &[u64], judged| {
        let marks_of = |moment: &sim::history::Moment| -> Vec<u64> {
            moment.state.values().map(|version| version.body["w"].as_u64().unwrap()).collect()
        };
        let accept = |moments: &[sim::history::Moment]| {
            moments.iter().any(|moment| marks_of(moment) == marks).then_some(())
        };
        explain(&rules(), &start, &operations, judged, accept).is_ok()
    };
    assert!(reverts_to(&[2], Judged::Path), "the deletion only");
    assert!(reverts_to(&[1, 3], Judged::Path), "the write only");
    assert!(!reverts_to(&[1], Judged::Path), "a deletion that nobody has asked for");
    // The end does not show which of them was first.
    assert!(reverts_to(&[2], Judged::End) != reverts_to(&[1, 3], Judged::End));
}

#[track_caller]
fn check(good: (&[Operation], &[Stored]), bad: (&[Operation], &[Stored])) {
    assert!(explained(good.0, good.1), "the good history was refused");
    assert!(!explained(bad.0, bad.1), "the bad history was not noticed");
}

fn first() -> Stored {
    stored(1, body("a", 1, "x"))
}

#[test]
fn an_acknowledged_write_that_is_lost() {
    let new = stored(2, body("b", 2, "y"));
    let write = [operation((1, 2), create(new.body.clone()), done(Seen::Created(new.clone())))];
    check((&write, &[first(), new]), (&write, &[first()]));
}

#[test]
fn a_refused_write_that_happened() {
    let new = stored(2, body("b", 2, "x"));
    let refused = [operation((1, 2), create(new.body.clone()), Verdict::Refused(0, Refusal::Unique(0)))];
    check((&refused, &[first()]), (&refused, &[first(), new]));
}

#[test]
fn a_refusal_without_a_reason() {
    let refused = |id: &str| [operation((1, 2), delete(id), Verdict::Refused(0, Refusal::Missing))];
    check((&refused("b"), &[first()]), (&refused("a"), &[first()]));
}

#[test]
fn a_refusal_that_names_another_version() {
    let step = || replace(body("a", 2, "x"), Precondition::Match("\"9\"".to_owned()));
    let refused = |etag: &str| {
        let refusal = Refusal::Mismatch(Some(etag.to_owned()));
        [operation((1, 2), step(), Verdict::Refused(0, refusal))]
    };
    check((&refused("\"1\""), &[first()]), (&refused("\"9\""), &[first()]));
}

#[test]
fn a_read_of_what_was_replaced_before_it_began() {
    let new = next_version(2, 2);
    let write = |span| {
        operation(span, replace(new.body.clone(), Precondition::None), done(Seen::Replaced(new.clone())))
    };
    let stale = |span| operation(span, read("a"), done(Seen::Read(first())));
    // During the write the read may return either.
    check(
        (&[write((1, 4)), stale((2, 3))], from_ref(&new)),
        (&[write((1, 2)), stale((3, 4))], from_ref(&new)),
    );
}

#[test]
fn a_read_of_what_nobody_wrote() {
    let ghost = Stored { body: body("a", 77, "x"), ..first() };
    let show = |stored: Stored| [operation((1, 2), read("a"), done(Seen::Read(stored)))];
    check((&show(first()), &[first()]), (&show(ghost), &[first()]));
}

#[test]
fn a_document_that_nobody_wrote() {
    check((&[], &[first()]), (&[], &[first(), stored(5, body("g", 9, "g"))]));
}

#[test]
fn a_document_that_goes_before_its_time() {
    let mut mortal = body("a", 1, "x");
    mortal.insert("ttl".to_owned(), 10.into());
    let found: BTreeMap<String, Stored> = BTreeMap::new();
    let state = Logical::from([("a".to_owned(), Arc::new(version_of(&stored(1, mortal))))]);
    let gone_at = |now: u64| {
        let rules = Rules { now, ..rules() };
        quiescent(&state, &found, |_, version| rules.is_expired(version)).is_some()
    };
    assert!(gone_at(NOW + 10));
    assert!(!gone_at(NOW + 9));
}

#[test]
fn half_a_batch() {
    let (one, two) = (stored(2, body("b", 2, "y")), stored(3, body("c", 3, "z")));
    let batch = |verdict| Operation {
        invoked: 1,
        answered: None,
        steps: vec![create(one.body.clone()), create(two.body.clone())],
        verdict,
    };
    let unknown = [batch(Verdict::Unknown)];
    assert!(explained(&unknown, &[first()]), "wholly absent");
    let whole = [first(), one.clone(), two.clone()];
    check((&unknown, &whole), (&unknown, &[first(), one.clone()]));
    let acknowledged = [batch(Verdict::Done(vec![Seen::Created(one.clone()), Seen::Created(two.clone())]))];
    check((&acknowledged, &whole), (&acknowledged, &[first(), two]));
}

#[test]
fn two_writers_that_both_won() {
    let [one, two] = [(2, 2), (3, 3)].map(|(lsn, mark)| next_version(lsn, mark));
    let precondition = || Precondition::Match("\"1\"".to_owned());
    let write = |new: &Stored| {
        operation((1, 4), replace(new.body.clone(), precondition()), done(Seen::Replaced(new.clone())))
    };
    let lost = operation(
        (1, 4),
        replace(two.body.clone(), precondition()),
        Verdict::Refused(0, Refusal::Mismatch(Some(one.etag.clone()))),
    );
    check((&[write(&one), lost], from_ref(&one)), (&[write(&one), write(&two)], from_ref(&two)));
}

#[test]
fn versions_out_of_the_order_of_their_lsns() {
    let [one, two] = [(2, 2), (3, 3)].map(|(lsn, mark)| next_version(lsn, mark));
    let write = |span, new: &Stored| {
        operation(span, replace(new.body.clone(), Precondition::None), done(Seen::Replaced(new.clone())))
    };
    // The later LSN was acknowledged before the earlier write began.
    check(
        (&[write((1, 2), &one), write((3, 4), &two)], from_ref(&two)),
        (&[write((1, 2), &two), write((3, 4), &one)], from_ref(&one)),
    );
}

#[test]
fn a_number_given_to_a_second_document() {
    let old_number = Stored { number: 101, ..stored(3, body("a", 3, "x")) };
    let new_number = stored(3, body("a", 3, "x"));
    let course = |new: &Stored| {
        [
            operation((1, 2), delete("a"), done(Seen::Deleted)),
            operation((3, 4), create(new.body.clone()), done(Seen::Created(new.clone()))),
        ]
    };
    // The history alone does not show it, since the first one is gone; the identities do.
    assert!(explained(&course(&new_number), from_ref(&new_number)));
    assert!(identities_notice(&[&[(first(), true)], &[(old_number, true)]]));
}

/// Checks waves of new versions; the bool says whether the document is new.
fn identities_notice(waves: &[&[(Stored, bool)]]) -> bool {
    let mut identities = Identities::default();
    waves.iter().any(|wave| {
        let shown = Shown {
            container: 1,
            written: wave.iter().map(|(stored, is_new)| (stored, *is_new)).collect(),
            read: Vec::new(),
            times: [(0, NOW)].into(),
        };
        identities.check(shown).is_err()
    })
}

#[test]
fn identities_that_repeat_or_go_back() {
    let new = |lsn| stored(lsn, body("b", lsn, "y"));
    assert!(!identities_notice(&[&[(first(), true)], &[(new(2), true)]]));
    assert!(identities_notice(&[&[(new(2), true)], &[(first(), true)]]), "LSN goes back");
    let repeated = Stored { body: body("a", 9, "x"), ..first() };
    assert!(identities_notice(&[&[(first(), true), (repeated, false)]]), "ETag repeats");
    let late = Stored { ts: NOW + 1, ..new(2) };
    assert!(identities_notice(&[&[(late, true)]]), "time before the partition's");
    let early = Stored { ts: NOW - 1, ..new(2) };
    assert!(identities_notice(&[&[(early, true)]]), "time before the partition's");
}
