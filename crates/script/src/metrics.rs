//! Metrics of the pool.

use crate::{CallFault, ScriptFault};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use std::time::Duration;

/// Counters of one pool.
#[derive(Debug)]
pub(crate) struct PoolMetrics {
    calls: Family<[(&'static str, &'static str); 1], Counter>,
    duration: Histogram,
    pub(crate) waiting: Gauge,
    pub(crate) started: Counter,
    pub(crate) killed: Counter,
}

impl Default for PoolMetrics {
    fn default() -> PoolMetrics {
        let calls: Family<[(&'static str, &'static str); 1], Counter> = Family::default();
        // Shown before the first call.
        drop(calls.get_or_create(&[("result", name::<(), ()>(&Ok(())))]));
        PoolMetrics {
            calls,
            // From 50 µs, four-fold, to 13 s.
            duration: Histogram::new(exponential_buckets(50e-6, 4.0, 10)),
            waiting: Gauge::default(),
            started: Counter::default(),
            killed: Counter::default(),
        }
    }
}

impl PoolMetrics {
    /// Counts a call that has ended.
    pub(crate) fn record<T, F>(&self, result: &Result<T, CallFault<F>>, duration: Duration) {
        self.calls.get_or_create(&[("result", name(result))]).inc();
        self.duration.observe(duration.as_secs_f64());
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register("script_calls", "Calls of scripts by their result", self.calls.clone());
        let duration = "Time of a call of a script, its operations and its wait included";
        registry.register_with_unit("script_call", duration, Unit::Seconds, self.duration.clone());
        let waiting = "Calls of scripts that wait for a worker";
        registry.register("script_calls_waiting", waiting, self.waiting.clone());
        let started = "Worker processes that were started";
        registry.register("script_workers_started", started, self.started.clone());
        let killed = "Worker processes that were killed because their script did not stop";
        registry.register("script_workers_killed", killed, self.killed.clone());
    }
}

fn name<T, F>(result: &Result<T, CallFault<F>>) -> &'static str {
    match result {
        Ok(_) => "finished",
        Err(CallFault::Host(_) | CallFault::Again) => "ended",
        Err(CallFault::Script(fault)) => match fault {
            ScriptFault::Syntax(_) | ScriptFault::Thrown(_) | ScriptFault::Result(_) => "failed",
            ScriptFault::TimeExceeded { .. } => "time",
            ScriptFault::MemoryExceeded { .. } => "memory",
            ScriptFault::Crashed { .. } => "crashed",
            ScriptFault::Busy | ScriptFault::Unavailable { .. } | ScriptFault::InputTooLarge { .. } => {
                "refused"
            }
        },
    }
}
