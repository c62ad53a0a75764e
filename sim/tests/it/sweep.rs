//! Every storage call of a few reference scenarios fails once, in every way the script knows.
//!
//! Whatever the call: an order explains the answers, a restart finds the acknowledged writes, and all rows are
//! consistent. A scenario runs with the n-th call failing for n = 1, 2, … until there is no n-th call.

use kv::{InjectedFault, Survivors};
use serde_json::json;
use sim::naive::{Body, DefaultTtl, Edit};
use sim::scenario::{
    PreconditionTemplate, Request, RequestKind, Scenario, Scope, StepKind, StepTemplate, Trouble, Wave,
    id_text,
};
use sim::simulation::run;
use std::collections::BTreeSet;

/// Most calls of one scenario that are made to fail.
const CALLS_MAX: u64 = 200;

const KINDS: [InjectedFault; 5] = [
    InjectedFault::Fail,
    InjectedFault::FailSync,
    InjectedFault::Tear { survive: 0 },
    InjectedFault::Tear { survive: 1 },
    InjectedFault::Damage,
];

/// Runs `course` with every call and kind of fault; the scenario decides where the fault is planned.
#[track_caller]
fn sweep(course: impl Fn(Vec<(u64, InjectedFault)>) -> Vec<Wave>) {
    sweep_in(scenario, &KINDS, course);
}

/// The same in another scenario, with these kinds of faults.
#[track_caller]
pub(crate) fn sweep_in(
    scenario: impl Fn(Vec<Wave>, bool) -> Scenario,
    kinds: &[InjectedFault],
    course: impl Fn(Vec<(u64, InjectedFault)>) -> Vec<Wave>,
) {
    let mut points = 0;
    for buffered in [false, true] {
        for kind in kinds.iter().copied() {
            for call in 1..=CALLS_MAX {
                let scenario = scenario(course(vec![(call, kind)]), buffered);
                match run(&scenario) {
                    Ok(summary) if summary.faults == 0 => break,
                    Ok(_) if call == CALLS_MAX => panic!("more than {CALLS_MAX} calls"),
                    Ok(_) => points += 1,
                    Err(violation) => panic!(
                        "call {call} {kind:?}, buffered {buffered}\n{}\n{}",
                        violation.trace.join("\n"),
                        violation.failure
                    ),
                }
            }
        }
    }
    assert!(points >= 20, "only {points} calls could be made to fail");
}

pub(crate) fn scenario(waves: Vec<Wave>, buffered: bool) -> Scenario {
    Scenario {
        kind: model::PartitionKeyKind::HashV2,
        seed: 1,
        buffered,
        partitions: 2,
        unique: vec![vec!["mail"]],
        default_ttl: DefaultTtl::Seconds(10),
        waves,
    }
}

fn template(kind: StepKind, id: usize, mark: u64, mail: &str) -> StepTemplate {
    let mut body = Body::new();
    body.insert("id".to_owned(), id_text(id).into());
    body.insert("pk".to_owned(), "a".into());
    body.insert("w".to_owned(), mark.into());
    body.insert("mail".to_owned(), mail.into());
    StepTemplate {
        kind,
        id,
        body,
        edits: vec![Edit::Set("w", json!(mark)), Edit::Set("mail", mail.into()), Edit::Increment("n", 1)],
        precondition: PreconditionTemplate::None,
        by_number: false,
    }
}

pub(crate) fn request(want: RequestKind) -> Request {
    Request { pause: 0, want }
}

pub(crate) fn single(kind: StepKind, id: usize, mark: u64, mail: &str) -> Request {
    let template = template(kind, id, mark, mail);
    request(RequestKind::Single { key: 0, template })
}

/// The same step under partition key "b".
pub(crate) fn under_b(mut template: StepTemplate) -> StepTemplate {
    template.body.insert("pk".to_owned(), "b".into());
    template
}

pub(crate) fn clients(lanes: Vec<Vec<Request>>, faults: Vec<(u64, InjectedFault)>) -> Wave {
    Wave::Clients { lanes, trouble: faults.into(), crash: None }
}

/// A change of the default TTL, and with it of the indexing policy.
fn default(default_ttl: DefaultTtl, trouble: Trouble) -> Wave {
    let policy = if default_ttl == DefaultTtl::OnDemand { 1 } else { 3 };
    Wave::Define { default_ttl: Some(default_ttl), policy, trouble, crash: None }
}

fn some_documents() -> Wave {
    let documents = (0..4).map(|id| single(StepKind::Create, id, 900 + id as u64, &format!("m{id}")));
    clients(vec![documents.collect()], Vec::new())
}

#[test]
fn single_operations() {
    sweep(|faults| {
        let lane = vec![
            single(StepKind::Create, 0, 1, "x"),
            single(StepKind::Create, 1, 2, "x"),
            single(StepKind::Upsert, 0, 3, "y"),
            single(StepKind::Create, 1, 4, "x"),
            single(StepKind::Patch, 1, 5, "z"),
            single(StepKind::Replace, 0, 6, "x"),
            single(StepKind::Read, 0, 0, ""),
            single(StepKind::Delete, 1, 0, ""),
            single(StepKind::Read, 1, 0, ""),
        ];
        vec![clients(vec![lane], faults), Wave::Crash(Survivors::Synced, Trouble::default())]
    });
}

#[test]
fn batches_concurrent_with_single_operations() {
    sweep(|faults| {
        let batch = |marks: [u64; 3]| {
            request(RequestKind::Batch {
                key: 0,
                templates: vec![
                    template(StepKind::Upsert, 0, marks[0], "p"),
                    template(StepKind::Upsert, 1, marks[1], "q"),
                    template(StepKind::Delete, 3, 0, ""),
                    template(StepKind::Create, 3, marks[2], "r"),
                ],
            })
        };
        let first = vec![batch([1, 2, 3]), batch([4, 5, 6])];
        let second = vec![
            single(StepKind::Read, 1, 0, ""),
            single(StepKind::Upsert, 2, 7, "q"),
            single(StepKind::Delete, 1, 0, ""),
        ];
        vec![
            some_documents(),
            clients(vec![first, second], faults),
            Wave::Crash(Survivors::All, Trouble::default()),
        ]
    });
}

#[test]
fn bulk_and_feeds_over_partitions() {
    sweep(|faults| {
        let bulk = |mark: u64| {
            let part = |id: usize| (0, template(StepKind::Upsert, id, mark + id as u64, &format!("m{id}")));
            let other = |id: usize| {
                let mark = mark + 50 + id as u64;
                (1, under_b(template(StepKind::Upsert, id, mark, &format!("m{id}"))))
            };
            request(RequestKind::Bulk((0..3).map(part).chain((0..3).map(other)).collect()))
        };
        let page = || request(RequestKind::Page { scope: Scope::Container, items_max: 2, query: None });
        let first = vec![bulk(100), bulk(200)];
        let second = vec![page(), page(), page(), page(), page()];
        vec![
            some_documents(),
            clients(vec![first, second], faults),
            Wave::Crash(Survivors::Drawn, Trouble::default()),
        ]
    });
}

#[test]
fn writes_in_the_place_of_expired_documents() {
    sweep(|faults| {
        let lane = vec![
            single(StepKind::Create, 0, 1, "m1"),
            single(StepKind::Upsert, 4, 2, "m2"),
            single(StepKind::Create, 1, 3, "m3"),
            single(StepKind::Delete, 0, 0, ""),
        ];
        vec![
            some_documents(),
            Wave::Clock(20),
            clients(vec![lane], faults),
            Wave::rest(2_500),
            Wave::Crash(Survivors::Synced, Trouble::default()),
        ]
    });
}

#[test]
fn a_changed_default() {
    sweep(|faults| {
        vec![
            some_documents(),
            Wave::Clock(5),
            default(DefaultTtl::Seconds(3), faults.into()),
            Wave::rest(2_500),
            default(DefaultTtl::OnDemand, Trouble::default()),
            Wave::rest(1_200),
            Wave::Crash(Survivors::Synced, Trouble::default()),
        ]
    });
}

#[test]
fn a_drop_and_a_new_container() {
    sweep(|faults| {
        let lane = vec![single(StepKind::Upsert, 0, 1, "x"), single(StepKind::Upsert, 1, 2, "y")];
        vec![
            some_documents(),
            Wave::Recreate { lanes: vec![lane], opening_turns: 0, trouble: faults.into(), crash: None },
            some_documents(),
            Wave::Crash(Survivors::Synced, Trouble::default()),
        ]
    });
}

/// Documents of two keys, more than the index keeps in memory.
pub(crate) fn documents_of_two_keys(mark: u64) -> Wave {
    let part = |id: usize| (0, template(StepKind::Upsert, id, mark + id as u64, &format!("m{id}")));
    let other =
        |id: usize| (1, under_b(template(StepKind::Upsert, id, mark + 50 + id as u64, &format!("m{id}"))));
    let bulk = RequestKind::Bulk((0..5).map(part).chain((0..5).map(other)).collect());
    clients(vec![vec![request(bulk)]], Vec::new())
}

/// Clients that write and read while a partition is split.
fn lanes_during_a_split() -> Vec<Vec<Request>> {
    let page =
        |query| request(RequestKind::Page { scope: Scope::Container, items_max: 3, query: Some(query) });
    let first = vec![
        single(StepKind::Upsert, 0, 1, "x"),
        single(StepKind::Delete, 1, 0, ""),
        single(StepKind::Upsert, 0, 2, "y"),
    ];
    let other = template(StepKind::Upsert, 2, 3, "z");
    let second = vec![request(RequestKind::Single { key: 1, template: under_b(other) }), page(2), page(2)];
    let third = vec![page(0), page(0), page(0), page(0), page(0)];
    vec![first, second, third]
}

fn a_split_of(key: usize, trouble: Trouble, crash: Option<(u64, Survivors)>) -> Vec<Wave> {
    let (lanes, in_middle) = (lanes_during_a_split(), true);
    vec![
        documents_of_two_keys(100),
        documents_of_two_keys(300),
        documents_of_two_keys(500),
        Wave::Split { key, in_middle, lanes, trouble, crash },
        documents_of_two_keys(700),
        // Housekeeping separates the children.
        Wave::rest(5_000),
        Wave::Crash(Survivors::Synced, Trouble::default()),
        Wave::Split { key, in_middle, lanes: Vec::new(), trouble: Trouble::default(), crash: None },
        Wave::rest(5_000),
    ]
}

#[test]
fn a_split() {
    sweep(|faults| a_split_of(0, faults.into(), None));
}

/// Turns after which a split must have ended.
const TURNS_MAX: u64 = 600;
/// Combinations of survivors, key and durability.
const COMBINATIONS: u64 = 12;

#[test]
fn a_crash_at_every_turn_of_a_split() {
    let mut splits = BTreeSet::new();
    let mut ended_in_time = 0;
    let survivors = [Survivors::Synced, Survivors::Drawn, Survivors::All].into_iter().cycle();
    for (turns, survivors) in (0..TURNS_MAX).zip(survivors) {
        let (key, buffered) = (usize::from(turns % 2 == 1), turns % 4 < 2);
        let waves = a_split_of(key, Trouble::default(), Some((turns, survivors)));
        match run(&scenario(waves, buffered)) {
            Ok(summary) => {
                splits.insert(summary.splits);
                ended_in_time = if summary.splits == 2 { ended_in_time + 1 } else { 0 };
            }
            Err(violation) => panic!(
                "{survivors:?} after {turns} turns, buffered {buffered}\n{}\n{}",
                violation.trace.join("\n"),
                violation.failure
            ),
        }
        if ended_in_time == COMBINATIONS {
            assert!(splits.len() > 1, "some crashes come before and some after the split: {splits:?}");
            return;
        }
    }
    panic!("the last turns are not after the end of the split");
}

#[test]
fn the_end_of_a_partition_key() {
    sweep(|faults| {
        vec![
            some_documents(),
            Wave::Empty(0, faults.into()),
            Wave::Crash(Survivors::Synced, Trouble::default()),
        ]
    });
}

#[test]
fn a_start() {
    sweep(|faults| vec![some_documents(), Wave::Crash(Survivors::All, faults.into()), some_documents()]);
}
