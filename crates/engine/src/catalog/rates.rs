//! How the provisioned throughput is divided: evenly among the partitions of a container, or shared by all containers
//! of a database that have none of their own.

use super::state::CatalogState;
use model::{Charge, Rid};
use std::collections::HashMap;

impl CatalogState {
    /// Limits every partition to its part of the provisioned throughput. Autoscale counts its maximum.
    pub(super) fn assign_rates(&self) {
        let rate = |offer: &super::Offer| offer.throughput().max() * 100;
        // In hundredths of a request unit.
        let rates: HashMap<Rid, u64> =
            self.offers.values().map(|offer| (offer.owner().rid, rate(offer))).collect();
        for database in self.databases.values() {
            let rate = rates.get(&database.rid()).copied();
            database.budget().set_rate(rate.map(Charge::from_hundredths));
        }
        for container in self.containers() {
            let map = container.map.load();
            let slots = &map.entries;
            match rates.get(&container.rid()) {
                Some(rate) => {
                    let part = Charge::from_hundredths(rate / (slots.len() as u64).max(1));
                    slots.iter().for_each(|slot| slot.ledger.limit(Some(part)));
                }
                None => slots.iter().for_each(|slot| slot.ledger.share(container.database().budget())),
            }
        }
    }
}
