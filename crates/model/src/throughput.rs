//! Provisioned throughput of a container or database.

use crate::RequestFault;
use crate::limits::{AUTOSCALE_MIN, THROUGHPUT_MAX, THROUGHPUT_MIN, THROUGHPUT_STEP};

/// Request units per second that were provisioned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Throughput {
    /// A fixed rate.
    Manual(u64),
    /// A rate between a tenth of the maximum and the maximum.
    Autoscale {
        /// The maximum.
        max: u64,
    },
}

impl Throughput {
    /// What a container gets when nobody says anything.
    pub const DEFAULT: Throughput = Throughput::Manual(THROUGHPUT_MIN);

    /// A fixed rate within the published bounds.
    pub fn manual(rate: u64) -> Result<Throughput, RequestFault> {
        let fits = (THROUGHPUT_MIN..=THROUGHPUT_MAX).contains(&rate) && rate.is_multiple_of(THROUGHPUT_STEP);
        fits.then_some(Throughput::Manual(rate)).ok_or_else(|| RequestFault::BadHeader {
            name: "x-ms-offer-throughput",
            value: rate.to_string(),
            reason: format!(
                "it must be from {THROUGHPUT_MIN} to {THROUGHPUT_MAX} in steps of {THROUGHPUT_STEP}"
            ),
        })
    }

    /// An autoscale maximum within the published bounds.
    pub fn autoscale(max: u64) -> Result<Throughput, RequestFault> {
        let fits = (AUTOSCALE_MIN..=THROUGHPUT_MAX).contains(&max) && max.is_multiple_of(AUTOSCALE_MIN);
        fits.then_some(Throughput::Autoscale { max }).ok_or_else(|| RequestFault::BadHeader {
            name: "x-ms-cosmos-offer-autopilot-settings",
            value: max.to_string(),
            reason: format!(
                "maxThroughput must be from {AUTOSCALE_MIN} to {THROUGHPUT_MAX} in steps of {AUTOSCALE_MIN}"
            ),
        })
    }

    /// The most request units per second there can be.
    pub fn max(self) -> u64 {
        match self {
            Throughput::Manual(rate) => rate,
            Throughput::Autoscale { max } => max,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_bounded_and_stepped() {
        assert_eq!(Throughput::manual(400), Ok(Throughput::Manual(400)));
        assert!(Throughput::manual(399).is_err() && Throughput::manual(450).is_err());
        assert!(Throughput::manual(1_000_000).is_ok() && Throughput::manual(1_000_100).is_err());
        assert!(Throughput::autoscale(1000).is_ok() && Throughput::autoscale(1500).is_err());
    }
}
