//! Metrics of the store.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use std::time::Duration;

use crate::batch::Durability;

/// Histograms by one label.
type Histograms = Family<[(&'static str, &'static str); 1], Histogram, fn() -> Histogram>;

/// Counters and histograms of one store. Clones share them.
#[derive(Clone, Debug)]
pub struct StoreMetrics {
    commits: Histograms,
    synced: Histogram,
    buffered: Histogram,
    group_batches: Histogram,
    group_rows: Histogram,
    failed_commits: Counter,
    reopens: Counter,
}

/// From 50 µs, doubling, to 1.6 s.
fn time_buckets() -> Histogram {
    Histogram::new(exponential_buckets(50e-6, 2.0, 16))
}

impl Default for StoreMetrics {
    fn default() -> StoreMetrics {
        let commits = Histograms::new_with_constructor(time_buckets);
        let of = |durability| commits.get_or_create(&[("durability", durability)]).clone();
        StoreMetrics {
            synced: of("sync"),
            buffered: of("buffered"),
            commits,
            group_batches: Histogram::new(exponential_buckets(1.0, 2.0, 10)),
            group_rows: Histogram::new(exponential_buckets(1.0, 4.0, 9)),
            failed_commits: Counter::default(),
            reopens: Counter::default(),
        }
    }
}

impl StoreMetrics {
    /// Registers all metrics.
    pub fn register(&self, registry: &mut Registry) {
        registry.register_with_unit(
            "store_commit",
            "Time to append a group of batches to the journal; with durability=sync this includes fdatasync",
            Unit::Seconds,
            self.commits.clone(),
        );
        let batches = "Batches that were committed together";
        registry.register("store_group_batches", batches, self.group_batches.clone());
        let rows = "Rows that were committed together";
        registry.register("store_group_rows", rows, self.group_rows.clone());
        let failed = "Commits that failed; the store is poisoned until it is reopened";
        registry.register("store_failed_commits", failed, self.failed_commits.clone());
        let reopens = "Times the store was reopened after a failed commit";
        registry.register("store_reopens", reopens, self.reopens.clone());
    }

    pub(crate) fn committed(&self, batches: usize, rows: usize, durability: Durability, time: Duration) {
        match durability {
            Durability::Sync => self.synced.observe(time.as_secs_f64()),
            Durability::Buffered => self.buffered.observe(time.as_secs_f64()),
        }
        self.group_batches.observe(batches as f64);
        self.group_rows.observe(rows as f64);
    }

    pub(crate) fn failed(&self) {
        self.failed_commits.inc();
    }

    pub(crate) fn reopened(&self) {
        self.reopens.inc();
    }
}
