//! How many replicas a read asks, as far as its price depends on it. There is one store, which satisfies every level of
//! consistency; the price is that of the service.

use crate::Charge;

/// The replicas that a read asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadQuorum {
    /// Any one: its state may be old.
    #[default]
    One,
    /// Two of four, one of which has the latest state. Every read costs twice.
    Two,
}

impl ReadQuorum {
    /// The price of a read that costs `charge` at one replica.
    pub fn price(self, charge: Charge) -> Charge {
        match self {
            ReadQuorum::One => charge,
            ReadQuorum::Two => charge + charge,
        }
    }
}
