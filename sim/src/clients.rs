//! Simulated clients: call the engine and record requests and answers.
//!
//! Translates between the types of the checker and those of the product. Checks nothing.

use crate::feeds::QUERIES;
use crate::history::{Seen, Stored};
use crate::naive::{Body, Edit, Precondition, Selector, Step};
use crate::queries::lowered;
use crate::scenario::Scope;
use crate::world::{CheckFailure, partition_key};
use engine::{
    AfterRefusal, Container, Continuation, DocumentAddress, Engine, FeedRequest, Keyed, LockWhen, Principal,
    QueryRequest, QueryRow, ReadOptions, Transaction, TransactionOptions,
};
use model::{DocumentNumber, Fault, PartitionKey, PartitionOrdinal};
use plan::{Condition, DocumentOperation, Item, Mutation, Outcome, Rename, Returned, StoredDocument, Target};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use value::{Document, PatchOperation, ValueRef};

/// Time of a transaction; timers advance only while nothing else can be done.
const TRANSACTION_TIME_MAX: Duration = Duration::from_secs(5);
/// Documents per page of a list, and most pages.
const LIST_PAGE: usize = 2;
const LIST_PAGES_MAX: usize = 100;

/// A request and its answer.
#[derive(Clone, Debug)]
pub struct Record {
    /// The client's lane.
    pub lane: usize,
    /// When it was sent.
    pub invoked: u64,
    /// When the answer arrived; `None` if it never did.
    pub answered: Option<u64>,
    /// The request.
    pub call: Call,
    /// The answer.
    pub answer: Option<Answer>,
}

/// A request of a client.
#[derive(Clone, Debug)]
pub enum Call {
    /// Steps of one transaction.
    Steps {
        /// Index of the partition key.
        key: usize,
        /// The steps.
        steps: Vec<Step>,
    },
    /// Steps of an interactive transaction, which ends with the first one that is refused.
    Transaction {
        /// Index of the partition key.
        key: usize,
        /// The steps.
        steps: Vec<Step>,
    },
    /// The next page of a feed or a query.
    Page {
        /// Documents of the feed.
        scope: Scope,
        /// The query, if it is one.
        query: Option<usize>,
        /// Most documents.
        items_max: usize,
        /// Continuation of the previous page.
        continuation: Option<String>,
    },
}

/// An answer to a client.
#[derive(Clone, Debug)]
pub enum Answer {
    /// The results of the steps, or the failed step and its fault.
    Steps(Result<Vec<Seen>, (usize, Fault)>),
    /// A page of a feed or a query.
    Page(Result<Page, Fault>),
}

/// A page of a feed or a query.
#[derive(Clone, Debug)]
pub struct Page {
    /// The documents.
    pub documents: Vec<StoredDocument>,
    /// Where to continue, if there may be more.
    pub continuation: Option<String>,
}

/// The next action of a lane.
#[derive(Clone, Debug)]
pub struct PreparedRequest {
    /// Scheduler turns to wait first.
    pub pause: u64,
    /// The request.
    pub kind: PreparedKind,
}

/// The request of an action.
#[derive(Clone, Debug)]
#[allow(missing_docs)] // The names say it.
pub enum PreparedKind {
    Single(usize, Step),
    Batch(usize, Vec<Step>),
    Bulk(Vec<(usize, Step)>),
    Transaction(PreparedTransaction),
    Page { scope: Scope, items_max: usize, query: Option<usize> },
}

/// An interactive transaction.
#[derive(Clone, Debug)]
pub struct PreparedTransaction {
    /// Index of the partition key.
    pub key: usize,
    /// The steps.
    pub steps: Vec<Step>,
    /// Scheduler turns after each step.
    pub turns: u64,
    /// Whether it locks its partition key at the beginning.
    pub is_locked: bool,
}

/// The open feed or query of a lane.
#[derive(Clone, Debug)]
pub struct OpenFeed {
    /// Documents of the feed.
    pub scope: Scope,
    /// The query, if it is one.
    pub query: Option<usize>,
    /// Continuation of the previous page.
    pub continuation: String,
}

/// The actions of a lane, and its open feed.
pub type Lane = (Vec<PreparedRequest>, Option<OpenFeed>);

/// Converts a stored document into the checker's type.
pub(crate) fn stored_of(stored: &StoredDocument) -> Result<Stored, CheckFailure> {
    let mut text = Vec::new();
    stored.document.root().write_json(&mut text);
    let body: Body = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
    Ok(Stored {
        number: stored.number.raw(),
        ordinal: stored.etag.ordinal.0,
        lsn: stored.lsn.0,
        stamp: stored.etag.stamp,
        etag: stored.etag.to_string(),
        ts: stored.ts(),
        body,
    })
}

/// The clients of one wave, and the record of their calls.
pub(crate) struct Clients {
    pub(crate) engine: Arc<Engine>,
    pub(crate) principal: Principal,
    pub(crate) container: Arc<Container>,
    records: Mutex<Vec<Record>>,
    events: AtomicU64,
}

impl Clients {
    pub(crate) fn new(engine: Arc<Engine>, principal: Principal, container: Arc<Container>) -> Clients {
        Clients { engine, principal, container, records: Mutex::default(), events: AtomicU64::new(1) }
    }

    pub(crate) fn records(&self) -> MutexGuard<'_, Vec<Record>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn event(&self) -> u64 {
        self.events.fetch_add(1, Ordering::SeqCst)
    }

    fn invoke(&self, lane: usize, invoked: u64, call: Call) -> usize {
        let mut records = self.records();
        records.push(Record { lane, invoked, answered: None, call, answer: None });
        records.len() - 1
    }

    fn answer(&self, record: usize, answered: u64, answer: Answer) {
        if let Some(record) = self.records().get_mut(record) {
            record.answered = Some(answered);
            record.answer = Some(answer);
        }
    }

    /// Runs all lanes concurrently.
    pub(crate) async fn play(self: Arc<Clients>, lanes: Vec<Lane>) -> Result<(), CheckFailure> {
        let walk = |(lane, (requests, feed))| tokio::spawn(Arc::clone(&self).walk(lane, requests, feed));
        let lanes: Vec<_> = lanes.into_iter().enumerate().map(walk).collect();
        for lane in lanes {
            lane.await.map_err(|panic| format!("a call panicked: {panic}"))?;
        }
        Ok(())
    }

    async fn walk(
        self: Arc<Clients>,
        lane: usize,
        requests: Vec<PreparedRequest>,
        mut feed: Option<OpenFeed>,
    ) {
        for request in requests {
            for _ in 0..request.pause {
                tokio::task::yield_now().await;
            }
            match request.kind {
                PreparedKind::Single(key, step) => self.single(lane, key, step).await,
                PreparedKind::Batch(key, steps) => self.batch(lane, key, steps).await,
                PreparedKind::Bulk(parts) => self.bulk(lane, parts).await,
                PreparedKind::Transaction(transaction) => self.transaction(lane, transaction).await,
                PreparedKind::Page { scope, items_max, query } => {
                    self.page(lane, (scope, query), items_max, &mut feed).await;
                }
            }
        }
    }

    async fn single(&self, lane: usize, key: usize, step: Step) {
        let steps = vec![step.clone()];
        let record = self.invoke(lane, self.event(), Call::Steps { key, steps });
        let key = partition_key(&self.container, key);
        let outcome = match operation(&step) {
            Ok(DocumentOperation::Read { target, condition }) => self.read(key, target, condition).await,
            Ok(DocumentOperation::Write(mutation)) => self.write(key, mutation).await,
            Err(fault) => Err(fault),
        };
        let seen = outcome.and_then(|outcome| seen_of(&outcome));
        let answer = Answer::Steps(seen.map(|seen| vec![seen]).map_err(|fault| (0, fault)));
        self.answer(record, self.event(), answer);
    }

    async fn read(&self, key: PartitionKey, target: Target, condition: Condition) -> Result<Outcome, Fault> {
        let address = DocumentAddress { key, target };
        let pass = self.engine.access().read_document(&self.principal, &self.container, address)?;
        let options = ReadOptions { condition, session: Vec::new() };
        let receipt = self.engine.read(pass, &options).await.map_err(|refusal| refusal.fault)?;
        Ok(receipt.outcome)
    }

    async fn write(&self, key: PartitionKey, mutation: Mutation) -> Result<Outcome, Fault> {
        let keyed = Keyed::new(&self.container, Some(key), DocumentOperation::Write(mutation))?;
        let pass = self.engine.access().write(&self.principal, keyed)?;
        let receipt = self.engine.write(pass).await.map_err(|refusal| refusal.fault)?;
        Ok(receipt.outcome)
    }

    async fn batch(&self, lane: usize, key: usize, steps: Vec<Step>) {
        let operations: Result<Vec<_>, _> = steps.iter().map(operation).collect();
        let record = self.invoke(lane, self.event(), Call::Steps { key, steps });
        let key = partition_key(&self.container, key);
        let result = async {
            let operations = operations.map_err(|fault| (0, fault))?;
            let pass = self.engine.access().batch(&self.principal, &self.container, key, operations);
            let pass = pass.map_err(|fault| (0, fault.into()))?;
            let receipt = self.engine.batch(pass, Returned::All, &[]).await;
            let receipt = receipt.map_err(|fault| (0, fault))?;
            let steps = receipt.result.map_err(|refusal| (refusal.index, refusal.fault))?;
            let seen = steps.iter().map(|step| seen_of(&step.outcome));
            seen.collect::<Result<Vec<_>, _>>().map_err(|fault| (0, fault))
        };
        let result = result.await;
        self.answer(record, self.event(), Answer::Steps(result));
    }

    async fn bulk(&self, lane: usize, parts: Vec<(usize, Step)>) {
        let invoked = self.event();
        let mut records = Vec::with_capacity(parts.len());
        let mut operations = Vec::with_capacity(parts.len());
        for (key, step) in parts {
            let Ok(operation) = operation(&step) else { continue };
            let said = Some(partition_key(&self.container, key));
            let Ok(keyed) = Keyed::new(&self.container, said, operation) else { continue };
            let Ok(pass) = self.engine.access().write_in_bulk(&self.principal, keyed) else { continue };
            operations.push(pass);
            let steps = vec![step];
            records.push(self.invoke(lane, invoked, Call::Steps { key, steps }));
        }
        let results = self.engine.bulk(operations, Returned::All, AfterRefusal::Continue).await.results;
        let answered = self.event();
        for (record, result) in records.into_iter().zip(results) {
            let seen = result.and_then(|receipt| seen_of(&receipt.outcome));
            let answer = Answer::Steps(seen.map(|seen| vec![seen]).map_err(|fault| (0, fault)));
            self.answer(record, answered, answer);
        }
    }

    /// Runs an interactive transaction, with some turns of the scheduler after each step.
    async fn transaction(&self, lane: usize, prepared: PreparedTransaction) {
        let PreparedTransaction { key, steps, turns, is_locked } = prepared;
        let call = Call::Transaction { key, steps: steps.clone() };
        let record = self.invoke(lane, self.event(), call);
        let key = partition_key(&self.container, key);
        let pass = self.engine.access().transact(&self.principal, &self.container, key);
        let lock = if is_locked { LockWhen::Begin } else { LockWhen::Conflicts };
        let options = TransactionOptions { time_max: TRANSACTION_TIME_MAX, session: Vec::new(), lock };
        let steps = &steps;
        let run = |mut transaction| async move {
            let seen = all_performed(&mut transaction, steps, turns).await;
            (transaction, seen)
        };
        let result = match self.engine.transact(&pass, &options, run).await {
            Err(StoppedAt(index, fault)) => Err((index, fault)),
            Ok((mut seen, receipt)) => {
                // LSNs were provisional.
                for seen in &mut seen {
                    if let (Seen::Created(stored) | Seen::Replaced(stored), Some(lsn)) = (seen, receipt.lsn) {
                        stored.lsn = lsn.0;
                    }
                }
                Ok(seen)
            }
        };
        self.answer(record, self.event(), Answer::Steps(result));
    }

    async fn page(
        &self,
        lane: usize,
        wanted: (Scope, Option<usize>),
        items_max: usize,
        feed: &mut Option<OpenFeed>,
    ) {
        let (scope, query) = feed.as_ref().map_or(wanted, |feed| (feed.scope, feed.query));
        let continuation = feed.as_ref().map(|feed| feed.continuation.clone());
        let call = Call::Page { scope, query, items_max, continuation: continuation.clone() };
        let record = self.invoke(lane, self.event(), call);
        let read = match scope {
            Scope::Container => engine::Scope::Container,
            Scope::Partition(ordinal) => engine::Scope::Range(PartitionOrdinal(ordinal), None),
            Scope::Key(key) => engine::Scope::Key(partition_key(&self.container, key)),
        };
        let page = match query {
            None => self.feed_page(read, items_max, continuation).await,
            Some(query) => self.query_page(query, read, items_max, continuation).await,
        };
        match &page {
            Ok(page) => {
                let open = |continuation| OpenFeed { scope, query, continuation };
                *feed = page.continuation.clone().map(open);
            }
            Err(Fault::Request(_)) => *feed = None,
            Err(_) => {}
        }
        self.answer(record, self.event(), Answer::Page(page));
    }

    async fn feed_page(
        &self,
        scope: engine::Scope,
        items_max: usize,
        continuation: Option<String>,
    ) -> Result<Page, Fault> {
        let request = FeedRequest { items_max, continuation, session: Vec::new() };
        let pass = self.engine.access().list_documents(&self.principal, &self.container, scope)?;
        let page = self.engine.feed(pass, &request).await?;
        Ok(Page { documents: page.documents, continuation: page.continuation.map(|next| next.text) })
    }

    async fn query_page(
        &self,
        query: usize,
        scope: engine::Scope,
        items_max: usize,
        continuation: Option<String>,
    ) -> Result<Page, Fault> {
        let request = query_request(QUERIES[query].text, items_max, continuation)?;
        let pass = self.engine.access().query_documents(&self.principal, &self.container, scope)?;
        let page = self.engine.query(pass, &request).await?;
        let documents = page.rows.into_iter().map(document).collect::<Result<_, _>>()?;
        Ok(Page { documents, continuation: page.continuation.map(|next| next.text) })
    }
}

/// The step at which a transaction ended, and why.
struct StoppedAt(usize, Fault);

impl From<Fault> for StoppedAt {
    /// It could not be begun or committed.
    fn from(fault: Fault) -> StoppedAt {
        StoppedAt(0, fault)
    }
}

/// Performs all steps of an interactive transaction, with some turns of the scheduler after each.
async fn all_performed(
    transaction: &mut Transaction,
    steps: &[Step],
    turns: u64,
) -> Result<Vec<Seen>, StoppedAt> {
    let mut seen = Vec::with_capacity(steps.len());
    for (index, step) in steps.iter().enumerate() {
        let found = performed(transaction, step).await;
        seen.push(found.map_err(|fault| StoppedAt(index, fault))?);
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
    }
    Ok(seen)
}

/// Performs a step of an interactive transaction.
async fn performed(transaction: &mut Transaction, step: &Step) -> Result<Seen, Fault> {
    let Step::List { by_query } = step else {
        return seen_of(&transaction.execute(operation(step)?).await?.outcome);
    };
    let mut listed = BTreeMap::new();
    let mut continuation = None;
    for _ in 0..LIST_PAGES_MAX {
        let (documents, next) = match by_query {
            true => queried(transaction, continuation).await?,
            false => {
                let request = FeedRequest { items_max: LIST_PAGE, continuation, session: Vec::new() };
                let page = transaction.feed(&request).await?;
                (page.documents, page.continuation)
            }
        };
        for document in &documents {
            let stored = stored_of(document).map_err(Fault::Internal)?;
            let id = stored.body.get("id").and_then(Json::as_str).unwrap_or_default().to_owned();
            if listed.insert(id, stored).is_some() {
                return Err(Fault::Internal("a document was listed twice".to_owned()));
            }
        }
        match next {
            Some(next) => continuation = Some(next.text),
            None => return Ok(Seen::Listed(listed)),
        }
    }
    Err(Fault::Internal("a list has no end".to_owned()))
}

/// A page of a query for all documents, by an index if there is one.
async fn queried(
    transaction: &mut Transaction,
    continuation: Option<String>,
) -> Result<(Vec<StoredDocument>, Option<Continuation>), Fault> {
    let sql = "SELECT * FROM c WHERE c.w >= 0 ORDER BY c.w";
    let page = transaction.query(&query_request(sql, LIST_PAGE, continuation)?).await?;
    Ok((page.rows.into_iter().map(document).collect::<Result<_, _>>()?, page.continuation))
}

/// The request for a page of a query.
fn query_request(sql: &str, items_max: usize, continuation: Option<String>) -> Result<QueryRequest, Fault> {
    let query = lowered(sql).ok_or_else(|| Fault::Internal(format!("not a query: {sql}")))?;
    Ok(QueryRequest {
        query: Arc::new(query),
        items_max,
        ends_at_ranges: false,
        continuation,
        session: Vec::new(),
        text_bytes: sql.len(),
    })
}

/// The document of a row.
fn document(row: QueryRow) -> Result<StoredDocument, Fault> {
    match row {
        QueryRow::Document(stored) => Ok(stored),
        QueryRow::Value(value) => Err(Fault::Internal(format!("not a document: {}", value.to_json()))),
    }
}

fn seen_of(outcome: &Outcome) -> Result<Seen, Fault> {
    let stored = |stored: &StoredDocument| stored_of(stored).map_err(Fault::Internal);
    match outcome {
        Outcome::Created(document) => stored(document).map(Seen::Created),
        Outcome::Replaced(document) => stored(document).map(Seen::Replaced),
        Outcome::Deleted => Ok(Seen::Deleted),
        Outcome::Read(document) => stored(document).map(Seen::Read),
        Outcome::NotModified(etag) => Ok(Seen::NotModified(etag.to_string())),
        Outcome::Nothing => Err(Fault::Internal("a client's step did nothing".to_owned())),
    }
}

/// Converts a step into the product's type.
fn operation(step: &Step) -> Result<DocumentOperation, Fault> {
    Ok(DocumentOperation::Write(match step {
        Step::Create { body } => Mutation::Create { item: item(body)? },
        Step::Upsert { body, precondition } => {
            Mutation::Upsert { item: item(body)?, condition: condition(precondition) }
        }
        Step::Replace { selector, body, precondition } => {
            let (target, item) = (target(selector)?, item(body)?);
            Mutation::Replace { target, item, condition: condition(precondition), rename: Rename::Allowed }
        }
        Step::Patch { selector, edits, precondition } => {
            let (target, operations) = (target(selector)?, patch(edits)?);
            Mutation::Patch { target, operations, condition: condition(precondition), filter: None }
        }
        Step::Delete { selector, precondition } => {
            Mutation::Delete { target: target(selector)?, condition: condition(precondition) }
        }
        Step::List { .. } => return Err(Fault::Internal("a list is not one operation".to_owned())),
        Step::Read { selector, precondition } => {
            return Ok(DocumentOperation::Read {
                target: target(selector)?,
                condition: condition(precondition),
            });
        }
    }))
}

fn item(body: &Body) -> Result<Item, Fault> {
    let text = Json::Object(body.clone()).to_string();
    let document = Document::from_json(text.as_bytes());
    let document = document.map_err(|error| Fault::Internal(error.to_string()))?;
    Ok(Item::new(document)?)
}

fn target(selector: &Selector) -> Result<Target, Fault> {
    match selector {
        Selector::Id(id) => Ok(Target::Id(id.clone())),
        Selector::Number(number) => {
            let number = DocumentNumber::from_raw(*number);
            let number = number.ok_or_else(|| Fault::Internal("no document number".to_owned()))?;
            Ok(Target::Number(number))
        }
    }
}

fn condition(precondition: &Precondition) -> Condition {
    match precondition {
        Precondition::None => Condition::None,
        Precondition::Match(etag) => Condition::IfMatch(etag.clone()),
        Precondition::Exists => Condition::IfExists,
        Precondition::NoneMatch(etag) => Condition::IfNoneMatch(etag.clone()),
        Precondition::Absent => Condition::IfAbsent,
    }
}

fn patch(edits: &[Edit]) -> Result<Vec<PatchOperation>, Fault> {
    let wire = |edit: &Edit| match edit {
        Edit::Set(name, value) => json!({ "op": "set", "path": format!("/{name}"), "value": value }),
        Edit::Replace(name, value) => json!({ "op": "replace", "path": format!("/{name}"), "value": value }),
        Edit::Remove(name) => json!({ "op": "remove", "path": format!("/{name}") }),
        Edit::Increment(name, by) => json!({ "op": "incr", "path": format!("/{name}"), "value": by }),
    };
    let text = Json::Array(edits.iter().map(wire).collect()).to_string();
    let internal = |error: String| Fault::Internal(error);
    let list = value::Value::from_json(text.as_bytes()).map_err(|error| internal(error.to_string()))?;
    PatchOperation::list_from_json(ValueRef::from(&list)).map_err(|error| internal(error.to_string()))
}
