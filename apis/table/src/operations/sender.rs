//! Authorisation to send a body, checked before the server waits for a body that has not arrived yet.
//!
//! Only the address is checked here; the operation itself checks again with all information.

use super::Call;
use super::entity::condition;
use crate::faults::TableFault;
use crate::route::Operation;
use engine::Action;

/// Actions of which a sender of a batch needs one: its parts determine which.
const BATCH_ACTIONS: [Action; 6] = [
    Action::CreateDocument,
    Action::ReplaceDocument,
    Action::UpsertDocument,
    Action::DeleteDocument,
    Action::ReadDocument,
    Action::QueryDocuments,
];

/// Refuses a caller that may not send a body to this address at all.
pub(crate) fn check_sender(call: &Call<'_>, operation: &Operation) -> Result<(), TableFault> {
    let access = call.engine.access();
    let of_table = |name: &str, action: Action| {
        let table = call.table(name, action)?;
        Ok(access.check_action(&call.principal, action, Some(&*table))?)
    };
    match operation {
        Operation::InsertEntity(table) => of_table(table, Action::CreateDocument),
        Operation::PutEntity(path) | Operation::MergeEntity(path) => {
            let is_update = condition(call)?.is_some();
            of_table(&path.table, if is_update { Action::ReplaceDocument } else { Action::UpsertDocument })
        }
        Operation::DeleteEntity(path) => of_table(&path.table, Action::DeleteDocument),
        Operation::ReadEntity(path) => of_table(&path.table, Action::ReadDocument),
        Operation::QueryEntities(table) => of_table(table, Action::QueryDocuments),
        Operation::ReplaceTableAcl(table) => {
            call.require_storage("stored access policies")?;
            of_table(table, Action::ChangeMetadata)
        }
        Operation::ReplaceServiceProperties => {
            call.require_storage("changes of service properties")?;
            Ok(access.check_action(&call.principal, Action::ChangeMetadata, None)?)
        }
        Operation::CreateTable => Ok(access.check_action(&call.principal, Action::ChangeMetadata, None)?),
        Operation::Batch => {
            let mut checks =
                BATCH_ACTIONS.map(|action| access.check_action(&call.principal, action, None)).into_iter();
            let first = checks.next().unwrap_or(Ok(()));
            Ok(if checks.any(|check| check.is_ok()) { Ok(()) } else { first }?)
        }
        // Bodies are not used.
        Operation::ReadServiceProperties
        | Operation::ReadStatistics
        | Operation::ListTables
        | Operation::ReadTable(_)
        | Operation::DeleteTable(_)
        | Operation::ReadTableAcl(_) => Ok(()),
    }
}
