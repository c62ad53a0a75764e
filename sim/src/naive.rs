//! The rules of documents, said again as plainly as possible: one map, full scans, JSON trees.
//!
//! Shares no code with the product. One value is one logical partition, the scope of ids, unique keys and
//! transactions; everything else about a container follows from the sum of them.

use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A JSON object with its members in order.
pub type Body = Map<String, Json>;

/// What the store says of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The document's number.
    pub number: u64,
    /// The version's mark.
    pub etag: String,
}

/// A document version.
#[derive(Clone, Debug, PartialEq)]
pub struct Version {
    /// The document.
    pub body: Body,
    /// When it was written; for a write of unknown outcome the time of the attempt.
    pub ts: u64,
    /// `None` as long as only a write of unknown outcome can have made it.
    pub stamp: Option<Stamp>,
}

/// The documents of one logical partition by id, expired ones included until they are seen to be gone.
pub type Logical = BTreeMap<String, Arc<Version>>;

/// The container's word on expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultTtl {
    /// Nothing expires.
    Off,
    /// What says so itself.
    OnDemand,
    /// Everything, after so many seconds.
    Seconds(u64),
}

/// What holds while steps are judged.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Paths of each unique key.
    pub unique: Vec<Vec<&'static str>>,
    /// The container's default.
    pub default_ttl: DefaultTtl,
    /// The time in seconds.
    pub now: u64,
}

/// Which document is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Aim {
    /// By id.
    Id(String),
    /// By number.
    Number(u64),
}

/// What a client demands of the stored version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Demand {
    /// Nothing.
    None,
    /// This ETag.
    Match(String),
    /// That there is one.
    Exists,
    /// Another ETag.
    NoneMatch(String),
    /// That there is none.
    Absent,
}

/// One change of a patch; paths are names of members of the document.
#[derive(Clone, Debug, PartialEq)]
pub enum Edit {
    /// Insert or overwrite.
    Set(&'static str, Json),
    /// Overwrite what must be there.
    Replace(&'static str, Json),
    /// Take away what must be there.
    Remove(&'static str),
    /// Add to a number, which is 0 if it is not there.
    Increment(&'static str, i64),
}

/// What a client wants done to one document.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // The names say it.
pub enum Step {
    Create { body: Body },
    Upsert { body: Body, demand: Demand },
    Replace { aim: Aim, body: Body, demand: Demand },
    Patch { aim: Aim, edits: Vec<Edit>, demand: Demand },
    Delete { aim: Aim, demand: Demand },
    Read { aim: Aim, demand: Demand },
}

/// What a step comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// This document is new.
    Created(String),
    /// This document has a new version.
    Replaced(String),
    /// A document is gone.
    Deleted,
    /// This document is shown.
    Read(String),
    /// The client has this version.
    NotModified(Option<String>),
}

/// Why a step is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The id is taken.
    IdTaken,
    /// A unique key is violated.
    Unique(usize),
    /// There is no such document.
    Missing,
    /// The stored version has another ETag, this one if it is known.
    Mismatch(Option<String>),
    /// There is a version and there should be none.
    Exists,
    /// There is no version and there should be one.
    Absent,
    /// Id and partition key of a document stay.
    Immutable,
    /// The patch does not fit the document.
    BadPatch,
}

impl Refusal {
    /// Whether both name the same cause; an ETag that is not known agrees with any.
    pub fn agrees_with(&self, other: &Refusal) -> bool {
        match (self, other) {
            (Refusal::Mismatch(one), Refusal::Mismatch(other)) => {
                one.is_none() || other.is_none() || one == other
            }
            _ => self == other,
        }
    }
}

impl Rules {
    /// Whether a version's time has come.
    pub fn is_expired(&self, version: &Version) -> bool {
        let own = version.body.get("ttl").and_then(Json::as_i64);
        let seconds = match (self.default_ttl, own) {
            (DefaultTtl::Off, _) | (_, Some(-1)) | (DefaultTtl::OnDemand, None) => return false,
            (_, Some(own)) => own.unsigned_abs(),
            (DefaultTtl::Seconds(seconds), None) => seconds,
        };
        version.ts + seconds <= self.now
    }

    /// The versions whose time has come.
    pub fn expired_in(&self, logical: &Logical) -> Vec<Arc<Version>> {
        logical.values().filter(|version| self.is_expired(version)).cloned().collect()
    }

    /// The document with an id, if it is there and not expired.
    pub fn live<'a>(&self, logical: &'a Logical, id: &str) -> Option<&'a Arc<Version>> {
        logical.get(id).filter(|version| !self.is_expired(version))
    }

    /// Carries out one step, or says why not and leaves `logical` as it was.
    pub fn apply(&self, logical: &mut Logical, step: &Step) -> Result<Told, Refusal> {
        match step {
            Step::Create { body } => {
                let id = id_of(body);
                if self.live(logical, &id).is_some() {
                    return Err(Refusal::IdTaken);
                }
                self.store(logical, id.clone(), body.clone(), None)?;
                Ok(Told::Created(id))
            }
            Step::Upsert { body, demand } => {
                let id = id_of(body);
                match self.live(logical, &id).cloned() {
                    Some(old) => {
                        meets(demand, &old)?;
                        self.store(logical, id.clone(), body.clone(), Some(&old))?;
                        Ok(Told::Replaced(id))
                    }
                    None if *demand == Demand::Exists => Err(Refusal::Absent),
                    None => {
                        self.store(logical, id.clone(), body.clone(), None)?;
                        Ok(Told::Created(id))
                    }
                }
            }
            Step::Replace { aim, body, demand } => {
                let (id, old) = self.aimed_at(logical, aim)?;
                meets(demand, &old)?;
                let new = id_of(body);
                if id != new && self.live(logical, &new).is_some() {
                    return Err(Refusal::IdTaken);
                }
                // Under its old id it is in nobody's way.
                logical.remove(&id);
                if let Err(refusal) = self.store(logical, new.clone(), body.clone(), Some(&old)) {
                    logical.insert(id, old);
                    return Err(refusal);
                }
                Ok(Told::Replaced(new))
            }
            Step::Patch { aim, edits, demand } => {
                let (id, old) = self.aimed_at(logical, aim)?;
                meets(demand, &old)?;
                let body = edited(&old.body, edits)?;
                self.store(logical, id.clone(), body, Some(&old))?;
                Ok(Told::Replaced(id))
            }
            Step::Delete { aim, demand } => {
                let (id, old) = self.aimed_at(logical, aim)?;
                meets(demand, &old)?;
                logical.remove(&id);
                Ok(Told::Deleted)
            }
            Step::Read { aim, demand } => {
                let (id, version) = self.aimed_at(logical, aim)?;
                let etag = version.stamp.as_ref().map(|stamp| stamp.etag.clone());
                match demand {
                    Demand::NoneMatch(known) if etag.as_ref() == Some(known) => Ok(Told::NotModified(etag)),
                    Demand::Absent => Ok(Told::NotModified(etag)),
                    Demand::None | Demand::Match(_) | Demand::Exists | Demand::NoneMatch(_) => {
                        meets(demand, &version)?;
                        Ok(Told::Read(id))
                    }
                }
            }
        }
    }

    fn aimed_at(&self, logical: &Logical, aim: &Aim) -> Result<(String, Arc<Version>), Refusal> {
        let has_number = |version: &Version, number: u64| {
            let stamp = version.stamp.as_ref();
            stamp.is_some_and(|stamp| stamp.number == number)
        };
        let found = logical.iter().find(|(id, version)| match aim {
            Aim::Id(wanted) => *id == wanted,
            Aim::Number(number) => has_number(version, *number),
        });
        let (id, version) = found.ok_or(Refusal::Missing)?;
        if self.is_expired(version) {
            return Err(Refusal::Missing);
        }
        Ok((id.clone(), Arc::clone(version)))
    }

    /// Puts a version in place unless another live document has its unique values.
    fn store(
        &self,
        logical: &mut Logical,
        id: String,
        body: Body,
        old: Option<&Version>,
    ) -> Result<(), Refusal> {
        for (constraint, paths) in self.unique.iter().enumerate() {
            let values = |body: &Body| -> Vec<Json> {
                let value = |path: &&str| body.get(*path).cloned().unwrap_or(Json::Null);
                paths.iter().map(value).collect()
            };
            let taken = logical.iter().any(|(other, version)| {
                *other != id && !self.is_expired(version) && values(&version.body) == values(&body)
            });
            if taken {
                return Err(Refusal::Unique(constraint));
            }
        }
        // The number outlives a new version; the ETag does not.
        let number = old.and_then(|old| old.stamp.as_ref()).map(|stamp| stamp.number);
        let stamp = number.map(|number| Stamp { number, etag: String::new() });
        let ts = self.now;
        logical.insert(id, Arc::new(Version { body, ts, stamp }));
        Ok(())
    }
}

fn id_of(body: &Body) -> String {
    let id = body.get("id").and_then(Json::as_str);
    id.unwrap_or_default().to_owned()
}

fn meets(demand: &Demand, version: &Version) -> Result<(), Refusal> {
    let etag = version.stamp.as_ref().map(|stamp| stamp.etag.clone());
    match demand {
        Demand::None | Demand::Exists => Ok(()),
        Demand::Match(wanted) if etag.as_ref() == Some(wanted) => Ok(()),
        Demand::NoneMatch(known) if etag.as_ref() != Some(known) => Ok(()),
        Demand::Match(_) | Demand::NoneMatch(_) => {
            Err(Refusal::Mismatch(etag.filter(|etag| !etag.is_empty())))
        }
        Demand::Absent => Err(Refusal::Exists),
    }
}

fn edited(body: &Body, edits: &[Edit]) -> Result<Body, Refusal> {
    for edit in edits {
        let (Edit::Set(name, _) | Edit::Replace(name, _) | Edit::Remove(name) | Edit::Increment(name, _)) =
            edit;
        if *name == "id" {
            return Err(Refusal::Immutable);
        }
    }
    let mut new = body.clone();
    for edit in edits {
        match edit {
            Edit::Set(name, value) => drop(new.insert((*name).to_owned(), value.clone())),
            Edit::Replace(name, value) => {
                *new.get_mut(*name).ok_or(Refusal::BadPatch)? = value.clone();
            }
            Edit::Remove(name) => drop(new.shift_remove(*name).ok_or(Refusal::BadPatch)?),
            Edit::Increment(name, by) => {
                let old = new.get(*name).map_or(Some(0), Json::as_i64);
                let sum = old.ok_or(Refusal::BadPatch)? + by;
                new.insert((*name).to_owned(), sum.into());
            }
        }
    }
    if new.get("pk") != body.get("pk") {
        return Err(Refusal::Immutable);
    }
    Ok(new)
}
