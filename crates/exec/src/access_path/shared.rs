//! What the index of one partition knows about the filter, shared by all partitions of the page with the same index
//! rules.

use model::Fault;
use partition::index::{Fingerprint, IndexReader, Lookup, RequiredTerms};
use plan::query::Query;
use std::sync::{Arc, OnceLock};

use super::lookup::{self, FilterAnalysis, Tests};
use super::numbers::LookupDocuments;
use crate::program::RemainingCheck;
use crate::task::OpenPart;

/// How an index narrows the documents of a part.
#[derive(Clone, Debug)]
pub(crate) struct Narrowing {
    pub(crate) lookup: Arc<Lookup>,
    /// Whether the lookup is equivalent to the filter.
    pub(crate) is_exact: bool,
    /// Whether the lookup tests individual values.
    pub(crate) has_tests: bool,
    /// Text of the lookup, if it is explained.
    pub(crate) text: Option<Arc<str>>,
}

impl Narrowing {
    pub(crate) fn new(lookup: Lookup, is_exact: bool, text: Option<String>) -> Narrowing {
        let has_tests = lookup.has_tests();
        Narrowing { lookup: Arc::new(lookup), is_exact, has_tests, text: text.map(Arc::from) }
    }

    pub(crate) async fn documents(
        &self,
        open: &OpenPart,
        index: &IndexReader,
    ) -> Result<Box<LookupDocuments>, Fault> {
        let documents = open.documents_of(index, &self.lookup).await?;
        let is_answered = self.is_exact && documents.is_exact();
        let check = if is_answered { RemainingCheck::Nothing } else { RemainingCheck::Filter };
        Ok(Box::new(LookupDocuments { set: documents, check }))
    }

    /// The documents that the lookup finds in a part; `None` without an index.
    pub(crate) async fn documents_in(&self, open: &OpenPart) -> Result<Option<Box<LookupDocuments>>, Fault> {
        match open.view.index() {
            Some(index) => self.documents(open, index).await.map(Some),
            None => Ok(None),
        }
    }
}

/// What the index of a partition knows about the filter, shared by all partitions whose indexes have the same rules.
#[derive(Debug, Default)]
pub(crate) struct SharedFilter {
    known: OnceLock<(Fingerprint, Option<Narrowing>)>,
}

/// Values without which no document passes the filter, for indexes with the same rules.
pub(crate) struct SharedRequiredTerms<'l> {
    pub(crate) rules: Fingerprint,
    pub(crate) terms: RequiredTerms<'l>,
}

impl SharedFilter {
    /// How an index narrows the documents of a whole partition; `None` if it cannot. What depends on the values in the
    /// partition is determined for each partition.
    pub(crate) fn narrowing(
        &self,
        query: &Query,
        index: &IndexReader,
        tests: Tests<'_>,
        open: &OpenPart,
    ) -> Option<Narrowing> {
        if let Some((rules, narrowing)) = self.known.get()
            && *rules == index.fingerprint()
        {
            return narrowing.clone();
        }
        let FilterAnalysis { known, is_by_rules } = lookup::of_filter(query, index, tests, open);
        let narrowing = known.map(|known| Narrowing::new(known.lookup, known.is_exact, known.text));
        if is_by_rules {
            self.known.get_or_init(|| (index.fingerprint(), narrowing.clone()));
        }
        narrowing
    }

    /// The values that indexes are probed for first, if the whole filter is about single values.
    pub(crate) fn required_terms(&self) -> Option<SharedRequiredTerms<'_>> {
        let (rules, narrowing) = self.known.get()?;
        let terms = RequiredTerms::of(&narrowing.as_ref()?.lookup)?;
        Some(SharedRequiredTerms { rules: *rules, terms })
    }

    /// Whether the shared lookup applies to a partition.
    pub(crate) fn is_shared_by(&self, index: &IndexReader) -> bool {
        self.known.get().is_some_and(|(rules, _)| *rules == index.fingerprint())
    }
}
