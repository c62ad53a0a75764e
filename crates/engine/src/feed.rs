//! The read feed: all documents of a container, a range or a logical partition, page by page.
//!
//! Order: effective key, partition key, id. It does not change with writes, so a page boundary is exact: no document is
//! returned twice, and no document that exists throughout is missed. The continuation contains the key of the last
//! document read and survives restarts.

use crate::authorisation::{FeedPass, Reach};
use crate::catalog::Container;
use crate::continuation::{self, Continuation};
use crate::engine::Engine;
use crate::slot::PartitionSlot;
use bytes::Bytes;
use kv::KeyRange;
use model::{
    Charge, EffectiveRange, Fault, MissingFault, PartitionKey, PartitionOrdinal, SessionToken, Work,
};
use partition::{RecordScan, keyspace};
use plan::{LogicalKey, StoredDocument};

/// Encoded bytes after which a page takes no further document or row. The text of a document can be somewhat longer than its
/// encoding, and the last one may have its full two megabytes: hence the distance from the four megabytes that a page
/// may have.
pub(crate) const PAGE_BYTES_STOP: usize = 3 * 512 * 1024;

/// Which documents are requested.
#[derive(Clone, Debug)]
pub enum Scope {
    /// All of the container.
    Container,
    /// Those of one partition key range, or of a part of it.
    Range(PartitionOrdinal, Option<EffectiveRange>),
    /// Those of an interval of the hash space, whatever ranges it is split into.
    Hashes(EffectiveRange),
    /// Those of a partition key, or of the prefix of a hierarchical one.
    Key(PartitionKey),
}

impl Scope {
    /// What the caller must be authorised for.
    pub fn reach(&self) -> Reach<'_> {
        match self {
            Scope::Key(key) => Reach::LogicalPartition(key),
            Scope::Container | Scope::Range(..) | Scope::Hashes(_) => Reach::Whole,
        }
    }
}

/// The request for a page.
#[derive(Clone, Debug)]
pub struct FeedRequest {
    /// Maximum number of documents of the page.
    pub items_max: usize,
    /// Where to continue.
    pub continuation: Option<String>,
    /// The client's session tokens.
    pub session: Vec<SessionToken>,
}

/// A page of documents.
#[derive(Clone, Debug)]
pub struct FeedPage {
    /// The documents.
    pub documents: Vec<StoredDocument>,
    /// Where to continue, if there may be more.
    pub continuation: Option<Continuation>,
    /// The client's new session tokens, one per partition that was read.
    pub session: Vec<SessionToken>,
    /// Its charge.
    pub charge: Charge,
}

impl Engine {
    /// Reads a page of documents.
    pub async fn feed(&self, pass: FeedPass<'_>, request: &FeedRequest) -> Result<FeedPage, Fault> {
        let FeedPass { container, mut scope, priority } = pass;
        let context = continuation::context("feed", container);
        let mut resumed_at = None;
        if let Some(text) = &request.continuation {
            let opened = continuation::open(&self.continuation_key, &context, text)?;
            scope = opened.scope(container, scope)?;
            resumed_at = Some(opened.position);
        }
        let (hashes, mut keys) = bounds(container, &scope)?;
        if let Some(position) = resumed_at {
            keys = resumed(keys, position);
        }
        let mut page = FeedPage {
            documents: Vec::new(),
            continuation: None,
            session: Vec::new(),
            charge: Charge::MINIMUM,
        };
        let mut bytes = 0;
        for slot in container.map.owners(&hashes) {
            let owned = slot.keys(container.number());
            let Some(range) = keys.intersection(owned) else {
                continue;
            };
            let resume_after = match self.admit(slot, priority) {
                Ok(()) => self.feed_from(container, slot, range, request, &mut page, &mut bytes).await?,
                // What was read of other partitions is returned; the client comes back for this one.
                Err(_) if !page.documents.is_empty() => Some(range.start),
                Err(refused) => return Err(refused.into()),
            };
            if let Some(last) = resume_after {
                let key = &self.continuation_key;
                page.continuation = Some(continuation::seal(key, &context, container, &scope, &last)?);
                break;
            }
        }
        Ok(page)
    }

    /// Adds the documents of one partition; returns where it stopped if the page is full.
    async fn feed_from(
        &self,
        container: &Container,
        slot: &PartitionSlot,
        mut range: KeyRange,
        request: &FeedRequest,
        page: &mut FeedPage,
        bytes: &mut usize,
    ) -> Result<Option<Bytes>, Fault> {
        if page.documents.len() >= request.items_max || *bytes >= PAGE_BYTES_STOP {
            // Full before this partition was read: continue at its first key.
            return Ok(Some(range.start));
        }
        let routed = self.owner_of(container, &slot.range.min).await?;
        // The price of the page itself is recorded for its first partition.
        let mut base = if page.session.is_empty() { Charge::MINIMUM } else { Charge::NONE };
        page.session.push(routed.session_now());
        loop {
            let scan = RecordScan {
                range: range.clone(),
                items_max: request.items_max - page.documents.len(),
                bytes_max: PAGE_BYTES_STOP - *bytes,
            };
            let (found, _) = self.page_at(container, &slot.range.min, &request.session, &scan).await?;
            let mut charge = Charge::NONE;
            for stored in &found.documents {
                let size = stored.document.bytes().len();
                *bytes += size;
                charge += Work::Read { bytes: size }.price();
            }
            routed.slot.ledger.add(charge + std::mem::take(&mut base));
            page.charge += charge;
            page.documents.extend(found.documents);
            let Some(last) = found.resume_after else {
                return Ok(None);
            };
            range = keyspace::after(&range, &last);
            if page.documents.len() >= request.items_max || *bytes >= PAGE_BYTES_STOP {
                return Ok(Some(range.start));
            }
        }
    }
}

/// The hashes and keys that a scope covers.
pub(crate) fn bounds(container: &Container, scope: &Scope) -> Result<(EffectiveRange, KeyRange), Fault> {
    let definition = &container.definition().partition_key;
    let hashes = match scope {
        Scope::Container => EffectiveRange::full(),
        Scope::Range(ordinal, part) => {
            let range = range_of(container, *ordinal)?;
            part.as_ref().map_or_else(|| range.clone(), |part| range.intersect(part))
        }
        Scope::Hashes(range) => EffectiveRange::full().intersect(range),
        Scope::Key(key) if definition.is_complete(key) => {
            let effective = definition.effective_key(key);
            let logical = LogicalKey { partition_key: key.clone(), effective };
            let keys = keyspace::logical_range(&keyspace::logical_prefix(container.number(), &logical));
            return Ok((EffectiveRange::point(logical.effective), keys));
        }
        Scope::Key(prefix) => definition.effective_range(prefix),
    };
    let keys = keyspace::effective_range(container.number(), &hashes);
    Ok((hashes, keys))
}

/// The hashes of the range with this id.
fn range_of(container: &Container, ordinal: PartitionOrdinal) -> Result<&EffectiveRange, Fault> {
    let entry = container.map.by_ordinal(ordinal);
    let entry = entry.ok_or_else(|| MissingFault::Range { id: ordinal.to_string() })?;
    Ok(&entry.range)
}

/// The rest of `keys` from `start` on: all of them if it is before them, none if it is after them.
fn resumed(keys: KeyRange, start: Vec<u8>) -> KeyRange {
    let start = Bytes::from(start).max(keys.start);
    KeyRange { start, end: keys.end }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_a_range_is_inside_it() {
        let keys = || KeyRange { start: Bytes::from_static(b"b"), end: Some(Bytes::from_static(b"c")) };
        let rest = |start: &[u8]| resumed(keys(), start.to_vec());
        assert_eq!(rest(b"bb").start, "bb");
        assert_eq!(rest(b"a"), keys());
        assert_eq!(rest(b"d").intersection(&keys()), None);
    }
}
