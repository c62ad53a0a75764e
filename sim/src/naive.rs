//! A naive model of documents: one map, full scans, JSON trees.
//!
//! Shares no code with the product. One value is one logical partition, the scope of ids, unique keys and transactions;
//! everything else about a container follows from their sum.

use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A JSON object with its members in order.
pub type Body = Map<String, Json>;

/// Values of a version that the store chooses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The document's number.
    pub number: u64,
    /// The version's ETag.
    pub etag: String,
}

/// A document version.
#[derive(Clone, Debug, PartialEq)]
pub struct Version {
    /// The document.
    pub body: Body,
    /// When it was written; for a write of unknown outcome the time of the attempt.
    pub ts: u64,
    /// `None` as long as only a write of unknown outcome can have created it.
    pub stamp: Option<Stamp>,
}

/// The documents of one logical partition by id, including expired ones until they are found to be gone.
pub type Logical = BTreeMap<String, Arc<Version>>;

/// The container's default TTL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultTtl {
    /// Nothing expires.
    Off,
    /// Only documents with a TTL of their own.
    OnDemand,
    /// Everything, after this many seconds.
    Seconds(u64),
}

/// The rules that apply to steps.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Paths of each unique key.
    pub unique: Vec<Vec<&'static str>>,
    /// The container's default.
    pub default_ttl: DefaultTtl,
    /// The time in seconds.
    pub now: u64,
}

/// Identifies a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// By id.
    Id(String),
    /// By number.
    Number(u64),
}

/// A precondition on the stored version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// Nothing.
    None,
    /// This ETag.
    Match(String),
    /// A version exists.
    Exists,
    /// Another ETag.
    NoneMatch(String),
    /// No version exists.
    Absent,
}

/// One change of a patch; paths are names of members of the document.
#[derive(Clone, Debug, PartialEq)]
pub enum Edit {
    /// Insert or overwrite.
    Set(&'static str, Json),
    /// Overwrite an existing member.
    Replace(&'static str, Json),
    /// Remove an existing member.
    Remove(&'static str),
    /// Add to a number, which is 0 if missing.
    Increment(&'static str, i64),
}

/// A step: one operation on one document.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // The names say it.
pub enum Step {
    Create {
        body: Body,
    },
    Upsert {
        body: Body,
        precondition: Precondition,
    },
    Replace {
        selector: Selector,
        body: Body,
        precondition: Precondition,
    },
    Patch {
        selector: Selector,
        edits: Vec<Edit>,
        precondition: Precondition,
    },
    Delete {
        selector: Selector,
        precondition: Precondition,
    },
    Read {
        selector: Selector,
        precondition: Precondition,
    },
    /// All documents, as an interactive transaction finds them.
    List {
        by_query: bool,
    },
}

/// The result of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepResult {
    /// A new document.
    Created(String),
    /// A new version of a document.
    Replaced(String),
    /// A document was deleted.
    Deleted,
    /// A document was read.
    Read(String),
    /// The client already has this version.
    NotModified(Option<String>),
    /// All live documents, by their ids.
    Listed(Vec<String>),
}

/// Why a step is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The id is already in use.
    IdTaken,
    /// A unique key is violated.
    Unique(usize),
    /// The document does not exist.
    Missing,
    /// The stored version has another ETag, this one if it is known.
    Mismatch(Option<String>),
    /// A version exists, but must not.
    Exists,
    /// No version exists, but must.
    Absent,
    /// Id and partition key of a document cannot change.
    Immutable,
    /// The patch cannot be applied to the document.
    BadPatch,
}

impl Refusal {
    /// Whether both are the same refusal; an unknown ETag matches any.
    pub(crate) fn agrees_with(&self, other: &Refusal) -> bool {
        match (self, other) {
            (Refusal::Mismatch(one), Refusal::Mismatch(other)) => {
                one.is_none() || other.is_none() || one == other
            }
            _ => self == other,
        }
    }
}

impl Rules {
    /// Whether a version has expired.
    pub fn is_expired(&self, version: &Version) -> bool {
        let own = version.body.get("ttl").and_then(Json::as_i64);
        let seconds = match (self.default_ttl, own) {
            (DefaultTtl::Off, _) | (_, Some(-1)) | (DefaultTtl::OnDemand, None) => return false,
            (_, Some(own)) => own.unsigned_abs(),
            (DefaultTtl::Seconds(seconds), None) => seconds,
        };
        version.ts + seconds <= self.now
    }

    pub(crate) fn expired_in(&self, logical: &Logical) -> Vec<Arc<Version>> {
        logical.values().filter(|version| self.is_expired(version)).cloned().collect()
    }

    /// The document with an id, if it exists and is not expired.
    pub fn live<'a>(&self, logical: &'a Logical, id: &str) -> Option<&'a Arc<Version>> {
        logical.get(id).filter(|version| !self.is_expired(version))
    }

    /// Executes one step, or returns the refusal and leaves `logical` unchanged.
    pub fn apply(&self, logical: &mut Logical, step: &Step) -> Result<StepResult, Refusal> {
        match step {
            Step::Create { body } => {
                let id = id_of(body);
                if self.live(logical, &id).is_some() {
                    return Err(Refusal::IdTaken);
                }
                self.store(logical, id.clone(), body.clone(), None)?;
                Ok(StepResult::Created(id))
            }
            Step::Upsert { body, precondition } => {
                let id = id_of(body);
                match self.live(logical, &id).cloned() {
                    Some(old) => {
                        meets(precondition, &old)?;
                        self.store(logical, id.clone(), body.clone(), Some(&old))?;
                        Ok(StepResult::Replaced(id))
                    }
                    None if *precondition == Precondition::Exists => Err(Refusal::Absent),
                    None => {
                        self.store(logical, id.clone(), body.clone(), None)?;
                        Ok(StepResult::Created(id))
                    }
                }
            }
            Step::Replace { selector, body, precondition } => {
                let (id, old) = self.aimed_at(logical, selector)?;
                meets(precondition, &old)?;
                let new = id_of(body);
                if id != new && self.live(logical, &new).is_some() {
                    return Err(Refusal::IdTaken);
                }
                // Its old id is free.
                logical.remove(&id);
                if let Err(refusal) = self.store(logical, new.clone(), body.clone(), Some(&old)) {
                    logical.insert(id, old);
                    return Err(refusal);
                }
                Ok(StepResult::Replaced(new))
            }
            Step::Patch { selector, edits, precondition } => {
                let (id, old) = self.aimed_at(logical, selector)?;
                meets(precondition, &old)?;
                let body = edited(&old.body, edits)?;
                self.store(logical, id.clone(), body, Some(&old))?;
                Ok(StepResult::Replaced(id))
            }
            Step::Delete { selector, precondition } => {
                let (id, old) = self.aimed_at(logical, selector)?;
                meets(precondition, &old)?;
                logical.remove(&id);
                Ok(StepResult::Deleted)
            }
            Step::List { .. } => {
                let live = logical.iter().filter(|(_, version)| !self.is_expired(version));
                Ok(StepResult::Listed(live.map(|(id, _)| id.clone()).collect()))
            }
            Step::Read { selector, precondition } => {
                let (id, version) = self.aimed_at(logical, selector)?;
                let etag = version.stamp.as_ref().map(|stamp| stamp.etag.clone());
                match precondition {
                    Precondition::NoneMatch(known) if etag.as_ref() == Some(known) => {
                        Ok(StepResult::NotModified(etag))
                    }
                    Precondition::Absent => Ok(StepResult::NotModified(etag)),
                    Precondition::None
                    | Precondition::Match(_)
                    | Precondition::Exists
                    | Precondition::NoneMatch(_) => {
                        meets(precondition, &version)?;
                        Ok(StepResult::Read(id))
                    }
                }
            }
        }
    }

    fn aimed_at(&self, logical: &Logical, selector: &Selector) -> Result<(String, Arc<Version>), Refusal> {
        let has_number = |version: &Version, number: u64| {
            let stamp = version.stamp.as_ref();
            stamp.is_some_and(|stamp| stamp.number == number)
        };
        let found = logical.iter().find(|(id, version)| match selector {
            Selector::Id(wanted) => *id == wanted,
            Selector::Number(number) => has_number(version, *number),
        });
        let (id, version) = found.ok_or(Refusal::Missing)?;
        if self.is_expired(version) {
            return Err(Refusal::Missing);
        }
        Ok((id.clone(), Arc::clone(version)))
    }

    /// Stores a version unless another live document has its unique values.
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
        // A new version keeps the number, but not the ETag.
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

fn meets(precondition: &Precondition, version: &Version) -> Result<(), Refusal> {
    let etag = version.stamp.as_ref().map(|stamp| stamp.etag.clone());
    match precondition {
        Precondition::None | Precondition::Exists => Ok(()),
        Precondition::Match(wanted) if etag.as_ref() == Some(wanted) => Ok(()),
        Precondition::NoneMatch(known) if etag.as_ref() != Some(known) => Ok(()),
        Precondition::Match(_) | Precondition::NoneMatch(_) => {
            Err(Refusal::Mismatch(etag.filter(|etag| !etag.is_empty())))
        }
        Precondition::Absent => Err(Refusal::Exists),
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
