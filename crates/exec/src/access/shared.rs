//! What the index of one partition knows of the filter, for all others of the page that are indexed alike.

use eval::Meter;
use partition::index::{Fingerprint, IndexReader, Lookup, RequiredTerms};
use plan::query::Query;
use std::sync::{Arc, OnceLock};

use super::lookup::{self, Told};

/// How an index narrows the documents that a part is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Narrowing {
    pub(crate) lookup: Arc<Lookup>,
    /// Whether that says all that the filter says.
    pub(crate) is_exact: bool,
}

/// See the file's head.
#[derive(Debug, Default)]
pub(crate) struct SharedFilter {
    known: OnceLock<(Fingerprint, Option<Narrowing>)>,
}

/// Values without which no document passes the filter, for indexes with the same rules.
pub(crate) struct SharedNeedles<'l> {
    pub(crate) rules: Fingerprint,
    pub(crate) needles: RequiredTerms<'l>,
}

impl SharedFilter {
    /// How an index narrows the documents of a whole partition; nothing if it cannot. What depends on the values in
    /// the partition is found out for each.
    pub(crate) fn narrowing(
        &self,
        query: &Query,
        index: &IndexReader,
        tests_max: u64,
        meter: &Arc<Meter>,
    ) -> Option<Narrowing> {
        if let Some((rules, narrowing)) = self.known.get()
            && *rules == index.fingerprint()
        {
            return narrowing.clone();
        }
        let Told { known, is_by_rules } = lookup::of_filter(query, index, tests_max, meter);
        let narrowing =
            known.map(|known| Narrowing { lookup: Arc::new(known.lookup), is_exact: known.is_exact });
        if is_by_rules {
            self.known.get_or_init(|| (index.fingerprint(), narrowing.clone()));
        }
        narrowing
    }

    /// What indexes are to be searched for first, where all of the filter is about single values.
    pub(crate) fn needles(&self) -> Option<SharedNeedles<'_>> {
        let (rules, narrowing) = self.known.get()?;
        let needles = RequiredTerms::of(&narrowing.as_ref()?.lookup)?;
        Some(SharedNeedles { rules: *rules, needles })
    }

    /// Whether a partition is narrowed by the lookup that is shared.
    pub(crate) fn is_shared_by(&self, index: &IndexReader) -> bool {
        self.known.get().is_some_and(|(rules, _)| *rules == index.fingerprint())
    }
}
