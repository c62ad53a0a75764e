//! Passes: the proof that a caller may perform one action on one resource.
//!
//! Only [`Access`](super::Access) makes them, after the check. A pass contains what it was given for, and the engine
//! works on that: a call that takes a pass takes no additional address. Passes borrow, so they need no allocation.

use super::{Action, Delegation, KeyInterval, Principal, Reach, Resource, Rights};
use crate::catalog::{Container, Database, Entry, NamedScript, Permission};
use crate::documents::{DocumentAddress, Keyed};
use crate::feed::Scope;
use model::{AccessFault, MissingFault, PartitionKey, Priority, ReadQuorum, Rid, ScriptKind};
use plan::DocumentOperation;
use plan::query::{Expression, Query};
use std::sync::Arc;

/// A resource of the catalog for which passes are given. The type of a pass determines which calls accept it.
pub trait Guarded: sealed::Sealed {
    /// The action of reading it.
    const READ: Action;
    /// The action of changing it.
    const CHANGE: Action;

    /// The resource that is authorised.
    fn as_resource(&self) -> Resource<'_>;
}

mod sealed {
    /// Prevents other implementations.
    pub trait Sealed {}
}

/// The account itself: its databases and offers.
#[derive(Clone, Copy, Debug)]
pub struct Account;

/// The scripts of one kind in a container.
#[derive(Clone, Copy, Debug)]
pub struct Scripts<'a> {
    /// The container.
    pub container: &'a Container,
    /// The kind.
    pub kind: ScriptKind,
}

/// The users of a database.
#[derive(Clone, Copy, Debug)]
pub struct Users<'a> {
    /// The database.
    pub database: &'a Database,
}

/// The permissions of all users of a database. Reading them returns their tokens.
#[derive(Clone, Copy, Debug)]
pub struct Permissions<'a> {
    /// The database.
    pub database: &'a Database,
}

impl sealed::Sealed for Account {}
impl sealed::Sealed for &Database {}
impl sealed::Sealed for &Container {}
impl sealed::Sealed for Scripts<'_> {}
impl sealed::Sealed for NamedScript<'_> {}
impl sealed::Sealed for Users<'_> {}
impl sealed::Sealed for Permissions<'_> {}

impl Guarded for Account {
    const READ: Action = Action::ReadMetadata;
    const CHANGE: Action = Action::ChangeMetadata;

    fn as_resource(&self) -> Resource<'_> {
        Resource::Account
    }
}

impl Guarded for &Database {
    const READ: Action = Action::ReadMetadata;
    const CHANGE: Action = Action::ChangeMetadata;

    fn as_resource(&self) -> Resource<'_> {
        Resource::Database(self)
    }
}

impl Guarded for &Container {
    const READ: Action = Action::ReadMetadata;
    const CHANGE: Action = Action::ChangeMetadata;

    fn as_resource(&self) -> Resource<'_> {
        Resource::Container(self, Reach::Whole)
    }
}

impl Guarded for Scripts<'_> {
    const READ: Action = Action::ReadMetadata;
    const CHANGE: Action = Action::ChangeMetadata;

    fn as_resource(&self) -> Resource<'_> {
        Resource::Container(self.container, Reach::Scripts(self.kind))
    }
}

impl Guarded for NamedScript<'_> {
    const READ: Action = Action::ReadMetadata;
    const CHANGE: Action = Action::ChangeMetadata;

    fn as_resource(&self) -> Resource<'_> {
        Resource::Container(self.container, Reach::Script(self.kind, self.name()))
    }
}

impl Guarded for Users<'_> {
    const READ: Action = Action::ReadUsers;
    const CHANGE: Action = Action::ChangePermissions;

    fn as_resource(&self) -> Resource<'_> {
        Resource::Database(self.database)
    }
}

impl Guarded for Permissions<'_> {
    const READ: Action = Action::ReadPermissions;
    const CHANGE: Action = Action::ChangePermissions;

    fn as_resource(&self) -> Resource<'_> {
        Resource::Database(self.database)
    }
}

/// Permission to read a resource of the catalog.
#[derive(Debug)]
#[must_use = "a pass that is not used authorises nothing"]
pub struct CatalogPass<R> {
    pub(crate) resource: R,
}

/// Permission to change a resource of the catalog, once.
#[derive(Debug)]
#[must_use = "a pass that is not used authorises nothing"]
pub struct AdminPass<R> {
    pub(crate) resource: R,
}

impl<R> CatalogPass<R> {
    pub(super) fn new(resource: R) -> CatalogPass<R> {
        CatalogPass { resource }
    }
}

impl<R> AdminPass<R> {
    pub(super) fn new(resource: R) -> AdminPass<R> {
        AdminPass { resource }
    }
}

impl<R: Clone> AdminPass<R> {
    /// Permission to read the same resource: a caller who may change it may read it.
    pub fn reading(&self) -> CatalogPass<R> {
        CatalogPass { resource: self.resource.clone() }
    }
}

/// Refuses an entry that belongs to another resource than the pass: its holder sees it as missing.
pub(crate) fn check_parent<D>(entry: &Entry<D>, parent: Rid) -> Result<(), MissingFault> {
    if entry.rid().parent() == Some(parent) { Ok(()) } else { Err(MissingFault::Resource) }
}

impl CatalogPass<Permissions<'_>> {
    /// Refuses a permission of a user of another database.
    pub(crate) fn check_permission(&self, permission: &Permission) -> Result<(), MissingFault> {
        self.resource.check(permission)
    }
}

impl Permissions<'_> {
    /// Refuses a permission of a user of another database.
    pub(crate) fn check(&self, permission: &Permission) -> Result<(), MissingFault> {
        let database = permission.rid().parent().and_then(|user| user.parent());
        if database == Some(self.database.rid()) { Ok(()) } else { Err(MissingFault::Resource) }
    }
}

impl<'a> CatalogPass<Permissions<'a>> {
    /// Permission to read the users who have these permissions: a caller who may read permissions may read users.
    pub fn users(&self) -> CatalogPass<Users<'a>> {
        CatalogPass { resource: Users { database: self.resource.database } }
    }
}

/// Permission to execute a stored procedure.
#[derive(Debug)]
#[must_use = "a pass that is not used authorises nothing"]
pub struct ExecutePass<'a> {
    pub(crate) script: NamedScript<'a>,
    pub(crate) principal: &'a Principal,
}

impl<'a> ExecutePass<'a> {
    /// Permission for the operations of the procedure in one logical partition. A caller who may execute it needs no
    /// rights to the documents, but a permission for one partition key is for the procedure on that key only.
    pub fn transaction(&self, key: PartitionKey) -> Result<TransactionPass<'a>, AccessFault> {
        let (container, principal) = (self.script.container, self.principal);
        match &principal.rights {
            Rights::Permission(permission) if !permission.definition().includes(Some(&key)) => {
                Err(AccessFault::NotPermitted { needed: Action::ExecuteProcedure.describe() })
            }
            Rights::Permission(_)
            | Rights::Account
            | Rights::AccountRead
            | Rights::Roles(_)
            | Rights::Delegated(..) => {
                Ok(TransactionPass { container, key, principal, rights: TransactionRights::LogicalPartition })
            }
        }
    }
}

/// How a request is admitted and what its reads cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestClass {
    pub(crate) priority: Priority,
    pub(crate) read_quorum: ReadQuorum,
}

/// Permission to read one document.
#[derive(Debug)]
#[must_use = "a pass that is not used authorises nothing"]
pub struct DocumentPass<'a> {
    pub(crate) container: &'a Container,
    pub(crate) address: DocumentAddress,
    pub(crate) class: RequestClass,
}

/// Permission to read some documents.
#[derive(Debug)]
#[must_use = "a pass that is not used authorises nothing"]
pub struct DocumentsPass<'a> {
    pub(crate) container: &'a Container,
    pub(crate) addresses: Vec<DocumentAddress>,
    pub(crate) class: RequestClass,
}

/// Permission to list the documents of a scope.
#[derive(Debug)]
#[must_use = "a pass that is not used authorises nothing"]
pub struct FeedPass<'a> {
    pub(crate) container: &'a Container,
    pub(crate) scope: Scope,
    pub(crate) class: RequestClass,
}

/// Permission to read the changes of the documents of a scope.
#[derive(Debug)]
#[must_use = "a pass that is not used authorises nothing"]
pub struct ChangeFeedPass<'a> {
    pub(crate) container: &'a Container,
    pub(crate) principal: &'a Principal,
    pub(crate) scope: Scope,
}

/// Permission to query the documents of a scope.
#[derive(Debug)]
#[must_use = "a pass that is not used authorises nothing"]
pub struct QueryPass<'a> {
    pub(crate) container: &'a Container,
    pub(crate) principal: &'a Principal,
    pub(crate) scope: Scope,
    /// Documents outside of its interval of keys are not found.
    pub(crate) within: Option<Arc<Delegation>>,
}

impl QueryPass<'_> {
    /// The query that this pass permits: the requested one, with the filter of the interval of keys.
    pub(crate) fn permitted(&self, query: &Arc<Query>) -> Arc<Query> {
        let interval = self.within.as_ref().and_then(|delegation| delegation.keys.as_ref());
        let Some(filter) = interval.and_then(KeyInterval::filter) else { return Arc::clone(query) };
        let mut query = Query::clone(query);
        query.filter = Some(match query.filter.take() {
            Some(requested) => Expression::And(vec![filter, requested]),
            None => filter,
        });
        Arc::new(query)
    }
}

/// Permission to perform one operation on a document.
#[derive(Debug)]
#[must_use = "a pass that is not used authorises nothing"]
pub struct WritePass<'a> {
    pub(crate) keyed: Keyed<'a>,
    pub(crate) principal: &'a Principal,
}

impl<'a> WritePass<'a> {
    /// The operation, and permission for a transaction that contains it together with the operations of its triggers:
    /// a caller who may write needs no rights to the documents that they use.
    pub fn transaction(self) -> (TransactionPass<'a>, DocumentOperation) {
        let (container, key, operation) = self.keyed.into_parts();
        let rights = TransactionRights::LogicalPartition;
        (TransactionPass { container, key, principal: self.principal, rights }, operation)
    }

    /// The partition key of the document.
    pub fn key(&self) -> &PartitionKey {
        self.keyed.key()
    }
}

/// Permission to perform operations on the documents of one partition key.
#[derive(Debug)]
#[must_use = "a pass that is not used authorises nothing"]
pub struct BatchPass<'a> {
    pub(crate) container: &'a Container,
    pub(crate) key: PartitionKey,
    pub(crate) operations: Vec<DocumentOperation>,
    pub(crate) priority: Priority,
}

/// Permission for a transaction in one logical partition.
#[derive(Clone, Debug)]
#[must_use = "a pass that is not used authorises nothing"]
pub struct TransactionPass<'a> {
    pub(crate) container: &'a Container,
    pub(crate) key: PartitionKey,
    pub(crate) principal: &'a Principal,
    pub(crate) rights: TransactionRights,
}

/// What the operations of a transaction may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransactionRights {
    /// Everything in the logical partition.
    LogicalPartition,
    /// What the caller may do: each operation is authorised.
    Caller,
}

/// Permission to delete all documents of one partition key.
#[derive(Debug)]
#[must_use = "a pass that is not used authorises nothing"]
pub struct LogicalPartitionPass<'a> {
    pub(crate) container: &'a Container,
    pub(crate) key: PartitionKey,
    pub(crate) priority: Priority,
}
