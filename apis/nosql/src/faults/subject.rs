//! What a request is about, in the words of the service: some clients look for them in the text of a refusal.

use crate::route::Operation;
use crate::wire::request_headers::RequestHeaders;
use crate::wire::{headers, names};
use model::ScriptKind;

/// The kind of a resource and what is done with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) resource: &'static str,
    pub(crate) operation: &'static str,
}

impl Subject {
    /// The subject of a request.
    pub(crate) fn of(operation: Operation<'_>, headers: &RequestHeaders) -> Subject {
        let (resource, operation) = words(operation, headers);
        Subject { resource, operation }
    }
}

fn words(operation: Operation<'_>, headers: &RequestHeaders) -> (&'static str, &'static str) {
    let create = || created(headers);
    match operation {
        Operation::ReadAccount => ("DatabaseAccount", "Read"),
        Operation::ListDatabases => ("Database", "ReadFeed"),
        Operation::CreateDatabase => ("Database", create()),
        Operation::ReadDatabase(_) => ("Database", "Read"),
        Operation::DeleteDatabase(_) => ("Database", "Delete"),
        Operation::ListContainers(_) => ("Collection", "ReadFeed"),
        Operation::CreateContainer(_) => ("Collection", create()),
        Operation::ReadContainer(_) => ("Collection", "Read"),
        Operation::ReplaceContainer(_) => ("Collection", "Replace"),
        Operation::DeleteContainer(_) => ("Collection", "Delete"),
        Operation::ListDocuments(_) => ("Document", "ReadFeed"),
        Operation::PostDocuments(_) => ("Document", create()),
        Operation::ReadDocument(_) => ("Document", "Read"),
        Operation::ReplaceDocument(_) => ("Document", "Replace"),
        Operation::PatchDocument(_) => ("Document", "Patch"),
        Operation::DeleteDocument(_) => ("Document", "Delete"),
        Operation::DeletePartitionKey(_) => ("PartitionKey", "Delete"),
        Operation::ListRanges(_) => ("PartitionKeyRange", "ReadFeed"),
        Operation::ListOffers => ("Offer", "ReadFeed"),
        Operation::QueryOffers => ("Offer", "Query"),
        Operation::ReadOffer(_) => ("Offer", "Read"),
        Operation::ReplaceOffer(_) => ("Offer", "Replace"),
        Operation::ListUsers(_) => ("User", "ReadFeed"),
        Operation::CreateUser(_) => ("User", create()),
        Operation::ReadUser(_) => ("User", "Read"),
        Operation::ReplaceUser(_) => ("User", "Replace"),
        Operation::DeleteUser(_) => ("User", "Delete"),
        Operation::ListPermissions(_) => ("Permission", "ReadFeed"),
        Operation::CreatePermission(_) => ("Permission", create()),
        Operation::ReadPermission(_) => ("Permission", "Read"),
        Operation::ReplacePermission(_) => ("Permission", "Replace"),
        Operation::DeletePermission(_) => ("Permission", "Delete"),
        Operation::ListScripts(_, kind) => (script(kind), "ReadFeed"),
        Operation::CreateScript(_, kind) => (script(kind), create()),
        Operation::ReadScript(path) => (script(path.kind), "Read"),
        Operation::ReplaceScript(path) => (script(path.kind), "Replace"),
        Operation::DeleteScript(path) => (script(path.kind), "Delete"),
        Operation::ExecuteProcedure(path) => (script(path.kind), "ExecuteJavaScript"),
        Operation::ListAttachments(_) => ("Attachment", "ReadFeed"),
        Operation::ListConflicts(_) => ("Conflict", "ReadFeed"),
        Operation::QueryConflicts(_) => ("Conflict", "Query"),
        Operation::ReadConflict(_) => ("Conflict", "Read"),
        Operation::DeleteConflict(_) => ("Conflict", "Delete"),
        Operation::ListEncryptionKeys(_) => ("ClientEncryptionKey", "ReadFeed"),
        Operation::CreateEncryptionKey(_) => ("ClientEncryptionKey", create()),
        Operation::ReadEncryptionKey(_) => ("ClientEncryptionKey", "Read"),
        Operation::ReplaceEncryptionKey(_) => ("ClientEncryptionKey", "Replace"),
    }
}

fn script(kind: ScriptKind) -> &'static str {
    match kind {
        ScriptKind::StoredProcedure => "StoredProcedure",
        ScriptKind::Trigger => "Trigger",
        ScriptKind::UserDefinedFunction => "UserDefinedFunction",
    }
}

/// What a POST does, by its headers.
fn created(headers: &RequestHeaders) -> &'static str {
    let is = |name| headers::flag(headers, name).unwrap_or(false);
    if is(&names::IS_QUERY_PLAN) {
        "QueryPlan"
    } else if is(&names::IS_BATCH) {
        "Batch"
    } else if headers::is_query(headers).unwrap_or(false) {
        "Query"
    } else if is(&names::IS_UPSERT) {
        "Upsert"
    } else {
        "Create"
    }
}
