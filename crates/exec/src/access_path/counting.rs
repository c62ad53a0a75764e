//! The documents that count if an index answers alone: those of the part that pass the filter and have not expired.

use model::{DocumentNumber, Fault};
use partition::index::{Documents, IndexReader, Lookup};

use super::shared::Narrowing;
use crate::task::OpenPart;

/// The documents of a part that count, according to its index.
pub(crate) struct Counting<'a> {
    pub(crate) index: &'a IndexReader,
    open: &'a OpenPart,
    /// The lookup for the part and the filter.
    filter: Option<&'a Lookup>,
    expired: &'a [DocumentNumber],
    /// All documents that count; `None` if these are all documents of the index.
    pub(crate) within: Option<Documents>,
    /// The number of documents that count.
    pub(crate) count: u64,
}

impl<'a> Counting<'a> {
    /// `None` if the index does not know them exactly.
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

    /// The counting documents that a lookup finds too; `None` if the index does not know them exactly.
    pub(crate) async fn documents(&self, lookup: Option<Lookup>) -> Result<Option<Documents>, Fault> {
        let mut lookups = match self.filter {
            Some(Lookup::And(parts)) => parts.clone(),
            filter => filter.cloned().into_iter().collect(),
        };
        lookups.extend(lookup);
        let mut documents = self.open.documents_of(self.index, &Lookup::And(lookups)).await?;
        if !documents.is_exact() {
            return Ok(None);
        }
        documents.remove(self.expired);
        Ok(Some(documents))
    }
}
