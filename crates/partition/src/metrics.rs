//! Metrics of all partitions of a store.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// Counters and histograms of all partitions. Clones share them.
#[derive(Clone, Debug)]
pub struct PartitionMetrics {
    pub(crate) batch_transactions: Histogram,
    pub(crate) index_builds_started: Counter,
    pub(crate) index_builds_failed: Counter,
}

impl Default for PartitionMetrics {
    fn default() -> PartitionMetrics {
        PartitionMetrics {
            batch_transactions: Histogram::new(exponential_buckets(1.0, 2.0, 9)),
            index_builds_started: Counter::default(),
            index_builds_failed: Counter::default(),
        }
    }
}

impl PartitionMetrics {
    /// Registers all metrics.
    pub fn register(&self, registry: &mut Registry) {
        let transactions = "Transactions that a partition committed in one batch";
        registry.register("partition_batch_transactions", transactions, self.batch_transactions.clone());
        let started = "Index builds that were started, by a new policy or after damage";
        registry.register("index_builds_started", started, self.index_builds_started.clone());
        let failed = "Index builds that failed and are tried again";
        registry.register("index_builds_failed", failed, self.index_builds_failed.clone());
    }
}
