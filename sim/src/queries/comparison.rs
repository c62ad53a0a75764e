//! Product and rules over the same container: the same rows on every page, also while documents change in between.
//!
//! Rows and ordered distinct results are compared page by page: a page must hold the first rows after the last one
//! returned, of the current documents. The rules do not know the order of groups and unordered distinct results; these
//! are requested twice in pages of different sizes without a change in between, and must be in the same order with the
//! expected content.

use super::definition::{Computed, definition, lowered};
use super::draw;
use super::random_query::{RandomQuery, Reach, Shape};
use super::rules::{self, Item, Times, canonical};
use crate::ambient::SeededAmbient;
use crate::random::Random;
use crate::world::CheckFailure;
use engine::{
    Account, AccountKey, Container, Engine, EngineOptions, Keyed, Principal, QueryPage, QueryRequest,
    QueryRow, Scope,
};
use hmac::{Hmac, KeyInit, Mac};
use kv::{CommitMode, Store};
use model::{Ambient, Fault, PartitionOrdinal, Throughput};
use partition::keyspace::SPACES;
use plan::{Condition, DocumentOperation, Item as NewItem, Mutation, Outcome, StoredDocument, Target};
use serde_json::{Map, Value as Json};
use sha2::Sha256;
use std::collections::BTreeMap;
use std::sync::Arc;
use value::Document;

const ACCOUNT_KEY: &[u8] = b"key of the duel";
/// Queries per container.
const QUERIES: u64 = 50;
/// Most initial documents of a container.
const DOCUMENTS_MAX: u64 = 45;
/// Page sizes: small ones, so that much is left, and one for everything.
const PAGES: [u64; 6] = [1, 2, 3, 6, 12, 60];
/// Percentage of queries before which the container is redefined.
const REDEFINITION_PERCENT: u64 = 3;
/// Longest text of a continuation.
const CONTINUATION_MAX: usize = 1024;

/// Numbers of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Pairs of query and documents.
    pub pairs: u64,
    /// Pages that were compared.
    pub pages: u64,
    /// Rows on these pages.
    pub rows: u64,
}

/// Runs one seed: a container and its queries. Fails with the difference.
pub fn compare(seed: u64) -> Result<Tally, CheckFailure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.map_err(|error| error.to_string())?.block_on(async move {
        let mut random = Random::seeded(seed);
        let mut comparison = Comparison::new(seed, &mut random).await.map_err(|fault| fault.to_string())?;
        for _ in 0..random.below(DOCUMENTS_MAX + 1) {
            comparison.change(&mut random).await?;
        }
        for round in 0..QUERIES {
            if random.chance(REDEFINITION_PERCENT) {
                let computed = Computed::draw(&mut random);
                comparison.redefine(&mut random, computed).await?;
            }
            let random_query = draw::random_query(&mut random, comparison.partitions);
            let compared = match &random_query.shape {
                Shape::Rows { order, distinct, .. } if !order.is_empty() || !distinct => {
                    comparison.compare_pages(&random_query, &mut random).await
                }
                Shape::Rows { .. } | Shape::Folds(_) | Shape::Groups { .. } => {
                    comparison.compare_contents(&random_query, &mut random).await
                }
            };
            compared.map_err(|failure| {
                format!(
                    "seed {seed}, round {round}: {}\n{:?}\n{failure}",
                    random_query.sql(),
                    random_query.reach
                )
            })?;
            comparison.tally.pairs += 1;
        }
        let pass = comparison.engine.access().read_catalog(&comparison.principal, &*comparison.container);
        let pass = pass.map_err(|fault| fault.to_string())?;
        let findings = comparison.engine.audit_index(&pass).await.map_err(|fault| fault.to_string())?;
        if let Some(finding) = findings.first() {
            return Err(format!("seed {seed}: the index says {finding} (and {} more)", findings.len() - 1));
        }
        comparison.engine.close().await.map_err(|fault| fault.to_string())?;
        Ok(comparison.tally)
    })
}

/// One container, in the product and in the rules.
struct Comparison {
    engine: Arc<Engine>,
    principal: Principal,
    container: Arc<Container>,
    ambient: Arc<SeededAmbient>,
    partitions: u32,
    /// TTL of documents without one of their own, if they can expire.
    default_ttl: Option<i64>,
    computed: Computed,
    items: BTreeMap<(String, String), Item>,
    tally: Tally,
}

impl Comparison {
    async fn new(seed: u64, random: &mut Random) -> Result<Comparison, Fault> {
        let ambient = Arc::new(SeededAmbient::seeded(seed));
        let store = Store::memory(&SPACES, CommitMode::Thread);
        let options = EngineOptions {
            keys: vec![AccountKey::new(ACCOUNT_KEY)],
            computed_reader: lowered,
            ..EngineOptions::default()
        };
        let engine = Engine::open(store, options, Arc::clone(&ambient) as Arc<_>).await?;
        let unsigned = || Fault::Internal("the signature was refused".to_owned());
        let mut mac = Hmac::<Sha256>::new_from_slice(ACCOUNT_KEY).map_err(|_| unsigned())?;
        mac.update(b"payload");
        let signature = mac.finalize().into_bytes();
        let principal = engine.access().verify_signature(b"payload", &signature, 1).ok_or_else(unsigned)?;
        let partitions = u32::try_from(random.between(1, 8)).unwrap_or(1);
        let default_ttl = draw::default_ttl(random);
        let computed = Computed::draw(random);
        let definition = definition(random, computed, default_ttl)?.checked()?;
        let pass = engine.access().change_catalog(&principal, Account)?;
        let database = engine.create_database(pass, "d", None).await?;
        let throughput = Throughput::manual(u64::from(partitions) * 6_000)?;
        let pass = engine.access().change_catalog(&principal, &*database)?;
        let container = engine.create_container(pass, definition, Some(throughput)).await?;
        let tally = Tally::default();
        let items = BTreeMap::new();
        Ok(Comparison {
            engine,
            principal,
            container,
            ambient,
            partitions,
            default_ttl,
            computed,
            items,
            tally,
        })
    }

    /// Writes or deletes a document, or advances the time.
    async fn change(&mut self, random: &mut Random) -> Result<(), CheckFailure> {
        if random.chance(8) {
            self.ambient.jump_seconds(i64::try_from(random.below(12)).unwrap_or(0));
            return Ok(());
        }
        if random.chance(2) {
            // Other computed properties would make it another query, with other pages.
            return self.redefine(random, self.computed).await;
        }
        let (key, id, body) = draw::document(random);
        let place = (key.clone(), id.clone());
        let is_there = self.items.get(&place).is_some_and(|item| !self.is_expired(item));
        if is_there && random.chance(30) {
            let delete = Mutation::Delete { target: Target::Id(id), condition: Condition::None };
            self.write(&key, delete).await?;
            self.items.remove(&place);
            return Ok(());
        }
        let stored = self.put(&key, &body).await?;
        let seen = self.computed.seen(&body);
        self.items.insert(place, Item { number: stored.number.raw(), ts: stored.ts(), body, seen });
        Ok(())
    }

    async fn put(&self, key: &str, body: &Map<String, Json>) -> Result<StoredDocument, CheckFailure> {
        let text = Json::Object(body.clone()).to_string();
        let document = Document::from_json(text.as_bytes()).map_err(|error| error.to_string())?;
        let item = NewItem::new(document).map_err(|fault| fault.to_string())?;
        let written = self.write(key, Mutation::Upsert { item, condition: Condition::None }).await?;
        Ok(written.ok_or("an upsert gives a document")?)
    }

    /// Deletes expired documents. Otherwise another default would bring back those not swept yet, which are unknown.
    async fn clear_expired(&mut self) -> Result<(), CheckFailure> {
        let is_expired = |(_, item): &(&(String, String), &Item)| self.is_expired(item);
        let expired: Vec<_> = self.items.iter().filter(is_expired).map(|(place, _)| place.clone()).collect();
        for (key, id) in expired {
            let mut body = Map::new();
            body.insert("id".to_owned(), id.clone().into());
            body.insert("pk".to_owned(), key.clone().into());
            self.put(&key, &body).await?;
            let delete = Mutation::Delete { target: Target::Id(id.clone()), condition: Condition::None };
            self.write(&key, delete).await?;
            self.items.remove(&(key, id));
        }
        Ok(())
    }

    /// Gives the container another indexing policy and sometimes another default TTL.
    async fn redefine(&mut self, random: &mut Random, computed: Computed) -> Result<(), CheckFailure> {
        if random.chance(50) {
            self.clear_expired().await?;
            self.default_ttl = draw::default_ttl(random);
        }
        let wanted = definition(random, computed, self.default_ttl).map_err(|fault| fault.to_string())?;
        let access = self.engine.access();
        let pass = access.change_catalog(&self.principal, &*self.container);
        let pass = pass.map_err(|fault| fault.to_string())?;
        let replaced = self.engine.replace_container(pass, wanted.into(), &Condition::None).await;
        self.container = replaced.map_err(|fault| format!("a definition was refused: {fault}"))?;
        self.computed = computed;
        for item in self.items.values_mut() {
            item.seen = computed.seen(&item.body);
        }
        Ok(())
    }

    async fn write(&self, key: &str, mutation: Mutation) -> Result<Option<StoredDocument>, CheckFailure> {
        let describe = |fault: Fault| format!("a write was refused: {fault}");
        let definition = &self.container.definition().partition_key;
        let key = definition.key(vec![key.into()]).map_err(|fault| describe(fault.into()))?;
        let keyed = Keyed::new(&self.container, Some(key), DocumentOperation::Write(mutation));
        let keyed = keyed.map_err(|fault| describe(fault.into()))?;
        let pass = self.engine.access().write(&self.principal, keyed);
        let written = self.engine.write(pass.map_err(|fault| describe(fault.into()))?).await;
        let receipt = written.map_err(|refusal| describe(refusal.fault))?;
        Ok(match receipt.outcome {
            Outcome::Created(stored) | Outcome::Replaced(stored) => Some(stored),
            Outcome::Deleted | Outcome::Read(_) | Outcome::NotModified(_) | Outcome::Nothing => None,
        })
    }

    fn is_expired(&self, item: &Item) -> bool {
        let own = item.body.get("ttl").and_then(Json::as_u64);
        let seconds = self.default_ttl.and_then(|default| own.or(u64::try_from(default).ok()));
        seconds.is_some_and(|seconds| item.ts + seconds <= self.ambient.now_seconds())
    }

    /// The current documents in the scope of a query.
    fn items(&self, random_query: &RandomQuery) -> Vec<Item> {
        let is_meant = |key: &str, item: &Item| match &random_query.reach {
            Reach::All => true,
            Reach::Key(wanted) => key == wanted,
            // The number of a document contains the partition that created it.
            Reach::Partition(ordinal) => item.number >> 40 == u64::from(*ordinal),
        };
        let items =
            self.items.iter().filter(|((key, _), item)| is_meant(key, item) && !self.is_expired(item));
        items.map(|(_, item)| item.clone()).collect()
    }

    async fn page(
        &mut self,
        random_query: &RandomQuery,
        items_max: usize,
        continuation: Option<String>,
    ) -> Result<QueryPage, CheckFailure> {
        let tree = sql::parse(&random_query.sql()).map_err(|faults| format!("{faults:?}"))?;
        let query = sql::lower(&tree, &sql::Parameters::none()).map_err(|faults| format!("{faults:?}"))?;
        let scope = match &random_query.reach {
            Reach::All => Scope::Container,
            Reach::Partition(ordinal) => Scope::Range(PartitionOrdinal(*ordinal), None),
            Reach::Key(key) => {
                let definition = &self.container.definition().partition_key;
                let key = definition.key(vec![key.as_str().into()]);
                Scope::Key(key.map_err(|fault| fault.to_string())?)
            }
        };
        let request = QueryRequest {
            query: Arc::new(query),
            items_max,
            continuation,
            session: Vec::new(),
            ends_at_ranges: false,
            text_bytes: 0,
        };
        let pass = self.engine.access().query_documents(&self.principal, &self.container, scope);
        let pass = pass.map_err(|fault| fault.to_string())?;
        let page = self.engine.query(pass, &request).await.map_err(|fault| format!("refused: {fault}"))?;
        if page.rows.len() > items_max {
            return Err(format!("{} rows on a page of {items_max}", page.rows.len()));
        }
        if page.continuation.as_ref().is_some_and(|next| next.text.len() > CONTINUATION_MAX) {
            return Err("a continuation of more than 1 KB".to_owned());
        }
        self.tally.pages += 1;
        self.tally.rows += page.rows.len() as u64;
        Ok(page)
    }

    /// Page by page, with changes in between.
    async fn compare_pages(
        &mut self,
        random_query: &RandomQuery,
        random: &mut Random,
    ) -> Result<(), CheckFailure> {
        let changes_percent = *random.pick(&[0, 0, 60]);
        let (mut offset, mut limit) = random_query.bounds.map_or((0, u64::MAX), |bounds| bounds);
        let mut last: Option<rules::Place> = None;
        let mut continuation = None;
        let query = self.ambient.now_seconds();
        loop {
            let items_max = *random.pick(&PAGES);
            let times = Times { query, page: self.ambient.now_seconds() };
            let mut rows = rules::rows(random_query, &self.items(random_query), times);
            if let Some(last) = &last {
                rows.retain(|row| rules::compare_places(random_query, &row.place, last).is_gt());
            }
            let is_begun = continuation.is_some();
            let page = self.page(random_query, usize::try_from(items_max).unwrap_or(1), continuation).await?;
            let found: Vec<String> = page.rows.iter().map(row_text).collect::<Result<_, _>>()?;
            let skipped = rows.iter().skip(usize::try_from(offset).unwrap_or(usize::MAX));
            let most = usize::try_from(items_max.min(limit)).unwrap_or(usize::MAX);
            let expected: Vec<&rules::Row> = skipped.take(most).collect();
            let texts: Vec<String> = expected.iter().map(|row| canonical(&row.result)).collect();
            if found != texts {
                return Err(difference(&found, &texts, is_begun));
            }
            let given = expected.len() as u64;
            let passed = rows.len().min(usize::try_from(offset + given).unwrap_or(usize::MAX));
            let has_more = rows.len() > passed && limit > given;
            if let Some(row) = passed.checked_sub(1).and_then(|last| rows.get(last)) {
                last = Some(row.place.clone());
            }
            offset = offset.saturating_sub(passed as u64);
            if limit != u64::MAX {
                limit -= given;
            }
            match page.continuation {
                Some(next) => continuation = Some(next.text),
                None if has_more => {
                    return Err(format!("the pages end with {} rows left", rows.len() - passed));
                }
                None => return Ok(()),
            }
            if random.chance(changes_percent) {
                for _ in 0..random.between(1, 6) {
                    self.change(random).await?;
                }
            }
        }
    }

    /// All pages, twice, without a change in between.
    async fn compare_contents(
        &mut self,
        random_query: &RandomQuery,
        random: &mut Random,
    ) -> Result<(), CheckFailure> {
        let mut answers = Vec::new();
        for _ in 0..2 {
            let items_max = usize::try_from(*random.pick(&PAGES)).unwrap_or(1);
            let (mut rows, mut continuation) = (Vec::new(), None);
            loop {
                let page = self.page(random_query, items_max, continuation).await?;
                for row in &page.rows {
                    rows.push(row_text(row)?);
                }
                continuation = page.continuation.map(|next| next.text);
                if continuation.is_none() {
                    break;
                }
            }
            answers.push(rows);
        }
        if answers[0] != answers[1] {
            return Err(difference(&answers[0], &answers[1], true));
        }
        let items = self.items(random_query);
        let now = self.ambient.now_seconds();
        let times = Times { query: now, page: now };
        let rows = rules::rows(random_query, &items, times).into_iter().map(|row| row.result);
        let mut expected: Vec<String> = match &random_query.shape {
            Shape::Rows { .. } => rows.map(|result| canonical(&result)).collect(),
            Shape::Folds(_) | Shape::Groups { .. } => {
                rules::folded(random_query, &items, times).iter().map(canonical).collect()
            }
        };
        let mut found = answers.swap_remove(0);
        if let Some((offset, limit)) = random_query.bounds {
            let left = (expected.len() as u64).saturating_sub(offset).min(limit);
            let is_known = found.iter().all(|row| expected.contains(row));
            let is_right = found.len() as u64 == left && is_known;
            return if is_right { Ok(()) } else { Err(difference(&found, &expected, false)) };
        }
        found.sort();
        expected.sort();
        if found == expected { Ok(()) } else { Err(difference(&found, &expected, false)) }
    }
}

fn row_text(row: &QueryRow) -> Result<String, CheckFailure> {
    let text = match row {
        QueryRow::Document(stored) => stored.document.to_value().to_json(),
        QueryRow::Value(value) => value.to_json(),
    };
    let mut json: Json = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    if let (QueryRow::Value(_), Json::Object(members)) = (row, &mut json) {
        plan::ADDED_PROPERTIES.iter().for_each(|name| drop::<Option<Json>>(Map::remove(members, *name)));
    }
    Ok(canonical(&json))
}

fn difference(found: &[String], expected: &[String], is_later: bool) -> CheckFailure {
    let page = if is_later { "a later page" } else { "the first page" };
    format!(
        "{page} gives {} rows\n{}\ninstead of {}\n{}",
        found.len(),
        found.join("\n"),
        expected.len(),
        expected.join("\n")
    )
}
