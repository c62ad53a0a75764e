//! Checks that LSNs, document numbers and ETags never repeat or go back, and that versions have the right times.
//!
//! Remembers everything that was returned to clients, including writes that a crash reverted.

use crate::history::Stored;
use std::collections::{BTreeMap, HashMap};

/// A partition of a container, by their numbers.
pub type PartitionName = (u32, u32);

/// The identities returned to clients so far.
#[derive(Clone, Debug, Default)]
pub struct Identities {
    versions: HashMap<(PartitionName, u64), String>,
    partitions: BTreeMap<PartitionName, Reached>,
}

/// The highest values of a partition.
#[derive(Clone, Copy, Debug, Default)]
struct Reached {
    lsn: u64,
    stamp: u64,
    number: u64,
}

/// The versions returned between two quiet moments.
#[derive(Clone, Debug)]
pub struct Shown<'a> {
    /// The container.
    pub container: u32,
    /// New versions, and whether the document is new too.
    pub written: Vec<(&'a Stored, bool)>,
    /// Versions that were read.
    pub read: Vec<&'a Stored>,
    /// The time of each partition, by its ordinal, during that interval.
    pub times: BTreeMap<u32, u64>,
}

impl Identities {
    /// Checks the returned versions against all earlier ones, and remembers them.
    pub fn check(&mut self, mut shown: Shown<'_>) -> Result<(), String> {
        shown.written.sort_by_key(|(stored, _)| (stored.ordinal, stored.stamp));
        let before = self.partitions.clone();
        for (stored, is_new) in &shown.written {
            let name = (shown.container, stored.ordinal);
            let earlier = before.get(&name).copied().unwrap_or_default();
            let reached = self.partitions.entry(name).or_default();
            let etag = &stored.etag;
            if stored.lsn <= earlier.lsn {
                return Err(format!("the LSN of {etag} is not above {}", earlier.lsn));
            }
            if stored.stamp <= earlier.stamp {
                return Err(format!("the stamp of {etag} is not above {}", earlier.stamp));
            }
            if *is_new && stored.number <= earlier.number {
                return Err(format!("the number of {etag} is not above {}", earlier.number));
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

    /// Checks that one ETag always means the same version.
    fn remember(&mut self, name: PartitionName, stored: &Stored) -> Result<(), String> {
        let text = serde_json::Value::Object(stored.body.clone()).to_string();
        let known = self.versions.entry((name, stored.stamp)).or_insert_with(|| text.clone());
        if *known == text { Ok(()) } else { Err(format!("the ETag {} stands for two versions", stored.etag)) }
    }
}
