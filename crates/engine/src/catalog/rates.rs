//! How the provisioned throughput is divided: evenly among the partitions of a container, or shared by all containers
//! of a database that have none of their own.

use super::state::CatalogState;
use model::Rid;
use std::collections::HashMap;

impl CatalogState {
    /// Limits every partition to its part of the provisioned throughput. Autoscale counts its maximum.
    pub(super) fn assign_rates(&self) {
        let rate = |offer: &super::Offer| offer.throughput().max() as f64;
        let rates: HashMap<Rid, f64> =
            self.offers.values().map(|offer| (offer.owner().rid, rate(offer))).collect();
        for database in self.databases.values() {
            database.budget().set_rate(rates.get(&database.rid()).copied());
        }
        for container in self.containers() {
            let map = container.map.load();
            let slots = &map.entries;
            match rates.get(&container.rid()) {
                Some(rate) => {
                    slots.iter().for_each(|slot| slot.ledger.limit(Some(rate / slots.len() as f64)))
                }
                None => slots.iter().for_each(|slot| slot.ledger.share(container.database().budget())),
            }
        }
    }
}
