//! Small named resources below a database, user or container: one shelf for each kind.
//!
//! All kinds are handled alike, so there is one generic type; its parameter is the definition of the resource.

use super::entries::{Addressed, CatalogStamp};
use model::{DecodeFault, Decoder, Encoder, Etag, ResourceNumber, Rid};
use partition::keyspace::EntryKind;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A small resource with its definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<D> {
    number: ResourceNumber,
    rid: Rid,
    id: String,
    definition: D,
    stamp: CatalogStamp,
}

impl<D> Entry<D> {
    pub(crate) fn new(
        number: ResourceNumber,
        rid: Rid,
        id: String,
        definition: D,
        stamp: CatalogStamp,
    ) -> Entry<D> {
        Entry { number, rid, id, definition, stamp }
    }

    /// Its number, never reused.
    pub fn number(&self) -> ResourceNumber {
        self.number
    }

    /// Its resource id.
    pub fn rid(&self) -> Rid {
        self.rid
    }

    /// Its name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its definition.
    pub fn definition(&self) -> &D {
        &self.definition
    }

    /// Its version.
    pub fn etag(&self) -> Etag {
        self.stamp.etag()
    }

    /// When it was written, in seconds since 1970.
    pub fn ts(&self) -> u64 {
        self.stamp.ts
    }

    pub(crate) fn stamp(&self) -> CatalogStamp {
        self.stamp
    }
}

/// How the definitions of one kind are stored.
#[derive(Debug)]
pub(crate) struct DefinitionCode<D> {
    /// What a resource of this kind is called in faults.
    pub(crate) name: &'static str,
    /// Appends the encoding of a definition.
    pub(crate) encode: fn(&D, &mut Encoder),
    /// Reads the encoding of a definition.
    pub(crate) decode: fn(&mut Decoder<'_>) -> Result<D, DecodeFault>,
}

impl<D> Clone for DefinitionCode<D> {
    fn clone(&self) -> DefinitionCode<D> {
        *self
    }
}

impl<D> Copy for DefinitionCode<D> {}

/// All resources of one kind.
#[derive(Clone, Debug)]
pub(crate) struct Shelf<D> {
    kind: EntryKind,
    code: DefinitionCode<D>,
    entries: BTreeMap<ResourceNumber, Arc<Entry<D>>>,
    /// By parent and name.
    names: HashMap<Rid, HashMap<String, ResourceNumber>>,
}

impl<D> Shelf<D> {
    pub(crate) fn new(kind: EntryKind, code: DefinitionCode<D>) -> Shelf<D> {
        Shelf { kind, code, entries: BTreeMap::new(), names: HashMap::new() }
    }

    pub(crate) fn code(&self) -> DefinitionCode<D> {
        self.code
    }

    pub(crate) fn kind(&self) -> EntryKind {
        self.kind
    }

    pub(crate) fn get(&self, number: ResourceNumber) -> Option<&Arc<Entry<D>>> {
        self.entries.get(&number)
    }

    /// Finds a child of `parent` by name, or else by RID.
    pub(crate) fn find(&self, parent: Rid, segment: &str) -> Option<Addressed<Arc<Entry<D>>>> {
        if let Some(entry) = self.find_by_name(parent, segment) {
            return Some(Addressed { resource: Arc::clone(entry), by_rid: false });
        }
        let rid = Rid::parse(segment).filter(|rid| rid.parent() == Some(parent))?;
        let entry = self.entries.get(&rid.resource_number()?).filter(|entry| entry.rid == rid)?;
        Some(Addressed { resource: Arc::clone(entry), by_rid: true })
    }

    pub(crate) fn find_by_name(&self, parent: Rid, name: &str) -> Option<&Arc<Entry<D>>> {
        self.entries.get(self.children_by_name(parent)?.get(name)?)
    }

    /// The children of `parent` in order of creation.
    pub(crate) fn children(&self, parent: Rid) -> Vec<Arc<Entry<D>>> {
        let numbers = self.children_by_name(parent).into_iter().flat_map(HashMap::values);
        let mut children: Vec<_> =
            numbers.filter_map(|number| self.entries.get(number)).map(Arc::clone).collect();
        children.sort_unstable_by_key(|entry| entry.number);
        children
    }

    /// The number of children of `parent`.
    pub(crate) fn count(&self, parent: Rid) -> usize {
        self.children_by_name(parent).map_or(0, HashMap::len)
    }

    /// Adds an entry; replaces one with the same number.
    pub(crate) fn insert(&mut self, entry: Arc<Entry<D>>) {
        self.remove(entry.number);
        if let Some(parent) = entry.rid.parent() {
            self.names.entry(parent).or_default().insert(entry.id.clone(), entry.number);
        }
        self.entries.insert(entry.number, entry);
    }

    pub(crate) fn remove(&mut self, number: ResourceNumber) {
        let Some(entry) = self.entries.remove(&number) else { return };
        let Some(parent) = entry.rid.parent() else { return };
        if let Some(names) = self.names.get_mut(&parent) {
            names.remove(&entry.id);
            if names.is_empty() {
                self.names.remove(&parent);
            }
        }
    }

    fn children_by_name(&self, parent: Rid) -> Option<&HashMap<String, ResourceNumber>> {
        self.names.get(&parent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::DatabaseNumber;

    const PARENT: Rid = Rid::Database(DatabaseNumber(1));

    fn entry(number: u32, id: &str) -> Arc<Entry<()>> {
        let number = ResourceNumber(number);
        let rid = Rid::DatabaseChild(DatabaseNumber(1), number);
        Arc::new(Entry::new(number, rid, id.to_owned(), (), CatalogStamp { change: 1, ts: 1 }))
    }

    #[test]
    fn a_name_goes_before_a_rid_and_a_renamed_entry_leaves_its_name() {
        let code = DefinitionCode { name: "user", encode: |_, _| {}, decode: |_| Ok(()) };
        let mut shelf = Shelf::new(EntryKind::User, code);
        shelf.insert(entry(2, "second"));
        shelf.insert(entry(1, "first"));
        let rid = entry(1, "").rid().to_string();
        assert!(shelf.find(PARENT, &rid).unwrap().by_rid);
        assert!(shelf.find(Rid::Database(DatabaseNumber(2)), &rid).is_none());
        shelf.insert(entry(3, &rid));
        assert_eq!(shelf.find(PARENT, &rid).unwrap().resource.number(), ResourceNumber(3));
        shelf.insert(entry(2, "renamed"));
        assert!(shelf.find(PARENT, "second").is_none() && shelf.find(PARENT, "renamed").is_some());
        let names: Vec<_> = shelf.children(PARENT).iter().map(|entry| entry.id().to_owned()).collect();
        assert_eq!(names, ["first", "renamed", &rid]);
        for number in 1..=3 {
            shelf.remove(ResourceNumber(number));
        }
        assert_eq!((shelf.count(PARENT), shelf.names.len()), (0, 0));
    }
}
