//! Queries over the documents of a container, page by page, over all its partitions.
//!
//! Does not know query text: an API lowers its language to [`plan::query::Query`].

use crate::authorisation::{Principal, QueryPass};
use crate::catalog::Container;
use crate::continuation::{self, Continuation, Opened};
use crate::engine::{Engine, ThroughputMode};
use crate::feed::{PAGE_BYTES_STOP, Scope, bounds};
use crate::isolation::Size;
use crate::ledger::refusal_charge;
use crate::router::{Attempts, Routed};
use crate::scripts::script_caller;
use exec::{
    IndexUse, Page, PageRequest, ParsedProperty, Part, PartScope, PartSource, Program, QueryMetrics,
    QueryRow, Resume, rank,
};
use model::policy::VectorEmbedding;
use model::{
    Charge, ContinuationFault, ContinuationKey, EffectiveRange, Fault, Lsn, PartitionOrdinal, ReadQuorum,
    RequestFault, SessionToken, Work,
};
use partition::keyspace;
use plan::query::{Order, Query, Ranking};
use plan::{DocumentLink, SystemProperties};
use script::Turn;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use value::{PropertyPath, Value};

/// The request for a page of a query.
#[derive(Clone, Debug)]
pub struct QueryRequest {
    /// The query.
    pub query: Arc<Query>,
    /// Maximum number of rows of the page.
    pub items_max: usize,
    /// Whether a page of rows without an order ends where a range ends.
    pub ends_at_ranges: bool,
    /// Where to continue.
    pub continuation: Option<String>,
    /// The client's session tokens.
    pub session: Vec<SessionToken>,
    /// Bytes of the text of the query: a large query is prepared separately from other requests.
    pub text_bytes: usize,
}

/// A page of rows.
#[derive(Clone, Debug)]
pub struct QueryPage {
    /// The rows.
    pub rows: Vec<QueryRow>,
    /// Where to continue, if there may be more.
    pub continuation: Option<Continuation>,
    /// The client's new session tokens, one per partition that was read.
    pub session: Vec<SessionToken>,
    /// Its charge.
    pub charge: Charge,
    /// The work that was done.
    pub metrics: QueryMetrics,
}

impl Engine {
    /// Computes a page of a query.
    pub async fn query(&self, pass: QueryPass<'_>, request: &QueryRequest) -> Result<QueryPage, Fault> {
        self.admit_query(&pass)?;
        if pass.within.is_some() {
            let request = QueryRequest { query: pass.permitted(&request.query), ..request.clone() };
            return self.query_on(pass, &request, None).await;
        }
        self.query_on(pass, request, None).await
    }

    /// Computes a page of a query, of the latest state, or of `fixed`, which has the documents of the scope in one
    /// state. What was done there is not recorded.
    pub(crate) async fn query_on(
        &self,
        mut pass: QueryPass<'_>,
        request: &QueryRequest,
        fixed: Option<&Part>,
    ) -> Result<QueryPage, Fault> {
        let container = pass.container;
        let addressed = pass.scope.range_id();
        let size = Size::of_text(request.text_bytes);
        let defined = Defined::of(container, self.options.document_link)?;
        let ready = self.prepared(&pass, request, size, &defined).await;
        let refuse = |pass: &QueryPass<'_>, fault: &Fault| match fixed {
            Some(_) => {}
            None => record_refused(pass, fault),
        };
        let ready = ready.inspect_err(|fault| refuse(&pass, fault))?;
        let Ready { query, program: prepared, resume, context } = ready;
        let resume = match resume {
            None => None,
            Some((opened, resume)) => {
                pass.scope = opened.scope(container, pass.scope)?;
                // The rows that are named in place of a long position may be in any partition of the first request.
                if resume.is_cut() && !opened.is_within_partitions_of(container, &pass.scope)? {
                    return Err(RequestFault::BadContinuation(ContinuationFault::OutsideScope).into());
                }
                Some(resume)
            }
        };
        let refuse = |fault: &Fault| refuse(&pass, fault);
        let mut program = Arc::clone(&prepared);
        let mut spent = QueryMetrics::default();
        if let Order::Rank(ranking) = &query.order {
            let request = QueryRequest { query: Arc::clone(&query), ..request.clone() };
            let ranked = Box::pin(self.ranked(&pass, &request, ranking, fixed, &mut spent)).await;
            program = ranked.inspect_err(refuse)?;
        }
        let user_functions =
            self.functions_of(container, &program, turn(&pass, fixed)).inspect_err(refuse)?;
        let page = PageRequest {
            program,
            items_max: request.items_max,
            bytes_max: PAGE_BYTES_STOP,
            ends_at_ranges: request.ends_at_ranges,
            resume,
            bounds: self.options.query_bounds,
            memory: Arc::clone(&self.query_memory),
            user_functions,
            parts: Vec::new(),
        };
        let query_scope = QueryScope { scope: &pass.scope, session: &request.session, size, fixed };
        let page = self.page(&pass, &query_scope, page).await.inspect_err(refuse)?;
        spent.add(&page.metrics);
        let metrics = QueryMetrics { rows: page.metrics.rows, bytes: page.metrics.bytes, ..spent };
        let seal = |resume: Resume| {
            let context = match context {
                Some(context) => context,
                None => bound_context(base_context(container, &pass.scope, &query)?, &prepared),
            };
            continuation::seal(&self.continuation_key, &context, container, &pass.scope, &resume.encode())
        };
        // A transaction reads the replica that it will write.
        let read_quorum = fixed.map_or(pass.principal.class().read_quorum, |_| ReadQuorum::One);
        let price = |work: Work| read_quorum.price(work.price());
        let charge = self.price_query(container, &query, &page.seen, &metrics, (price, fixed.is_none()));
        let token = |(ordinal, lsn)| SessionToken { ordinal, lsn };
        let mut session = page.seen.into_iter().map(token).collect();
        if let Some(ordinal) = addressed {
            session = container.tokens_for_range(ordinal, session);
        }
        Ok(QueryPage {
            rows: page.rows,
            continuation: page.resume.map(seal).transpose()?,
            session,
            charge,
            metrics,
        })
    }

    /// Refuses a query if the throughput of one of its partitions is used up.
    fn admit_query(&self, pass: &QueryPass<'_>) -> Result<(), Fault> {
        if self.options.throughput == ThroughputMode::Measure && !self.has_pauses.load(Ordering::Relaxed) {
            return Ok(());
        }
        let (hashes, _) = bounds(pass.container, &pass.scope)?;
        let map = pass.container.map.load();
        let mut slots = map.owners(&hashes);
        Ok(slots.try_for_each(|slot| self.admit(slot, pass.principal.class().priority))?)
    }

    /// Prices the work of each partition that was read, at least the price of an empty page, and records it if
    /// `is_recorded`.
    fn price_query(
        &self,
        container: &Container,
        query: &Query,
        seen: &[(PartitionOrdinal, Lsn)],
        metrics: &QueryMetrics,
        (price, is_recorded): (impl Fn(Work) -> Charge, bool),
    ) -> Charge {
        if let Some(path) = metrics.path {
            self.metrics.query_time(path, metrics.total_time);
        }
        // Each constant of the filter is looked up in each partition, whatever path was chosen there.
        let looked_up = query.filter_constants();
        let mut total = Charge::NONE;
        let mut record = |ordinal, documents, bytes, read| {
            let charge = price(Work::Query { documents, bytes, terms: looked_up + read });
            if is_recorded && let Some(slot) = container.map.load().by_ordinal(ordinal) {
                slot.ledger.add(charge);
            }
            total += charge;
        };
        for work in &metrics.partitions {
            record(work.ordinal, work.documents, work.bytes, work.terms);
        }
        let has_work = |ordinal| metrics.partitions.iter().any(|work| work.ordinal == ordinal);
        for (ordinal, _) in seen.iter().filter(|(ordinal, _)| !has_work(*ordinal)) {
            record(*ordinal, 0, 0, 0);
        }
        if total == Charge::NONE {
            price(Work::Query { documents: 0, bytes: 0, terms: looked_up })
        } else {
            total
        }
    }

    /// Prepares a query: here, or if that takes long, separately from other requests.
    async fn prepared(
        &self,
        pass: &QueryPass<'_>,
        request: &QueryRequest,
        size: Size,
        defined: &Defined<'_>,
    ) -> Result<Ready, Fault> {
        let container = pass.container;
        if size == Size::Ordinary {
            let base = || base_context(container, &pass.scope, &request.query);
            return prepare(defined, request, base, &self.continuation_key);
        }
        let defined = defined.to_owned();
        let base = base_context(container, &pass.scope, &request.query)?;
        let (request, key) = (request.clone(), self.continuation_key.clone());
        let prepare = move || {
            let mut ready = prepare(&defined, &request, || Ok(base.clone()), &key)?;
            if ready.context.is_none() {
                ready.context = Some(bound_context(base, &ready.program));
            }
            Ok(ready)
        };
        self.isolation.compute(pass.principal, size, prepare).await
    }

    /// Computes a page, on the thread of the request as long as that is short. If a partition stops meanwhile, the page
    /// is computed again.
    async fn page(
        &self,
        pass: &QueryPass<'_>,
        query_scope: &QueryScope<'_>,
        mut request: PageRequest,
    ) -> Result<Page, Fault> {
        let mut attempts = Attempts::default();
        loop {
            request.parts = self.parts(pass.container, query_scope).await?;
            #[cfg(feature = "planted-faults")]
            plant(&mut request);
            let shared = Arc::new(request);
            let begin = |meter| exec::page(Arc::clone(&shared), Arc::clone(&self.ambient), meter);
            let page = self.isolation.run(pass.principal, query_scope.size, begin).await;
            if page.is_ok() || !attempts.again(shared.parts.iter().filter_map(|part| part.source.live())) {
                return page;
            }
            request = PageRequest::clone(&shared);
        }
    }

    /// Rewrites a ranked query with an ordinary order, using the results of queries over all documents and all scores.
    async fn ranked(
        &self,
        pass: &QueryPass<'_>,
        request: &QueryRequest,
        ranking: &Ranking,
        fixed: Option<&Part>,
        spent: &mut QueryMetrics,
    ) -> Result<Arc<Program>, Fault> {
        let query = &request.query;
        // Scores depend on the words of all documents. A caller who may not query all of them must not learn of them
        // by the order of those that it may. A transaction knows its own logical partition only.
        let whole = self.access.query_documents(pass.principal, pass.container, Scope::Container);
        let whole = whole.ok().filter(|_| fixed.is_none());
        let known = whole.map_or_else(|| pass.scope.clone(), |whole| whole.scope);
        let statistics = match rank::statistics_query(query, ranking) {
            Some(statistics) => self.one_value(pass, request, (&known, fixed), statistics, spent).await?,
            None => None,
        };
        let scores = rank::scores(ranking, statistics.as_ref().map(Value::as_ref));
        let rows = match rank::scores_query(query, &scores) {
            Some(rows) => self.one_value(pass, request, (&pass.scope, fixed), rows, spent).await?,
            None => None,
        };
        let query = rank::ordered(query, ranking, scores, rows.as_ref().map(Value::as_ref));
        self.program(pass, &QueryRequest { query: Arc::new(query), ..request.clone() }).await
    }

    /// The single value that a query over `scope` returns.
    async fn one_value(
        &self,
        pass: &QueryPass<'_>,
        request: &QueryRequest,
        (scope, fixed): (&Scope, Option<&Part>),
        query: Query,
        spent: &mut QueryMetrics,
    ) -> Result<Option<Value>, Fault> {
        let request = QueryRequest { query: Arc::new(query), ..request.clone() };
        let program = self.program(pass, &request).await?;
        let page = PageRequest {
            user_functions: self.functions_of(pass.container, &program, turn(pass, fixed))?,
            program,
            items_max: 1,
            bytes_max: usize::MAX,
            ends_at_ranges: false,
            resume: None,
            bounds: self.options.query_bounds,
            memory: Arc::clone(&self.query_memory),
            parts: Vec::new(),
        };
        let size = Size::of_text(request.text_bytes);
        let query_scope = QueryScope { scope, session: &[], size, fixed };
        let page = self.page(pass, &query_scope, page).await?;
        spent.add(&page.metrics);
        Ok(page.rows.into_iter().next().and_then(|row| match row {
            QueryRow::Value(value) => Some(value),
            QueryRow::Document(_) => None,
        }))
    }

    /// How a query is executed, as text.
    pub async fn explain(&self, pass: QueryPass<'_>, request: &QueryRequest) -> Result<String, Fault> {
        let program = self.program(&pass, request).await?;
        let size = Size::of_text(request.text_bytes);
        let query_scope = QueryScope { scope: &pass.scope, session: &[], size, fixed: None };
        let parts: Arc<[Part]> = self.parts(pass.container, &query_scope).await?.into();
        let items_max = request.items_max;
        let begin = |meter| {
            let (program, parts) = (Arc::clone(&program), Arc::clone(&parts));
            async move { exec::explain(&program, &parts, items_max, meter).await }
        };
        self.isolation.run(pass.principal, query_scope.size, begin).await
    }

    /// Which indexes a query uses, and which might help it.
    pub async fn index_use(&self, pass: &QueryPass<'_>, request: &QueryRequest) -> Result<IndexUse, Fault> {
        let program = self.program(pass, request).await?;
        let size = Size::of_text(request.text_bytes);
        let query_scope = QueryScope { scope: &pass.scope, session: &[], size, fixed: None };
        let parts: Arc<[Part]> = self.parts(pass.container, &query_scope).await?.into();
        let definition = pass.container.definition();
        let indexing = Arc::new(definition.policies.indexing.clone());
        let key: Arc<[PropertyPath]> = definition.partition_key.paths().into();
        let begin = |meter| {
            let (program, parts) = (Arc::clone(&program), Arc::clone(&parts));
            let (indexing, key) = (Arc::clone(&indexing), Arc::clone(&key));
            async move { exec::index_use(&program, &parts, &indexing, &key, meter).await }
        };
        self.isolation.run(pass.principal, query_scope.size, begin).await
    }

    async fn program(&self, pass: &QueryPass<'_>, request: &QueryRequest) -> Result<Arc<Program>, Fault> {
        let defined = Defined::of(pass.container, self.options.document_link)?;
        let query = defined.with_vectors(&request.query);
        let (system, computed) = (defined.system, Arc::clone(defined.computed()));
        let make = move || Program::new(query, &computed, system).map(Arc::new);
        self.isolation.compute(pass.principal, Size::of_text(request.text_bytes), make).await
    }

    /// Computes something for a query whose text has this number of bytes: here, or if that takes long, separately from
    /// other requests.
    pub async fn compute<T: Send + 'static>(
        &self,
        principal: &Principal,
        text_bytes: usize,
        compute: impl FnOnce() -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        self.isolation.compute(principal, Size::of_text(text_bytes), compute).await
    }

    /// The partitions of a scope by the newest map, and the part of each that is read.
    async fn parts(&self, container: &Container, query_scope: &QueryScope<'_>) -> Result<Vec<Part>, Fault> {
        if let Some(fixed) = query_scope.fixed {
            return Ok(vec![fixed.clone()]);
        }
        let (hashes, keys) = match query_scope.scope {
            // Whole partitions; the keys of each are computed once.
            Scope::Container => (EffectiveRange::full(), None),
            Scope::Key(_) | Scope::Range(..) | Scope::Hashes(_) => {
                let (hashes, keys) = bounds(container, query_scope.scope)?;
                (hashes, Some(keys))
            }
        };
        let is_logical = match query_scope.scope {
            Scope::Key(key) => container.definition().partition_key.is_complete(key),
            Scope::Container | Scope::Range(..) | Scope::Hashes(_) => false,
        };
        let routed = self.owners_of(container, &hashes, query_scope.session).await?;
        let mut parts = Vec::with_capacity(routed.len());
        for Routed { partition, slot } in routed {
            let owned = slot.keys(container.number());
            let (keys, scope) = match &keys {
                None => (owned.clone(), PartScope::Whole),
                Some(keys) if is_logical => {
                    (keys.clone(), PartScope::Logical(keyspace::logical_key(&keys.start)))
                }
                Some(keys) => {
                    let Some(keys) = keys.intersection(owned) else {
                        continue;
                    };
                    let is_whole = keys == *owned;
                    let part = || PartScope::Hashes(hashes.intersect(&slot.range));
                    (keys, if is_whole { PartScope::Whole } else { part() })
                }
            };
            let ancestors = slot.ancestors.iter().map(|ancestor| ancestor.ordinal).collect();
            parts.push(Part { source: PartSource::Live(partition), keys, scope, ancestors });
        }
        Ok(parts)
    }
}

/// Spoils a query that continues after a split, if that was planted.
#[cfg(feature = "planted-faults")]
fn plant(request: &mut PageRequest) {
    use partition::planted::{PlantedFault, is_planted};
    let is_child = |part: &Part| part.source.live().is_some() && !part.ancestors.is_empty();
    let child = request.parts.iter().rposition(is_child);
    let Some(child) = child.filter(|_| request.resume.is_some()) else { return };
    if is_planted(PlantedFault::ChildIsNotQueried) {
        request.parts.remove(child);
    }
    if is_planted(PlantedFault::PositionIsForgotten) {
        request.resume = None;
    }
}

/// Whose turn the functions of a query use: a transaction may be that of a script, which holds a worker meanwhile.
fn turn(pass: &QueryPass<'_>, fixed: Option<&Part>) -> Turn {
    match fixed {
        Some(_) => Turn::OfScript,
        None => Turn::Own(script_caller(pass.principal, Some(pass.container))),
    }
}

/// Records a refused query for the first partition of its scope.
fn record_refused(pass: &QueryPass<'_>, fault: &Fault) {
    let Ok((hashes, _)) = bounds(pass.container, &pass.scope) else { return };
    if let Some(slot) = pass.container.map.load().owners(&hashes).next() {
        slot.ledger.refuse(fault, refusal_charge(fault));
    }
}

/// The scope of a query, the session tokens of its client and the size of its text.
struct QueryScope<'a> {
    scope: &'a Scope,
    session: &'a [SessionToken],
    size: Size,
    /// What is read, if it is not the latest state of the scope.
    fixed: Option<&'a Part>,
}

/// A prepared query.
struct Ready {
    /// With the vector policy of the container applied.
    query: Arc<Query>,
    program: Arc<Program>,
    resume: Option<(Opened, Resume)>,
    /// The context that its continuations are bound to, if it was needed.
    context: Option<Vec<u8>>,
}

/// Prepares a query. `base` returns the context of its continuations without its order.
fn prepare(
    defined: &Defined<'_>,
    request: &QueryRequest,
    base: impl FnOnce() -> Result<Vec<u8>, Fault>,
    key: &ContinuationKey,
) -> Result<Ready, Fault> {
    let query = defined.with_vectors(&request.query);
    let program = Arc::new(Program::new(Arc::clone(&query), defined.computed(), defined.system)?);
    let (mut resume, mut context) = (None, None);
    if let Some(text) = &request.continuation {
        let bound = bound_context(base()?, &program);
        let opened = continuation::open(key, &bound, text)?;
        let position = Resume::decode(&opened.position)?;
        resume = Some((opened, position));
        context = Some(bound);
    }
    Ok(Ready { query, program, resume, context })
}

/// What continuations are bound to, without the order of the query. Ranks depend on the documents of the scope, so a
/// position among them is valid in the same scope only.
fn base_context(container: &Container, scope: &Scope, query: &Query) -> Result<Vec<u8>, Fault> {
    let mut context = continuation::context("query", container);
    if let Order::Rank(_) = query.order {
        continuation::encode_scope(container, scope, &mut context)?;
    }
    Ok(context)
}

/// What continuations are bound to: not to filter and projection, because clients that merge ranges change the filter
/// when they resume.
fn bound_context(base: Vec<u8>, program: &Program) -> Vec<u8> {
    [&base[..], &program.order_digest()].concat()
}

/// What the definition of a container determines for queries over it.
struct Defined<'a> {
    system: SystemProperties,
    embeddings: Cow<'a, [VectorEmbedding]>,
    computed: Cow<'a, Arc<[ParsedProperty]>>,
}

impl Defined<'_> {
    /// Refuses a container with a computed property that could not be parsed: queries would return wrong results.
    fn of(container: &Container, link: DocumentLink) -> Result<Defined<'_>, Fault> {
        let embeddings = container.definition().policies.vectors.as_ref();
        let embeddings = embeddings.map_or(&[][..], |policy| &policy.embeddings);
        Ok(Defined {
            system: SystemProperties {
                database: container.database().number(),
                container: container.number(),
                link,
            },
            embeddings: Cow::Borrowed(embeddings),
            computed: Cow::Borrowed(container.computed()?),
        })
    }

    /// An owned copy for another thread.
    fn to_owned(&self) -> Defined<'static> {
        Defined {
            system: self.system,
            embeddings: Cow::Owned(self.embeddings.to_vec()),
            computed: Cow::Owned(Arc::clone(&self.computed)),
        }
    }

    fn computed(&self) -> &Arc<[ParsedProperty]> {
        &self.computed
    }

    /// The query with the vector policy of the container applied.
    fn with_vectors(&self, query: &Arc<Query>) -> Arc<Query> {
        match self.embeddings.is_empty() {
            true => Arc::clone(query),
            false => Arc::new(query.with_distances(&self.embeddings)),
        }
    }
}
