//! Definitions of the scripts of a container. They are executed in [`scripts`](crate::scripts).

use super::change::script_shelf;
use super::entries::{Container, ListPage, ListRequest};
use super::shelf::Entry;
use super::small::{Creation, EntryDraft, Written};
use crate::authorisation::{AdminPass, CatalogPass, ExecutePass, Scripts};
use crate::engine::Engine;
use model::{Fault, LimitFault, MissingFault, RequestFault, Rid, ScriptDefinition, ScriptKind};
use plan::Condition;
use std::sync::Arc;

/// A stored procedure, trigger or user-defined function.
pub type Script = Entry<ScriptDefinition>;

/// A script that a request refers to, whether it exists or not. That is not revealed until access to it was granted.
#[derive(Clone, Debug)]
pub struct NamedScript<'a> {
    pub(crate) container: &'a Container,
    pub(crate) kind: ScriptKind,
    segment: &'a str,
    found: Option<Arc<Script>>,
}

impl NamedScript<'_> {
    /// The name for which access is requested: that of the script, however the request addresses it.
    pub(crate) fn name(&self) -> &str {
        self.found.as_ref().map_or(self.segment, |script| script.id())
    }
}

impl Engine {
    /// The script that `segment` addresses by name, or else by RID.
    pub fn named_script<'a>(
        &self,
        container: &'a Container,
        kind: ScriptKind,
        segment: &'a str,
    ) -> NamedScript<'a> {
        let found = self.catalog.state().shelves.scripts(kind).find(container.rid(), segment);
        NamedScript { container, kind, segment, found: found.map(|found| found.resource) }
    }

    /// The script that the pass is for.
    pub fn find_script(&self, pass: &CatalogPass<NamedScript<'_>>) -> Result<Arc<Script>, Fault> {
        pass.resource.found.clone().ok_or_else(|| MissingFault::Resource.into())
    }

    /// The procedure that the pass is for.
    pub fn find_procedure(&self, pass: &ExecutePass<'_>) -> Result<Arc<Script>, Fault> {
        pass.script.found.clone().ok_or_else(|| MissingFault::Resource.into())
    }

    /// The current definition of a script, by name.
    pub(crate) fn script_named(
        &self,
        container: &Container,
        kind: ScriptKind,
        name: &str,
    ) -> Option<Arc<Script>> {
        self.catalog.state().shelves.scripts(kind).find_by_name(container.rid(), name).cloned()
    }

    /// Creates a script.
    pub async fn create_script(
        &self,
        pass: AdminPass<Scripts<'_>>,
        definition: ScriptDefinition,
        creation: &Creation,
    ) -> Result<Written<Script>, Fault> {
        let Scripts { container, kind } = pass.resource;
        let mut change = self.catalog.begin(self).await?;
        change.state.container(container.number()).ok_or(MissingFault::Owner)?;
        let parent = container.rid();
        let id = definition.id().to_owned();
        let wanted = EntryDraft { parent, id: &id, definition };
        let (database, number) = (container.database().number(), container.number());
        let rid = |script| Rid::Script(database, number, kind, script);
        let written = change.create_or_replace(script_shelf(kind), creation, wanted, rid)?;
        let limit = kind.count_max();
        if change.state.shelves.scripts(kind).count(parent) > limit {
            return Err(LimitFault::TooManyResources { what: kind.plural(), limit }.into());
        }
        change.commit().await?;
        Ok(written)
    }

    /// Replaces a script; its name stays.
    pub async fn replace_script(
        &self,
        pass: AdminPass<NamedScript<'_>>,
        definition: ScriptDefinition,
        condition: &Condition,
    ) -> Result<Arc<Script>, Fault> {
        let NamedScript { kind, found, .. } = pass.resource;
        let script = found.ok_or(MissingFault::Resource)?;
        let mut change = self.catalog.begin(self).await?;
        let current = change.current_entry(script_shelf(kind), &script, condition)?;
        if definition.id() != current.id() {
            return Err(RequestFault::ImmutableProperty { property: "id".to_owned() }.into());
        }
        let replaced = change.replace_entry(script_shelf(kind), &current, current.id(), definition);
        change.commit().await?;
        Ok(replaced)
    }

    /// Deletes a script.
    pub async fn delete_script(
        &self,
        pass: AdminPass<NamedScript<'_>>,
        condition: &Condition,
    ) -> Result<(), Fault> {
        let NamedScript { kind, found, .. } = pass.resource;
        let script = found.ok_or(MissingFault::Resource)?;
        self.delete_entry(script_shelf(kind), &script, condition).await
    }

    /// The scripts of a kind in order of creation.
    pub fn list_scripts(
        &self,
        pass: &CatalogPass<Scripts<'_>>,
        page: &ListRequest,
    ) -> Result<ListPage<Arc<Script>>, Fault> {
        let Scripts { container, kind } = pass.resource;
        let scripts = self.catalog.state().shelves.scripts(kind).children(container.rid());
        self.page_of_entries(page, list_name(kind), container.rid(), scripts)
    }
}

/// The name of the list of a kind, to which its continuations are bound.
fn list_name(kind: ScriptKind) -> &'static str {
    match kind {
        ScriptKind::StoredProcedure => "stored procedures",
        ScriptKind::Trigger => "triggers",
        ScriptKind::UserDefinedFunction => "user-defined functions",
    }
}
