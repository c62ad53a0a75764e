//! Checks of a finished feed: it has shown every document that existed throughout, and none twice.

use crate::clients::OpenFeed;
use crate::history::{Moment, Stored, shows};
use crate::naive::Rules;
use crate::scenario::Scope;
use crate::world::{CheckFailure, key_of};
use engine::FeedPage;
use std::collections::BTreeSet;

/// A document by index of its partition key and id.
type Name = (usize, String);

/// A feed that is being read.
#[derive(Clone, Debug)]
pub struct Feed {
    /// Documents of the feed.
    pub scope: Scope,
    /// The container it was opened on.
    pub container: u32,
    /// Continuation; `None` before the first page and after the last.
    pub continuation: Option<String>,
    shown: BTreeSet<Name>,
    /// Documents that existed at every moment since the feed was opened; `None` until the first quiet moment.
    steady: Option<BTreeSet<Name>>,
    ended: bool,
}

impl Feed {
    /// A feed before its first page.
    pub fn new(scope: Scope, container: u32) -> Feed {
        Feed { scope, container, continuation: None, shown: BTreeSet::new(), steady: None, ended: false }
    }

    /// The state that a client needs to continue.
    pub fn open(&self) -> Option<OpenFeed> {
        self.continuation.clone().map(|continuation| OpenFeed { scope: self.scope, continuation })
    }

    /// Adds a page. `rules` are those of each partition key, `moments` the states of each partition key meanwhile.
    pub fn take(
        &mut self,
        rules: &[Rules],
        page: &FeedPage,
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
            let was_there = moments[key].iter().any(|moment| {
                let version = rules[key].live(&moment.state, id);
                version.is_some_and(|version| shows(version, stored))
            });
            if !was_there {
                return Err(format!("a feed shows {id} of key {key} as it never was meanwhile"));
            }
            if !self.shown.insert((key, id.to_owned())) {
                return Err(format!("a feed shows {id} of key {key} twice"));
            }
        }
        self.continuation = page.continuation.clone().map(|next| next.text);
        self.ended = page.continuation.is_none();
        Ok(())
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
                let all_along = moments.iter().all(|moment| rules[key].live(&moment.state, id).is_some());
                if all_along {
                    there.insert((key, id.clone()));
                }
            }
        }
        let steady = match self.steady.take() {
            Some(steady) => &steady & &there,
            None => there,
        };
        if self.ended
            && let Some((key, id)) = steady.difference(&self.shown).next()
        {
            return Err(format!(
                "a feed of {:?} ended without {id} of key {key}, which was there all along",
                self.scope
            ));
        }
        self.steady = Some(steady);
        Ok(self.ended)
    }
}
