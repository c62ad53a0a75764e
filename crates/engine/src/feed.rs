//! The read feed: all documents of a container, a range or a logical partition, page by page.
//!
//! Order: effective key, partition key, id. It does not change with writes, so a page boundary is exact: no document is
//! returned twice, and no document that exists throughout is missed. The continuation contains the key of the last
//! document read and survives restarts.

use crate::authorisation::{FeedPass, Reach};
use crate::catalog::Container;
use crate::engine::Engine;
use crate::slot::PartitionSlot;
use bytes::Bytes;
use kv::KeyRange;
use model::{
    Charge, ContinuationFault, EffectiveRange, Fault, MissingFault, PartitionKey, PartitionOrdinal,
    RequestFault, SessionToken, Work,
};
use partition::{RecordScan, keyspace};
use plan::{LogicalKey, StoredDocument};

/// Encoded bytes after which a page takes no further document. The text of a document can be somewhat longer than its
/// encoding, and the last one may have its full two megabytes: hence the distance from the four megabytes that a page
/// may have.
const PAGE_BYTES_STOP: usize = 3 * 512 * 1024;

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
    pub continuation: Option<String>,
    /// The client's new session tokens, one per partition that was read.
    pub session: Vec<SessionToken>,
    /// Its charge.
    pub charge: Charge,
}

impl Engine {
    /// Reads a page of documents.
    pub async fn feed(&self, pass: FeedPass<'_>, request: &FeedRequest) -> Result<FeedPage, Fault> {
        let FeedPass { container, scope } = pass;
        let (hashes, mut keys) = bounds(container, &scope)?;
        let context = scope_context("feed", container, &scope);
        if let Some(text) = &request.continuation {
            keys = resumed(&keys, &self.continuation_key.open(&context, text)?)?;
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
            let resume_after = self.feed_from(container, slot, range, request, &mut page, &mut bytes).await?;
            if let Some(last) = resume_after {
                page.continuation = Some(self.continuation_key.seal(&context, &last));
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

/// Binds a continuation to its kind of request, its container and its scope.
pub(crate) fn scope_context(kind: &str, container: &Container, scope: &Scope) -> Vec<u8> {
    let mut context = format!("{kind} {} ", container.number().0).into_bytes();
    match scope {
        Scope::Container => context.push(b'a'),
        // An old range id stays valid after a split, so a position in it is bound to the container only; clients also
        // change their intervals.
        Scope::Range(..) | Scope::Hashes(_) => context.push(b'r'),
        Scope::Key(key) => {
            context.push(b'k');
            key.encode_key(&mut context);
        }
    }
    context
}

/// The rest of `keys` from `start` on.
fn resumed(keys: &KeyRange, start: &[u8]) -> Result<KeyRange, RequestFault> {
    let inside = start >= &keys.start[..] && keys.end.as_ref().is_none_or(|end| start <= &end[..]);
    if !inside {
        return Err(RequestFault::BadContinuation(ContinuationFault::OutsideScope));
    }
    Ok(KeyRange { start: Bytes::copy_from_slice(start), end: keys.end.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: &'static [u8], end: &'static [u8]) -> KeyRange {
        KeyRange { start: Bytes::from_static(start), end: Some(Bytes::from_static(end)) }
    }

    #[test]
    fn a_position_outside_is_refused() {
        assert!(resumed(&range(b"b", b"c"), b"bb").is_ok());
        assert!(resumed(&range(b"b", b"c"), b"a").is_err());
        assert!(resumed(&range(b"b", b"c"), b"d").is_err());
    }
}
