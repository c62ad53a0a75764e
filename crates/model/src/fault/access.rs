//! Faults of callers that are not authenticated or not permitted.

use std::fmt;
use thiserror::Error;

/// The caller is not authenticated or not permitted.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum AccessFault {
    /// Not a resource token of this account, or one issued before its keys were changed.
    #[error("the resource token is not valid")]
    TokenInvalid,
    /// The resource token has expired.
    #[error(
        "the resource token has expired {seconds_ago} seconds ago: read its permission again for a new one"
    )]
    TokenExpired {
        /// Time since it expired.
        seconds_ago: u64,
    },
    /// The permission of the resource token was replaced or deleted: the token is revoked.
    #[error("the resource token has ended: its permission was replaced or deleted")]
    TokenEnded,
    /// The token of an identity provider is not accepted.
    #[error("the bearer token cannot be accepted: {0}")]
    Bearer(#[from] BearerFault),
    /// No role of the caller allows this.
    #[error("no role of \"{principal}\" allows to {action} on {scope}")]
    RoleMissing {
        /// The caller.
        principal: String,
        /// The missing action.
        action: DataAction,
        /// The scope where it is missing. Boxed, because faults are moved often and this one is rare.
        scope: Box<ScopeName>,
    },
    /// No role can allow this: it needs an account key.
    #[error("no role can allow {needed}: it needs an account key")]
    RoleImpossible {
        /// The requested operation.
        needed: &'static str,
    },
    /// The credential is valid, but does not permit this operation.
    #[error("the given credential does not permit this operation: {needed}")]
    NotPermitted {
        /// The operation.
        needed: &'static str,
    },
}

/// What roles allow, one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataAction {
    /// Read the account, databases, containers and their parts, but no documents.
    ReadMetadata,
    /// Read one document.
    ReadDocument,
    /// Create a document.
    CreateDocument,
    /// Create a document or replace it.
    UpsertDocument,
    /// Replace or patch a document.
    ReplaceDocument,
    /// Delete a document.
    DeleteDocument,
    /// Query or list documents.
    Query,
    /// Read the change feed.
    ReadChangeFeed,
    /// Execute a stored procedure.
    ExecuteProcedure,
    /// Read and delete conflicts.
    ManageConflicts,
}

impl DataAction {
    /// Every data action.
    pub const ALL: [DataAction; 10] = [
        DataAction::ReadMetadata,
        DataAction::ReadDocument,
        DataAction::CreateDocument,
        DataAction::UpsertDocument,
        DataAction::ReplaceDocument,
        DataAction::DeleteDocument,
        DataAction::Query,
        DataAction::ReadChangeFeed,
        DataAction::ExecuteProcedure,
        DataAction::ManageConflicts,
    ];
}

impl fmt::Display for DataAction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            DataAction::ReadMetadata => "read metadata",
            DataAction::ReadDocument => "read documents",
            DataAction::CreateDocument => "create documents",
            DataAction::UpsertDocument => "upsert documents",
            DataAction::ReplaceDocument => "replace documents",
            DataAction::DeleteDocument => "delete documents",
            DataAction::Query => "query documents",
            DataAction::ReadChangeFeed => "read the change feed",
            DataAction::ExecuteProcedure => "execute stored procedures",
            DataAction::ManageConflicts => "manage conflicts",
        })
    }
}

/// A part of the account, by the names in the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScopeName {
    /// The whole account.
    Account,
    /// A database.
    Database(String),
    /// A container.
    Container {
        /// Its database.
        database: String,
        /// The container.
        container: String,
    },
}

impl fmt::Display for ScopeName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScopeName::Account => formatter.write_str("the account"),
            ScopeName::Database(database) => write!(formatter, "the database \"{database}\""),
            ScopeName::Container { database, container } => {
                write!(formatter, "the container \"{container}\" of the database \"{database}\"")
            }
        }
    }
}

/// Why the token of an identity provider is rejected. Never contains the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BearerFault {
    /// The account accepts none.
    #[error("no identity provider is configured")]
    Disabled,
    /// It is not a signed token, or lacks a required claim.
    #[error("it is not a signed token with the claims iss, aud, exp and nbf")]
    Malformed,
    /// Its signature algorithm is not allowed.
    #[error("its signature algorithm is not allowed")]
    Algorithm,
    /// It names no known key of the issuer.
    #[error("it is signed with a key that is not known")]
    UnknownKey,
    /// The signature does not verify.
    #[error("its signature is wrong")]
    Signature,
    /// It has expired.
    #[error("it has expired {seconds_ago} seconds ago")]
    Expired {
        /// Time since it expired.
        seconds_ago: u64,
    },
    /// It is not valid yet.
    #[error("it becomes valid in {seconds_ahead} seconds")]
    NotYetValid {
        /// Time until it becomes valid.
        seconds_ahead: u64,
    },
    /// Another party issued it.
    #[error("its issuer is not the configured one")]
    Issuer,
    /// It was issued for another service.
    #[error("its audience is not a configured one")]
    Audience,
    /// It names no principal.
    #[error("it has neither an object id nor a subject")]
    Nobody,
}
