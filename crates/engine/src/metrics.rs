//! Metrics of the engine: figures that are read at collection time, in addition to those that store and partitions
//! count themselves.

use crate::catalog::{Container, Offer};
use crate::engine::Engine;
use crate::slot::PartitionSlot;
use exec::PathKind;
use model::{Rid, Throughput};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, EncodeLabelSet, EncodeMetric,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Histograms by one label.
type Histograms = Family<[(&'static str, &'static str); 1], Histogram, fn() -> Histogram>;

/// What the engine measures itself.
#[derive(Debug)]
pub(crate) struct EngineMetrics {
    queries: Histograms,
    /// One for each kind of path, in the order of [`PathKind::ALL`].
    by_path: [Histogram; PathKind::ALL.len()],
    split_pauses: Histogram,
}

impl Default for EngineMetrics {
    fn default() -> EngineMetrics {
        // From 50 µs, four-fold, to 13 s.
        let buckets: fn() -> Histogram = || Histogram::new(exponential_buckets(50e-6, 4.0, 10));
        let queries = Histograms::new_with_constructor(buckets);
        let by_path = PathKind::ALL.map(|path| queries.get_or_create(&[("path", path.name())]).clone());
        // From 0.5 ms, doubled, to 2 s.
        let split_pauses = Histogram::new(exponential_buckets(0.5e-3, 2.0, 13));
        EngineMetrics { queries, by_path, split_pauses }
    }
}

impl EngineMetrics {
    /// Counts a page of a query.
    pub(crate) fn query_time(&self, path: PathKind, time: Duration) {
        if let Some(position) = PathKind::ALL.iter().position(|kind| *kind == path) {
            self.by_path[position].observe(time.as_secs_f64());
        }
    }
}

impl EngineMetrics {
    /// Counts a split and the time in which the partition accepted no write.
    pub(crate) fn split_done(&self, pause: Duration) {
        self.split_pauses.observe(pause.as_secs_f64());
    }
}

impl Engine {
    /// Registers the metrics of the engine and of everything below it.
    pub fn register_metrics(self: &Arc<Engine>, registry: &mut Registry) {
        if let Some(store) = self.store.metrics() {
            store.register(registry);
        }
        self.partition_metrics.register(registry);
        self.record_cache.register(registry);
        let queries =
            "Time to make a page of a query, by the access path of the partition that was read first";
        registry.register_with_unit("query_page", queries, Unit::Seconds, self.metrics.queries.clone());
        let pauses = "Time in which a partition accepted no write while it was split; counts the splits";
        let splits = self.metrics.split_pauses.clone();
        registry.register_with_unit("partition_split_pause", pauses, Unit::Seconds, splits);
        if let Some(workers) = self.workers() {
            workers.register_metrics(registry);
        }
        registry.register_collector(Box::new(EngineCollector(Arc::downgrade(self))));
    }
}

/// Reads the figures of an engine while it exists.
struct EngineCollector(Weak<Engine>);

impl fmt::Debug for EngineCollector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("EngineCollector")
    }
}

impl Collector for EngineCollector {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(engine) = self.0.upgrade() else { return Ok(()) };
        let mut figures = Figures { encoder };
        store(&engine, &mut figures)?;
        memory(&engine, &mut figures)?;
        queries(&engine, &mut figures)?;
        partitions(&engine, &mut figures)?;
        charges(&engine, &mut figures)?;
        throughput(&engine, &mut figures)?;
        housekeeping(&engine, &mut figures)
    }
}

fn store(engine: &Engine, figures: &mut Figures<'_>) -> fmt::Result {
    let healthy = u64::from(engine.health().is_ok());
    figures.gauge("store_healthy", "1 while the store takes writes, else 0", None, healthy)?;
    let bytes = Some(Unit::Bytes);
    figures.gauge("store", "Bytes of the store on its disk", bytes.clone(), engine.disk_bytes())?;
    if let Some(space) = engine.store.disk_space() {
        let free = "Free bytes of the disk, less what memtables and merges still have to write";
        figures.gauge("store_free", free, bytes.clone(), space.free_bytes)?;
        let reserve = "Free bytes below which writes that grow the store are refused";
        figures.gauge("store_free_reserve", reserve, bytes, space.reserve_bytes)?;
    }
    let depth = engine.store.queue_depth() as u64;
    figures.gauge("store_queue_depth", "Batches that wait to be committed", None, depth)
}

fn memory(engine: &Engine, figures: &mut Figures<'_>) -> fmt::Result {
    let help = "Bytes that each part of the program holds in memory";
    let shares = engine.memory_use().named().map(|(share, bytes)| ([("share", share)], bytes));
    figures.gauges("memory_reserved", help, Some(Unit::Bytes), shares)
}

fn queries(engine: &Engine, figures: &mut Figures<'_>) -> fmt::Result {
    let (running, waiting) = engine.long_queries();
    let help = "Queries that run on threads of their own because they take long";
    figures.gauge("long_queries_running", help, None, running as u64)?;
    figures.gauge("long_queries_waiting", "Long queries that wait for a thread", None, waiting as u64)
}

fn partitions(engine: &Engine, figures: &mut Figures<'_>) -> fmt::Result {
    let open = engine.open_partitions() as u64;
    figures.gauge("open_partitions", "Physical partitions that are open", None, open)?;
    let state = engine.catalog.state();
    let (mut queued, mut builds, mut rows) = (0, 0, Vec::new());
    for container in state.containers() {
        for slot in &container.map.load().entries {
            let Some(partition) = slot.current() else { continue };
            queued += partition.queue_depth() as u64;
            builds += u64::from(partition.index_progress() < 100);
            let labels = partition_labels(container, slot);
            rows.push((labels, partition.index_pieces() as u64, partition.counts()));
        }
    }
    let waiting = "Transactions that wait for the writers of their partitions";
    figures.gauge("partition_queue_depth", waiting, None, queued)?;
    figures.gauge("index_builds_running", "Partitions whose index is being built", None, builds)?;
    let pieces = "Segments and runs of a partition's index; every lookup asks each of them";
    let counted = rows.iter().map(|(labels, pieces, _)| (labels.clone(), *pieces));
    figures.gauges("partition_index_pieces", pieces, None, counted)?;
    let counted = rows.iter().map(|(labels, _, counts)| (labels.clone(), counts.documents));
    figures.gauges("partition_documents", "Documents of a partition", None, counted)?;
    let counted = rows.iter().map(|(labels, _, counts)| (labels.clone(), counts.bytes));
    let help = "Encoded size of a partition's documents";
    figures.gauges("partition_documents_size", help, Some(Unit::Bytes), counted)
}

fn partition_labels(container: &Container, slot: &PartitionSlot) -> [(&'static str, String); 3] {
    [
        ("database", container.database().id().to_owned()),
        ("container", container.id().to_owned()),
        ("partition", slot.ordinal.to_string()),
    ]
}

fn charges(engine: &Engine, figures: &mut Figures<'_>) -> fmt::Result {
    let state = engine.catalog.state();
    let mut rows = Vec::new();
    for container in state.containers() {
        for slot in &container.map.load().entries {
            let totals = slot.ledger.totals();
            if totals.requests > 0 || totals.throttled > 0 {
                rows.push((partition_labels(container, slot), totals));
            }
        }
    }
    let help = "Request units charged for requests on a partition";
    let units =
        rows.iter().map(|(labels, totals)| (labels.clone(), totals.charged.hundredths() as f64 / 100.0));
    figures.counters("request_units", help, units)?;
    let help = "Requests on a partition, the refused ones included";
    figures.counters(
        "partition_requests",
        help,
        rows.iter().map(|(labels, totals)| (labels.clone(), totals.requests)),
    )?;
    let help = "Requests that a partition refused";
    figures.counters(
        "partition_requests_refused",
        help,
        rows.iter().map(|(labels, totals)| (labels.clone(), totals.refused)),
    )?;
    let help = "Requests that were refused because the throughput was used up";
    figures.counters(
        "partition_requests_throttled",
        help,
        rows.iter().map(|(labels, totals)| (labels.clone(), totals.throttled)),
    )?;
    let help = "Requests that were refused because they found damaged data";
    figures.counters(
        "partition_requests_damaged",
        help,
        rows.iter().map(|(labels, totals)| (labels.clone(), totals.damaged)),
    )
}

/// Names of the owner of an offer; a database has no container.
type OfferLabels = [(&'static str, String); 2];

fn throughput(engine: &Engine, figures: &mut Figures<'_>) -> fmt::Result {
    let state = engine.catalog.state();
    let names = |rid| match rid {
        Rid::Database(number) => Some((state.database(number)?.id().to_owned(), String::new())),
        Rid::Container(_, number) => {
            let container = state.container(number)?;
            Some((container.database().id().to_owned(), container.id().to_owned()))
        }
        Rid::Document(..)
        | Rid::Range(..)
        | Rid::DatabaseChild(..)
        | Rid::Permission(..)
        | Rid::Script(..)
        | Rid::Offer(_) => None,
    };
    let labelled = |offer: Arc<Offer>| {
        let (database, container) = names(offer.owner().rid)?;
        Some(([("database", database), ("container", container)], offer))
    };
    let offers: Vec<(OfferLabels, Arc<Offer>)> = state.offers().into_iter().filter_map(labelled).collect();
    let help = "Provisioned request units per second of a container or database, with autoscale the maximum";
    let provisioned = offers.iter().map(|(labels, offer)| (labels.clone(), offer.throughput().max()));
    figures.gauges("throughput", help, None, provisioned)?;
    let is_autoscale = |offer: &Offer| matches!(offer.throughput(), Throughput::Autoscale { .. });
    let autoscale = offers.iter().filter(|(_, offer)| is_autoscale(offer));
    let scaled: Vec<_> =
        autoscale.map(|(labels, offer)| (labels.clone(), engine.scaled(&state, offer))).collect();
    let help = "Request units per second to which autoscale was scaled in the last second";
    figures.gauges(
        "autoscale_throughput",
        help,
        None,
        scaled.iter().map(|(labels, to)| (labels.clone(), to.now)),
    )?;
    let help = "Request units per second to which autoscale was scaled at most in this hour";
    figures.gauges(
        "autoscale_throughput_hour",
        help,
        None,
        scaled.iter().map(|(labels, to)| (labels.clone(), to.hour)),
    )
}

fn housekeeping(engine: &Engine, figures: &mut Figures<'_>) -> fmt::Result {
    let now = engine.ambient().now_seconds();
    let state = engine.catalog.state();
    // Containers that were not swept since the start are due at second 0, which is not a backlog.
    let lag = |due: u64| if due == 0 { 0 } else { now.saturating_sub(due) };
    let backlog = state.containers().map(|container| lag(container.shape.expiry_due())).max().unwrap_or(0);
    let help = "Seconds since the oldest expired document that is not deleted yet became due";
    figures.gauge("expiry_backlog", help, Some(Unit::Seconds), backlog)?;
    let help = "Documents that housekeeping left out because they could not be read";
    let skipped = engine.skipped_documents();
    figures.counters("housekeeping_skipped_documents", help, [(NO_LABELS, skipped)])
}

/// For a figure without labels.
const NO_LABELS: [(&str, &str); 0] = [];

/// Writes figures that are read at collection time.
struct Figures<'a> {
    encoder: DescriptorEncoder<'a>,
}

impl Figures<'_> {
    fn gauge(&mut self, name: &str, help: &str, unit: Option<Unit>, value: u64) -> fmt::Result {
        let metric = ConstGauge::new(value);
        metric.encode(self.encoder.encode_descriptor(name, help, unit.as_ref(), metric.metric_type())?)
    }

    fn gauges<L: EncodeLabelSet, V: EncodeGaugeValue>(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        values: impl IntoIterator<Item = (L, V)>,
    ) -> fmt::Result {
        let mut family = self.encoder.encode_descriptor(name, help, unit.as_ref(), MetricType::Gauge)?;
        for (labels, value) in values {
            family.encode_family(&labels)?.encode_gauge(&value)?;
        }
        Ok(())
    }

    fn counters<L: EncodeLabelSet, V: EncodeCounterValue>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (L, V)>,
    ) -> fmt::Result {
        let mut family = self.encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, value) in values {
            let counter: ConstCounter<V> = ConstCounter::new(value);
            counter.encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
