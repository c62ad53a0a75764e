//! What the operations on one script share: finding it, and asking for access before saying whether it is there.

use super::Call;
use crate::faults::Refusal;
use crate::route::ScriptPath;
use engine::{Action, Container, Place, Reach, Script};
use model::{Fault, ScriptKind};
use std::sync::Arc;

/// A script that a request names, there or not.
pub(super) struct NamedScript {
    pub(super) container: Arc<Container>,
    pub(super) kind: ScriptKind,
    name: String,
    found: Result<Arc<Script>, Fault>,
}

impl NamedScript {
    /// Looks for the script that `path` names, to do `action` with it.
    pub(super) fn of(call: &Call<'_>, path: &ScriptPath<'_>, action: Action) -> Result<NamedScript, Refusal> {
        let container = call.owner(path.container, action)?.resource;
        let found = call.engine.find_script(&container, path.kind, path.script).map(|found| found.resource);
        let name = found.as_ref().map_or(path.script, |script| script.id()).to_owned();
        Ok(NamedScript { container, kind: path.kind, name, found })
    }

    /// Where a deed on it is done.
    pub(super) fn place(&self) -> Place<'_> {
        Place::Container(&self.container, Reach::Script(self.kind, &self.name))
    }

    /// The script itself; to be asked for after access to its place.
    pub(super) fn script(&self) -> Result<Arc<Script>, Fault> {
        self.found.clone()
    }
}
