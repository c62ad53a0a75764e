//! Housekeeping after a split is interrupted after every storage call: separation, trimming of log and history, deletion
//! of what a split leaves.
//!
//! Whatever the call: a restart finds the acknowledged writes, all rows are consistent, and the work is done in the end.

use crate::sweep::{clients, documents_of_two_keys, request, scenario, single, sweep_in, under_b};
use kv::{InjectedFault, Survivors};
use sim::naive::DefaultTtl;
use sim::scenario::{RequestKind, Scenario, StepKind, Trouble, Wave};
use sim::simulation::run;
use sim::splits::Remainder;

/// Most storage calls of the work.
const CALLS_MAX: u64 = 200;
/// Crashes after the work was done.
const CRASHES_AFTER: usize = 3;

/// The waves before the work, how long it takes, and whether it was done.
struct Work {
    before: fn() -> Vec<Wave>,
    milliseconds: u64,
    is_done: fn(&Remainder) -> bool,
}

/// A partition whose children share its index runs.
fn separation() -> Work {
    Work { before: split, milliseconds: 8_000, is_done: |remainder| remainder.shared == 0 }
}

/// Partitions with entries of deleted documents in the log that the one before the split has left.
fn log_trim() -> Work {
    let before = || [split(), vec![Wave::rest(50_000)]].concat();
    Work { before, milliseconds: 20_000, is_done: |remainder| remainder.removals == 0 }
}

/// The same, with entries in the history that are too old.
fn history_trim() -> Work {
    let before = || [split(), vec![Wave::rest(50_000)], later_and_in_use()].concat();
    Work { before, milliseconds: 20_000, is_done: |remainder| remainder.history == 0 }
}

/// A partition that has left nothing that its children need.
fn deletion() -> Work {
    let before = || {
        let written = [100, 300, 500].into_iter().map(documents_of_two_keys).collect();
        [split(), written, later_and_in_use(), vec![Wave::rest(590_000)]].concat()
    };
    Work { before, milliseconds: 20_000, is_done: |remainder| remainder.split == 0 }
}

/// All entries of the history are too old, and the partitions are not closed.
fn later_and_in_use() -> Vec<Wave> {
    let read = vec![single(StepKind::Read, 3, 0, ""), of_b(StepKind::Read, 3, 0)];
    vec![Wave::Clock(120), Wave::rest(1_200), clients(vec![read], Vec::new())]
}

/// Documents of two keys, some of which are deleted, in a partition that is split.
fn split() -> Vec<Wave> {
    let mut waves: Vec<Wave> = [100, 300, 500].into_iter().map(documents_of_two_keys).collect();
    let deletions =
        (0..3).flat_map(|id| [single(StepKind::Delete, id, 0, ""), of_b(StepKind::Delete, id, 0)]);
    waves.push(clients(vec![deletions.collect()], Vec::new()));
    // Until the index has saved the deletions, it needs their entries.
    waves.extend([700, 900].map(documents_of_two_keys));
    let (lanes, trouble) = (Vec::new(), Trouble::default());
    waves.push(Wave::Split { key: 0, in_middle: false, lanes, trouble, crash: None });
    waves
}

fn of_b(kind: StepKind, id: usize, mark: u64) -> sim::scenario::Request {
    let RequestKind::Single { template, .. } = single(kind, id, mark, "").want else { unreachable!() };
    request(RequestKind::Single { key: 1, template: under_b(template) })
}

/// Time in which work that was interrupted is done after a restart.
fn afterwards() -> Vec<Wave> {
    vec![
        documents_of_two_keys(1_100),
        Wave::rest(8_000),
        Wave::Crash(Survivors::All, Trouble::default()),
        Wave::rest(1_200),
    ]
}

fn keeping_documents(waves: Vec<Wave>, buffered: bool) -> Scenario {
    Scenario { default_ttl: DefaultTtl::Off, partitions: 1, ..scenario(waves, buffered) }
}

/// Runs the work with the power failing after every storage call, until it was done before.
#[track_caller]
fn crash_everywhere(work: &Work) {
    for buffered in [false, true] {
        let mut undone = 0;
        let mut done = 0;
        let survivors = [Survivors::Synced, Survivors::Drawn, Survivors::All].into_iter().cycle();
        for (calls, survivors) in (0..=CALLS_MAX).zip(survivors) {
            let mut waves = (work.before)();
            let (milliseconds, crash) = (work.milliseconds, Some((calls, survivors)));
            waves.push(Wave::Rest { milliseconds, trouble: Trouble::default(), crash });
            waves.extend(afterwards());
            let summary = run(&keeping_documents(waves, buffered)).unwrap_or_else(|violation| {
                let trace = violation.trace.join("\n");
                panic!(
                    "{survivors:?} after {calls} calls, buffered {buffered}\n{trace}\n{}",
                    violation.failure
                )
            });
            if (work.is_done)(&summary.remainders[0]) {
                done += 1;
            } else {
                undone += 1;
                done = 0;
            }
            if done == CRASHES_AFTER {
                break;
            }
        }
        assert!(undone >= 4, "only {undone} crashes came before the end of the work");
        assert_eq!(done, CRASHES_AFTER, "no crash came after the end of the work, {undone} came before");
    }
}

/// Runs the work with every storage call failing.
#[track_caller]
fn fail_everywhere(work: &Work) {
    let kinds = [InjectedFault::FailSync, InjectedFault::Damage];
    sweep_in(keeping_documents, &kinds, |faults| {
        let mut waves = (work.before)();
        waves.push(Wave::Rest { milliseconds: work.milliseconds, trouble: faults.into(), crash: None });
        waves.extend(afterwards());
        waves
    });
}

#[test]
fn a_crash_after_every_call_of_a_separation() {
    crash_everywhere(&separation());
}

#[test]
fn a_crash_after_every_call_of_a_log_trim() {
    crash_everywhere(&log_trim());
}

#[test]
fn a_crash_after_every_call_of_a_history_trim() {
    crash_everywhere(&history_trim());
}

#[test]
fn a_crash_after_every_call_of_the_deletion_of_a_split_partition() {
    crash_everywhere(&deletion());
}

#[test]
fn every_call_of_a_separation_fails() {
    fail_everywhere(&separation());
}

#[test]
fn every_call_of_trims_fails() {
    fail_everywhere(&history_trim());
}

#[test]
fn every_call_of_the_deletion_of_a_split_partition_fails() {
    fail_everywhere(&deletion());
}
