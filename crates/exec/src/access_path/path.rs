//! The access path: how the documents of one part are reached for one layer, with the reason.
//!
//! It is one value, made by `choose`. The same value is executed, explained and reported as index metrics.

use partition::index::Lookup;
use std::sync::Arc;

use super::choose::FETCH_COST;
use super::covered::Covered;
use super::numbers::LookupDocuments;
use super::ordered::OrderedRequest;
use super::shared::Narrowing;

/// How the documents of one part are reached for one layer.
#[derive(Debug)]
pub(crate) struct AccessPath<'l> {
    pub(crate) way: Way<'l>,
    pub(crate) reason: ChoiceReason,
    /// Number of documents after which the rest may be read by a scan of records, because few of them give rows; `None`
    /// if the path is kept.
    pub(crate) scans_after: Option<u64>,
    /// What else the index offers, and why it is not used.
    pub(crate) rejected: Vec<Rejected<'l>>,
}

/// A way to documents.
#[derive(Debug)]
pub(crate) enum Way<'l> {
    /// All records, in the order of their keys.
    Records,
    /// All documents in the order of their numbers, until there are enough rows.
    Numbers,
    /// The documents that a lookup finds; with these documents if the choice had to find them.
    Lookup(Narrowing, Option<Box<LookupDocuments>>),
    /// Documents in the order of sort keys, until there are enough rows.
    Ordered(Arc<OrderedRequest>),
    /// No documents: the index answers alone. Documents are read by the next best path if too many of them have values
    /// that the index does not know completely, or if there are too many distinct tuples.
    Covered(Covered<'l>, Option<Narrowing>),
}

/// Why a path is chosen, with the numbers that decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChoiceReason {
    /// The partition has no index yet.
    NoIndex,
    /// There is no filter, and no index orders the rows.
    NoFilter,
    /// The index has no lookup for the filter.
    NoLookup,
    /// Rows come in the order of numbers, so the lookup is used without a comparison of costs. The estimate is made
    /// only for explanations.
    FirstRows(Option<Estimate>),
    /// Documents of the lookup are fetched one by one, which costs less than reading all.
    Fetched(Estimate),
    /// All documents are read, since fetching those of the lookup costs as much.
    Read(Estimate),
    /// Rows come in the order of an index.
    InOrder(OrderEstimate),
    /// Values are walked, which costs less than reading documents.
    Walked {
        /// The cost in documents read; `None` if no other way can be cheaper.
        cost: Option<u64>,
        /// The cost of the cheapest other way.
        otherwise: u64,
    },
}

/// Upper bound of the number of documents that a lookup finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Estimate {
    pub(crate) found: u64,
    pub(crate) total: u64,
}

/// Totals of all parts that could be walked in the order of their indexes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OrderEstimate {
    pub(crate) total: u64,
    /// Documents that may be wanted; `None` if the walk meets no others.
    pub(crate) candidates: Option<u64>,
    pub(crate) wanted: u64,
}

/// A way that is not used.
#[derive(Debug)]
pub(crate) struct Rejected<'l> {
    pub(crate) way: Way<'l>,
    pub(crate) cause: RejectionCause,
}

/// Why a way is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RejectionCause {
    /// Too many values would be tested.
    ManyValues { most: u64 },
    /// Most documents pass the tests.
    MostPass(Estimate),
    /// Fetching the documents costs as much as reading all.
    ManyDocuments(Estimate),
    /// Too few documents, or too few candidates, for the wanted rows: they are sorted.
    FewDocuments(OrderEstimate),
    /// Walking the values costs more than reading documents.
    ManyToWalk { cost: u64, otherwise: u64 },
    /// Another partition has no index in this order.
    NotEverywhere,
}

/// What a path requests from an index.
pub(crate) enum Use<'p> {
    /// Documents that may pass the filter.
    Filter(&'p Lookup),
    /// Values from which the index answers alone.
    Values(Lookup),
    Order(&'p OrderedRequest),
}

impl<'l> AccessPath<'l> {
    pub(crate) fn new(way: Way<'l>, reason: ChoiceReason) -> AccessPath<'l> {
        AccessPath { way, reason, scans_after: None, rejected: Vec::new() }
    }

    /// What the index can do for the query: what the path uses and what it would use with more or other documents. So
    /// index metrics do not change with the data.
    pub(crate) fn uses(&self) -> Vec<Use<'_>> {
        let ways = std::iter::once(&self.way).chain(self.rejected.iter().map(|rejected| &rejected.way));
        ways.flat_map(Way::uses).collect()
    }

    /// The path as text: the way with the numbers that decided, then the rejected ways.
    pub(crate) fn lines(&self) -> Vec<String> {
        let rejected = |rejected: &Rejected<'_>| {
            format!("rejected: {}; {}", rejected.way.describe(), rejected.cause.describe())
        };
        let left = self.scans_after.map(|seen| format!(", records after {seen} with few rows"));
        let way = format!("{}{}{}", self.way.describe(), self.reason.describe(), left.unwrap_or_default());
        std::iter::once(way).chain(self.rejected.iter().map(rejected)).collect()
    }
}

/// Kinds of access paths, as metrics name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathKind {
    /// All records.
    Records,
    /// All documents by number, until the page is full.
    Numbers,
    /// Documents by lookup.
    Lookup,
    /// Documents in the order of an index, until the page is full.
    Ordered,
    /// The index alone.
    Covered,
}

impl PathKind {
    /// Every kind.
    pub const ALL: [PathKind; 5] =
        [PathKind::Records, PathKind::Numbers, PathKind::Lookup, PathKind::Ordered, PathKind::Covered];

    /// Its name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            PathKind::Records => "records",
            PathKind::Numbers => "numbers",
            PathKind::Lookup => "lookup",
            PathKind::Ordered => "ordered",
            PathKind::Covered => "covered",
        }
    }
}

impl Way<'_> {
    pub(crate) fn kind(&self) -> PathKind {
        match self {
            Way::Records => PathKind::Records,
            Way::Numbers => PathKind::Numbers,
            Way::Lookup(..) => PathKind::Lookup,
            Way::Ordered(_) => PathKind::Ordered,
            Way::Covered(..) => PathKind::Covered,
        }
    }

    fn uses(&self) -> Vec<Use<'_>> {
        match self {
            Way::Records | Way::Numbers => Vec::new(),
            Way::Lookup(narrowing, _) => vec![Use::Filter(&narrowing.lookup)],
            Way::Ordered(request) => {
                let within = request.within.as_ref().map(|within| Use::Filter(&within.lookup));
                within.into_iter().chain([Use::Order(request)]).collect()
            }
            Way::Covered(covered, filter) => {
                let filter = filter.iter().map(|filter| Use::Filter(&filter.lookup));
                filter.chain(covered.lookups().into_iter().map(Use::Values)).collect()
            }
        }
    }

    fn describe(&self) -> String {
        let text = |narrowing: &Narrowing| narrowing.text.as_deref().unwrap_or_default().to_owned();
        match self {
            Way::Records => "all records".to_owned(),
            Way::Numbers => "all documents by number".to_owned(),
            Way::Lookup(narrowing, _) => format!("documents by lookup of {}", text(narrowing)),
            Way::Ordered(request) => {
                let order = request.text.as_deref().unwrap_or_default();
                let within = request.within.as_ref().map(text).unwrap_or_default();
                match (&request.bounds, &request.within) {
                    (Some(bounds), _) => {
                        let bound = bounds.text.as_deref().unwrap_or_default();
                        let rest = match (&bounds.rest, &bounds.checks) {
                            (None, _) => String::new(),
                            (Some(_), None) => format!(", of the lookup of the rest of {within}"),
                            (Some(_), Some(_)) => format!(", with values that are in {within}"),
                        };
                        format!("documents in the order of {order} bounded by {bound}{rest}")
                    }
                    (None, Some(_)) => {
                        format!("documents in the order of {order}, of the lookup of {within}")
                    }
                    (None, None) => format!("documents in the order of {order}"),
                }
            }
            Way::Covered(covered, filter) => {
                let filter = filter.as_ref().map(|filter| format!(" where {}", text(filter)));
                let left = match covered {
                    Covered::Tuples(_) => ", documents if more than half of them differ",
                    Covered::Values(_) | Covered::Folds(_) => "",
                };
                format!("the index alone: {}{}{left}", covered.text(), filter.unwrap_or_default())
            }
        }
    }
}

impl ChoiceReason {
    fn describe(&self) -> String {
        match self {
            ChoiceReason::NoIndex => "; the index is being built".to_owned(),
            ChoiceReason::NoFilter => "; no filter".to_owned(),
            ChoiceReason::NoLookup => "; the index says nothing of the filter".to_owned(),
            ChoiceReason::FirstRows(estimate) => {
                let estimate =
                    estimate.map(|estimate| format!("{}, ", estimate.describe())).unwrap_or_default();
                format!("; {estimate}by number until the page is full")
            }
            ChoiceReason::Fetched(estimate) => format!("; {}", estimate.describe_with_cost()),
            ChoiceReason::Read(estimate) => format!("; {} documents", estimate.total),
            ChoiceReason::InOrder(prospect) => format!("; {}, until the page is full", prospect.describe()),
            ChoiceReason::Walked { cost: None, .. } => String::new(),
            ChoiceReason::Walked { cost: Some(cost), otherwise } => {
                format!("; cost {cost} against {otherwise} for documents")
            }
        }
    }
}

impl RejectionCause {
    fn describe(&self) -> String {
        match self {
            RejectionCause::ManyValues { most } => format!("more than {most} values to be tested"),
            RejectionCause::MostPass(estimate) => format!("{}, which is most", estimate.describe()),
            RejectionCause::ManyDocuments(estimate) => estimate.describe_with_cost(),
            RejectionCause::FewDocuments(prospect) => {
                format!("{}, which are sorted instead", prospect.describe())
            }
            RejectionCause::ManyToWalk { cost, otherwise } => {
                format!("cost {cost} against {otherwise} for documents")
            }
            RejectionCause::NotEverywhere => "not in every partition".to_owned(),
        }
    }
}

impl Estimate {
    fn describe(self) -> String {
        format!("{} of {} documents", self.found, self.total)
    }

    /// The same with the cost of fetching them.
    fn describe_with_cost(self) -> String {
        format!("{}, cost {} against {} for all records", self.describe(), self.cost(), self.total)
    }

    /// The cost of fetching the documents, in documents read.
    pub(crate) fn cost(self) -> u64 {
        self.found.saturating_mul(FETCH_COST)
    }
}

impl OrderEstimate {
    fn describe(self) -> String {
        let OrderEstimate { total, candidates, wanted } = self;
        match candidates {
            Some(candidates) => format!("{candidates} of {total} documents for {wanted} rows"),
            None => format!("{total} documents for {wanted} rows"),
        }
    }
}
