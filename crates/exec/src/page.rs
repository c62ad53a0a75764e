//! A page of a query: streamed if rows come in the order of numbers or of an index, selected otherwise.

use eval::{Meter, QueryMemory};
use kv::KeyRange;
use model::{Ambient, DocumentNumber, Fault, Lsn, PartitionOrdinal};
use partition::index::is_damage;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use crate::access_path::{self, AccessPath, Ordering, PathKind, Way};
use crate::assembly::Assembly;
use crate::collect::ResultWindow;
use crate::fault::query_fault;
use crate::found::{FoundRow, FoundRows, QueryMetrics, QueryRow};
use crate::merge::{self, StreamMerge};
use crate::picks::{self, Pick};
use crate::position::{self, RowSource};
use crate::program::{Layer, LayerInput, Program, RemainingCheck, Shape};
use crate::ranges;
use crate::resume::{After, Anchor, Resume};
use crate::select::{self, LayerRow};
use crate::stream::{FillLimits, Stream};
use crate::task::{OpenPart, Part, QueryBounds, Task};
use crate::user_calls::{self, UserFunctions};

/// Results to be skipped that are collected together with those of the page; more are skipped in a separate step that
/// holds only their positions.
const OFFSET_HELD_MAX: u64 = 1000;
/// Results that are skipped in one step.
const OFFSET_STEP_MAX: u64 = 100_000;

/// Documents that are read in one call after indexes have found them in order.
const PICKS_AT_A_TIME: usize = 16;
/// Maximum number of documents that are found before the first of them is read.
const PICKS_MAX: usize = 128;
/// Divisor of a stream's share of the rows: its index finds this fraction at a time, since documents found in vain cost
/// a walk.
const SHARE_PARTS: usize = 2;

/// The request for a page.
#[derive(Clone, Debug)]
pub struct PageRequest {
    /// The query.
    pub program: Arc<Program>,
    /// Maximum number of rows of the page.
    pub items_max: usize,
    /// Bytes of rows after which the page ends.
    pub bytes_max: usize,
    /// Whether a page of rows without an order ends where a range ends.
    pub ends_at_ranges: bool,
    /// Where to continue; `None` for the first page.
    pub resume: Option<Resume>,
    /// Bounds of the work.
    pub bounds: QueryBounds,
    /// The memory shared by all queries.
    pub memory: Arc<QueryMemory>,
    /// The user-defined functions that the query may call.
    pub user_functions: Arc<dyn UserFunctions>,
    /// The parts of partitions that are read.
    pub parts: Vec<Part>,
}

/// A page.
#[derive(Debug)]
pub struct Page {
    /// The rows.
    pub rows: Vec<QueryRow>,
    /// Where to continue, if there may be more.
    pub resume: Option<Resume>,
    /// The partitions that were read, and their states.
    pub seen: Vec<(PartitionOrdinal, Lsn)>,
    /// The work that was done.
    pub metrics: QueryMetrics,
}

/// Makes a page of a query over parts of partitions. A damaged index is not used again for this page; the partition
/// rebuilds it.
///
/// A page whose meter says that it is due waits to be polled elsewhere. A preempted page fails and must be restarted.
pub async fn page(
    request: Arc<PageRequest>,
    ambient: Arc<dyn Ambient>,
    meter: Arc<Meter>,
) -> Result<Page, Fault> {
    match attempt(&request, Arc::clone(&ambient), Arc::clone(&meter), true).await {
        // Boxed: rarely needed.
        Err(fault) if is_damage(&fault) => Box::pin(attempt(&request, ambient, meter, false)).await,
        page => page,
    }
}

async fn attempt(
    request: &PageRequest,
    ambient: Arc<dyn Ambient>,
    meter: Arc<Meter>,
    asks_indexes: bool,
) -> Result<Page, Fault> {
    let begun = Instant::now();
    let no_layer = || Fault::Internal("a program without layers".to_owned());
    let query = &request.program.last().ok_or_else(no_layer)?.query;
    let resume = request.resume.clone().unwrap_or_else(|| Resume {
        now_static_ms: ambient.now_ms(),
        offset: query.offset,
        limit: query.limit,
        range: None,
        after: After::Position(Vec::new()),
    });
    let memory = (request.bounds, Arc::clone(&request.memory));
    let (program, functions) = (Arc::clone(&request.program), Arc::clone(&request.user_functions));
    let task = Task::new(program, ambient, functions, memory, meter, resume.now_static_ms);
    let task = if asks_indexes { task } else { task.without_indexes() };
    let assembly = Assembly::new(resume, request.items_max, request.bytes_max);
    let mut work =
        PageExecution { task: Arc::new(task), assembly, seen: Vec::new(), metrics: QueryMetrics::default() };
    if !work.assembly.is_full() {
        work.run(&request.parts, request.ends_at_ranges).await?;
    }
    let PageExecution { assembly, seen, mut metrics, .. } = work;
    metrics.rows = assembly.rows.len() as u64;
    metrics.bytes = assembly.size as u64;
    metrics.total_time = begun.elapsed();
    let (rows, resume) = assembly.finish();
    Ok(Page { rows, resume, seen, metrics })
}

/// A page in progress.
struct PageExecution {
    task: Arc<Task>,
    assembly: Assembly,
    seen: Vec<(PartitionOrdinal, Lsn)>,
    metrics: QueryMetrics,
}

/// How the wanted rows are distributed over streams.
#[derive(Clone, Copy)]
struct StreamShare {
    streams: usize,
    /// Minimum number of documents to pick, if earlier picks gave too few rows.
    picks: usize,
}

impl StreamShare {
    /// Number of documents to pick for this number of rows.
    fn picks_of(self, rows: usize) -> usize {
        rows.max(self.picks).min(PICKS_MAX)
    }

    /// Number of documents that each stream finds at a time.
    fn documents_of(self, rows: usize) -> usize {
        let picks = self.picks_of(rows);
        if self.streams > 1 { (picks / self.streams / SHARE_PARTS).max(1) } else { picks }
    }
}

/// The input of the outermost layer.
enum PageInput {
    Partitions(Vec<Arc<OpenPart>>),
    Rows(Vec<LayerRow>),
}

impl PageExecution {
    async fn run(&mut self, parts: &[Part], ends_at_ranges: bool) -> Result<(), Fault> {
        let program = Arc::clone(&self.task.program);
        let [inner @ .., last] = &program.layers[..] else {
            return Ok(());
        };
        if inner.is_empty() && access_path::comes_by_number(last) {
            return self.ranges(last, parts, ends_at_ranges).await;
        }
        let mut open = Vec::new();
        if program.layers.first().is_some_and(|layer| layer.input == LayerInput::Documents) {
            for part in parts {
                let part = self.task.open(part.clone()).await?;
                self.seen.push(part.seen());
                open.push(part);
            }
        }
        // Held until the page is complete: the rows of the layer below are accounted all the time.
        let mut holding = self.task.budget.holding();
        let mut input = PageInput::Partitions(open);
        for layer in inner {
            let found = self.found(layer, &input, &ResultWindow::all()).await?;
            holding.absorb(found.holding);
            let offset = usize::try_from(layer.query.offset).unwrap_or(usize::MAX);
            let limit = layer.query.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
            let rows = found.rows.into_iter().skip(offset).take(limit);
            let value = |row: QueryRow| match row {
                QueryRow::Value(value) => value,
                QueryRow::Document(stored) => stored.document.to_value(),
            };
            input = PageInput::Rows(rows.map(|row| (row.position, value(row.row))).collect());
        }
        self.resolve_start(last, &input).await?;
        if let PageInput::Partitions(parts) = &input
            && inner.is_empty()
            && let Some(streams) = self.ordered_streams(last, parts).await?
        {
            if self.stream(last, streams).await? {
                self.assembly.end();
            }
            return Ok(());
        }
        self.select(last, &input).await
    }

    /// Streams of all parts in the order of the layer, if their indexes have it and sorting is not cheaper.
    async fn ordered_streams(
        &mut self,
        layer: &Layer,
        parts: &[Arc<OpenPart>],
    ) -> Result<Option<Vec<Stream>>, Fault> {
        let wanted = (self.assembly.room() as u64).saturating_add(self.assembly.offset());
        let paths = match access_path::in_order(layer, parts, wanted).await? {
            Ordering::Walk(paths) => {
                self.metrics.path = Some(PathKind::Ordered);
                paths
            }
            Ordering::Sort(_) => return Ok(None),
        };
        let after = self.assembly.after().resolved(|_| None);
        let stream = |(open, path): (&Arc<OpenPart>, AccessPath<'_>)| match path.way {
            Way::Ordered(request) => {
                let request = (request, path.scans_after);
                Some(Stream::ordered(&self.task, Arc::clone(open), request, &after))
            }
            Way::Records | Way::Numbers | Way::Lookup(..) | Way::Covered(..) => None,
        };
        Ok(parts.iter().zip(paths).map(stream).collect())
    }

    async fn found(
        &mut self,
        layer: &Layer,
        input: &PageInput,
        window: &ResultWindow,
    ) -> Result<FoundRows, Fault> {
        match input {
            PageInput::Partitions(parts) if layer.input == LayerInput::Documents => {
                select::over_partitions(&self.task, parts, window, &mut self.metrics).await
            }
            PageInput::Partitions(_) => {
                select::over_rows(&self.task, layer, &[], window, &mut self.metrics).await
            }
            PageInput::Rows(rows) => {
                select::over_rows(&self.task, layer, rows, window, &mut self.metrics).await
            }
        }
    }

    /// Fills the page by selection.
    async fn select(&mut self, layer: &Layer, input: &PageInput) -> Result<(), Fault> {
        loop {
            let offset = self.assembly.offset();
            let is_passing_over = offset > OFFSET_HELD_MAX;
            let count = if is_passing_over {
                usize::try_from(offset.min(OFFSET_STEP_MAX)).unwrap_or(usize::MAX)
            } else {
                self.assembly.room().saturating_add(usize::try_from(offset).unwrap_or(usize::MAX))
            };
            let bytes = if offset == 0 { self.assembly.room_bytes() } else { usize::MAX };
            let after = self.assembly.after();
            let window = ResultWindow { after, count, bytes, with_results: !is_passing_over };
            let found = self.found(layer, input, &window).await?;
            let mut rows = found.rows.into_iter();
            while !self.assembly.is_full()
                && let Some(row) = rows.next()
            {
                self.assembly.push(row);
            }
            let is_cut_short = rows.next().is_some();
            if !is_cut_short && !found.has_more {
                self.assembly.end();
                return Ok(());
            }
            if !is_cut_short {
                self.assembly.reach(found.reached);
            }
            if !self.assembly.rows.is_empty() || self.assembly.is_full() || self.task.is_time_up() {
                return Ok(());
            }
        }
    }

    /// Fills the page range by range.
    async fn ranges(&mut self, layer: &Layer, parts: &[Part], ends_at_ranges: bool) -> Result<(), Fault> {
        if let ([part], None) = (parts, self.assembly.range()) {
            // The usual case: nothing is sorted or truncated.
            let after = self.assembly.after().resolved(|_| None);
            self.assembly.enter(ranges::keys(part), true);
            if self.stream(layer, vec![Stream::new(&self.task, part.clone(), &after)]).await? {
                self.assembly.end();
            }
            return Ok(());
        }
        let task = Arc::clone(&self.task);
        self.seen.reserve(parts.len());
        let mut required_terms = None;
        let resumed = self.assembly.range().cloned();
        for range in ranges::in_order(parts, resumed.as_ref()) {
            if range.parts.iter().all(|part| part.source.documents() == 0) {
                continue;
            }
            // Ranges without rows have no pages of their own.
            if ends_at_ranges && !self.assembly.rows.is_empty() {
                self.assembly.enter(range.keys(), false);
                return Ok(());
            }
            // A full page continues after its last row, so that rows inserted there meanwhile are returned.
            if self.assembly.is_full() {
                return Ok(());
            }
            // Most partitions have no document with a rare value. The required terms are known after the first partition.
            required_terms = required_terms.or_else(|| task.required_terms());
            if let ([part], Some(required_terms)) = (&*range.parts, &mut required_terms)
                && let Some(seen) = part.seen_if_no_match(required_terms)
            {
                self.seen.push(seen);
                continue;
            }
            // Positions of unordered rows are short, so they are never truncated.
            let after = if range.is_resumed { self.assembly.after().resolved(|_| None) } else { Vec::new() };
            let streams = range.parts.iter().map(|part| Stream::new(&task, part.clone(), &after)).collect();
            self.assembly.enter(range.keys(), range.is_resumed);
            if !self.stream(layer, streams).await? {
                return Ok(());
            }
        }
        self.assembly.end();
        Ok(())
    }

    /// Fills the page from streams, always from the one whose next row comes first. Returns whether they are exhausted.
    async fn stream(&mut self, layer: &Layer, mut streams: Vec<Stream>) -> Result<bool, Fault> {
        let begun_at = self.assembly.after().resolved(|_| None);
        let mut share = StreamShare { streams: streams.len(), picks: 0 };
        if streams.len() > 1 && !self.assembly.is_full() {
            let limits = self.fill_limits(share);
            let done = merge::fill_first(&self.task, &mut streams, &begun_at, limits).await?;
            self.seen.extend(done.seen);
            self.metrics.add(&done.metrics);
        }
        let mut merge = StreamMerge::new(streams);
        loop {
            let Some(stream) = merge.first() else {
                return Ok(true);
            };
            if self.assembly.is_full() {
                return self.is_exhausted(layer, &mut merge).await;
            }
            if let Some(row) = stream.pop() {
                self.assembly.push(row);
                merge.first_changed();
                continue;
            }
            if stream.is_led_by_index() {
                let rows_before = self.assembly.rows.len();
                let picks = self.pick(layer, &mut merge, &begun_at, share).await?;
                if !picks.is_empty() {
                    if !self.take_picks(layer, &mut merge, &picks, &begun_at).await? {
                        return Ok(false);
                    }
                    if self.assembly.rows.len() < rows_before + picks.len() / 2 {
                        share.picks = (share.picks * 2).max(PICKS_AT_A_TIME);
                    }
                    continue;
                }
            }
            let limits = self.fill_limits(share);
            let Some(stream) = merge.first() else {
                return Ok(true);
            };
            if let Some(place) = self.position_if_late(stream, &begun_at) {
                self.assembly.reach(place);
                return Ok(false);
            }
            self.seen.extend(stream.fill(&self.task, layer, limits, &mut self.metrics).await?);
            merge.first_changed();
        }
    }

    /// Whether the indexes that lead the streams of a full page have no further document, so that the page is the last
    /// one. Nothing is read for that: a document that is left may still have no row.
    async fn is_exhausted(&mut self, layer: &Layer, merge: &mut StreamMerge) -> Result<bool, Fault> {
        let limits = FillLimits { rows: 1, bytes: 1, documents: 1 };
        loop {
            let Some(stream) = merge.first() else {
                return Ok(true);
            };
            if !stream.is_led_by_index() || stream.has_found_document() || self.task.is_time_up() {
                return Ok(false);
            }
            self.seen.extend(stream.fill(&self.task, layer, limits, &mut self.metrics).await?);
            merge.first_changed();
        }
    }

    /// The first documents, as many as may be wanted, as far as indexes have found them. None of them is read.
    async fn pick(
        &mut self,
        layer: &Layer,
        merge: &mut StreamMerge,
        begun_at: &[u8],
        share: StreamShare,
    ) -> Result<Vec<Pick>, Fault> {
        let limits = self.fill_limits(share);
        let count = share.picks_of(limits.rows);
        let mut picks = Vec::with_capacity(count);
        while picks.len() < count
            && let Some(at) = merge.first_at()
        {
            let stream = merge.stream(at);
            if let Some(document) = stream.take_document() {
                picks.push(Pick { stream: at, document });
            } else if stream.is_led_by_index() && self.position_if_late(stream, begun_at).is_none() {
                self.seen.extend(stream.fill(&self.task, layer, limits, &mut self.metrics).await?);
            } else {
                break;
            }
            merge.first_changed();
        }
        Ok(picks)
    }

    /// Reads the first documents and adds their rows; returns whether all of them were processed.
    async fn take_picks(
        &mut self,
        layer: &Layer,
        merge: &mut StreamMerge,
        picks: &[Pick],
        begun_at: &[u8],
    ) -> Result<bool, Fault> {
        let task = Arc::clone(&self.task);
        let context = task.context();
        let mut position = Vec::new();
        for some in picks.chunks(PICKS_AT_A_TIME) {
            if self.assembly.is_full() {
                return Ok(false);
            }
            context.check_time().map_err(query_fault)?;
            let documents = picks::read(some, &mut self.metrics).await?;
            let begun = Instant::now();
            if layer.calls.anywhere {
                user_calls::foresee_picks(&task, layer, &context, some, &documents).await?;
            }
            for (index, (Pick { stream, document: found }, stored)) in some.iter().zip(&documents).enumerate()
            {
                if self.assembly.is_full() {
                    return Ok(false);
                }
                let Some(stored) = stored else { continue };
                layer.turn_to(&context, index);
                let tie = stored.number.raw().to_be_bytes();
                let source = RowSource { tie: &tie, stored: Some(stored), keys: Some(&found.codes) };
                let (document, mut rows) = ((stored, found.check), 0);
                layer.for_each_match(&context, &task.program.system, document, &mut |row| {
                    position::write_row(&layer.query.order, row, source, &mut position)?;
                    if *position <= *begun_at {
                        return Ok(ControlFlow::Continue(()));
                    }
                    if let Some(row) = layer.result(row, Some(stored))? {
                        rows += 1;
                        self.assembly.push(FoundRow { position: position.clone(), size: row.size(), row });
                    }
                    let is_full = self.assembly.is_full();
                    Ok(if is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
                })?;
                merge.stream(*stream).count_named(rows);
                if task.meter.is_due() {
                    task.yield_now().await?;
                }
            }
            self.metrics.evaluation_time += begun.elapsed();
        }
        let is_full = self.assembly.is_full();
        // A page that is nearly complete does not yield.
        if !is_full {
            task.yield_now().await?;
        }
        Ok(!is_full || layer.has_one_row())
    }

    /// The position that a stream has reached, if it is time to return the rows so far. A page without progress would
    /// be requested again and again.
    fn position_if_late(&self, stream: &Stream, begun_at: &[u8]) -> Option<Vec<u8>> {
        let place = stream.next_position().filter(|place| *place > begun_at)?;
        self.task.is_time_up().then(|| place.to_vec())
    }

    /// How much the page still needs from streams.
    fn fill_limits(&self, share: StreamShare) -> FillLimits {
        let offset = usize::try_from(self.assembly.offset().min(OFFSET_HELD_MAX)).unwrap_or(usize::MAX);
        let rows = self.assembly.room().saturating_add(offset);
        FillLimits { rows, bytes: self.assembly.room_bytes(), documents: share.documents_of(rows) }
    }

    /// Resolves a truncated position by means of the documents that still exist.
    async fn resolve_start(&mut self, layer: &Layer, input: &PageInput) -> Result<(), Fault> {
        let After::Cut { anchors, .. } = self.assembly.after() else {
            return Ok(());
        };
        if layer.shape == Shape::AllGroups {
            return Ok(()); // Resolved when the groups are known.
        }
        let mut positions = Vec::new();
        match input {
            PageInput::Partitions(parts) => {
                for anchor in &anchors {
                    positions.extend(self.positions_at(layer, parts, anchor).await?);
                }
            }
            PageInput::Rows(_) => {
                let found = self.found(layer, input, &ResultWindow::all()).await?;
                positions.extend(found.rows.into_iter().map(|row| row.position));
            }
        }
        let after = self
            .assembly
            .after()
            .resolved(|anchor| positions.iter().find(|position| Anchor::of(position) == *anchor).cloned());
        self.assembly.start_after(after);
        Ok(())
    }

    /// Positions of the rows of the document that an anchor refers to.
    async fn positions_at(
        &self,
        layer: &Layer,
        parts: &[Arc<OpenPart>],
        anchor: &Anchor,
    ) -> Result<Vec<Vec<u8>>, Fault> {
        let Some(number) = DocumentNumber::from_raw(anchor.number(layer.query.order.turns_ties())) else {
            return Ok(Vec::new());
        };
        let context = self.task.context();
        let mut positions = Vec::new();
        for open in parts {
            // The request that returned the row may have had another scope and another filter.
            let Some(stored) = open.view.by_number(number, &KeyRange::all()).await? else {
                continue;
            };
            let tie = stored.number.raw().to_be_bytes();
            let source = RowSource { tie: &tie, stored: Some(&stored), keys: None };
            if layer.calls.anywhere {
                let documents = (std::slice::from_ref(&stored), RemainingCheck::Nothing);
                user_calls::foresee_documents(&self.task, layer, &context, documents).await?;
            }
            let document = (&stored, RemainingCheck::Nothing);
            layer.for_each_match(&context, &self.task.program.system, document, &mut |row| {
                let mut position = Vec::new();
                position::write_row(&layer.query.order, row, source, &mut position)?;
                positions.push(position);
                Ok(ControlFlow::Continue(()))
            })?;
        }
        context.check_time().map_err(query_fault)?;
        Ok(positions)
    }
}
