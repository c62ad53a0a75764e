//! The table of routes: shapes of paths and the operation of each verb.

use super::{
    ContainerPath, DocumentPath, EncryptionKeyPath, Operation, PermissionPath, ScriptPath, UserPath,
};
use http::Method;
use model::ScriptKind;

/// Most ids in a path.
pub(super) const IDS_MAX: usize = 4;

/// Creates the operation from the ids of the path, in order; absent ones are empty.
pub(super) type Make = for<'a> fn([&'a str; IDS_MAX]) -> Operation<'a>;

/// A kind of resource: the shape of its path, with `*` for an id, and its verbs.
pub(super) struct Resource {
    pub(super) pattern: &'static [&'static str],
    pub(super) verbs: &'static [(Method, Make)],
}

fn container_path<'a>([database, container, ..]: [&'a str; IDS_MAX]) -> ContainerPath<'a> {
    ContainerPath { database, container }
}

fn document_path<'a>(ids: [&'a str; IDS_MAX]) -> DocumentPath<'a> {
    DocumentPath { container: container_path(ids), document: ids[2] }
}

fn script_path<'a>(ids: [&'a str; IDS_MAX], kind: ScriptKind) -> ScriptPath<'a> {
    ScriptPath { container: container_path(ids), kind, script: ids[2] }
}

fn user_path<'a>([database, user, ..]: [&'a str; IDS_MAX]) -> UserPath<'a> {
    UserPath { database, user }
}

fn permission_path<'a>(ids: [&'a str; IDS_MAX]) -> PermissionPath<'a> {
    PermissionPath { user: user_path(ids), permission: ids[2] }
}

fn encryption_key_path<'a>([database, key, ..]: [&'a str; IDS_MAX]) -> EncryptionKeyPath<'a> {
    EncryptionKeyPath { database, key }
}

/// Every route. Documents are first, because most requests address them.
pub(super) static ROUTES: [Resource; 26] = [
    Resource {
        pattern: &["dbs", "*", "colls", "*", "docs", "*"],
        verbs: &[
            (Method::GET, |ids| Operation::ReadDocument(document_path(ids))),
            (Method::PUT, |ids| Operation::ReplaceDocument(document_path(ids))),
            (Method::PATCH, |ids| Operation::PatchDocument(document_path(ids))),
            (Method::DELETE, |ids| Operation::DeleteDocument(document_path(ids))),
        ],
    },
    Resource {
        pattern: &["dbs", "*", "colls", "*", "docs"],
        verbs: &[
            (Method::POST, |ids| Operation::PostDocuments(container_path(ids))),
            (Method::GET, |ids| Operation::ListDocuments(container_path(ids))),
        ],
    },
    Resource {
        pattern: &["dbs", "*", "colls", "*"],
        verbs: &[
            (Method::GET, |ids| Operation::ReadContainer(container_path(ids))),
            (Method::PUT, |ids| Operation::ReplaceContainer(container_path(ids))),
            (Method::DELETE, |ids| Operation::DeleteContainer(container_path(ids))),
        ],
    },
    Resource {
        pattern: &["dbs", "*", "colls", "*", "pkranges"],
        verbs: &[(Method::GET, |ids| Operation::ListRanges(container_path(ids)))],
    },
    Resource {
        pattern: &["dbs", "*", "colls", "*", "docs", "*", "attachments"],
        verbs: &[(Method::GET, |ids| Operation::ListAttachments(document_path(ids)))],
    },
    Resource {
        pattern: &["dbs", "*", "colls", "*", "operations", "partitionkeydelete"],
        verbs: &[(Method::POST, |ids| Operation::DeletePartitionKey(container_path(ids)))],
    },
    Resource {
        pattern: &["dbs", "*", "colls"],
        verbs: &[
            (Method::GET, |[database, ..]| Operation::ListContainers(database)),
            (Method::POST, |[database, ..]| Operation::CreateContainer(database)),
        ],
    },
    Resource {
        pattern: &["dbs", "*"],
        verbs: &[
            (Method::GET, |[database, ..]| Operation::ReadDatabase(database)),
            (Method::DELETE, |[database, ..]| Operation::DeleteDatabase(database)),
        ],
    },
    Resource {
        pattern: &["dbs"],
        verbs: &[(Method::GET, |_| Operation::ListDatabases), (Method::POST, |_| Operation::CreateDatabase)],
    },
    Resource { pattern: &[], verbs: &[(Method::GET, |_| Operation::ReadAccount)] },
    Resource {
        pattern: &["offers"],
        verbs: &[(Method::GET, |_| Operation::ListOffers), (Method::POST, |_| Operation::QueryOffers)],
    },
    Resource {
        pattern: &["offers", "*"],
        verbs: &[
            (Method::GET, |[offer, ..]| Operation::ReadOffer(offer)),
            (Method::PUT, |[offer, ..]| Operation::ReplaceOffer(offer)),
        ],
    },
    Resource {
        pattern: &["dbs", "*", "colls", "*", "sprocs"],
        verbs: &[
            (Method::GET, |ids| Operation::ListScripts(container_path(ids), ScriptKind::StoredProcedure)),
            (Method::POST, |ids| Operation::CreateScript(container_path(ids), ScriptKind::StoredProcedure)),
        ],
    },
    Resource {
        pattern: &["dbs", "*", "colls", "*", "sprocs", "*"],
        verbs: &[
            (Method::GET, |ids| Operation::ReadScript(script_path(ids, ScriptKind::StoredProcedure))),
            (Method::PUT, |ids| Operation::ReplaceScript(script_path(ids, ScriptKind::StoredProcedure))),
            (Method::DELETE, |ids| Operation::DeleteScript(script_path(ids, ScriptKind::StoredProcedure))),
            (Method::POST, |ids| Operation::ExecuteProcedure(script_path(ids, ScriptKind::StoredProcedure))),
        ],
    },
    Resource {
        pattern: &["dbs", "*", "colls", "*", "triggers"],
        verbs: &[
            (Method::GET, |ids| Operation::ListScripts(container_path(ids), ScriptKind::Trigger)),
            (Method::POST, |ids| Operation::CreateScript(container_path(ids), ScriptKind::Trigger)),
        ],
    },
    Resource {
        pattern: &["dbs", "*", "colls", "*", "triggers", "*"],
        verbs: &[
            (Method::GET, |ids| Operation::ReadScript(script_path(ids, ScriptKind::Trigger))),
            (Method::PUT, |ids| Operation::ReplaceScript(script_path(ids, ScriptKind::Trigger))),
            (Method::DELETE, |ids| Operation::DeleteScript(script_path(ids, ScriptKind::Trigger))),
        ],
    },
    Resource {
        pattern: &["dbs", "*", "colls", "*", "udfs"],
        verbs: &[
            (Method::GET, |ids| Operation::ListScripts(container_path(ids), ScriptKind::UserDefinedFunction)),
            (Method::POST, |ids| {
                Operation::CreateScript(container_path(ids), ScriptKind::UserDefinedFunction)
            }),
        ],
    },
    Resource {
        pattern: &["dbs", "*", "colls", "*", "udfs", "*"],
        verbs: &[
            (Method::GET, |ids| Operation::ReadScript(script_path(ids, ScriptKind::UserDefinedFunction))),
            (Method::PUT, |ids| Operation::ReplaceScript(script_path(ids, ScriptKind::UserDefinedFunction))),
            (Method::DELETE, |ids| {
                Operation::DeleteScript(script_path(ids, ScriptKind::UserDefinedFunction))
            }),
        ],
    },
    Resource {
        pattern: &["dbs", "*", "colls", "*", "conflicts"],
        verbs: &[
            (Method::GET, |ids| Operation::ListConflicts(container_path(ids))),
            (Method::POST, |ids| Operation::QueryConflicts(container_path(ids))),
        ],
    },
    Resource {
        pattern: &["dbs", "*", "colls", "*", "conflicts", "*"],
        verbs: &[
            (Method::GET, |ids| Operation::ReadConflict(container_path(ids))),
            (Method::DELETE, |ids| Operation::DeleteConflict(container_path(ids))),
        ],
    },
    Resource {
        pattern: &["dbs", "*", "users"],
        verbs: &[
            (Method::GET, |[database, ..]| Operation::ListUsers(database)),
            (Method::POST, |[database, ..]| Operation::CreateUser(database)),
        ],
    },
    Resource {
        pattern: &["dbs", "*", "users", "*"],
        verbs: &[
            (Method::GET, |ids| Operation::ReadUser(user_path(ids))),
            (Method::PUT, |ids| Operation::ReplaceUser(user_path(ids))),
            (Method::DELETE, |ids| Operation::DeleteUser(user_path(ids))),
        ],
    },
    Resource {
        pattern: &["dbs", "*", "users", "*", "permissions"],
        verbs: &[
            (Method::GET, |ids| Operation::ListPermissions(user_path(ids))),
            (Method::POST, |ids| Operation::CreatePermission(user_path(ids))),
        ],
    },
    Resource {
        pattern: &["dbs", "*", "users", "*", "permissions", "*"],
        verbs: &[
            (Method::GET, |ids| Operation::ReadPermission(permission_path(ids))),
            (Method::PUT, |ids| Operation::ReplacePermission(permission_path(ids))),
            (Method::DELETE, |ids| Operation::DeletePermission(permission_path(ids))),
        ],
    },
    Resource {
        pattern: &["dbs", "*", "clientencryptionkeys"],
        verbs: &[
            (Method::GET, |[database, ..]| Operation::ListEncryptionKeys(database)),
            (Method::POST, |[database, ..]| Operation::CreateEncryptionKey(database)),
        ],
    },
    Resource {
        pattern: &["dbs", "*", "clientencryptionkeys", "*"],
        verbs: &[
            (Method::GET, |ids| Operation::ReadEncryptionKey(encryption_key_path(ids))),
            (Method::PUT, |ids| Operation::ReplaceEncryptionKey(encryption_key_path(ids))),
        ],
    },
];
