//! Offers: provisioned throughput, how it changes, and how much of it autoscale uses. A higher rate may require more
//! partitions, which are split in the background; until then the offer cannot be changed again.

use super::entries::{ListPage, ListRequest, Offer};
use super::state::CatalogState;
use crate::authorisation::{Account, AdminPass, CatalogPass};
use crate::engine::Engine;
use crate::used_rate::UsedRate;
use model::{
    Charge, ConflictFault, Fault, LimitFault, MissingFault, OfferNumber, Rid, Throughput, ThroughputChange,
    ThroughputFloor, Ticks,
};
use partition::keyspace::PartitionId;
use partition::{read_fault, stored_counts};
use plan::Condition;
use std::sync::Arc;

/// To what an offer is scaled, in request units per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScaledThroughput {
    /// In the last second.
    pub(crate) now: u64,
    /// At most in this hour, by the clock: what the service bills.
    pub(crate) hour: u64,
}

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
        self.check_change(&change.state, &current, throughput)?;
        let replaced = change.replace_offer(&current, throughput);
        change.commit().await?;
        self.jobs.wake();
        Ok(replaced)
    }

    /// Refuses a change while an earlier one is pending, and one that needs more partitions than there can be.
    fn check_change(&self, state: &CatalogState, current: &Offer, wanted: Throughput) -> Result<(), Fault> {
        let Rid::Container(_, number) = current.owner().rid else { return Ok(()) };
        let Some(container) = state.container(number) else { return Ok(()) };
        if !self.splits_for_throughput(&container, current.throughput().max()).is_empty() {
            return Err(ConflictFault::ThroughputPending.into());
        }
        Ok(self.check_rate(&container, wanted.max())?)
    }

    /// Raises the maximum of an autoscale offer whose containers store more than it allows.
    pub(crate) async fn raise_offer(&self, number: OfferNumber) -> Result<(), Fault> {
        let state = Arc::clone(&self.catalog.state());
        let Some(offer) = state.offer(number) else { return Ok(()) };
        let floor = self.floor(&state, &offer).await?;
        if offer.throughput().raised_for_storage(floor).is_none() {
            return Ok(());
        }
        let mut change = self.catalog.begin(self).await?;
        let Some(current) = change.state.offer(number) else { return Ok(()) };
        let Some(raised) = current.throughput().raised_for_storage(floor) else { return Ok(()) };
        match self.check_change(&change.state, &current, raised) {
            // The next round tries again.
            Err(Fault::Conflict(ConflictFault::ThroughputPending)) => return Ok(()),
            // It stays as high as the container can have.
            Err(Fault::Limit(LimitFault::Exhausted { .. })) => return Ok(()),
            checked => checked?,
        }
        change.replace_offer(&current, raised);
        change.commit().await?;
        self.jobs.wake();
        let (from, to) = (current.throughput().max(), raised.max());
        tracing::info!(event = "autoscale_raised", offer = %current.rid(), from, to, "the maximum of autoscale was raised for what is stored");
        Ok(())
    }

    /// The request units per second to which an offer is scaled; for manual throughput its rate.
    pub fn scaled_throughput(&self, _pass: &CatalogPass<Account>, offer: &Offer) -> u64 {
        self.scaled(&self.catalog.state(), offer).now
    }

    /// What autoscale is scaled to. As in the service, the partition with the highest part of its share decides.
    pub(crate) fn scaled(&self, state: &CatalogState, offer: &Offer) -> ScaledThroughput {
        let second = self.ambient.now_seconds();
        let figures = |used: &UsedRate| (used.needed_now(second), used.needed_in_hour(second));
        let (now, hour) = match offer.owner().rid {
            Rid::Database(number) => state.database(number).map(|database| figures(&database.shared().used)),
            Rid::Container(_, number) => state.container(number).map(|container| {
                let map = container.map.load();
                let slots = map.entries.iter().map(|slot| figures(slot.ledger.used()));
                slots
                    .fold((Charge::NONE, Charge::NONE), |most, slot| (most.0.max(slot.0), most.1.max(slot.1)))
            }),
            Rid::Document(..)
            | Rid::Range(..)
            | Rid::DatabaseChild(..)
            | Rid::Permission(..)
            | Rid::Script(..)
            | Rid::Offer(_) => None,
        }
        .unwrap_or_default();
        let (min, max) = (offer.throughput().min(), offer.throughput().max());
        let within = |needed: Charge| needed.hundredths().div_ceil(100).clamp(min, max);
        ScaledThroughput { now: within(now), hour: within(hour) }
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
        let stored_units = stored_bytes / self.options.stored_bytes_per_unit.max(1);
        Ok(ThroughputFloor { highest: offer.highest(), shared_by, stored_units })
    }
}
