//! Authorisation to send a body, checked before the server waits for a body that has not arrived yet.
//!
//! Only the address is checked here; the operation itself checks again with all information.

use super::Call;
use crate::faults::Refusal;
use crate::route::{ContainerPath, Operation};
use crate::wire::{headers, names};
use engine::Action;

/// Refuses a caller that may not send a body to this address at all.
pub(crate) fn check_sender(call: &Call<'_>, operation: Operation<'_>) -> Result<(), Refusal> {
    let Some((container, action)) = needed(call, operation) else {
        return Ok(());
    };
    let container = container.map(|path| call.owner(path, action)).transpose()?;
    let container = container.as_ref().map(|found| &*found.resource);
    Ok(call.engine.access().check_action(&call.principal, action, container)?)
}

/// The container of a body and the action that it needs; `None` if bodies are not used.
fn needed<'a>(call: &Call<'_>, operation: Operation<'a>) -> Option<(Option<ContainerPath<'a>>, Action)> {
    // Invalid headers are reported by the operation.
    let is_query = headers::is_query(call.headers()).unwrap_or(false);
    let resources = |read: Action, change: Action| Some((None, if is_query { read } else { change }));
    match operation {
        Operation::PostDocuments(path) => posted(call, is_query).map(|action| (Some(path), action)),
        Operation::ReplaceDocument(path) | Operation::PatchDocument(path) => {
            Some((Some(path.container), Action::ReplaceDocument))
        }
        Operation::CreateDatabase
        | Operation::CreateContainer(_)
        | Operation::ReplaceContainer(_)
        | Operation::ReplaceOffer(_)
        | Operation::CreateScript(..)
        | Operation::ReplaceScript(_)
        | Operation::CreateEncryptionKey(_)
        | Operation::ReplaceEncryptionKey(_) => resources(Action::ReadMetadata, Action::ChangeMetadata),
        Operation::CreateUser(_) | Operation::ReplaceUser(_) => {
            resources(Action::ReadUsers, Action::ChangePermissions)
        }
        Operation::CreatePermission(_) | Operation::ReplacePermission(_) => {
            resources(Action::ReadPermissions, Action::ChangePermissions)
        }
        Operation::QueryOffers => Some((None, Action::ReadMetadata)),
        Operation::QueryConflicts(path) => Some((Some(path), Action::ReadConflicts)),
        Operation::ExecuteProcedure(_) => Some((None, Action::ExecuteProcedure)),
        Operation::ReadAccount
        | Operation::ListDatabases
        | Operation::ReadDatabase(_)
        | Operation::DeleteDatabase(_)
        | Operation::ListContainers(_)
        | Operation::ReadContainer(_)
        | Operation::DeleteContainer(_)
        | Operation::ListDocuments(_)
        | Operation::ReadDocument(_)
        | Operation::DeleteDocument(_)
        | Operation::ListAttachments(_)
        | Operation::DeletePartitionKey(_)
        | Operation::ListRanges(_)
        | Operation::ListOffers
        | Operation::ReadOffer(_)
        | Operation::ListUsers(_)
        | Operation::ReadUser(_)
        | Operation::DeleteUser(_)
        | Operation::ListPermissions(_)
        | Operation::ReadPermission(_)
        | Operation::DeletePermission(_)
        | Operation::ListScripts(..)
        | Operation::ReadScript(_)
        | Operation::DeleteScript(_)
        | Operation::ListConflicts(_)
        | Operation::ReadConflict(_)
        | Operation::DeleteConflict(_)
        | Operation::ListEncryptionKeys(_)
        | Operation::ReadEncryptionKey(_) => None,
    }
}

/// The action needed for a body posted to the items of a container; `None` for a batch, whose steps determine it.
fn posted(call: &Call<'_>, is_query: bool) -> Option<Action> {
    let is = |name| headers::flag(call.headers(), name).unwrap_or(false);
    if is_query || is(&names::IS_QUERY_PLAN) {
        return Some(Action::QueryDocuments);
    }
    if is(&names::IS_BATCH) {
        return None;
    }
    Some(if is(&names::IS_UPSERT) { Action::UpsertDocument } else { Action::CreateDocument })
}
