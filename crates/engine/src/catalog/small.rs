//! Operations that all small resources have in common: create or replace, replace, delete, list.

use super::change::{Change, ShelfOf};
use super::entries::{ListPage, ListRequest};
use super::shelf::Entry;
use crate::engine::Engine;
use model::{ConflictFault, Fault, MissingFault, PreconditionFault, ResourceNumber, Rid, Ticks};
use plan::Condition;
use std::sync::Arc;

/// What a create does if a resource of that name exists.
#[derive(Clone, Debug)]
pub enum Creation {
    /// It is refused as a conflict.
    OnlyNew,
    /// It is replaced, under a condition.
    OrReplace(Condition),
}

/// A resource that was written.
#[derive(Clone, Debug)]
pub struct Written<T> {
    /// The resource.
    pub resource: Arc<T>,
    /// Whether it is new.
    pub created: bool,
}

/// A resource to be written below `parent`.
pub(super) struct EntryDraft<'a, D> {
    pub(super) parent: Rid,
    pub(super) id: &'a str,
    pub(super) definition: D,
}

impl Change<'_> {
    /// Creates a resource, or replaces the existing one if that was requested.
    pub(super) fn create_or_replace<D: Clone>(
        &mut self,
        shelf: ShelfOf<D>,
        creation: &Creation,
        draft: EntryDraft<'_, D>,
        rid: impl FnOnce(ResourceNumber) -> Rid,
    ) -> Result<Written<Entry<D>>, Fault> {
        let existing = shelf(&mut self.state.shelves).find_by_name(draft.parent, draft.id).cloned();
        match (existing, creation) {
            (Some(_), Creation::OnlyNew) => Err(ConflictFault::Id.into()),
            (Some(existing), Creation::OrReplace(condition)) => {
                condition.check(existing.etag(), Ticks::from_seconds(existing.ts()), None)?;
                let resource = self.replace_entry(shelf, &existing, draft.id, draft.definition);
                Ok(Written { resource, created: false })
            }
            (
                None,
                Creation::OrReplace(Condition::IfMatch(_) | Condition::IfExists | Condition::IfWrittenAt(_)),
            ) => Err(PreconditionFault::Absent.into()),
            (None, Creation::OnlyNew | Creation::OrReplace(_)) => {
                let resource = self.add_entry(shelf, rid, draft.id, draft.definition)?;
                Ok(Written { resource, created: true })
            }
        }
    }

    /// The current entry, if the condition holds.
    pub(super) fn current_entry<D>(
        &mut self,
        shelf: ShelfOf<D>,
        entry: &Entry<D>,
        condition: &Condition,
    ) -> Result<Arc<Entry<D>>, Fault> {
        let current = shelf(&mut self.state.shelves).get(entry.number()).cloned();
        let current = current.ok_or(MissingFault::Resource)?;
        condition.check(current.etag(), Ticks::from_seconds(current.ts()), None)?;
        Ok(current)
    }

    /// Gives an entry another name or definition. A name that is in use is a conflict.
    pub(super) fn rename_or_replace<D: Clone>(
        &mut self,
        shelf: ShelfOf<D>,
        current: &Entry<D>,
        id: &str,
        definition: D,
    ) -> Result<Arc<Entry<D>>, Fault> {
        let parent = current.rid().parent().ok_or(MissingFault::Owner)?;
        let holder = shelf(&mut self.state.shelves).find_by_name(parent, id);
        if holder.is_some_and(|holder| holder.number() != current.number()) {
            return Err(ConflictFault::Id.into());
        }
        Ok(self.replace_entry(shelf, current, id, definition))
    }
}

impl Engine {
    /// Deletes an entry that has no children.
    pub(super) async fn delete_entry<D: Clone>(
        &self,
        shelf: ShelfOf<D>,
        entry: &Entry<D>,
        condition: &Condition,
    ) -> Result<(), Fault> {
        let mut change = self.catalog.begin(self).await?;
        let current = change.current_entry(shelf, entry, condition)?;
        change.drop_entry(shelf, &current);
        change.commit().await
    }

    /// A page of the children of `parent`; `what` distinguishes the continuations of different lists.
    pub(super) fn page_of_entries<D>(
        &self,
        page: &ListRequest,
        what: &str,
        parent: Rid,
        children: Vec<Arc<Entry<D>>>,
    ) -> Result<ListPage<Arc<Entry<D>>>, Fault> {
        let context = format!("{what} {parent}");
        self.page_of(page, context.as_bytes(), children, |entry| entry.number().0)
    }
}
