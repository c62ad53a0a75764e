//! The documents that count where an index answers by itself: those of the part that pass the filter and have not
//! expired.

use model::{DocumentNumber, Fault};
use partition::index::{Documents, IndexReader, Lookup};

use super::shared::Narrowing;
use crate::task::OpenPart;

/// Documents of a part that count, as its index has them.
pub(crate) struct Counting<'a> {
    pub(crate) index: &'a IndexReader,
    open: &'a OpenPart,
    /// The part and the filter.
    filter: Option<&'a Lookup>,
    expired: &'a [DocumentNumber],
    /// All that count; nothing where the index has no others.
    pub(crate) within: Option<Documents>,
    /// How many these are.
    pub(crate) count: u64,
}

impl<'a> Counting<'a> {
    /// Nothing where the index does not know them exactly.
    pub(crate) async fn begin(
        open: &'a OpenPart,
        index: &'a IndexReader,
        filter: Option<&'a Narrowing>,
    ) -> Result<Option<Counting<'a>>, Fault> {
        let Some(expired) = &open.statistics(index).await?.expired else {
            return Ok(None);
        };
        let filter = filter.map(|filter| &*filter.lookup);
        let mut counting =
            Counting { index, open, filter, expired, within: None, count: index.document_count() };
        if filter.is_some() || !expired.is_empty() {
            let Some(within) = counting.documents(None).await? else {
                return Ok(None);
            };
            counting.count = within.count();
            counting.within = Some(within);
        }
        Ok(Some(counting))
    }

    /// Those that a lookup finds too; nothing where the index does not know them exactly.
    pub(crate) async fn documents(&self, lookup: Option<Lookup>) -> Result<Option<Documents>, Fault> {
        let mut lookups = match self.filter {
            Some(Lookup::And(parts)) => parts.clone(),
            filter => filter.cloned().into_iter().collect(),
        };
        lookups.extend(lookup);
        let mut documents = self.open.looked_up(self.index, &Lookup::And(lookups)).await?;
        if !documents.is_exact() {
            return Ok(None);
        }
        documents.remove(self.expired);
        Ok(Some(documents))
    }
}
