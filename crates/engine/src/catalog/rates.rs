//! How the provisioned throughput is divided: evenly among the partitions of a container, or shared by all containers
//! of a database that have none of their own.

use super::state::CatalogState;
use crate::engine::ThroughputMode;
use model::{Charge, Rid};
use std::collections::HashMap;

impl CatalogState {
    /// Divides the provisioned throughput among partitions, and limits them to their parts if it is enforced. Autoscale
    /// counts its maximum.
    pub(super) fn assign_rates(&self, mode: ThroughputMode) {
        let limit = |hundredths| match mode {
            ThroughputMode::Measure => None,
            ThroughputMode::Enforce => Some(Charge::from_hundredths(hundredths)),
        };
        let rate = |offer: &super::Offer| offer.throughput().max() * 100;
        // In hundredths of a request unit.
        let rates: HashMap<Rid, u64> =
            self.offers.values().map(|offer| (offer.owner().rid, rate(offer))).collect();
        for database in self.databases.values() {
            let rate = rates.get(&database.rid()).copied();
            database.shared().budget.set_rate(rate.and_then(limit));
        }
        for container in self.containers() {
            let map = container.map.load();
            let slots = &map.entries;
            let parts = (slots.len() as u64).max(1);
            match rates.get(&container.rid()) {
                Some(rate) => slots.iter().for_each(|slot| slot.ledger.limit(limit(rate / parts), parts)),
                None => slots.iter().for_each(|slot| slot.ledger.share(container.database().shared())),
            }
        }
    }
}
