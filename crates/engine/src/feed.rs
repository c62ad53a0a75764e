//! The read feed: all documents of a container, a range or a logical partition, page by page.
//!
//! Order: effective key, partition key, id. It does not change with writes, so a page boundary is exact: no document is
//! returned twice, and no document that exists throughout is missed. The continuation contains the key of the last
//! document read and survives restarts.

use crate::authorisation::{FeedPass, Reach, RequestClass};
use crate::catalog::Container;
use crate::continuation::{self, Continuation};
use crate::engine::Engine;
use bytes::Bytes;
use kv::KeyRange;
use model::{Charge, EffectiveRange, Fault, PartitionKey, PartitionOrdinal, ReadQuorum, SessionToken, Work};
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
    /// The range that the request names.
    pub(crate) fn range_id(&self) -> Option<PartitionOrdinal> {
        match self {
            Scope::Range(ordinal, _) => Some(*ordinal),
            Scope::Container | Scope::Hashes(_) | Scope::Key(_) => None,
        }
    }

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
        let FeedPass { container, mut scope, class: RequestClass { priority, read_quorum } } = pass;
        let addressed = scope.range_id();
        let context = continuation::context("feed", container);
        let mut resumed_at = None;
        if let Some(text) = &request.continuation {
            let opened = continuation::open(&self.continuation_key, &context, text)?;
            scope = opened.scope(container, scope)?;
            resumed_at = Some(opened.position);
        }
        let (_, mut keys) = bounds(container, &scope)?;
        if let Some(position) = resumed_at {
            keys = resumed(keys, position);
        }
        let mut page = FeedPage {
            documents: Vec::new(),
            continuation: None,
            session: Vec::new(),
            charge: read_quorum.price(Charge::MINIMUM),
        };
        let mut bytes = 0;
        // Partition by partition. Each page is read from the partition that owns its first key by then.
        let mut rest = Some(keys).filter(|keys| !keys.is_empty());
        while let Some(keys) = rest {
            let first = keyspace::hashes_of(&keys).min;
            let refused = self.admit_at(container, &first, priority).err();
            if let Some(refused) = refused.clone().filter(|_| page.documents.is_empty()) {
                return Err(refused.into());
            }
            // What was read of other partitions is returned; the client comes back for one that is throttled.
            let is_full = page.documents.len() >= request.items_max || bytes >= PAGE_BYTES_STOP;
            if is_full || refused.is_some() {
                let (key, last) = (&self.continuation_key, &keys.start);
                page.continuation = Some(continuation::seal(key, &context, container, &scope, last)?);
                break;
            }
            rest = self.feed_from(container, keys, (request, read_quorum), &mut page, &mut bytes).await?;
        }
        if let Some(ordinal) = addressed {
            page.session = container.tokens_for_range(ordinal, page.session);
        }
        Ok(page)
    }

    /// Adds documents from the start of a range, of one partition; returns the rest of the range.
    async fn feed_from(
        &self,
        container: &Container,
        keys: KeyRange,
        (request, read_quorum): (&FeedRequest, ReadQuorum),
        page: &mut FeedPage,
        bytes: &mut usize,
    ) -> Result<Option<KeyRange>, Fault> {
        let scan = RecordScan {
            range: keys.clone(),
            items_max: request.items_max - page.documents.len(),
            bytes_max: PAGE_BYTES_STOP - *bytes,
        };
        let (found, routed, read) = self.page_at(container, &request.session, &scan).await?;
        // The price of the page itself is recorded for its first partition.
        let base = if page.session.is_empty() { read_quorum.price(Charge::MINIMUM) } else { Charge::NONE };
        let mut charge = Charge::NONE;
        for stored in &found.documents {
            let size = stored.document.bytes().len();
            *bytes += size;
            charge += read_quorum.price(Work::Read { bytes: size }.price());
        }
        routed.slot.ledger.add(charge + base);
        let token = routed.session_now();
        match page.session.iter_mut().find(|seen| seen.ordinal == token.ordinal) {
            Some(seen) => seen.lsn = seen.lsn.max(token.lsn),
            None => page.session.push(token),
        }
        page.charge += charge;
        page.documents.extend(found.documents);
        let rest = match (found.resume_after, read.end) {
            (Some(last), _) => keyspace::after(&keys, &last),
            (None, Some(end)) => KeyRange { start: end, end: keys.end },
            (None, None) => return Ok(None),
        };
        Ok(Some(rest).filter(|rest| !rest.is_empty()))
    }
}

/// The hashes and keys that a scope covers.
pub(crate) fn bounds(container: &Container, scope: &Scope) -> Result<(EffectiveRange, KeyRange), Fault> {
    let definition = &container.definition().partition_key;
    let hashes = match scope {
        Scope::Container => EffectiveRange::full(),
        Scope::Range(ordinal, part) => {
            let map = container.map.load();
            let range = map.range_of(*ordinal)?;
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

/// The rest of `keys` from `start` on: all of them if it is before them, none if it is after them.
pub(crate) fn resumed(keys: KeyRange, start: Vec<u8>) -> KeyRange {
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
