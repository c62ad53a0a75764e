//! Provisioned throughput of a container or database.

use crate::limits::{AUTOSCALE_MIN, SHARED_CONTAINERS_FREE, THROUGHPUT_MAX, THROUGHPUT_MIN, THROUGHPUT_STEP};
use crate::{DecodeFault, Decoder, DefinitionPart, Encoder, RequestFault, ThroughputRule};

/// Provisioned request units per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throughput {
    /// A fixed rate.
    Manual(u64),
    /// A rate between a tenth of the maximum and the maximum.
    Autoscale {
        /// The maximum.
        max: u64,
        /// By how many percent the maximum grows at least when the storage requires a higher one.
        increment_percent: u8,
    },
}

impl Throughput {
    /// The default of a container.
    pub const DEFAULT: Throughput = Throughput::Manual(THROUGHPUT_MIN);

    /// A fixed rate within the published bounds.
    pub fn manual(rate: u64) -> Result<Throughput, RequestFault> {
        let fits = (THROUGHPUT_MIN..=THROUGHPUT_MAX).contains(&rate) && rate.is_multiple_of(THROUGHPUT_STEP);
        fits.then_some(Throughput::Manual(rate)).ok_or(RequestFault::ManualThroughput {
            rate,
            min: THROUGHPUT_MIN,
            max: THROUGHPUT_MAX,
            step: THROUGHPUT_STEP,
        })
    }

    /// An autoscale maximum within the published bounds, without increments.
    pub fn autoscale(max: u64) -> Result<Throughput, RequestFault> {
        let fits = (AUTOSCALE_MIN..=THROUGHPUT_MAX).contains(&max) && max.is_multiple_of(AUTOSCALE_MIN);
        let autoscale = Throughput::Autoscale { max, increment_percent: 0 };
        fits.then_some(autoscale).ok_or(RequestFault::AutoscaleThroughput {
            rate: max,
            min: AUTOSCALE_MIN,
            max: THROUGHPUT_MAX,
            step: AUTOSCALE_MIN,
        })
    }

    /// The lowest rate to which it scales by itself.
    pub fn min(self) -> u64 {
        match self {
            Throughput::Manual(rate) => rate,
            Throughput::Autoscale { max, .. } => max / 10,
        }
    }

    /// The higher throughput that what is stored requires, if it is autoscale and too low: the next maximum that is
    /// sufficient, or the one that the increment says.
    pub fn raised_for_storage(self, floor: ThroughputFloor) -> Option<Throughput> {
        let Throughput::Autoscale { max, increment_percent } = self else { return None };
        let required = floor.autoscale_by_storage();
        if required <= max {
            return None;
        }
        let by_increment = max + max * u64::from(increment_percent) / 100;
        let raised = required.max(by_increment).next_multiple_of(AUTOSCALE_MIN).min(THROUGHPUT_MAX);
        Some(Throughput::Autoscale { max: raised, increment_percent })
    }

    /// The maximum in request units per second.
    pub fn max(self) -> u64 {
        match self {
            Throughput::Manual(rate) => rate,
            Throughput::Autoscale { max, .. } => max,
        }
    }
}

/// A change of an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThroughputChange {
    /// Another rate of the same kind.
    To(Throughput),
    /// From manual to autoscale; the server chooses the maximum.
    MigrateToAutoscale,
    /// From autoscale to manual, at the previous maximum.
    MigrateToManual,
}

/// The lower bound of an offer: it depends on its highest rate so far, on what is stored and, for a database, on its
/// containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThroughputFloor {
    /// The highest rate of the offer so far.
    pub highest: u64,
    /// Containers that share it; 0 for the offer of a container.
    pub shared_by: u64,
    /// Request units per second that what is stored in its containers requires of manual throughput.
    pub stored_units: u64,
}

impl ThroughputFloor {
    /// The minimum rate for the kind of `throughput`.
    pub fn of(self, throughput: Throughput) -> u64 {
        let beyond_free = self.shared_by.saturating_sub(SHARED_CONTAINERS_FREE);
        match throughput {
            Throughput::Manual(_) => {
                let least = (self.highest / 100).max(self.stored_units).min(THROUGHPUT_MAX);
                let least = least.next_multiple_of(THROUGHPUT_STEP);
                least.max(THROUGHPUT_MIN + THROUGHPUT_STEP * beyond_free).min(THROUGHPUT_MAX)
            }
            Throughput::Autoscale { .. } => {
                let least = (self.highest / 10).max(self.autoscale_by_storage());
                let least = least.next_multiple_of(AUTOSCALE_MIN);
                least.max(AUTOSCALE_MIN + AUTOSCALE_MIN * beyond_free).min(THROUGHPUT_MAX)
            }
        }
    }

    /// The autoscale maximum that what is stored requires. At a tenth of it there must be as much as with manual
    /// throughput.
    fn autoscale_by_storage(self) -> u64 {
        self.stored_units.saturating_mul(10).min(THROUGHPUT_MAX)
    }
}

impl ThroughputChange {
    /// Applies the change to an offer of `current`; no rate goes below the floor.
    pub fn applied(self, current: Throughput, floor: ThroughputFloor) -> Result<Throughput, RequestFault> {
        use Throughput::{Autoscale, Manual};
        match (self, current) {
            (ThroughputChange::To(wanted @ Manual(_)), Manual(_)) => {
                bounded(wanted, DefinitionPart::ManualThroughput, THROUGHPUT_STEP, floor)
            }
            (ThroughputChange::To(wanted @ Autoscale { .. }), Autoscale { .. }) => {
                bounded(wanted, DefinitionPart::AutoscaleThroughput, AUTOSCALE_MIN, floor)
            }
            (ThroughputChange::To(Manual(_)), Autoscale { .. }) => {
                Err(DefinitionPart::ManualThroughput.violates(ThroughputRule::IsAutoscale))
            }
            (ThroughputChange::To(Autoscale { .. }), Manual(_)) => {
                Err(DefinitionPart::AutoscaleThroughput.violates(ThroughputRule::IsManual))
            }
            (ThroughputChange::MigrateToAutoscale, Manual(rate)) => {
                let max = rate.next_multiple_of(AUTOSCALE_MIN);
                let least = floor.of(Autoscale { max, increment_percent: 0 });
                Ok(Autoscale { max: max.max(least), increment_percent: 0 })
            }
            (ThroughputChange::MigrateToManual, Autoscale { max, .. }) => {
                Ok(Manual(max.max(floor.of(Manual(max)))))
            }
            (ThroughputChange::MigrateToAutoscale, Autoscale { .. }) => {
                Err(DefinitionPart::Throughput.violates(ThroughputRule::AlreadyAutoscale))
            }
            (ThroughputChange::MigrateToManual, Manual(_)) => {
                Err(DefinitionPart::Throughput.violates(ThroughputRule::AlreadyManual))
            }
        }
    }
}

fn bounded(
    wanted: Throughput,
    part: DefinitionPart,
    step: u64,
    floor: ThroughputFloor,
) -> Result<Throughput, RequestFault> {
    let (rate, least) = (wanted.max(), floor.of(wanted));
    if (least..=THROUGHPUT_MAX).contains(&rate) && rate.is_multiple_of(step) {
        return Ok(wanted);
    }
    Err(part.violates(ThroughputRule::Bounds { rate, min: least, max: THROUGHPUT_MAX, step }))
}

impl Throughput {
    /// Appends its encoding.
    pub fn encode(self, out: &mut Encoder) {
        match self {
            Throughput::Manual(rate) => {
                out.byte(0);
                out.number(rate);
            }
            Throughput::Autoscale { max, increment_percent: 0 } => {
                out.byte(1);
                out.number(max);
            }
            Throughput::Autoscale { max, increment_percent } => {
                out.byte(2);
                out.number(max);
                out.byte(increment_percent);
            }
        }
    }

    /// Reads its encoding.
    pub fn decode(input: &mut Decoder<'_>) -> Result<Throughput, DecodeFault> {
        match input.byte("kind of throughput")? {
            0 => input.number("throughput").map(Throughput::Manual),
            1 => {
                let max = input.number("throughput")?;
                Ok(Throughput::Autoscale { max, increment_percent: 0 })
            }
            2 => {
                let max = input.number("throughput")?;
                let increment_percent = input.byte("increment of the throughput")?;
                Ok(Throughput::Autoscale { max, increment_percent })
            }
            tag => Err(input.unknown("kind of throughput", tag)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: ThroughputFloor = ThroughputFloor { highest: 400, shared_by: 0, stored_units: 0 };

    fn autoscale(max: u64) -> Throughput {
        Throughput::Autoscale { max, increment_percent: 0 }
    }

    #[test]
    fn the_floor_follows_storage() {
        let floor = |stored_units| {
            let floor = ThroughputFloor { stored_units, ..NEW };
            (floor.of(Throughput::Manual(0)), floor.of(autoscale(0)))
        };
        assert_eq!(floor(100), (400, 1000));
        assert_eq!(floor(101), (400, 2000));
        assert_eq!(floor(400), (400, 4000));
        assert_eq!(floor(401), (500, 5000));
        assert_eq!(floor(u64::MAX), (THROUGHPUT_MAX, THROUGHPUT_MAX));
        let many = ThroughputFloor { highest: 100_000, shared_by: 30, stored_units: 1_500 };
        assert_eq!((many.of(Throughput::Manual(0)), many.of(autoscale(0))), (1500, 15_000));
    }

    #[test]
    fn autoscale_is_raised_when_the_storage_requires_it() {
        let raised = |max, increment_percent, stored_units| {
            let floor = ThroughputFloor { stored_units, ..NEW };
            let raised = Throughput::Autoscale { max, increment_percent }.raised_for_storage(floor)?;
            assert!(
                matches!(raised, Throughput::Autoscale { increment_percent: kept, .. } if kept == increment_percent)
            );
            Some(raised.max())
        };
        // The published example: 50,000 RU/s and a tenth more data than they hold.
        assert_eq!((raised(50_000, 0, 5_000), raised(50_000, 0, 6_000)), (None, Some(60_000)));
        assert_eq!((raised(4000, 0, 401), raised(4000, 20, 401)), (Some(5000), Some(5000)));
        assert_eq!((raised(4000, 100, 401), raised(4000, 100, 900)), (Some(8000), Some(9000)));
        assert_eq!((raised(4000, 30, 401), raised(4000, 100, 400)), (Some(6000), None));
        assert_eq!((raised(4000, 100, u64::MAX), raised(1_000_000, 100, u64::MAX)), (Some(1_000_000), None));
        let floor = ThroughputFloor { stored_units: u64::MAX, ..NEW };
        assert_eq!(Throughput::Manual(400).raised_for_storage(floor), None);
    }

    #[test]
    fn the_floor_follows_history_and_containers() {
        let floor = |highest, shared_by| {
            let floor = ThroughputFloor { highest, shared_by, stored_units: 0 };
            (floor.of(Throughput::Manual(0)), floor.of(autoscale(0)))
        };
        assert_eq!(floor(400, 0), (400, 1000));
        assert_eq!(floor(40_000, 25), (400, 4000));
        assert_eq!(floor(50_000, 0), (500, 5000));
        assert_eq!(floor(1_000_000, 0), (10_000, 100_000));
        assert_eq!(floor(400, 27), (600, 3000));
    }

    #[test]
    fn a_rate_stays_between_floor_and_ceiling_and_in_its_kind() {
        let manual =
            |rate| ThroughputChange::To(Throughput::Manual(rate)).applied(Throughput::Manual(400), NEW);
        assert_eq!(manual(400), Ok(Throughput::Manual(400)));
        assert_eq!(manual(1_000_000), Ok(Throughput::Manual(1_000_000)));
        for rate in [0, 300, 399, 450, 1_000_100] {
            assert!(manual(rate).is_err(), "{rate}");
        }
        let applied = |max| {
            let current = autoscale(4000);
            ThroughputChange::To(autoscale(max)).applied(current, NEW)
        };
        assert!(applied(1000).is_ok() && applied(900).is_err() && applied(1500).is_err());
        let crossed = ThroughputChange::To(Throughput::Manual(400));
        assert!(crossed.applied(autoscale(1000), NEW).is_err());
    }

    #[test]
    fn migration_chooses_a_rate_that_serves_as_much() {
        let there = ThroughputChange::MigrateToAutoscale.applied(Throughput::Manual(1100), NEW);
        assert_eq!(there, Ok(autoscale(2000)));
        let back = ThroughputChange::MigrateToManual.applied(autoscale(2000), NEW);
        assert_eq!(back, Ok(Throughput::Manual(2000)));
        assert!(ThroughputChange::MigrateToManual.applied(Throughput::Manual(400), NEW).is_err());
    }

    #[test]
    fn rates_are_bounded_and_stepped() {
        assert_eq!(Throughput::manual(400), Ok(Throughput::Manual(400)));
        assert!(Throughput::manual(399).is_err() && Throughput::manual(450).is_err());
        assert!(Throughput::manual(1_000_000).is_ok() && Throughput::manual(1_000_100).is_err());
        assert!(Throughput::autoscale(1000).is_ok() && Throughput::autoscale(1500).is_err());
    }
}
