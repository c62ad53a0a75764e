//! Actions and the resources that they apply to: the input of every authorisation check.

use crate::catalog::{Container, Database};
use model::{PartitionKey, ScriptKind};
use plan::{DocumentOperation, Mutation, Target, WhenAbsent};

/// An action. One name for each right that a credential can grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Read the account's own entry, as every client does first.
    ReadAccount,
    /// Read databases, containers, ranges, offers, and definitions of scripts and keys.
    ReadMetadata,
    /// Create, replace and delete what [`Action::ReadMetadata`] reads.
    ChangeMetadata,
    /// Read users. No role grants it: users are managed with an account key.
    ReadUsers,
    /// Read permissions, which contain tokens.
    ReadPermissions,
    /// Create, replace and delete users and permissions.
    ChangePermissions,
    /// Read one document.
    ReadDocument,
    /// List documents.
    ListDocuments,
    /// Query documents.
    QueryDocuments,
    /// Read the change feed.
    ReadChangeFeed,
    /// Create a document.
    CreateDocument,
    /// Create a document or replace it.
    UpsertDocument,
    /// Replace or patch a document.
    ReplaceDocument,
    /// Delete documents.
    DeleteDocument,
    /// Run a stored procedure.
    ExecuteProcedure,
    /// Read conflicts.
    ReadConflicts,
    /// Delete conflicts.
    DeleteConflicts,
}

impl Action {
    /// Whether it changes nothing.
    pub(crate) fn is_read(self) -> bool {
        match self {
            Action::ReadAccount
            | Action::ReadMetadata
            | Action::ReadUsers
            | Action::ReadPermissions
            | Action::ReadDocument
            | Action::ListDocuments
            | Action::QueryDocuments
            | Action::ReadChangeFeed
            | Action::ReadConflicts => true,
            Action::ChangeMetadata
            | Action::ChangePermissions
            | Action::CreateDocument
            | Action::UpsertDocument
            | Action::ReplaceDocument
            | Action::DeleteDocument
            | Action::ExecuteProcedure
            | Action::DeleteConflicts => false,
        }
    }

    /// The action of a step of a batch or bulk request.
    pub fn of_step(operation: &DocumentOperation) -> Action {
        match operation {
            DocumentOperation::Read { .. } => Action::ReadDocument,
            DocumentOperation::Write(mutation) => match mutation {
                Mutation::Create { .. } => Action::CreateDocument,
                Mutation::Upsert { .. } | Mutation::Merge { absent: WhenAbsent::Create, .. } => {
                    Action::UpsertDocument
                }
                Mutation::Replace { .. }
                | Mutation::Merge { absent: WhenAbsent::Refuse, .. }
                | Mutation::Patch { .. }
                | Mutation::Reschedule { .. } => Action::ReplaceDocument,
                Mutation::Delete { .. } | Mutation::Expire { .. } => Action::DeleteDocument,
            },
        }
    }

    /// The action as text, for a refusal.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Action::ReadAccount => "reading the account",
            Action::ReadMetadata => "reading databases, containers and their settings",
            Action::ChangeMetadata => "changing databases, containers and their settings",
            Action::ReadUsers => "reading users",
            Action::ReadPermissions => "reading permissions",
            Action::ChangePermissions => "changing users and permissions",
            Action::ReadDocument => "reading an item",
            Action::ListDocuments => "listing items",
            Action::QueryDocuments => "querying items",
            Action::ReadChangeFeed => "reading the change feed",
            Action::CreateDocument => "creating an item",
            Action::UpsertDocument => "upserting an item",
            Action::ReplaceDocument => "replacing an item",
            Action::DeleteDocument => "deleting an item",
            Action::ExecuteProcedure => "executing a stored procedure",
            Action::ReadConflicts => "reading conflicts",
            Action::DeleteConflicts => "deleting conflicts",
        }
    }
}

/// The resource that an action applies to, resolved: names have become entries of the catalog.
#[derive(Clone, Copy, Debug)]
pub enum Resource<'a> {
    /// The account itself: its list of databases, its offers.
    Account,
    /// A database with its users and keys.
    Database(&'a Database),
    /// A container, or a part of its data.
    Container(&'a Container, Reach<'a>),
}

/// How much of a container an action affects.
#[derive(Clone, Copy, Debug)]
pub enum Reach<'a> {
    /// The definition, or documents of any key.
    Whole,
    /// The scripts of a kind.
    Scripts(ScriptKind),
    /// One script, by its name.
    Script(ScriptKind, &'a str),
    /// Documents of one partition key.
    LogicalPartition(&'a PartitionKey),
    /// One document, by the string that distinguishes the documents of its partition key.
    Row {
        /// Its partition key.
        key: &'a PartitionKey,
        /// The string.
        row: &'a str,
    },
    /// One document.
    Document {
        /// Its partition key; `None` if only the document itself contains it.
        key: Option<&'a PartitionKey>,
        /// The document in its logical partition.
        target: &'a Target,
    },
}

/// The resource that a request refers to, by the names in its path. It may not exist.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sought<'a> {
    /// The database.
    pub database: &'a str,
    /// The container, if it is about one.
    pub container: Option<&'a str>,
}
