//! Offers: provisioned throughput, and how it changes. A higher rate may require more partitions, which are split in
//! the background.

use super::entries::{ListPage, ListRequest, Offer};
use super::state::CatalogState;
use crate::authorisation::{Account, AdminPass, CatalogPass};
use crate::engine::Engine;
use model::{Fault, MissingFault, Rid, ThroughputChange, ThroughputFloor, Ticks};
use partition::keyspace::PartitionId;
use partition::{read_fault, stored_counts};
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
    pub async fn offer_minimum(&self, _pass: &CatalogPass<Account>, offer: &Offer) -> Result<u64, Fault> {
        let floor = self.floor(&self.catalog.state(), offer).await?;
        Ok(floor.of(offer.throughput()))
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
        condition.check(current.etag(), Ticks::from_seconds(current.ts()), None)?;
        let floor = self.floor(&change.state, &current).await?;
        let throughput = wanted.applied(current.throughput(), floor)?;
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

    /// The lower bound of an offer. What is stored is read from the heads of partitions, so that none is opened.
    async fn floor(&self, state: &CatalogState, offer: &Offer) -> Result<ThroughputFloor, Fault> {
        let owner = offer.owner().rid;
        let shares = |rid: Rid| rid.parent() == Some(owner) && state.offer_of(&rid).is_none();
        let view = self.store().view().await.map_err(read_fault)?;
        let (mut shared_by, mut stored_bytes) = (0, 0);
        for container in state.containers() {
            let rid = container.rid();
            if rid != owner && !shares(rid) {
                continue;
            }
            shared_by += u64::from(rid != owner);
            for slot in &container.map.load().entries {
                let id = PartitionId { container: container.number(), ordinal: slot.ordinal };
                // A partition that has been split since has no head; its children are counted the next time.
                stored_bytes += stored_counts(&view, id).await?.map_or(0, |counts| counts.bytes);
            }
        }
        Ok(ThroughputFloor { highest: offer.highest(), shared_by, stored_bytes })
    }
}
