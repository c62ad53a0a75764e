//! Reads many documents by their keys in one request: grouped by partition, each partition read in one state.

use crate::authorisation::{DocumentsPass, RequestClass};
use crate::catalog::Container;
use crate::documents::DocumentAddress;
use crate::engine::Engine;
use crate::join::join_all;
use crate::ledger::refusal_charge;
use crate::router::Attempts;
use crate::slot::PartitionSlot;
use model::limits::BATCH_ANSWER_BYTES_MAX;
use model::{Charge, Fault, LimitFault, MissingFault, PartitionOrdinal, RequestFault, SessionToken, Work};
use partition::PhysicalPartition;
use plan::{Condition, LogicalKey, Outcome, StoredDocument, Target};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum number of documents of one such request.
pub const READ_MANY_MAX: usize = 1_000;

/// The result of a read of many documents.
#[derive(Clone, Debug)]
pub struct ManyDocuments {
    /// The documents in the order of their addresses; `None` for one that does not exist.
    pub documents: Vec<Option<StoredDocument>>,
    /// The client's new session tokens, one for each partition that was read.
    pub session: Vec<SessionToken>,
    /// The total charge.
    pub charge: Charge,
}

/// The requested documents, and the bytes found so far in all partitions.
struct ReadManyRequest<'a> {
    container: &'a Container,
    addresses: Vec<(LogicalKey, Target)>,
    session: &'a [SessionToken],
    class: RequestClass,
    bytes: AtomicUsize,
}

/// A partition and the positions of its documents among the addresses.
type PartitionGroup = (Arc<PartitionSlot>, Vec<usize>);

/// The requested documents of one partition.
struct PartitionDocuments {
    /// By position among the addresses.
    documents: Vec<(usize, Option<StoredDocument>)>,
    session: SessionToken,
    charge: Charge,
}

/// A partition that could not be read; it may not even be open.
struct Failed {
    fault: Fault,
    slot: Arc<PartitionSlot>,
    partition: Option<Arc<PhysicalPartition>>,
}

impl Engine {
    /// Reads documents by their keys. Those of one partition are of one state; partitions are read concurrently.
    pub async fn read_many(
        &self,
        pass: DocumentsPass<'_>,
        session: &[SessionToken],
    ) -> Result<ManyDocuments, Fault> {
        let DocumentsPass { container, addresses, class } = pass;
        if addresses.len() > READ_MANY_MAX {
            return Err(LimitFault::TooManyOperations { given: addresses.len(), limit: READ_MANY_MAX }.into());
        }
        let located = |DocumentAddress { key, target }| Ok((self.logical_key(container, key)?, target));
        let addresses = addresses.into_iter().map(located).collect::<Result<Vec<_>, RequestFault>>()?;
        let mut waiting: Vec<usize> = (0..addresses.len()).collect();
        let mut read = ManyDocuments {
            documents: vec![None; addresses.len()],
            session: Vec::new(),
            charge: Charge::NONE,
        };
        let request = ReadManyRequest { container, addresses, session, class, bytes: AtomicUsize::new(0) };
        let mut attempts = Attempts::default();
        while !waiting.is_empty() {
            let groups = self.grouped(&request, &waiting)?;
            let reading = groups.iter().map(|(slot, group)| self.read_group(&request, slot, group)).collect();
            let results: Vec<Result<PartitionDocuments, Failed>> = join_all(reading).await;
            waiting.clear();
            let mut failures = Vec::new();
            for (result, (_, group)) in results.into_iter().zip(groups) {
                match result {
                    Ok(found) => read.add(found),
                    Err(failed) => {
                        failures.push(failed);
                        waiting.extend(group);
                    }
                }
            }
            let map = &request.container.map;
            let has_stopped = failures.iter().any(|failed| {
                let ended = failed.partition.as_ref().is_some_and(|partition| partition.has_ended());
                ended || map.has_replaced(&failed.slot)
            });
            let Some(Failed { fault, slot, .. }) = failures.into_iter().next() else { break };
            if !attempts.again_if(has_stopped) {
                slot.ledger.refuse(&fault, refusal_charge(&fault));
                return Err(fault);
            }
            // Failed partitions are read again, so their bytes do not count twice.
            request.bytes.store(read.bytes(), Ordering::Relaxed);
        }
        Ok(read)
    }

    /// The partitions that own the documents still to be read, each with the positions of its documents.
    fn grouped(
        &self,
        request: &ReadManyRequest<'_>,
        waiting: &[usize],
    ) -> Result<Vec<PartitionGroup>, Fault> {
        let map = request.container.map.load();
        let mut groups: BTreeMap<PartitionOrdinal, PartitionGroup> = BTreeMap::new();
        for index in waiting {
            let (key, _) = &request.addresses[*index];
            let owner = map.owner(&key.effective);
            let slot = owner.ok_or_else(|| Fault::Internal("the partition map has a gap".to_owned()))?;
            let group = groups.entry(slot.ordinal).or_insert_with(|| (Arc::clone(slot), Vec::new()));
            group.1.push(*index);
        }
        Ok(groups.into_values().collect())
    }

    async fn read_group(
        &self,
        request: &ReadManyRequest<'_>,
        slot: &Arc<PartitionSlot>,
        group: &[usize],
    ) -> Result<PartitionDocuments, Failed> {
        let unrouted = |fault| Failed { fault, slot: Arc::clone(slot), partition: None };
        self.admit(slot, request.class.priority).map_err(|fault| unrouted(fault.into()))?;
        let routed = self.routed(request.container, slot).await.map_err(unrouted)?;
        routed.check_session(request.session).map_err(unrouted)?;
        let failed = |fault| {
            let partition = Some(Arc::clone(&routed.partition));
            Failed { fault, slot: Arc::clone(slot), partition }
        };
        let view = routed.partition.view().await.map_err(failed)?;
        let mut documents = Vec::with_capacity(group.len());
        let mut charge = Charge::NONE;
        for index in group {
            let (key, target) = &request.addresses[*index];
            let (document, work) = match view.read(key, target, &Condition::None).await {
                Ok((Outcome::Read(stored), work)) => (Some(stored), work),
                Ok((
                    Outcome::Created(_)
                    | Outcome::Replaced(_)
                    | Outcome::Deleted
                    | Outcome::NotModified(_)
                    | Outcome::Nothing,
                    work,
                )) => (None, work),
                Err(Fault::Missing(MissingFault::Resource)) => (None, Work::Lookup),
                Err(fault) => return Err(failed(fault)),
            };
            request.count(document.as_ref()).map_err(|fault| failed(fault.into()))?;
            charge += request.class.read_quorum.price(work.price());
            documents.push((*index, document));
        }
        slot.ledger.add(charge);
        Ok(PartitionDocuments { documents, session: routed.session_token(view.lsn()), charge })
    }
}

impl ReadManyRequest<'_> {
    /// Counts a document that was found; refuses more bytes than an answer may have.
    fn count(&self, document: Option<&StoredDocument>) -> Result<(), LimitFault> {
        let bytes = document.map_or(0, |stored| stored.document.bytes().len());
        let bytes = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        match bytes <= BATCH_ANSWER_BYTES_MAX {
            true => Ok(()),
            false => Err(LimitFault::AnswerBytes { bytes, limit: BATCH_ANSWER_BYTES_MAX }),
        }
    }
}

impl ManyDocuments {
    fn bytes(&self) -> usize {
        self.documents.iter().flatten().map(|stored| stored.document.bytes().len()).sum()
    }

    fn add(&mut self, found: PartitionDocuments) {
        for (index, document) in found.documents {
            self.documents[index] = document;
        }
        self.session.push(found.session);
        self.charge += found.charge;
    }
}
