//! Checks of feeds and queries that are read page by page.
//!
//! A feed has shown every document that existed throughout, and none twice. A query has shown every document once that
//! matched and was unchanged throughout, and its rows are in order.

use crate::clients::{OpenFeed, Page};
use crate::history::{Moment, Stored, shows};
use crate::naive::{Body, Rules};
use crate::scenario::Scope;
use crate::world::{CheckFailure, key_of};
use serde_json::Value as Json;
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// Longer values make positions that do not fit into a continuation: rows may be repeated if others are gone.
const LONG_VALUE: usize = 200;

/// A query that clients read page by page. Its rows are documents.
#[derive(Debug)]
pub struct DrainedQuery {
    /// The text.
    pub text: &'static str,
    /// The documents that match.
    matches: fn(&Body) -> bool,
    /// The property by which rows are sorted, and whether they descend.
    order: Option<(&'static str, bool)>,
}

/// The queries of clients. Every document has a `w` of its own.
pub const QUERIES: [DrainedQuery; 5] = [
    DrainedQuery { text: "SELECT * FROM c", matches: |_| true, order: None },
    DrainedQuery {
        text: "SELECT * FROM c WHERE c.n >= 3",
        matches: |body| body.get("n").and_then(Json::as_f64).is_some_and(|n| n >= 3.0),
        order: None,
    },
    DrainedQuery {
        text: "SELECT * FROM c ORDER BY c.w",
        matches: |body| body.contains_key("w"),
        order: Some(("w", false)),
    },
    DrainedQuery {
        text: "SELECT * FROM c WHERE c.w >= 0 ORDER BY c.w DESC",
        matches: |body| body.get("w").is_some_and(Json::is_number),
        order: Some(("w", true)),
    },
    DrainedQuery {
        text: "SELECT * FROM c WHERE IS_DEFINED(c.mail) ORDER BY c.mail",
        matches: |body| body.contains_key("mail"),
        order: Some(("mail", false)),
    },
];

/// A document by index of its partition key and id.
type Name = (usize, String);

/// A document, for a query in one version: the value of its mark.
type Row = (Name, Option<String>);

/// A feed or a query that is being read.
#[derive(Clone, Debug)]
pub struct Feed {
    /// Documents of the feed.
    pub scope: Scope,
    /// The container it was opened on.
    pub container: u32,
    /// Continuation; `None` before the first page and after the last.
    pub continuation: Option<String>,
    query: Option<usize>,
    shown: BTreeSet<Row>,
    /// What may be shown once only: names in a feed, numbers in a query without an order, versions in one with an order.
    shown_once: BTreeSet<String>,
    last: Option<Json>,
    /// Documents that existed at every moment since the feed was opened; `None` until the first quiet moment.
    steady: Option<BTreeSet<Row>>,
    ended: bool,
}

impl Feed {
    /// A feed, or a query, before its first page.
    pub fn new(scope: Scope, query: Option<usize>, container: u32) -> Feed {
        Feed {
            scope,
            container,
            continuation: None,
            query,
            shown: BTreeSet::new(),
            shown_once: BTreeSet::new(),
            last: None,
            steady: None,
            ended: false,
        }
    }

    /// The state that a client needs to continue.
    pub fn open(&self) -> Option<OpenFeed> {
        let Feed { scope, query, .. } = *self;
        self.continuation.clone().map(|continuation| OpenFeed { scope, query, continuation })
    }

    fn drained(&self) -> Option<&'static DrainedQuery> {
        self.query.map(|query| &QUERIES[query])
    }

    fn title(&self) -> &'static str {
        self.drained().map_or("feed", |query| query.text)
    }

    /// A document as this feed shows it; `None` if it does not match.
    fn row(&self, key: usize, id: &str, body: &Body) -> Option<Row> {
        let name = (key, id.to_owned());
        match self.drained() {
            None => Some((name, None)),
            Some(query) => (query.matches)(body).then(|| (name, body.get("w").map(ToString::to_string))),
        }
    }

    /// Adds a page. `rules` are those of each partition key, `moments` the states of each partition key meanwhile.
    pub fn take(
        &mut self,
        rules: &[Rules],
        page: &Page,
        stored: &[Stored],
        items_max: usize,
        moments: &[Vec<Moment>],
    ) -> Result<(), CheckFailure> {
        if stored.len() > items_max {
            return Err(format!("a page of {items_max} holds {} documents", stored.len()));
        }
        for stored in stored {
            let key = key_of(&stored.body).ok_or("a feed shows a partition key that nobody wrote")?;
            let id = stored.body.get("id").and_then(|id| id.as_str()).unwrap_or_default();
            let title = self.title();
            let was_there = moments[key].iter().any(|moment| {
                let version = rules[key].live(&moment.state, id);
                version.is_some_and(|version| shows(version, stored))
            });
            if !was_there {
                return Err(format!("a {title} shows {id} of key {key} as it never was meanwhile"));
            }
            let row = self.row(key, id, &stored.body);
            self.shown.insert(row.ok_or_else(|| format!("{title} shows {id} of key {key}"))?);
            self.take_in_order(key, id, stored)?;
        }
        self.continuation.clone_from(&page.continuation);
        self.ended = page.continuation.is_none();
        Ok(())
    }

    /// Checks that a row is not repeated and comes after the one before.
    fn take_in_order(&mut self, key: usize, id: &str, stored: &Stored) -> Result<(), CheckFailure> {
        let title = self.title();
        let order = self.drained().map(|query| query.order);
        let mut may_repeat = false;
        if let Some(Some((path, descends))) = order {
            let value = stored.body.get(path).cloned().unwrap_or_default();
            may_repeat = value.as_str().is_some_and(|text| text.len() > LONG_VALUE);
            let is_before = match (&self.last, descends) {
                (None, _) => false,
                (Some(last), false) => compare(&value, last).is_lt(),
                (Some(last), true) => compare(&value, last).is_gt(),
            };
            if is_before {
                return Err(format!("{title} shows {value} of {id} of key {key} after {:?}", self.last));
            }
            self.last = Some(value);
        }
        let once = match order {
            None => format!("{key} {id}"),
            Some(None) => stored.number.to_string(),
            Some(Some(_)) => stored.etag.clone(),
        };
        match self.shown_once.insert(once) || may_repeat {
            true => Ok(()),
            false => Err(format!("a {title} shows {id} of key {key} twice")),
        }
    }

    /// Called at a quiet moment: updates the documents that existed throughout, and checks a feed that has ended.
    /// Returns whether it has.
    pub fn on_quiet_moment(
        &mut self,
        rules: &[Rules],
        moments: &[Vec<Moment>],
        is_in_range: impl Fn(usize, u32) -> bool,
    ) -> Result<bool, CheckFailure> {
        let mut there = BTreeSet::new();
        for (key, moments) in moments.iter().enumerate() {
            let wanted = match self.scope {
                Scope::Container => true,
                Scope::Partition(ordinal) => is_in_range(key, ordinal),
                Scope::Key(wanted) => wanted == key,
            };
            let Some(first) = moments.first().filter(|_| wanted) else {
                continue;
            };
            for id in first.state.keys() {
                let row = |moment: &Moment| {
                    rules[key].live(&moment.state, id).and_then(|version| self.row(key, id, &version.body))
                };
                let Some(at_first) = row(first) else { continue };
                if moments.iter().all(|moment| row(moment).as_ref() == Some(&at_first)) {
                    there.insert(at_first);
                }
            }
        }
        let steady = match self.steady.take() {
            Some(steady) => &steady & &there,
            None => there,
        };
        if self.ended
            && let Some(((key, id), _)) = steady.difference(&self.shown).next()
        {
            let (title, scope) = (self.title(), self.scope);
            return Err(format!(
                "a {title} of {scope:?} ended without {id} of key {key}, which was there all along"
            ));
        }
        self.steady = Some(steady);
        Ok(self.ended)
    }
}

/// The order of values in a query.
fn compare(left: &Json, right: &Json) -> Ordering {
    let rank = |value: &Json| match value {
        Json::Null => 0,
        Json::Bool(_) => 1,
        Json::Number(_) => 2,
        Json::String(_) => 3,
        Json::Array(_) => 4,
        Json::Object(_) => 5,
    };
    match (left, right) {
        (Json::Bool(left), Json::Bool(right)) => left.cmp(right),
        (Json::Number(_), Json::Number(_)) => {
            let number = |value: &Json| value.as_f64().unwrap_or_default();
            number(left).total_cmp(&number(right))
        }
        (Json::String(left), Json::String(right)) => left.cmp(right),
        _ => rank(left).cmp(&rank(right)),
    }
}
