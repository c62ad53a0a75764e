//! The events of a housekeeping simulation, generated from a seed.

use crate::naive::DefaultTtl;
use crate::random::Random;

/// Containers of a course.
pub(crate) const CONTAINERS: usize = 3;
/// Enough documents for index runs, and for a sweep that takes a while.
pub(crate) const DOCUMENTS: usize = 24;

/// The events of one seed.
#[derive(Clone, Debug)]
pub struct Course {
    pub(crate) seed: u64,
    /// Whether writes are acknowledged before they are durable.
    pub(crate) buffered: bool,
    /// The events, in order.
    pub(crate) steps: Vec<Event>,
}

/// One event.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// Scheduler turns pass.
    Turns(u64),
    /// Time passes until the jobs have nothing left to do; then everything is checked.
    Quiet,
    /// The clock advances by this many seconds.
    Clock(u32),
    /// A container gets another default TTL and another indexing policy.
    Define {
        container: usize,
        default_ttl: DefaultTtl,
        /// The property that is not indexed, if any.
        unindexed: Option<&'static str>,
    },
    /// A container gets a short default TTL and then a long one, while the jobs work for the short one; then its time
    /// passes.
    Flip {
        container: usize,
        /// Scheduler turns between the two defaults.
        turns: u64,
    },
    /// A document is written.
    Write { container: usize, id: usize },
    /// A document is deleted, if it exists.
    Delete { container: usize, id: usize },
    /// A writer panics when it evaluates the transaction after N others.
    Panic {
        /// Number of the others.
        transactions: u64,
    },
    /// A container is dropped while a client reads it, which opens its partition, and created again.
    Drop {
        container: usize,
        /// Scheduler turns between the drop and the read.
        turns: u64,
    },
    /// The record of a document is damaged.
    Damage { container: usize, id: usize },
    /// The consumer of a container's log is registered at its start, or has read everything.
    Consume {
        container: usize,
        /// Whether it has read everything.
        to_end: bool,
    },
}

/// Generates the course of a seed.
pub fn draw(seed: u64) -> Course {
    let mut random = Random::seeded(seed);
    let buffered = random.chance(30);
    let mut steps = Vec::new();
    for _ in 0..random.between(2, 4) {
        for _ in 0..random.between(8, 30) {
            steps.push(event(&mut random));
        }
        steps.push(Event::Quiet);
    }
    Course { seed, buffered, steps }
}

fn event(random: &mut Random) -> Event {
    let container = random.index(CONTAINERS);
    let id = random.index(DOCUMENTS);
    match random.below(100) {
        0..=14 => Event::Turns(random.below(60)),
        15..=29 => Event::Clock(u32::try_from(random.between(5, 20)).unwrap_or(5)),
        30..=63 => {
            let default_ttl = match random.below(5) {
                0..=1 => DefaultTtl::Off,
                2..=3 => DefaultTtl::Seconds(random.between(5, 10)),
                _ => DefaultTtl::Seconds(100_000),
            };
            let unindexed = *random.pick(&[None, Some("v"), Some("mail")]);
            Event::Define { container, default_ttl, unindexed }
        }
        64..=69 => Event::Flip { container, turns: random.below(60) },
        70..=82 => Event::Write { container, id },
        83..=86 => Event::Delete { container, id },
        87..=89 => Event::Panic { transactions: random.below(4) },
        90..=92 => Event::Drop { container, turns: random.below(8) },
        93..=94 => Event::Damage { container, id },
        _ => Event::Consume { container, to_end: random.chance(50) },
    }
}
