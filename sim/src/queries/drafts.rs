//! Uncommitted changes against the same changes committed: every query must return the same over both.
//!
//! A partition gets random documents and then drafts of random writes. Queries run over the view of each draft. Then it
//! is committed, and the partition must return the same results, including system properties. Before that it must
//! return the results from before the draft: a draft leaves nothing in any cache.

use super::comparison::Tally;
use super::definition::{Computed, definition, lowered};
use super::draw;
use super::random_query::Reach;
use crate::ambient::{START_SECONDS, SeededAmbient};
use crate::random::Random;
use crate::world::CheckFailure;
use eval::QueryMemory;
use exec::{
    NoUserFunctions, PageRequest, ParsedProperty, Part, PartScope, PartSource, Program, QueryBounds, QueryRow,
};
use kv::{Batch, CommitMode, Durability, Store};
use model::{
    Ambient, ContainerDefinition, ContainerNumber, DatabaseNumber, EffectiveRange, Fault, PartitionOrdinal,
};
use partition::index::{IndexMemory, IndexOptions};
use partition::keyspace::{self, PartitionId, SPACES};
use partition::{
    ContainerShape, CurrentShape, PartitionEnvironment, PartitionMetrics, PartitionSpec, PartitionView,
    PhysicalPartition, RecordCache, new_partition_rows,
};
use plan::{
    Condition, DocumentOperation, Item, LogicalKey, Mutation, Outcome, Rename, Returned, StoredDocument,
    SystemProperties, Target, Transaction,
};
use serde_json::Value as Json;
use std::sync::Arc;
use value::Document;

const SYSTEM: SystemProperties = SystemProperties {
    database: DatabaseNumber(1),
    container: ContainerNumber(1),
    link: |rid| rid.to_string(),
};
/// Most initial documents of a partition, and most writes of a round.
const DOCUMENTS_MAX: u64 = 45;
const WRITES_MAX: u64 = 12;
/// Drafts of a partition, and queries over each.
const ROUNDS: usize = 3;
const QUERIES: usize = 12;
/// Most seconds between the writes and a query.
const LATER_MAX: u64 = 12;
/// Most pages of one query: each has a row, except a last one.
const PAGES_MAX: usize = 4000;
/// Few enough that index runs are written.
const FLUSH_DOCUMENTS: usize = 20;

/// A query and its results over the draft.
struct Asked {
    sql: String,
    reach: Reach,
    items_max: usize,
    /// Seconds after the writes: some documents have expired then.
    later: u64,
    /// The results before the draft.
    before: Vec<String>,
    drafted: Vec<String>,
}

/// Runs one seed.
pub fn drafts(seed: u64) -> Result<Tally, CheckFailure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.map_err(|error| error.to_string())?.block_on(async move {
        let mut random = Random::seeded(seed);
        let mut desk = Clients::new(seed, &mut random).await.map_err(|fault| fault.to_string())?;
        desk.play(&mut random).await.map_err(|failure| format!("seed {seed}: {failure}"))?;
        desk.partition.close().await.map_err(|fault| fault.to_string())?;
        Ok(desk.tally)
    })
}

struct Clients {
    partition: Arc<PhysicalPartition>,
    definition: ContainerDefinition,
    computed: Vec<ParsedProperty>,
    ambient: Arc<SeededAmbient>,
    tally: Tally,
}

impl Clients {
    async fn new(seed: u64, random: &mut Random) -> Result<Clients, Fault> {
        let ambient = Arc::new(SeededAmbient::seeded(seed));
        let store = Store::memory(&SPACES, CommitMode::Thread);
        let computed = Computed::draw(random);
        let default_ttl = draw::default_ttl(random);
        let definition = definition(random, computed, default_ttl)?.checked()?;
        let flush_documents = if random.chance(50) { FLUSH_DOCUMENTS } else { usize::MAX };
        let options = IndexOptions { flush_documents, ..IndexOptions::default() };
        let environment = PartitionEnvironment {
            store: store.clone(),
            cache: Arc::new(RecordCache::new(1 << 20, seed)),
            ambient: Arc::clone(&ambient) as Arc<_>,
            durability: Durability::Sync,
            index: IndexMemory::new(options),
            metrics: PartitionMetrics::default(),
        };
        let id = PartitionId { container: SYSTEM.container, ordinal: PartitionOrdinal(0) };
        let mut batch = Batch::default();
        new_partition_rows(id, 0, &mut batch);
        let committed = store.submit(&store.lane(), batch, Durability::Sync).await;
        committed.map_err(|fault| Fault::Internal(format!("{fault:?}")))?;
        let shape = Arc::new(CurrentShape::new(ContainerShape::new(&definition, lowered)));
        let spec = PartitionSpec { id, range: EffectiveRange::full(), ancestors: Vec::new() };
        let partition = Arc::new(PhysicalPartition::open(environment, spec, shape).await?);
        let computed = computed.queries().iter();
        let computed =
            computed.filter_map(|(name, text)| Some(((*name).to_owned(), lowered(text)?))).collect();
        Ok(Clients { partition, definition, computed, ambient, tally: Tally::default() })
    }

    async fn play(&mut self, random: &mut Random) -> Result<(), CheckFailure> {
        for _ in 0..random.below(DOCUMENTS_MAX + 1) {
            let write = self.drawn_write(random)?;
            // Some are refused: they replace or delete missing documents.
            drop(self.partition.execute(write).await);
            if random.chance(8) {
                self.ambient.jump_seconds(i64::try_from(random.below(12)).unwrap_or(0));
            }
        }
        for _ in 0..ROUNDS {
            self.round(random).await?;
        }
        Ok(())
    }

    /// One draft: its writes, the queries over it, and its commit.
    async fn round(&mut self, random: &mut Random) -> Result<(), CheckFailure> {
        let live = PartSource::Live(Arc::clone(&self.partition));
        let key = self.drawn_write(random)?.key;
        let draft = self.partition.begin(key.clone(), None).await;
        let mut draft = draft.map_err(|fault| fault.to_string())?;
        let mut drafted = Vec::new();
        for _ in 0..random.below(WRITES_MAX) {
            let write = self.drawn_write(random)?;
            if write.key != key {
                // The draft has one logical partition. Its view must follow the writes after it too.
                self.rows(&self.asked(random), &PartSource::Fixed(draft.view())).await?;
                continue;
            }
            for operation in write.operations {
                // Some are refused: they replace or delete missing documents.
                drafted.extend(draft.execute(operation).await.ok().map(|(outcome, _)| described(&outcome)));
            }
        }
        let view = PartSource::Fixed(draft.view());
        let mut asked = Vec::new();
        for _ in 0..QUERIES {
            let mut one = self.asked(random);
            one.before = self.rows(&one, &live).await?;
            one.drafted = self.rows(&one, &view).await?;
            asked.push(one);
        }
        for asked in &asked {
            let now = self.rows(asked, &live).await?;
            compare("a draft has changed the partition", asked, &asked.before, &now)?;
        }
        drop(view);
        let done = self.partition.commit(draft).await.map_err(|refusal| format!("{refusal:?}"))?;
        let committed: Vec<_> = done.outcomes.iter().map(|(outcome, _)| described(outcome)).collect();
        if committed != drafted {
            return Err(format!("drafted: {drafted:#?}\ncommitted: {committed:#?}"));
        }
        for asked in asked {
            let committed = self.rows(&asked, &live).await?;
            compare("the committed writes give other rows", &asked, &asked.drafted, &committed)?;
            self.tally.pairs += 1;
            self.tally.rows += committed.len() as u64;
        }
        Ok(())
    }

    /// A random query without its results.
    fn asked(&self, random: &mut Random) -> Asked {
        let random_query = draw::random_query(random, 1);
        Asked {
            sql: random_query.sql(),
            reach: random_query.reach,
            items_max: usize::try_from(random.between(1, 30)).unwrap_or(1),
            later: random.below(LATER_MAX),
            before: Vec::new(),
            drafted: Vec::new(),
        }
    }

    /// A write of one document: stored, deleted or renamed.
    fn drawn_write(&self, random: &mut Random) -> Result<Transaction, CheckFailure> {
        let (key, id, mut body) = draw::document(random);
        let target = Target::Id(id.clone());
        let condition = Condition::None;
        if random.chance(25) {
            return self.transaction(&key, Mutation::Delete { target, condition });
        }
        let is_rename = random.chance(15);
        if is_rename {
            body.insert("id".to_owned(), format!("{id}-{}", random.below(3)).into());
        }
        let text = Json::Object(body).to_string();
        let document = Document::from_json(text.as_bytes()).map_err(|error| error.to_string())?;
        let item = Item::new(document).map_err(|fault| fault.to_string())?;
        let mutation = match random.below(4) {
            _ if is_rename => Mutation::Replace { target, item, condition, rename: Rename::Allowed },
            0 => Mutation::Create { item },
            _ => Mutation::Upsert { item, condition },
        };
        self.transaction(&key, mutation)
    }

    fn transaction(&self, key: &str, mutation: Mutation) -> Result<Transaction, CheckFailure> {
        let operations = vec![DocumentOperation::Write(mutation)];
        Ok(Transaction { key: self.logical(key)?, operations, returned: Returned::All })
    }

    fn logical(&self, key: &str) -> Result<LogicalKey, CheckFailure> {
        let definition = &self.definition.partition_key;
        let partition_key = definition.key(vec![key.into()]);
        let partition_key = partition_key.map_err(|fault| fault.to_string())?;
        let effective = definition.effective_key(&partition_key);
        Ok(LogicalKey { partition_key, effective })
    }

    fn part(&self, reach: &Reach, source: PartSource) -> Result<Part, CheckFailure> {
        let (keys, scope) = match reach {
            Reach::Key(key) => {
                let prefix = keyspace::logical_prefix(SYSTEM.container, &self.logical(key)?);
                (keyspace::logical_range(&prefix), PartScope::Logical(keyspace::logical_key(&prefix)))
            }
            Reach::All | Reach::Partition(_) => {
                (keyspace::effective_range(SYSTEM.container, &EffectiveRange::full()), PartScope::Whole)
            }
        };
        Ok(Part { source, keys, scope, ancestors: Vec::new() })
    }

    /// All rows of a query, page by page.
    async fn rows(&mut self, asked: &Asked, source: &PartSource) -> Result<Vec<String>, CheckFailure> {
        let Asked { sql, reach, items_max, later, .. } = asked;
        let clock = SeededAmbient::seeded(0);
        let ahead = (self.ambient.now_seconds() - START_SECONDS) + later;
        clock.jump_seconds(i64::try_from(ahead).map_err(|error| error.to_string())?);
        let clock = Arc::new(clock);
        let query = Arc::new(lowered(sql).ok_or_else(|| format!("not a query: {sql}"))?);
        let program = Program::new(query, &self.computed, SYSTEM).map_err(|fault| fault.to_string())?;
        let program = Arc::new(program);
        let view = match source {
            PartSource::Live(partition) => partition.view().await.map_err(|fault| fault.to_string())?,
            PartSource::Fixed(view) => PartitionView::clone(view),
        };
        let source = PartSource::Fixed(Arc::new(view.at_seconds(clock.now_seconds())));
        let part = self.part(reach, source)?;
        let (mut rows, mut resume) = (Vec::new(), None);
        for _ in 0..PAGES_MAX {
            let request = PageRequest {
                program: Arc::clone(&program),
                items_max: *items_max,
                bytes_max: usize::MAX,
                ends_at_ranges: false,
                resume,
                bounds: QueryBounds::default(),
                memory: Arc::new(QueryMemory::new(1 << 30)),
                user_functions: Arc::new(NoUserFunctions),
                parts: vec![part.clone()],
            };
            let page = exec::page(Arc::new(request), Arc::clone(&clock) as Arc<_>, Arc::default());
            let page = page.await.map_err(|fault| format!("{sql}: {fault}"))?;
            self.tally.pages += 1;
            for row in &page.rows {
                rows.push(match row {
                    QueryRow::Value(value) => value.to_json(),
                    QueryRow::Document(stored) => {
                        SYSTEM.extend(stored).map_err(|error| error.to_string())?.to_value().to_json()
                    }
                });
            }
            resume = page.resume;
            if resume.is_none() {
                return Ok(rows);
            }
        }
        Err(format!("{sql}: more than {PAGES_MAX} pages"))
    }
}

/// The result of a write as text, without the LSN, which is provisional in a draft.
fn described(outcome: &Outcome) -> String {
    let stored = |stored: &StoredDocument| {
        let StoredDocument { number, etag, time, document, .. } = stored;
        format!("{number:?} {etag} {time:?} {document:?}")
    };
    match outcome {
        Outcome::Created(document) => format!("created {}", stored(document)),
        Outcome::Replaced(document) => format!("replaced {}", stored(document)),
        Outcome::Deleted | Outcome::Read(_) | Outcome::NotModified(_) | Outcome::Nothing => {
            format!("{outcome:?}")
        }
    }
}

fn compare(what: &str, asked: &Asked, expected: &[String], found: &[String]) -> Result<(), CheckFailure> {
    if expected == found {
        return Ok(());
    }
    let Asked { sql, reach, items_max, later, .. } = asked;
    Err(format!("{what}: {sql}, {reach:?}, pages of {items_max}, {later} s later\n{expected:#?}\n{found:#?}"))
}
