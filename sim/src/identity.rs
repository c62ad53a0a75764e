//! What may never repeat or go back: LSNs, document numbers and ETags; and what time versions must have.
//!
//! Remembers what clients were shown, also of writes that a crash took away again.

use crate::history::Stored;
use std::collections::{BTreeMap, HashMap};

/// A partition of a container, by their numbers.
pub type PartitionName = (u32, u32);

/// See the file's head.
#[derive(Clone, Debug, Default)]
pub struct Identities {
    versions: HashMap<(PartitionName, u64), String>,
    partitions: BTreeMap<PartitionName, Reached>,
}

/// How far a partition has come.
#[derive(Clone, Copy, Debug, Default)]
struct Reached {
    lsn: u64,
    stamp: u64,
    number: u64,
}

/// The versions that one quiet moment and the next lie between.
#[derive(Clone, Debug)]
pub struct Shown<'a> {
    /// The container.
    pub container: u32,
    /// New versions with whether the document is new too.
    pub written: Vec<(&'a Stored, bool)>,
    /// Versions that were read.
    pub read: Vec<&'a Stored>,
    /// The time of each partition, by its ordinal, when all of it happened.
    pub times: BTreeMap<u32, u64>,
}

impl Identities {
    /// Checks what was shown against everything shown before, and remembers it.
    pub fn check(&mut self, mut shown: Shown<'_>) -> Result<(), String> {
        shown.written.sort_by_key(|(stored, _)| (stored.ordinal, stored.stamp));
        let before = self.partitions.clone();
        for (stored, is_new) in &shown.written {
            let name = (shown.container, stored.ordinal);
            let earlier = before.get(&name).copied().unwrap_or_default();
            let reached = self.partitions.entry(name).or_default();
            let etag = &stored.etag;
            if stored.lsn <= earlier.lsn {
                return Err(format!("the LSN of {etag} is not behind {}", earlier.lsn));
            }
            if stored.stamp <= earlier.stamp {
                return Err(format!("the stamp of {etag} is not behind {}", earlier.stamp));
            }
            if *is_new && stored.number <= earlier.number {
                return Err(format!("the number of {etag} is not behind {}", earlier.number));
            }
            let time = shown.times.get(&stored.ordinal);
            if time != Some(&stored.ts) {
                return Err(format!("the time of {etag} is {}, that of the partition {time:?}", stored.ts));
            }
            reached.lsn = reached.lsn.max(stored.lsn);
            reached.stamp = reached.stamp.max(stored.stamp);
            if *is_new {
                reached.number = reached.number.max(stored.number);
            }
            if self.versions.contains_key(&(name, stored.stamp)) {
                return Err(format!("the ETag {etag} was given twice"));
            }
            self.remember(name, stored)?;
        }
        for stored in &shown.read {
            self.remember((shown.container, stored.ordinal), stored)?;
        }
        Ok(())
    }

    /// One ETag is one version for ever.
    fn remember(&mut self, name: PartitionName, stored: &Stored) -> Result<(), String> {
        let text = serde_json::Value::Object(stored.body.clone()).to_string();
        let known = self.versions.entry((name, stored.stamp)).or_insert_with(|| text.clone());
        if *known == text { Ok(()) } else { Err(format!("the ETag {} stands for two versions", stored.etag)) }
    }
}
