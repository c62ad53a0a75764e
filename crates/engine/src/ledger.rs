//! The ledger: work that partitions report is priced here, once, and recorded for the partition that did it.
//!
//! Refused requests are recorded too. Metrics show the totals since the start; they do not survive a restart.

use model::{Charge, Fault, StorageFault, Work};
use std::sync::atomic::{AtomicU64, Ordering};

/// Totals of the requests on one partition.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    requests: AtomicU64,
    refused: AtomicU64,
    damaged: AtomicU64,
    /// In hundredths of a request unit.
    charged: AtomicU64,
}

/// The content of a ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LedgerTotals {
    /// Requests, including refused ones.
    pub requests: u64,
    /// Refused requests.
    pub refused: u64,
    /// Refused requests that found damaged data.
    pub damaged: u64,
    /// The total charge.
    pub charged: Charge,
}

impl Ledger {
    /// Prices the work of one request and records it.
    pub(crate) fn record(&self, work: Work) -> Charge {
        let charge = work.price();
        self.add(charge);
        charge
    }

    /// Records a request with this charge. Housekeeping is not charged and is not a request.
    pub(crate) fn add(&self, charge: Charge) {
        if charge == Charge::NONE {
            return;
        }
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.charged.fetch_add(charge.hundredths(), Ordering::Relaxed);
    }

    pub(crate) fn refuse(&self, fault: &Fault, charge: Charge) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        let is_damage = matches!(fault, Fault::Storage(StorageFault::Damaged { .. }));
        self.damaged.fetch_add(u64::from(is_damage), Ordering::Relaxed);
        self.add(charge);
    }

    pub(crate) fn totals(&self) -> LedgerTotals {
        LedgerTotals {
            requests: self.requests.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            damaged: self.damaged.load(Ordering::Relaxed),
            charged: Charge::from_hundredths(self.charged.load(Ordering::Relaxed)),
        }
    }
}

/// The charge of a refused request: nothing before the caller is authenticated, the minimum afterwards.
pub fn refusal_charge(fault: &Fault) -> Charge {
    match fault {
        Fault::Access(_) => Charge::NONE,
        Fault::Request(_)
        | Fault::Missing(_)
        | Fault::Conflict(_)
        | Fault::Precondition(_)
        | Fault::Query(_)
        | Fault::Limit(_)
        | Fault::Storage(_)
        | Fault::Internal(_) => Charge::MINIMUM,
    }
}

#[test]
fn refusals_are_recorded_beside_what_was_done() {
    let ledger = Ledger::default();
    assert_eq!(ledger.record(Work::Read { bytes: 100 }), Charge::MINIMUM);
    let damage = Fault::Storage(StorageFault::Damaged { what: "a record".to_owned() });
    for fault in [Fault::Internal("x".to_owned()), damage] {
        ledger.refuse(&fault, refusal_charge(&fault));
    }
    ledger.record(Work::Create { bytes: 10 });
    let charged = Charge::MINIMUM + Charge::MINIMUM + Charge::MINIMUM + Work::Create { bytes: 10 }.price();
    assert_eq!(ledger.totals(), LedgerTotals { requests: 4, refused: 2, damaged: 1, charged });
}
