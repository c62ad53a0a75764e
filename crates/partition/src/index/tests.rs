//! Compares the index with a naive model: random documents, overwrites, deletes and policies; every lookup and walk.
//!
//! The model stores documents as JSON and answers by scanning all of them, with its own code for paths and policies.

mod blocks;
mod random;

use crate::index::index_writer::{Changes, IndexEnvironment, IndexWriter, InstallBatch, Prepared};
use crate::index::jobs::delete_rows;
use crate::index::rules::Rules;
use crate::index::terms::DocumentVersion;
use crate::index::{
    Coverage, Detail, IndexMemory, IndexOptions, IndexPath, IndexReader, IndexStep, Lookup, ValueTest,
    Verdict,
};
use crate::keyspace::{PartitionId, SPACES};
use crate::lineage::Lineage;
use crate::metrics::PartitionMetrics;
use bytes::Bytes;
use kv::{CommitMode, Direction, Durability, Store};
use model::policy::{CompositeIndex, CompositePath, IndexedPath, IndexingPolicy, PolicyPath};
use model::{ContainerNumber, DocumentNumber, EffectiveKey, EffectiveRange, Lsn, PartitionOrdinal};
use random::Random;
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;
use value::{Document, PropertyPath, Value, encode_key_value};

/// More values than any case has at a path.
const VALUES_MAX: usize = 100_000;

const NAMES: [&str; 4] = ["a", "b", "tags", "ü\0x"];

fn scalar(random: &mut Random) -> Json {
    let long = |end: &str| Json::from("long ".repeat(60) + end);
    match random.below(12) {
        0 => Json::Null,
        1 => json!(true),
        2 => json!(false),
        3..=6 => json!(i64::try_from(random.below(5)).unwrap() - 1),
        7 => json!(1.5),
        8 => json!(""),
        9 => long(["", "er", "est"][random.below(3)]),
        _ => json!(["x", "y", "x\0", "xy"][random.below(4)]),
    }
}

fn json_value(random: &mut Random, levels: usize) -> Json {
    match random.below(if levels == 0 { 6 } else { 10 }) {
        0..=5 => scalar(random),
        6 | 7 => (0..random.below(4)).map(|_| json_value(random, levels - 1)).collect(),
        _ => object(random, levels - 1),
    }
}

fn object(random: &mut Random, levels: usize) -> Json {
    let mut members = serde_json::Map::new();
    for _ in 0..random.below(4) {
        members.insert((*random.pick(&NAMES)).to_owned(), json_value(random, levels));
    }
    Json::Object(members)
}

type Steps = Vec<Option<String>>;

#[derive(Clone)]
struct Naive {
    partition_key: u8,
    ts: u64,
    body: Json,
}

impl Naive {
    fn logical(&self) -> Bytes {
        Bytes::from(vec![self.partition_key * 10, 7, self.partition_key])
    }

    /// All values with the steps that lead to them.
    fn values(&self) -> Vec<(Steps, Json)> {
        fn descend(steps: &Steps, value: &Json, found: &mut Vec<(Steps, Json)>) {
            let below = |step: Option<&str>| {
                let mut steps = steps.clone();
                steps.push(step.map(str::to_owned));
                steps
            };
            found.push((steps.clone(), value.clone()));
            match value {
                Json::Array(elements) => {
                    elements.iter().for_each(|element| descend(&below(None), element, found));
                }
                Json::Object(members) => {
                    members.iter().for_each(|(name, member)| descend(&below(Some(name)), member, found));
                }
                Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
            }
        }
        let mut body = self.body.clone();
        body["_ts"] = json!(self.ts);
        let mut found = Vec::new();
        descend(&Vec::new(), &body, &mut found);
        found
    }
}

fn code(value: &Json) -> Vec<u8> {
    let mut code = Vec::new();
    encode_key_value(&Value::from_json(value.to_string().as_bytes()).unwrap(), &mut code);
    code
}

/// The code as it is in a term.
fn term_code(value: &Json) -> Vec<u8> {
    let mut code = code(value);
    match value {
        Json::Array(_) | Json::Object(_) => code.truncate(1),
        _ if code.len() > 200 => {
            code.truncate(200);
            code.push(255);
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
    }
    code
}

/// The policy as a list: steps, whether it ends with `/?`, whether it includes.
struct NaivePolicy {
    paths: Vec<(Steps, bool, bool)>,
    none: bool,
    /// Members of composite indexes: a property of the root, and whether it descends.
    composites: Vec<Vec<(&'static str, bool)>>,
}

impl NaivePolicy {
    fn random(random: &mut Random) -> (NaivePolicy, IndexingPolicy) {
        if random.below(12) == 0 {
            return (
                NaivePolicy { paths: Vec::new(), none: true, composites: Vec::new() },
                IndexingPolicy::none(),
            );
        }
        let mut paths: Vec<(Steps, bool, bool)> = vec![(Vec::new(), false, random.below(4) > 0)];
        for _ in 0..random.below(5) {
            let length = 1 + random.below(3);
            let step = |random: &mut Random| {
                let names = [Some("a"), Some("b"), Some("tags"), None];
                random.pick(&names).map(str::to_owned)
            };
            let steps: Steps = (0..length).map(|_| step(random)).collect();
            let scalar = random.below(2) == 0;
            if !paths.iter().any(|(other, end, _)| *other == steps && *end == scalar) {
                paths.push((steps, scalar, random.below(2) == 0));
            }
        }
        let text = |(steps, scalar, _): &(Steps, bool, bool)| {
            let steps: String = steps
                .iter()
                .map(|step| step.as_ref().map_or("/[]".to_owned(), |name| format!("/{name}")))
                .collect();
            PolicyPath::parse(&(steps + if *scalar { "/?" } else { "/*" })).unwrap()
        };
        let list = |include: bool| paths.iter().filter(move |path| path.2 == include).map(text);
        let composites: Vec<Vec<(&str, bool)>> = vec![
            vec![("a", random.below(2) == 0), ("b", random.below(2) == 0)],
            vec![("tags", random.below(2) == 0), ("_ts", random.below(2) == 0), ("a", false)],
        ];
        let member = |(name, descending): &(&str, bool)| {
            let path = PropertyPath::parse(&format!("/{name}")).unwrap();
            CompositePath { path, descending: *descending }
        };
        let composite =
            |members: &Vec<(&str, bool)>| CompositeIndex { paths: members.iter().map(member).collect() };
        let included = list(true).map(|path| IndexedPath { path }).collect();
        let mut policy = IndexingPolicy::by_paths(included, list(false).collect());
        policy.composite = composites.iter().map(composite).collect();
        policy.check().unwrap();
        (NaivePolicy { paths, none: false, composites }, policy)
    }

    fn is_indexed(&self, steps: &Steps) -> bool {
        let Some(first) = steps.first() else { return false };
        if self.none {
            return false;
        }
        match first.as_deref() {
            Some("id" | "_ts") => return true,
            Some(name) if name.starts_with('_') => return false,
            Some(_) | None => {}
        }
        let matching = self
            .paths
            .iter()
            .filter(|(path, scalar, _)| if *scalar { path == steps } else { steps.starts_with(path) });
        matching.max_by_key(|(path, scalar, _)| (path.len(), *scalar)).is_some_and(|(.., include)| *include)
    }
}

struct Case {
    random: Random,
    policy: NaivePolicy,
    index_writer: IndexWriter,
    documents: BTreeMap<u64, Naive>,
    number_last: u64,
    store: Store,
}

fn index_path(steps: &Steps) -> IndexPath {
    IndexPath::property(steps.iter().map(|step| step.as_deref().map_or(IndexStep::Elements, IndexStep::Name)))
}

fn number(counter: u64) -> DocumentNumber {
    DocumentNumber::new(PartitionOrdinal(3), counter).unwrap()
}

impl Case {
    async fn new(seed: u64) -> Case {
        let mut random = Random(seed);
        let (policy, indexing) = NaivePolicy::random(&mut random);
        let rules = Arc::new(Rules::of(&indexing, (&[], &[]), |_| None));
        let options = IndexOptions {
            inline_documents_max: 10 + random.below(60),
            flush_documents: 20 + random.below(60),
            run_fan_in: 2 + random.below(3),
            ..IndexOptions::default()
        };
        Case::with(random, policy, rules, options).await
    }

    async fn with(random: Random, policy: NaivePolicy, rules: Arc<Rules>, options: IndexOptions) -> Case {
        let store = Store::memory(&SPACES, CommitMode::Inline);
        let partition = PartitionId { container: ContainerNumber(1), ordinal: PartitionOrdinal(3) };
        let environment = IndexEnvironment {
            store: store.clone(),
            partition,
            lineage: Arc::new(Lineage::whole(partition)),
            loaded: Arc::new([]),
            memory: IndexMemory::new(options),
            run_numbers: Arc::new(crate::index::RunNumbers::of_epoch(1)),
            metrics: PartitionMetrics::default(),
        };
        let mut index_writer = IndexWriter::new(environment, rules, Lsn(0));
        index_writer.complete().await;
        Case { random, policy, index_writer, documents: BTreeMap::new(), number_last: 0, store }
    }

    /// Installs the result of a job, as the writer does.
    async fn finish_job(&mut self) {
        self.index_writer.next_event().await;
        if let Some(InstallBatch { batch, named, installed }) = self.index_writer.install_batch() {
            self.store.submit(&self.store.lane(), batch, Durability::Sync).await.unwrap();
            named.into_iter().for_each(crate::index::UnnamedRun::keep);
            for run in self.index_writer.installed(installed).await {
                delete_rows(&self.store, self.index_writer.partition(), run, None).await.unwrap();
            }
        }
    }

    async fn write_batch(&mut self) {
        let mut changes = Changes::new();
        for _ in 0..=self.random.below(6) {
            let old: Vec<u64> = self.documents.keys().copied().collect();
            let kind = self.random.below(10);
            if kind < 2 && !old.is_empty() {
                let gone = *self.random.pick(&old);
                self.documents.remove(&gone);
                changes.insert(number(gone), None);
                continue;
            }
            let counter = if kind < 5 && !old.is_empty() {
                *self.random.pick(&old)
            } else {
                self.number_last += 1;
                self.number_last
            };
            let mut body = object(&mut self.random, 3);
            body["id"] = json!(format!("{counter}"));
            let partition_key = self.documents.get(&counter).map(|old| old.partition_key);
            let partition_key = partition_key.unwrap_or_else(|| u8::try_from(self.random.below(4)).unwrap());
            let naive = Naive { partition_key, ts: 1000 + self.random.next() % 5, body };
            let document = Document::from_json(naive.body.to_string().as_bytes()).unwrap();
            let version =
                DocumentVersion { number: number(counter), logical: naive.logical(), ts: naive.ts, document };
            changes.insert(number(counter), Some(version));
            self.documents.insert(counter, naive);
        }
        let prepared = Prepared::new(self.index_writer.rules(), changes);
        let lsn = self.index_writer.lsn.next();
        self.index_writer.apply(prepared, lsn).await;
        if self.random.below(3) == 0 && self.index_writer.is_busy() {
            self.finish_job().await;
        }
    }

    async fn reader(&self) -> IndexReader {
        IndexReader {
            pieces: self.index_writer.pieces(),
            rules: Arc::clone(self.index_writer.rules()),
            view: self.store.view().await.unwrap(),
            memory: Arc::clone(self.index_writer.memory()),
            damage_signal: Arc::clone(self.index_writer.damage_signal()),
        }
    }

    fn values(&self) -> Vec<(Steps, Json)> {
        self.documents.values().flat_map(Naive::values).collect()
    }

    fn random_place(&mut self) -> (Steps, Json) {
        let values = self.values();
        if values.is_empty() || self.random.below(10) == 0 {
            return (vec![Some("nowhere".to_owned())], scalar(&mut self.random));
        }
        let (steps, value) = self.random.pick(&values).clone();
        if self.random.below(3) == 0 { (steps, scalar(&mut self.random)) } else { (steps, value) }
    }

    /// A lookup with the documents that it should find.
    fn random_lookup(&mut self, levels: usize) -> (Lookup, BTreeSet<u64>) {
        let kinds = if levels == 0 { 6 } else { 9 };
        let all: BTreeSet<u64> = self.documents.keys().copied().collect();
        match self.random.below(kinds) {
            0 => (Lookup::All, all),
            1 => {
                let steps = self.random_place().0;
                let expected = self.holders(&steps, |_| true);
                (Lookup::Present(index_path(&steps)), expected)
            }
            2 => {
                let (steps, value) = self.random_place();
                let wanted = code(&value);
                let expected = self.holders(&steps, |code| *code == wanted);
                (Lookup::Term { path: index_path(&steps), code: wanted }, expected)
            }
            3 => {
                let (steps, value) = self.random_place();
                let low = self.random_bound(&value);
                let high = scalar(&mut self.random);
                let high = self.random_bound(&high);
                let inside =
                    |code: &Vec<u8>| RangeBounds::<Vec<u8>>::contains(&(low.as_ref(), high.as_ref()), code);
                let path = index_path(&steps);
                if self.random.below(2) == 0 {
                    let expected = self.holders(&steps, inside);
                    return (Lookup::Range { path, low: low.clone(), high: high.clone() }, expected);
                }
                // Some are left undecided, although the code would decide.
                let is_even = |code: &[u8]| code.iter().fold(0, |sum, byte| sum ^ byte) % 2 == 0;
                let test = ValueTest::new(move |code| match (code.len() % 5, is_even(code)) {
                    (0, _) => Verdict::Unknown,
                    (_, true) => Verdict::Yes,
                    (_, false) => Verdict::No,
                });
                let expected = self.holders(&steps, |code| inside(code) && is_even(code));
                (Lookup::Tested { path, low: low.clone(), high: high.clone(), test }, expected)
            }
            4 => {
                let wanted = u8::try_from(self.random.below(5)).unwrap();
                let prefix = Naive { partition_key: wanted, ts: 0, body: Json::Null }.logical();
                let with = self.documents.iter().filter(|(_, naive)| naive.partition_key == wanted);
                let expected = with.map(|(number, _)| *number).collect();
                (Lookup::Logical(prefix), expected)
            }
            5 => {
                let min = EffectiveKey::from_bytes(&[u8::try_from(self.random.below(40)).unwrap()]);
                let max = EffectiveKey::from_bytes(&[u8::try_from(self.random.below(40)).unwrap()]);
                let range = EffectiveRange { min, max };
                let inside = |naive: &Naive| {
                    naive.logical()[..] >= *range.min.as_bytes()
                        && naive.logical()[..] < *range.max.as_bytes()
                };
                let with = self.documents.iter().filter(|(_, naive)| inside(naive));
                let expected = with.map(|(number, _)| *number).collect();
                (Lookup::Effective(range), expected)
            }
            6 => {
                let (part, expected) = self.random_lookup(levels - 1);
                (Lookup::Without(Box::new(part)), &all - &expected)
            }
            kind => {
                let parts: Vec<_> =
                    (0..self.random.below(4)).map(|_| self.random_lookup(levels - 1)).collect();
                let (lookups, sets): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
                if kind == 7 {
                    let expected = sets.into_iter().fold(all, |left, right| &left & &right);
                    (Lookup::And(lookups), expected)
                } else {
                    let expected = sets.into_iter().fold(BTreeSet::new(), |left, right| &left | &right);
                    (Lookup::Or(lookups), expected)
                }
            }
        }
    }

    fn random_bound(&mut self, value: &Json) -> Bound<Vec<u8>> {
        let mut code = code(value);
        match self.random.below(6) {
            0 => Bound::Unbounded,
            1 => Bound::Excluded(code),
            2 => {
                // As for "begins with".
                code.truncate(1 + self.random.below(code.len()));
                Bound::Included(code)
            }
            _ => Bound::Included(code),
        }
    }

    /// Documents with a value at an indexed path whose complete code is wanted.
    fn holders(&self, steps: &Steps, wanted: impl Fn(&Vec<u8>) -> bool) -> BTreeSet<u64> {
        if !self.policy.is_indexed(steps) {
            return BTreeSet::new();
        }
        let holds = |naive: &Naive| {
            naive.values().iter().any(|(place, value)| place == steps && wanted(&code(value)))
        };
        self.documents.iter().filter(|(_, naive)| holds(naive)).map(|(number, _)| *number).collect()
    }

    async fn check_lookup(&mut self) {
        let (lookup, expected) = self.random_lookup(3);
        let reader = self.reader().await;
        let found = reader.documents(&lookup).await.unwrap();
        let numbers: Vec<u64> = found.iter().map(DocumentNumber::counter).collect();
        assert!(numbers.is_sorted());
        let set: BTreeSet<u64> = numbers.iter().copied().collect();
        assert_eq!(set.len() as u64, found.count());
        assert!(set.is_superset(&expected), "{lookup:?} misses {:?}", &expected - &set);
        if found.is_exact() {
            assert_eq!(set, expected, "{lookup:?}");
        }
        reader.check_count(&lookup, found.count(), self.random.next() % 8).await;
        let middle = self.random.next() % (self.number_last + 2);
        let from: Vec<u64> = found.iter_from(Some(number(middle))).map(DocumentNumber::counter).collect();
        assert_eq!(from, numbers.iter().copied().filter(|number| *number >= middle).collect::<Vec<_>>());
        let back: Vec<u64> =
            found.iter_back_from(Some(number(middle))).map(DocumentNumber::counter).collect();
        assert_eq!(
            back,
            numbers.iter().rev().copied().filter(|number| *number <= middle).collect::<Vec<_>>()
        );
        assert_eq!(found.contains(number(middle)), set.contains(&middle));
    }

    async fn check_walk(&mut self) {
        let (steps, value) = self.random_place();
        let direction = *self.random.pick(&[Direction::Forward, Direction::Backward]);
        let from = (self.random.below(2) == 0).then(|| term_code(&value));
        let within = (self.random.below(2) == 0).then(|| self.random_lookup(1).0);
        let reader = self.reader().await;
        let within = match &within {
            Some(lookup) => Some(reader.documents(lookup).await.unwrap()),
            None => None,
        };
        let mut expected: BTreeMap<Vec<u8>, BTreeSet<u64>> = BTreeMap::new();
        for (counter, naive) in &self.documents {
            let is_within = within.as_ref().is_none_or(|within| within.contains(number(*counter)));
            for (place, value) in naive.values() {
                if place == steps && self.policy.is_indexed(&steps) && is_within {
                    expected.entry(term_code(&value)).or_default().insert(*counter);
                }
            }
        }
        let mut expected: Vec<_> = expected.into_iter().collect();
        if direction == Direction::Backward {
            expected.reverse();
        }
        if let Some(from) = &from {
            expected.retain(|(code, _)| match direction {
                Direction::Forward => code >= from,
                Direction::Backward => code <= from,
            });
        }
        let (path, is_whole) = (index_path(&steps), from.is_none());
        let mut walk = reader.walk(&path, direction, from.clone(), within.as_ref()).await.unwrap();
        let mut counts = reader.walk(&path, direction, from, within.as_ref()).await.unwrap();
        let mut found = Vec::new();
        while let Some(step) = walk.next().await.unwrap() {
            assert!(found.len() < VALUES_MAX, "the walk does not end");
            assert!(step.numbers.is_sorted());
            let detail = *self.random.pick(&[Detail::Count, Detail::Ends, Detail::Numbers]);
            let counted = counts.next_counted(|_, _| detail).await.unwrap().unwrap();
            assert_eq!((&counted.code, counted.is_truncated), (&step.code, step.is_truncated));
            assert_eq!(counted.count, step.numbers.len() as u64, "{steps:?} {detail:?}");
            let ends = step.numbers.first().copied().zip(step.numbers.last().copied());
            assert_eq!(counted.ends, ends.filter(|_| detail == Detail::Ends));
            assert!(detail != Detail::Numbers || counted.numbers == step.numbers);
            assert_eq!(
                step.is_truncated,
                step.code.len() > 200 || step.code.len() == 1 && step.code[0] >= 0x50
            );
            found.push((step.code, step.numbers.into_iter().map(DocumentNumber::counter).collect()));
        }
        assert!(counts.next_counted(|_, _| Detail::Count).await.unwrap().is_none());
        reader.check_values(&path, within.as_ref(), is_whole.then_some(found.len())).await;
        if is_whole && !steps.contains(&None) {
            let mut turned: BTreeMap<Vec<u8>, BTreeSet<u64>> = BTreeMap::new();
            for piece in 0..reader.piece_count() {
                let columns = reader.columns(piece, std::slice::from_ref(&path), within.as_ref()).await;
                let columns = columns.unwrap().unwrap();
                columns.for_each(|number, places| {
                    if let Some(place) = places[0].checked_sub(1) {
                        let (code, _) = &columns.columns()[0].codes[place as usize];
                        turned.entry(code.clone()).or_default().insert(number.counter());
                    }
                    true
                });
            }
            assert_eq!(turned, expected.iter().cloned().collect(), "{steps:?}");
        }
        assert_eq!(found, expected, "{steps:?} {direction:?}");
    }

    /// Tuples come in the order of their members, each in its direction, up to the first truncated one.
    async fn check_composite(&mut self) {
        for members in self.policy.composites.clone() {
            let mut expected: BTreeMap<Vec<u8>, BTreeSet<u64>> = BTreeMap::new();
            for (counter, naive) in &self.documents {
                expected.entry(tuple_code(naive, &members)).or_default().insert(*counter);
            }
            let path = IndexPath::composite(
                members
                    .iter()
                    .map(|(name, descending)| (IndexPath::property([IndexStep::Name(name)]), *descending)),
            );
            let reader = self.reader().await;
            assert_eq!(reader.covers(&path), Coverage::Whole);
            let mut walk = reader.walk(&path, Direction::Forward, None, None).await.unwrap();
            let mut found = Vec::new();
            while let Some(step) = walk.next().await.unwrap() {
                assert!(found.len() < VALUES_MAX, "the walk does not end");
                assert_eq!(step.is_truncated, step.code.last() == Some(&1));
                found.push((step.code, step.numbers.into_iter().map(DocumentNumber::counter).collect()));
            }
            assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{members:?}");
        }
    }

    async fn check(&mut self) {
        let reader = self.reader().await;
        assert_eq!(reader.document_count(), self.documents.len() as u64);
        let steps = self.random_place().0;
        let covers = reader.covers(&index_path(&steps)) == Coverage::Whole;
        assert_eq!(covers, self.policy.is_indexed(&steps), "{steps:?}");
        for _ in 0..4 {
            self.check_lookup().await;
            self.check_walk().await;
        }
        self.check_composite().await;
    }
}

fn tuple_code(naive: &Naive, members: &[(&str, bool)]) -> Vec<u8> {
    let mut body = naive.body.clone();
    body["_ts"] = json!(naive.ts);
    let mut tuple = Vec::new();
    for (name, descending) in members {
        let value = body.get(*name);
        let mut member = value.map_or(vec![8], term_code);
        if *descending {
            member.iter_mut().for_each(|byte| *byte = 255 - *byte);
        }
        tuple.extend(member);
        if value.is_some_and(|value| term_code(value) != code(value)) {
            tuple.push(1);
            return tuple;
        }
    }
    tuple.push(0);
    tuple
}

#[tokio::test]
async fn lookups_and_walks_are_those_of_a_naive_model() {
    let mut runs = 0;
    for seed in 0..8 {
        let mut case = Case::new(seed).await;
        for _ in 0..40 {
            case.write_batch().await;
            case.check().await;
        }
        runs += case.index_writer.run_pieces().len();
    }
    assert!(runs > 4, "some of it must be on disk");
}
