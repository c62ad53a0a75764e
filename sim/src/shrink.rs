//! Shrinks a failing scenario: removes waves, lanes, requests and faults as long as it still fails.

use crate::scenario::{Scenario, Trouble, Wave};
use crate::simulation::{Planted, Violation, run_planted};

/// Scenarios tried before the smallest one so far is returned.
const TRIES_MAX: usize = 2_000;

/// A minimal failing scenario, with its failure.
pub fn shrink(scenario: &Scenario, planted: Planted<'_>, violation: Violation) -> (Scenario, Violation) {
    let mut smallest = (scenario.clone(), violation);
    smallest.0.waves.truncate(smallest.1.wave + 1);
    let mut tries = 0;
    loop {
        let before = tries;
        let mut progress = false;
        let mut size = smallest.0.waves.len().div_ceil(2);
        while size > 0 {
            let mut at = 0;
            while at < smallest.0.waves.len() && tries < TRIES_MAX {
                let mut candidate = smallest.0.clone();
                let end = (at + size).min(candidate.waves.len());
                candidate.waves.drain(at..end);
                tries += 1;
                if attempt(candidate, planted, &mut smallest) {
                    progress = true;
                } else {
                    at += size;
                }
            }
            size /= 2;
        }
        for candidate_index in 0.. {
            let Some(candidate) = smaller_inside(&smallest.0, candidate_index) else {
                break;
            };
            if tries >= TRIES_MAX {
                break;
            }
            tries += 1;
            progress |= attempt(candidate, planted, &mut smallest);
        }
        if !progress || tries >= TRIES_MAX || tries == before {
            return smallest;
        }
    }
}

fn attempt(candidate: Scenario, planted: Planted<'_>, smallest: &mut (Scenario, Violation)) -> bool {
    match run_planted(&candidate, planted) {
        Ok(_) => false,
        Err(violation) => {
            *smallest = (candidate, violation);
            true
        }
    }
}

/// The scenario without the `index`-th of all requests, crashes, faults and panics inside its waves.
fn smaller_inside(scenario: &Scenario, index: usize) -> Option<Scenario> {
    let mut candidate = scenario.clone();
    let mut left = index;
    let is_smaller = candidate.waves.iter_mut().any(|wave| match wave {
        Wave::Clients { lanes, trouble, crash }
        | Wave::Recreate { lanes, trouble, crash, .. }
        | Wave::Split { lanes, trouble, crash, .. } => {
            lanes.iter_mut().any(|lane| take_out(lane, &mut left))
                || remove_fault(trouble, &mut left)
                || take(crash, &mut left)
        }
        Wave::Define { trouble, crash, .. } | Wave::Rest { trouble, crash, .. } => {
            remove_fault(trouble, &mut left) || take(crash, &mut left)
        }
        Wave::Empty(_, trouble) | Wave::Crash(_, trouble) => remove_fault(trouble, &mut left),
        Wave::Clock(_) | Wave::Restart | Wave::Rewind | Wave::Disk(_) => false,
    });
    is_smaller.then_some(candidate)
}

fn remove_fault(trouble: &mut Trouble, left: &mut usize) -> bool {
    take_out(&mut trouble.faults, left) || take(&mut trouble.panic, left) || take(&mut trouble.spoil, left)
}

/// Removes the element `left`, or subtracts the length of the list.
fn take_out<T>(list: &mut Vec<T>, left: &mut usize) -> bool {
    if *left < list.len() {
        list.remove(*left);
        return true;
    }
    *left -= list.len();
    false
}

/// The same for an optional value.
fn take<T>(option: &mut Option<T>, left: &mut usize) -> bool {
    if option.is_none() {
        return false;
    }
    if *left == 0 {
        *option = None;
        return true;
    }
    *left -= 1;
    false
}
