//! Metrics of the server, and the text of all metrics for a scraper.
//!
//! Each crate owns its metrics; this file registers all of them under the prefix `perihelion`. `docs/metrics.md`
//! describes them.

use engine::{Engine, KeyUse};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Upper bounds of the latency buckets in seconds.
const BUCKETS: [f64; 12] =
    [50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 100e-3, 1.0, 10.0];

/// Content type of the text format.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Metrics of the server, and the registry of all metrics.
pub(crate) struct Metrics {
    /// Responses by status class, from 1xx on.
    answers: [Counter; 5],
    throttled: Counter,
    duration: Histogram,
    pub(crate) connections_open: Gauge,
    pub(crate) connections: Counter,
    pub(crate) connections_refused: Counter,
    pub(crate) auth_failures: Counter,
    registry: Registry,
}

impl Metrics {
    /// Registers the metrics of the server, of `engine` and of everything below it.
    pub(crate) fn new(engine: &Arc<Engine>) -> Metrics {
        let requests = Family::<[(&str, &str); 1], Counter>::default();
        let answers = ["1xx", "2xx", "3xx", "4xx", "5xx"]
            .map(|class| requests.get_or_create(&[("status", class)]).clone());
        let mut metrics = Metrics {
            answers,
            throttled: Counter::default(),
            duration: Histogram::new(BUCKETS),
            connections_open: Gauge::default(),
            connections: Counter::default(),
            connections_refused: Counter::default(),
            auth_failures: Counter::default(),
            registry: Registry::with_prefix("perihelion"),
        };
        let registry = &mut metrics.registry;
        registry.register("requests", "Answered requests by class of their status", requests);
        let throttled = "Requests that were answered with 429";
        registry.register("requests_throttled", throttled, metrics.throttled.clone());
        let duration = "Time from the headers of a request to its answer, without sending it";
        registry.register_with_unit("request_duration", duration, Unit::Seconds, metrics.duration.clone());
        registry.register("connections_open", "Open connections", metrics.connections_open.clone());
        registry.register("connections", "Accepted connections", metrics.connections.clone());
        let refused = "Connections that were closed because too many were open";
        registry.register("connections_refused", refused, metrics.connections_refused.clone());
        let failures = "Requests that were answered with 401";
        registry.register("auth_failures", failures, metrics.auth_failures.clone());
        engine.register_metrics(registry);
        registry.register_collector(Box::new(ProgramCollector {
            engine: Arc::downgrade(engine),
            allocated_at_start: allocated_bytes().unwrap_or(0),
        }));
        metrics
    }

    /// Counts one answered request.
    pub(crate) fn answered(&self, status: u16, duration: Duration) {
        let class = usize::from(status / 100).clamp(1, self.answers.len()) - 1;
        self.answers[class].inc();
        if status == 429 {
            self.throttled.inc();
        }
        self.duration.observe(duration.as_secs_f64());
    }

    /// The text format for a scraper.
    pub(crate) fn render(&self) -> Result<String, fmt::Error> {
        let mut rendered = String::new();
        text::encode(&mut rendered, &self.registry)?;
        Ok(rendered)
    }
}

/// Reads metrics of the whole process.
struct ProgramCollector {
    engine: Weak<Engine>,
    /// Bytes allocated before the first request.
    allocated_at_start: usize,
}

impl fmt::Debug for ProgramCollector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ProgramCollector")
    }
}

impl Collector for ProgramCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let bytes = Some(&Unit::Bytes);
        let help = "Bytes that the program held before it served anybody";
        let at_start = self.allocated_at_start as u64;
        encoder
            .encode_descriptor("memory_at_start", help, bytes, MetricType::Gauge)?
            .encode_gauge(&at_start)?;
        if let Some(allocated) = allocated_bytes() {
            let help = "Bytes that the allocator has given out";
            let allocated = allocated as u64;
            let mut gauge = encoder.encode_descriptor("memory_allocated", help, bytes, MetricType::Gauge)?;
            gauge.encode_gauge(&allocated)?;
        }
        let uses = self.engine.upgrade().map(|engine| engine.access().key_uses()).unwrap_or_default();
        key_uses(&mut encoder, &uses)
    }
}

/// When each account key was last used; 0 means never.
fn key_uses(encoder: &mut DescriptorEncoder<'_>, uses: &[KeyUse]) -> fmt::Result {
    let help = "Time of the last request that an account key signed, in seconds since 1970, or 0 for never";
    let mut family =
        encoder.encode_descriptor("account_key_last_used", help, Some(&Unit::Seconds), MetricType::Gauge)?;
    for used in uses {
        let fingerprint = format!("{:08x}", u32::from_be_bytes(used.fingerprint));
        let labels = [("key", used.name.text().to_string()), ("fingerprint", fingerprint)];
        family.encode_family(&labels)?.encode_gauge(&used.last_used_seconds.unwrap_or(0))?;
    }
    Ok(())
}

/// Bytes handed out by the allocator; `None` with another allocator.
fn allocated_bytes() -> Option<usize> {
    use tikv_jemalloc_ctl::{epoch, stats};
    // The figures are those of the last epoch.
    epoch::advance().ok()?;
    stats::allocated::read().ok()
}
