//! Counters of the server, in Prometheus text form.

use engine::{KeyUse, MemoryUse};
use std::fmt::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the latency buckets in microseconds.
const BUCKETS_US: [u64; 12] =
    [50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 100_000, 1_000_000, 10_000_000];

/// What has been counted since the start.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Answers by hundred of their status.
    answers: [AtomicU64; 6],
    throttled: AtomicU64,
    buckets: [AtomicU64; BUCKETS_US.len()],
    duration_us: AtomicU64,
    count: AtomicU64,
    pub(crate) connections_open: AtomicU64,
    pub(crate) connections_total: AtomicU64,
    pub(crate) connections_refused: AtomicU64,
    pub(crate) auth_failures: AtomicU64,
    /// Bytes that the program had taken before it served anybody.
    allocated_at_start: usize,
}

/// Lines that say when each account key was last used; 0 stands for never.
pub(crate) struct KeyLines<'a>(pub(crate) &'a [KeyUse]);

impl fmt::Display for KeyLines<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "# TYPE perihelion_account_key_last_used_seconds gauge")?;
        for used in self.0 {
            let (name, fingerprint) = (used.name.text(), u32::from_be_bytes(used.fingerprint));
            let seconds = used.last_used_seconds.unwrap_or(0);
            writeln!(
                formatter,
                "perihelion_account_key_last_used_seconds{{key=\"{name}\",fingerprint=\"{fingerprint:08x}\"}} {seconds}"
            )?;
        }
        Ok(())
    }
}

impl Metrics {
    /// Nothing is counted yet.
    pub(crate) fn new() -> Metrics {
        Metrics { allocated_at_start: allocated_bytes().unwrap_or(0), ..Metrics::default() }
    }

    /// Counts one answered request.
    pub(crate) fn answered(&self, status: u16, duration: Duration) {
        let class = usize::from(status / 100).min(self.answers.len() - 1);
        self.answers[class].fetch_add(1, Ordering::Relaxed);
        if status == 429 {
            self.throttled.fetch_add(1, Ordering::Relaxed);
        }
        let us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        if let Some(bucket) = BUCKETS_US.iter().position(|bound| us <= *bound) {
            self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        }
        self.duration_us.fetch_add(us, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// The text that a scraper reads.
    pub(crate) fn render(&self, store_healthy: bool, store_bytes: u64, memory: MemoryUse) -> String {
        let mut text = String::new();
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let _ = writeln!(text, "# TYPE perihelion_requests_total counter");
        for (class, counter) in self.answers.iter().enumerate().skip(1) {
            let _ = writeln!(text, "perihelion_requests_total{{status=\"{class}xx\"}} {}", load(counter));
        }
        let _ = writeln!(text, "# TYPE perihelion_requests_throttled_total counter");
        let _ = writeln!(text, "perihelion_requests_throttled_total {}", load(&self.throttled));
        let _ = writeln!(text, "# TYPE perihelion_request_duration_seconds histogram");
        let mut below = 0;
        for (bound, counter) in BUCKETS_US.iter().zip(&self.buckets) {
            below += load(counter);
            let seconds = *bound as f64 / 1e6;
            let _ = writeln!(text, "perihelion_request_duration_seconds_bucket{{le=\"{seconds}\"}} {below}");
        }
        let count = load(&self.count);
        let _ = writeln!(text, "perihelion_request_duration_seconds_bucket{{le=\"+Inf\"}} {count}");
        let _ = writeln!(
            text,
            "perihelion_request_duration_seconds_sum {}",
            load(&self.duration_us) as f64 / 1e6
        );
        let _ = writeln!(text, "perihelion_request_duration_seconds_count {count}");
        for (name, kind, value) in [
            ("connections_open", "gauge", load(&self.connections_open)),
            ("connections_total", "counter", load(&self.connections_total)),
            ("connections_refused_total", "counter", load(&self.connections_refused)),
            ("auth_failures_total", "counter", load(&self.auth_failures)),
            ("store_healthy", "gauge", u64::from(store_healthy)),
            ("store_bytes", "gauge", store_bytes),
        ] {
            let _ = writeln!(text, "# TYPE perihelion_{name} {kind}\nperihelion_{name} {value}");
        }
        let _ = writeln!(text, "# TYPE perihelion_memory_reserved_bytes gauge");
        let program = ("program", self.allocated_at_start as u64);
        for (share, bytes) in memory.named().into_iter().chain([program]) {
            let _ = writeln!(text, "perihelion_memory_reserved_bytes{{share=\"{share}\"}} {bytes}");
        }
        if let Some(bytes) = allocated_bytes() {
            let _ = writeln!(text, "# TYPE perihelion_memory_allocated_bytes gauge");
            let _ = writeln!(text, "perihelion_memory_allocated_bytes {bytes}");
        }
        text
    }
}

/// Bytes that the allocator has given out; nothing where another allocator is in use.
fn allocated_bytes() -> Option<usize> {
    use tikv_jemalloc_ctl::{epoch, stats};
    // The figures are those of the last epoch.
    epoch::advance().ok()?;
    stats::allocated::read().ok()
}

/// Queries that take long, running and waiting, as lines of `/metrics`.
pub(crate) struct QueryLines(pub(crate) (usize, usize));

impl fmt::Display for QueryLines {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (running, waiting) = self.0;
        for (name, value) in [("running", running), ("waiting", waiting)] {
            let name = format!("perihelion_long_queries_{name}");
            writeln!(formatter, "# TYPE {name} gauge\n{name} {value}")?;
        }
        Ok(())
    }
}

/// Open partitions, and documents that housekeeping could not read, as lines of `/metrics`.
pub(crate) struct PartitionLines {
    pub(crate) open: usize,
    pub(crate) skipped_documents: u64,
}

impl fmt::Display for PartitionLines {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = "perihelion_open_partitions";
        writeln!(formatter, "# TYPE {name} gauge\n{name} {}", self.open)?;
        let name = "perihelion_housekeeping_skipped_documents_total";
        writeln!(formatter, "# TYPE {name} counter\n{name} {}", self.skipped_documents)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_counted_by_status_and_time() {
        let metrics = Metrics::default();
        metrics.answered(200, Duration::from_micros(80));
        metrics.answered(429, Duration::from_secs(60));
        let memory = MemoryUse {
            records: 1,
            blocks: 2,
            index_blocks: 3,
            memtables: 4,
            index_segments: 5,
            index_runs: 9,
            queries: 6,
            answers: 7,
            bodies: 8,
        };
        let text = metrics.render(true, 7, memory);
        for line in [
            "perihelion_requests_total{status=\"2xx\"} 1",
            "perihelion_requests_total{status=\"4xx\"} 1",
            "perihelion_requests_throttled_total 1",
            "perihelion_request_duration_seconds_bucket{le=\"0.0001\"} 1",
            "perihelion_request_duration_seconds_bucket{le=\"+Inf\"} 2",
            "perihelion_store_bytes 7",
            "perihelion_memory_reserved_bytes{share=\"queries\"} 6",
            "perihelion_memory_allocated_bytes ",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }
}
