//! Offers: provisioned throughput, and how it changes. A higher rate may require more partitions, which are split in
//! the background.

use super::entries::{ListPage, ListRequest, Offer};
use super::state::CatalogState;
use crate::authorisation::{Account, AdminPass, CatalogPass};
use crate::engine::Engine;
use model::{Fault, MissingFault, Rid, ThroughputChange, ThroughputFloor, Ticks};
use plan::Condition;
use std::sync::Arc;

impl Engine {
    /// Finds an offer by its RID.
    pub fn find_offer(&self, _pass: &CatalogPass<Account>, rid: &str) -> Result<Arc<Offer>, Fault> {
        self.catalog.state().find_offer(rid).ok_or_else(|| MissingFault::Resource.into())
    }

    /// The offers in order of creation.
    pub fn list_offers(
        &self,
        _pass: &CatalogPass<Account>,
        page: &ListRequest,
    ) -> Result<ListPage<Arc<Offer>>, Fault> {
        let offers = self.catalog.state().offers();
        self.page_of(page, b"offers", offers, |offer| offer.number().0)
    }

    /// The lowest rate to which an offer can be changed.
    pub fn offer_minimum(&self, _pass: &CatalogPass<Account>, offer: &Offer) -> u64 {
        floor(&self.catalog.state(), offer).of(offer.throughput())
    }

    /// Changes the rate of an offer.
    pub async fn replace_offer(
        &self,
        _pass: AdminPass<Account>,
        offer: &Offer,
        wanted: ThroughputChange,
        condition: &Condition,
    ) -> Result<Arc<Offer>, Fault> {
        let mut change = self.catalog.begin(self).await?;
        let current = change.state.offer_of(&offer.owner().rid);
        let current = current.filter(|current| current.number() == offer.number());
        let current = current.ok_or(MissingFault::Resource)?;
        condition.check(current.etag(), Ticks::from_seconds(current.ts()))?;
        let throughput = wanted.applied(current.throughput(), floor(&change.state, &current))?;
        if let Rid::Container(_, number) = current.owner().rid
            && let Some(container) = change.state.container(number)
        {
            self.check_rate(&container, throughput.max())?;
        }
        let replaced = change.replace_offer(&current, throughput);
        change.commit().await?;
        self.jobs.wake();
        Ok(replaced)
    }
}

fn floor(state: &CatalogState, offer: &Offer) -> ThroughputFloor {
    let shares = |rid: Rid| rid.parent() == Some(offer.owner().rid) && state.offer_of(&rid).is_none();
    let shared_by = state.containers().filter(|container| shares(container.rid())).count();
    ThroughputFloor { highest: offer.highest(), shared_by: shared_by as u64 }
}
