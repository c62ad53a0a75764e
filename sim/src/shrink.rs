//! Makes a failing course small: leaves out waves, lanes, requests and faults as long as it still fails.

use crate::scenario::{Scenario, Wave};
use crate::simulation::{Violation, run};

/// Courses tried before the smallest one so far is good enough.
const TRIES_MAX: usize = 2_000;

/// A failing course out of which nothing more could be left, with how it fails.
pub fn shrink(scenario: &Scenario, violation: Violation) -> (Scenario, Violation) {
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
                if attempt(candidate, &mut smallest) {
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
            progress |= attempt(candidate, &mut smallest);
        }
        if !progress || tries >= TRIES_MAX || tries == before {
            return smallest;
        }
    }
}

fn attempt(candidate: Scenario, smallest: &mut (Scenario, Violation)) -> bool {
    match run(&candidate) {
        Ok(_) => false,
        Err(violation) => {
            *smallest = (candidate, violation);
            true
        }
    }
}

/// The course without the `index`-th of all requests, crashes and faults inside its waves.
fn smaller_inside(scenario: &Scenario, index: usize) -> Option<Scenario> {
    let mut candidate = scenario.clone();
    let mut left = index;
    for wave in &mut candidate.waves {
        match wave {
            Wave::Clients { lanes, faults, crash } => {
                for lane in lanes {
                    if left < lane.len() {
                        lane.remove(left);
                        return Some(candidate);
                    }
                    left -= lane.len();
                }
                if left < faults.len() {
                    faults.remove(left);
                    return Some(candidate);
                }
                left -= faults.len();
                if crash.is_some() {
                    if left == 0 {
                        *crash = None;
                        return Some(candidate);
                    }
                    left -= 1;
                }
            }
            Wave::Default(_, faults)
            | Wave::Recreate { faults, .. }
            | Wave::Empty(_, faults)
            | Wave::Crash(_, faults) => {
                if left < faults.len() {
                    faults.remove(left);
                    return Some(candidate);
                }
                left -= faults.len();
            }
            Wave::Clock(_) | Wave::Rest(_) | Wave::Restart | Wave::Disk(_) => {}
        }
    }
    None
}
