//! The scenario of a seed: a whole simulation, generated before it starts.
//!
//! Nothing in it depends on the answers of the product, so a wave can be removed without changing the rest; this allows
//! shrinking. ETags and numbers are filled in when a wave runs.

use crate::feeds::QUERIES;
use crate::naive::{Body, DefaultTtl, Edit};
use crate::random::Random;
use kv::{InjectedFault, Survivors};
use model::PartitionKeyKind;
use serde_json::{Value as Json, json};

/// Partition keys: the value of the document's `pk`, if it has one.
pub const KEYS: [Option<&str>; 8] = [
    Some("\"a\""),
    Some("\"b\""),
    Some("7"),
    Some("null"),
    None,
    Some("true"),
    Some("\"a key that is so long that nobody would ever think of it as a name\""),
    Some("\"\""),
];

/// Ids per partition key.
pub(crate) const IDS: usize = 5;
/// Indexing policies, each with a computed property.
pub(crate) const POLICIES: usize = 4;
/// Most concurrently open feeds, one per lane.
pub(crate) const LANES_MAX: usize = 4;

/// The scenario of one simulation.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its seed.
    pub seed: u64,
    /// Whether writes are acknowledged before they are durable.
    pub buffered: bool,
    /// The kind of the partition key.
    pub kind: PartitionKeyKind,
    /// Partitions of each container.
    pub partitions: u32,
    /// Paths of each unique key.
    pub unique: Vec<Vec<&'static str>>,
    /// The default TTL of new containers.
    pub default_ttl: DefaultTtl,
    /// The waves, in order.
    pub waves: Vec<Wave>,
}

/// The events between two quiet moments.
#[derive(Clone, Debug)]
pub enum Wave {
    /// Clients run concurrently, each in its lane.
    Clients {
        /// The requests of each lane, in order.
        lanes: Vec<Vec<Request>>,
        /// Faults during the wave.
        trouble: Trouble,
        /// The power fails after this many scheduler turns.
        crash: Option<(u64, Survivors)>,
    },
    /// The clock jumps by this many seconds.
    Clock(i64),
    /// Time passes for timers, so that background jobs run.
    Rest {
        /// How long.
        milliseconds: u64,
        /// Faults during the wave.
        trouble: Trouble,
        /// The power fails after this many storage calls, or at the end if there are fewer.
        crash: Option<(u64, Survivors)>,
    },
    /// The container's definition changes.
    Define {
        /// The new default TTL; `None` keeps the old one.
        default_ttl: Option<DefaultTtl>,
        /// The new indexing policy and computed property, one of `POLICIES`.
        policy: usize,
        /// Faults during the wave.
        trouble: Trouble,
        /// The power fails after this many scheduler turns.
        crash: Option<(u64, Survivors)>,
    },
    /// The container is dropped while clients use it, and created again.
    Recreate {
        /// The requests of each lane, in order.
        lanes: Vec<Vec<Request>>,
        /// Additional scheduler turns that the opening of partitions takes.
        opening_turns: u64,
        /// Faults during the wave.
        trouble: Trouble,
        /// The power fails after this many scheduler turns.
        crash: Option<(u64, Survivors)>,
    },
    /// The partition of a key is split while clients use it.
    Split {
        /// The partition key.
        key: usize,
        /// Whether it is cut in the middle of its range; else by documents.
        in_middle: bool,
        /// The requests of each lane, in order.
        lanes: Vec<Vec<Request>>,
        /// Faults during the wave.
        trouble: Trouble,
        /// The power fails after this many scheduler turns.
        crash: Option<(u64, Survivors)>,
    },
    /// All documents of a partition key are deleted.
    Empty(usize, Trouble),
    /// The engine is closed cleanly and opened again.
    Restart,
    /// The power fails while no request is running; the faults occur at the following start.
    Crash(Survivors, Trouble),
    /// A commit fails while no request is running, and the reopened store lacks everything that was not synced.
    Rewind,
    /// The disk becomes full, or has space again.
    Disk(bool),
}

/// Faults of a wave.
#[derive(Clone, Debug, Default)]
pub struct Trouble {
    /// Storage calls that fail, counted from the start of the wave.
    pub faults: Vec<(u64, InjectedFault)>,
    /// A writer panics when it evaluates the transaction after N others.
    pub panic: Option<u64>,
    /// The store refuses the transaction after N others, and with it its batch.
    pub spoil: Option<u64>,
}

impl Trouble {
    /// Whether nothing fails.
    pub(crate) fn is_none(&self) -> bool {
        self.faults.is_empty() && self.panic.is_none() && self.spoil.is_none()
    }
}

impl Wave {
    /// Time passes, and nothing fails.
    pub fn rest(milliseconds: u64) -> Wave {
        Wave::Rest { milliseconds, trouble: Trouble::default(), crash: None }
    }
}

impl From<Vec<(u64, InjectedFault)>> for Trouble {
    fn from(faults: Vec<(u64, InjectedFault)>) -> Trouble {
        Trouble { faults, ..Trouble::default() }
    }
}

/// A request of a client.
#[derive(Clone, Debug)]
pub struct Request {
    /// Scheduler turns that the client waits first.
    pub pause: u64,
    /// The kind of request.
    pub want: RequestKind,
}

/// The kind of a request.
#[derive(Clone, Debug)]
#[allow(missing_docs)] // The names say it.
pub enum RequestKind {
    Single {
        key: usize,
        template: StepTemplate,
    },
    Batch {
        key: usize,
        templates: Vec<StepTemplate>,
    },
    Bulk(Vec<(usize, StepTemplate)>),
    Transaction {
        key: usize,
        templates: Vec<TransactionTemplate>,
        turns: u64,
        is_locked: bool,
    },
    /// A page of a feed, or of the query with an index below `feeds::QUERIES`.
    Page {
        scope: Scope,
        items_max: usize,
        query: Option<usize>,
    },
}

/// A step of an interactive transaction.
#[derive(Clone, Debug)]
pub enum TransactionTemplate {
    /// An operation on one document.
    Step(StepTemplate),
    /// All documents of the partition key.
    List {
        /// Whether by a query; else by a feed.
        by_query: bool,
    },
}

/// The documents of a feed or a query. A client has one open at a time and reads it to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All.
    Container,
    /// Those of one partition.
    Partition(u32),
    /// Those of one partition key.
    Key(usize),
}

/// A step whose ETags and numbers are not filled in yet.
#[derive(Clone, Debug)]
pub struct StepTemplate {
    /// The operation.
    pub kind: StepKind,
    /// Index of the document's id.
    pub id: usize,
    /// The new document, for operations that have one.
    pub body: Body,
    /// The changes of a patch.
    pub edits: Vec<Edit>,
    /// The precondition.
    pub precondition: PreconditionTemplate,
    /// Whether the document is addressed by its number, if it has one.
    pub by_number: bool,
}

/// The operation of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // The names say it.
pub enum StepKind {
    Create,
    Upsert,
    Replace,
    Patch,
    Delete,
    Read,
}

/// A precondition whose ETag is not filled in yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // The names say it.
pub enum PreconditionTemplate {
    None,
    MatchCurrent,
    MatchOther,
    Exists,
    NoneMatchCurrent,
    Absent,
}

/// Length of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Some tens of operations, for a test that runs often.
    Short,
    /// 200 to 2,000 operations.
    Long,
}

/// Generates the scenario of a seed.
pub fn draw(seed: u64, length: Length) -> Scenario {
    let mut drawing = Drawing { random: Random::seeded(seed), mark: 0, keys: 1, unique: Vec::new() };
    drawing.scenario(seed, length)
}

struct Drawing {
    random: Random,
    /// Counts writes, so that every version of a document is unique.
    mark: u64,
    /// Partition keys in use.
    keys: usize,
    unique: Vec<Vec<&'static str>>,
}

impl Drawing {
    fn scenario(&mut self, seed: u64, length: Length) -> Scenario {
        let unique_policies: [&[&[&'static str]]; 4] =
            [&[], &[&["mail"]], &[&["mail"], &["first", "last"]], &[&["first"]]];
        let unique = *self.random.pick(&unique_policies);
        self.unique = unique.iter().map(|paths| paths.to_vec()).collect();
        self.keys = usize::try_from(self.random.between(1, KEYS.len() as u64)).unwrap_or(1);
        let partitions = u32::try_from(self.random.between(1, 8)).unwrap_or(1);
        let default_ttl = if self.random.chance(50) { DefaultTtl::Off } else { self.default_ttl() };
        let count = match length {
            Length::Short => self.random.between(8, 24),
            Length::Long => self.random.between(30, 250),
        };
        let buffered = self.random.chance(40);
        // Half of all scenarios keep the default, so that expiry rows can be checked exactly.
        let changes_default = self.random.chance(50);
        let (first, second, several) =
            (PartitionKeyKind::HashV1, PartitionKeyKind::HashV2, PartitionKeyKind::MultiHash);
        let kind = *self.random.pick(&[first, second, second, several]);
        let waves = (0..count).map(|_| self.wave(partitions, changes_default)).collect();
        Scenario { seed, buffered, kind, partitions, unique: self.unique.clone(), default_ttl, waves }
    }

    fn wave(&mut self, partitions: u32, changes_default: bool) -> Wave {
        match self.random.below(100) {
            0..=8 => Wave::Clock(self.jump()),
            9..=18 => {
                let milliseconds = *self.random.pick(&[60, 1_200, 5_000, 130_000]);
                let crash = self.random.chance(15).then(|| (self.random.below(40), self.survivors()));
                Wave::Rest { milliseconds, trouble: self.trouble(20), crash }
            }
            19..=23 => {
                let default_ttl = (changes_default && self.random.chance(70)).then(|| self.default_ttl());
                let policy = self.random.index(POLICIES);
                Wave::Define { default_ttl, policy, trouble: self.trouble(20), crash: self.crash(10) }
            }
            24..=25 => {
                let lane_count = self.random.below(LANES_MAX as u64 + 1);
                let lanes = (0..lane_count).map(|_| self.lane(partitions)).collect();
                let opening_turns = *self.random.pick(&[0, 0, 3, 40, 400]);
                Wave::Recreate { lanes, opening_turns, trouble: self.trouble(30), crash: self.crash(15) }
            }
            26..=27 => Wave::Empty(self.random.index(self.keys), self.trouble(30)),
            28..=29 => Wave::Restart,
            30..=33 => Wave::Crash(self.survivors(), self.trouble(10)),
            34..=35 => Wave::Rewind,
            36 => Wave::Disk(true),
            37..=39 => Wave::Disk(false),
            40..=44 => {
                let lane_count = self.random.below(LANES_MAX as u64 + 1);
                let lanes = (0..lane_count).map(|_| self.lane(partitions)).collect();
                let (key, in_middle) = (self.random.index(self.keys), self.random.chance(50));
                // A split takes more turns than other changes.
                let crash = self.random.chance(20).then(|| (self.random.below(120), self.survivors()));
                Wave::Split { key, in_middle, lanes, trouble: self.trouble(20), crash }
            }
            _ => self.clients(partitions),
        }
    }

    fn trouble(&mut self, percent: u64) -> Trouble {
        let faults = self.faults(percent);
        let panic = self.random.chance(percent / 2).then(|| self.random.below(6));
        let spoil = self.random.chance(percent / 2).then(|| self.random.below(6));
        Trouble { faults, panic, spoil }
    }

    fn crash(&mut self, percent: u64) -> Option<(u64, Survivors)> {
        self.random.chance(percent).then(|| (self.random.below(20), self.survivors()))
    }

    fn jump(&mut self) -> i64 {
        match self.random.below(10) {
            0..=5 => i64::try_from(self.random.between(1, 12)).unwrap_or(1),
            6 => 3600,
            7..=8 => -i64::try_from(self.random.between(1, 12)).unwrap_or(1),
            _ => -3600,
        }
    }

    fn default_ttl(&mut self) -> DefaultTtl {
        match self.random.below(4) {
            0 => DefaultTtl::Off,
            1 => DefaultTtl::OnDemand,
            _ => DefaultTtl::Seconds(self.random.between(1, 15)),
        }
    }

    fn survivors(&mut self) -> Survivors {
        *self.random.pick(&[
            Survivors::Synced,
            Survivors::Drawn,
            Survivors::Drawn,
            Survivors::First(1),
            Survivors::All,
        ])
    }

    fn faults(&mut self, percent: u64) -> Vec<(u64, InjectedFault)> {
        if !self.random.chance(percent) {
            return Vec::new();
        }
        let count = self.random.between(1, 3);
        let fault = |_| {
            let survive = self.random.index(2);
            let kinds = [
                InjectedFault::Fail,
                InjectedFault::FailSync,
                InjectedFault::FailSync,
                InjectedFault::Tear { survive },
                InjectedFault::Damage,
                InjectedFault::DropUnsynced,
            ];
            let call = 1 + self.random.below(30);
            (call, *self.random.pick(&kinds))
        };
        (0..count).map(fault).collect()
    }

    fn clients(&mut self, partitions: u32) -> Wave {
        let lane_count = self.random.between(1, LANES_MAX as u64);
        let lanes = (0..lane_count).map(|_| self.lane(partitions)).collect();
        Wave::Clients { lanes, trouble: self.trouble(20), crash: self.crash(8) }
    }

    fn lane(&mut self, partitions: u32) -> Vec<Request> {
        let count = self.random.between(1, 3);
        (0..count).map(|_| Request { pause: self.random.below(4), want: self.want(partitions) }).collect()
    }

    fn want(&mut self, partitions: u32) -> RequestKind {
        let key = self.random.index(self.keys);
        match self.random.below(100) {
            0..=49 => RequestKind::Single { key, template: self.template(key) },
            50..=61 => {
                let count = self.random.between(1, 5);
                let templates = (0..count).map(|_| self.template(key)).collect();
                RequestKind::Batch { key, templates }
            }
            62..=78 => {
                let count = self.random.between(1, 5);
                let templates = (0..count).map(|_| self.transaction_step(key)).collect();
                let (turns, is_locked) = (self.random.below(6), self.random.chance(25));
                RequestKind::Transaction { key, templates, turns, is_locked }
            }
            79..=84 => {
                let count = self.random.between(1, 6);
                let part = |_| {
                    let key = self.random.index(self.keys);
                    (key, self.template(key))
                };
                RequestKind::Bulk((0..count).map(part).collect())
            }
            _ => {
                let scope = match self.random.below(4) {
                    0 => Scope::Key(key),
                    1 => {
                        Scope::Partition(u32::try_from(self.random.below(u64::from(partitions))).unwrap_or(0))
                    }
                    _ => Scope::Container,
                };
                let items_max = usize::try_from(self.random.between(1, 6)).unwrap_or(1);
                let query = self.random.chance(60).then(|| self.random.index(QUERIES.len()));
                RequestKind::Page { scope, items_max, query }
            }
        }
    }

    fn transaction_step(&mut self, key: usize) -> TransactionTemplate {
        match self.random.below(10) {
            0..=2 => TransactionTemplate::List { by_query: self.random.chance(60) },
            _ => TransactionTemplate::Step(self.template(key)),
        }
    }

    fn template(&mut self, key: usize) -> StepTemplate {
        let id = self.random.index(IDS);
        let kind = match self.random.below(100) {
            0..=29 => StepKind::Create,
            30..=49 => StepKind::Upsert,
            50..=59 => StepKind::Replace,
            60..=71 => StepKind::Patch,
            72..=84 => StepKind::Delete,
            _ => StepKind::Read,
        };
        let precondition = match self.random.below(100) {
            0..=69 => PreconditionTemplate::None,
            70..=81 => PreconditionTemplate::MatchCurrent,
            82..=87 => PreconditionTemplate::MatchOther,
            88..=91 => PreconditionTemplate::Exists,
            92..=96 => PreconditionTemplate::NoneMatchCurrent,
            _ => PreconditionTemplate::Absent,
        };
        let body_id =
            if kind == StepKind::Replace && self.random.chance(40) { self.random.index(IDS) } else { id };
        StepTemplate {
            kind,
            id,
            body: self.body(key, body_id),
            edits: self.edits(),
            precondition,
            by_number: self.random.chance(15),
        }
    }

    fn body(&mut self, key: usize, id: usize) -> Body {
        let mut body = Body::new();
        body.insert("id".to_owned(), id_text(id).into());
        if let Some(text) = KEYS[key] {
            body.insert("pk".to_owned(), text.parse().unwrap_or(Json::Null));
        }
        body.insert("w".to_owned(), self.next_mark());
        for name in ["mail", "first", "last"] {
            if self.random.chance(80) {
                body.insert(name.to_owned(), self.unique_value());
            }
        }
        if self.random.chance(30) {
            let number = self.random.below(10);
            body.insert("n".to_owned(), number.into());
            let line = json!({ "type": "LineString", "coordinates": [[number, 0], [number + 1, 3]] });
            let point = json!({ "type": "Point", "coordinates": [number, 40] });
            body.insert("at".to_owned(), if number.is_multiple_of(3) { line } else { point });
        }
        if self.random.chance(20) {
            body.insert("ttl".to_owned(), self.own_ttl());
        }
        if self.random.chance(10) {
            let length = usize::try_from(self.random.below(3_000)).unwrap_or(0);
            body.insert("pad".to_owned(), "x".repeat(length).into());
        }
        body
    }

    fn edits(&mut self) -> Vec<Edit> {
        let mut edits = vec![Edit::Set("w", self.next_mark())];
        for _ in 0..self.random.below(3) {
            edits.push(match self.random.below(10) {
                0..=1 => Edit::Increment("n", 1),
                2 => Edit::Increment("mail", 1),
                3..=4 => Edit::Set("mail", self.unique_value()),
                5 => Edit::Replace("n", 5.into()),
                6 => Edit::Remove("pad"),
                7 => Edit::Set("ttl", self.own_ttl()),
                8 => Edit::Remove("first"),
                _ => {
                    let kept = if self.random.chance(50) { "id" } else { "pk" };
                    Edit::Set(kept, "z".into())
                }
            });
        }
        edits
    }

    fn own_ttl(&mut self) -> Json {
        (*self.random.pick(&[-1, 1, 3, 8, 1_000])).into()
    }

    /// Few values, so that conflicts occur; one so long that its key is a digest.
    fn unique_value(&mut self) -> Json {
        match self.random.below(10) {
            0 => Json::Null,
            1 => json!("y".repeat(700)),
            2..=3 => json!(self.random.below(3)),
            other => json!(format!("v{other}")),
        }
    }

    fn next_mark(&mut self) -> Json {
        self.mark += 1;
        self.mark.into()
    }
}

/// The id with an index.
pub fn id_text(index: usize) -> String {
    format!("d{index}")
}
