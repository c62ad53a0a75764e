//! An engine on a store in memory, with a clock that the test controls.

use engine::{
    Account, AccountKey, Action, AdminPass, CatalogPass, Container, Database, DocumentAddress,
    DocumentReceipt, Engine, EngineOptions, Guarded, Keyed, Principal, QueryPass, ReadOptions, Scope,
    WritePass,
};
use hmac::{Hmac, KeyInit, Mac};
use kv::{CommitMode, Store};
use model::{
    Ambient, ContainerDraft, Fault, KeyComponent, PartitionKey, PartitionKeyDefinition, PartitionKeyKind,
    Throughput, UniqueKey, UniqueKeyPolicy,
};
use partition::index::IndexFinding;
use partition::keyspace::SPACES;
use plan::{Condition, DocumentOperation, Item, Mutation, Outcome, StoredDocument, Target};
use sha2::Sha256;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use value::{Document, Value};

/// A clock that stands still until the test moves it, and randomness that counts.
#[derive(Debug)]
pub(crate) struct TestAmbient {
    now_ms: AtomicU64,
    random: AtomicU64,
}

impl TestAmbient {
    pub(crate) fn new() -> Arc<TestAmbient> {
        Arc::new(TestAmbient { now_ms: AtomicU64::new(1_700_000_000_000), random: AtomicU64::new(1) })
    }

    pub(crate) fn set_back_seconds(&self, seconds: u64) {
        self.now_ms.fetch_sub(seconds * 1000, Ordering::SeqCst);
    }

    pub(crate) fn advance_seconds(&self, seconds: u64) {
        self.now_ms.fetch_add(seconds * 1000, Ordering::SeqCst);
    }
}

impl Ambient for TestAmbient {
    fn now_ms(&self) -> u64 {
        self.now_ms.load(Ordering::SeqCst)
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        for byte in bytes {
            *byte = self.random.fetch_add(1, Ordering::SeqCst).to_le_bytes()[0];
        }
    }
}

/// A store in memory with commits that a test can delay.
pub(crate) struct HeldStore {
    pub(crate) store: Store,
    is_held: Arc<AtomicBool>,
}

impl HeldStore {
    /// A store that commits what is submitted one turn of the scheduler later.
    pub(crate) fn new() -> HeldStore {
        let store = Store::memory(&SPACES, CommitMode::Stepped);
        let is_held = Arc::new(AtomicBool::new(false));
        let (committed, held) = (store.clone(), Arc::clone(&is_held));
        tokio::spawn(async move {
            loop {
                committed.step_is_due().await;
                tokio::task::yield_now().await;
                if !held.load(Ordering::SeqCst) {
                    committed.step();
                }
            }
        });
        HeldStore { store, is_held }
    }

    /// Commits nothing from now on.
    pub(crate) fn hold(&self) {
        self.is_held.store(true, Ordering::SeqCst);
    }

    /// Continues to commit.
    pub(crate) fn release(&self) {
        self.is_held.store(false, Ordering::SeqCst);
    }
}

/// Lets turns of the scheduler pass in which all tasks proceed as far as the store allows.
pub(crate) async fn pass_turns() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

pub(crate) struct Harness {
    pub(crate) engine: Arc<Engine>,
    pub(crate) store: Store,
    pub(crate) ambient: Arc<TestAmbient>,
    pub(crate) principal: Principal,
}

pub(crate) const KEY: &[u8] = b"key of the tests";

/// Parses the query of a computed property.
pub(crate) fn lowered(text: &str) -> Option<plan::query::Query> {
    sql::lower(&sql::parse(text).ok()?, &sql::Parameters::none()).ok()
}

impl Harness {
    pub(crate) async fn new() -> Harness {
        Harness::on(Store::memory(&SPACES, CommitMode::Thread), TestAmbient::new()).await
    }

    pub(crate) async fn on(store: Store, ambient: Arc<TestAmbient>) -> Harness {
        Harness::with_keys(store, ambient, &[KEY]).await
    }

    /// An engine whose account has these keys; the first one signs.
    pub(crate) async fn with_keys(store: Store, ambient: Arc<TestAmbient>, keys: &[&[u8]]) -> Harness {
        Harness::with_options(store, ambient, keys, EngineOptions::default()).await
    }

    /// The same, with other settings.
    pub(crate) async fn with_options(
        store: Store,
        ambient: Arc<TestAmbient>,
        keys: &[&[u8]],
        options: EngineOptions,
    ) -> Harness {
        let account_keys = keys.iter().map(|key| AccountKey::new(key)).collect();
        let options = EngineOptions { keys: account_keys, ..options };
        let engine = Engine::open(store.clone(), options, ambient.clone()).await.unwrap();
        let mut mac = Hmac::<Sha256>::new_from_slice(keys[0]).unwrap();
        mac.update(b"payload");
        let principal =
            engine.access().verify_signature(b"payload", &mac.finalize().into_bytes(), 1).unwrap();
        Harness { engine, store, ambient, principal }
    }

    /// Permission to change a resource of the catalog.
    pub(crate) fn admin<R: Guarded>(&self, resource: R) -> AdminPass<R> {
        self.engine.access().change_catalog(&self.principal, resource).unwrap()
    }

    /// Permission to read a resource of the catalog.
    pub(crate) fn reader<R: Guarded>(&self, resource: R) -> CatalogPass<R> {
        self.engine.access().read_catalog(&self.principal, resource).unwrap()
    }

    /// Permission to query documents.
    pub(crate) fn query_pass<'a>(&'a self, container: &'a Container, scope: Scope) -> QueryPass<'a> {
        self.engine.access().query_documents(&self.principal, container, scope).unwrap()
    }

    /// Permission to perform an operation.
    pub(crate) fn write_pass<'a>(&'a self, keyed: Keyed<'a>) -> WritePass<'a> {
        self.engine.access().write(&self.principal, keyed).unwrap()
    }

    /// Container `c` of database `d`, if it exists.
    pub(crate) fn found(&self) -> Result<Arc<Container>, Fault> {
        let found = self.engine.find_container(&self.principal, Action::ReadMetadata, "d", "c")?;
        Ok(found.resource)
    }

    /// Findings of an audit of the index of a container.
    pub(crate) async fn audit_index(&self, container: &Container) -> Vec<IndexFinding> {
        self.engine.audit_index(&self.reader(container)).await.unwrap()
    }

    /// Progress of the index of a container, in percent.
    pub(crate) async fn index_progress(&self, container: &Container) -> u8 {
        self.engine.index_progress(&self.reader(container)).await.unwrap()
    }

    pub(crate) async fn database(&self, id: &str) -> Result<Arc<Database>, Fault> {
        self.engine.create_database(self.admin(Account), id, None).await
    }

    /// Creates container `c` of database `d` with key `/pk`; `change` may alter its definition.
    pub(crate) async fn container(
        &self,
        change: impl FnOnce(&mut ContainerDraft),
        throughput: u64,
    ) -> Arc<Container> {
        let database = match self.engine.find_database(&self.principal, Action::ReadMetadata, "d") {
            Ok(found) => found,
            Err(_) => self.database("d").await.unwrap(),
        };
        let key = PartitionKeyDefinition::new(PartitionKeyKind::HashV2, ["/pk"]).unwrap();
        let mut draft = ContainerDraft::new("c", key);
        change(&mut draft);
        let definition = draft.checked().unwrap();
        let throughput = Some(Throughput::manual(throughput).unwrap());
        self.engine.create_container(self.admin(&*database), definition, throughput).await.unwrap()
    }

    /// Replaces the definition of a container by what `change` makes of it.
    pub(crate) async fn replace(
        &self,
        container: &Container,
        change: impl FnOnce(&mut ContainerDraft),
    ) -> Result<Arc<Container>, Fault> {
        let mut draft = container.definition().draft();
        change(&mut draft);
        self.engine.replace_container(self.admin(container), draft.into(), &Condition::None).await
    }

    pub(crate) async fn drop_container(&self, container: &Container) -> Result<(), Fault> {
        self.engine.delete_container(self.admin(container), &Condition::None).await
    }

    pub(crate) async fn write(
        &self,
        container: &Container,
        mutation: Mutation,
    ) -> Result<DocumentReceipt, Fault> {
        let key = key(container, r#"["a"]"#);
        let keyed = Keyed::new(container, Some(key), DocumentOperation::Write(mutation))?;
        self.engine.write(self.write_pass(keyed)).await.map_err(|refusal| refusal.fault)
    }

    pub(crate) async fn create(&self, container: &Container, json: &str) -> Result<StoredDocument, Fault> {
        let operation = DocumentOperation::Write(Mutation::Create { item: item(json) });
        let keyed = Keyed::new(container, None, operation)?;
        let written = self.engine.write(self.write_pass(keyed)).await;
        written.map(|receipt| stored(receipt.outcome)).map_err(|refusal| refusal.fault)
    }

    pub(crate) async fn read(
        &self,
        container: &Container,
        key_text: &str,
        id: &str,
    ) -> Result<StoredDocument, Fault> {
        let address = DocumentAddress { key: key(container, key_text), target: Target::Id(id.to_owned()) };
        let pass = self.engine.access().read_document(&self.principal, container, address)?;
        let read = self.engine.read(pass, &ReadOptions::default()).await;
        let receipt = read.map_err(|refusal| refusal.fault)?;
        Ok(stored(receipt.outcome))
    }
}

pub(crate) fn key(container: &Container, text: &str) -> PartitionKey {
    let Ok(Value::Array(elements)) = Value::from_json(text.as_bytes()) else { panic!("{text}") };
    let components = elements.iter().map(|element| KeyComponent::from_value(element.as_ref()).unwrap());
    container.definition().partition_key.key(components.collect()).unwrap()
}

/// No two documents of a logical partition have the same mail.
pub(crate) fn unique_mail() -> UniqueKeyPolicy {
    UniqueKeyPolicy { keys: vec![UniqueKey::over(&["/mail"]).unwrap()] }
}

pub(crate) fn item(json: &str) -> Item {
    Item::new(Document::from_json(json.as_bytes()).unwrap()).unwrap()
}

pub(crate) fn stored(outcome: Outcome) -> StoredDocument {
    match outcome {
        Outcome::Created(stored) | Outcome::Replaced(stored) | Outcome::Read(stored) => stored,
        Outcome::Deleted | Outcome::NotModified(_) | Outcome::Nothing => panic!("no document in {outcome:?}"),
    }
}

pub(crate) fn text(stored: &StoredDocument) -> String {
    stored.document.root().to_value().to_json()
}
