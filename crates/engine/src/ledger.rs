//! The ledger: work that partitions report is priced here, once, and recorded for the partition that did it.
//!
//! Refused requests are recorded too. What is recorded since the start is shown by the metrics; it does not survive a
//! restart.

use model::{Charge, Fault, Work};
use std::sync::atomic::{AtomicU64, Ordering};

/// What the requests on one partition cost.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    requests: AtomicU64,
    refused: AtomicU64,
    /// In hundredths of a request unit.
    charged: AtomicU64,
}

/// What a ledger has recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LedgerTotals {
    /// Requests, the refused ones included.
    pub requests: u64,
    /// Refused requests.
    pub refused: u64,
    /// What all of them cost.
    pub charged: Charge,
}

impl Ledger {
    /// Prices the work of one request and records it.
    pub(crate) fn record(&self, work: Work) -> Charge {
        let charge = work.price();
        self.add(charge);
        charge
    }

    /// Records a request that cost this much. Housekeeping costs nothing and is no request.
    pub(crate) fn add(&self, charge: Charge) {
        if charge == Charge::NONE {
            return;
        }
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.charged.fetch_add(charge.hundredths(), Ordering::Relaxed);
    }

    /// Records a refused request.
    pub(crate) fn refuse(&self, charge: Charge) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        self.add(charge);
    }

    pub(crate) fn totals(&self) -> LedgerTotals {
        LedgerTotals {
            requests: self.requests.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            charged: Charge::from_hundredths(self.charged.load(Ordering::Relaxed)),
        }
    }
}

/// What a refused request costs: nothing before it is known who sent it, the least that there is afterwards.
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
    ledger.refuse(refusal_charge(&Fault::Internal("x".to_owned())));
    ledger.record(Work::Create { bytes: 10 });
    let charged = Charge::MINIMUM + Charge::MINIMUM + Work::Create { bytes: 10 }.price();
    assert_eq!(ledger.totals(), LedgerTotals { requests: 3, refused: 1, charged });
}
