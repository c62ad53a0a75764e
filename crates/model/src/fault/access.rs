//! Callers who are not known or not allowed.

use std::fmt;
use thiserror::Error;

/// The caller is not known or not allowed.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum AccessFault {
    /// Not a resource token of this account, or one from before its keys were changed.
    #[error("the resource token is not valid")]
    TokenInvalid,
    /// The resource token has had its time.
    #[error(
        "the resource token has expired {seconds_ago} seconds ago: read its permission again for a new one"
    )]
    TokenExpired {
        /// How long it has been over.
        seconds_ago: u64,
    },
    /// The permission that the resource token was made from is no longer what it was.
    #[error("the resource token has ended: its permission was replaced or deleted")]
    TokenEnded,
    /// The token of an identity provider is not taken.
    #[error("the bearer token cannot be accepted: {0}")]
    Bearer(#[from] BearerFault),
    /// No role that the caller has allows this.
    #[error("no role of \"{principal}\" allows the action \"{action}\" on {scope}")]
    RoleMissing {
        /// Who asked.
        principal: String,
        /// The right that is missing.
        action: &'static str,
        /// Where it is missing. Boxed: faults are moved about, and this one is rare.
        scope: Box<ScopeName>,
        /// Whether it is about databases and containers rather than their data.
        is_metadata: bool,
    },
    /// No role can ever allow this: it needs a key.
    #[error("no role can allow {needed}: it needs an account key")]
    RoleImpossible {
        /// What was asked for.
        needed: &'static str,
    },
    /// The credential is good, but not for this.
    #[error("the given credential does not permit this operation: {needed}")]
    NotPermitted {
        /// What would be needed.
        needed: &'static str,
    },
}

/// A part of the account, by the names that the request gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScopeName {
    /// All of it.
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

/// What is wrong with the token of an identity provider. Never repeats the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BearerFault {
    /// The account takes none.
    #[error("no identity provider is configured")]
    Disabled,
    /// It is no signed token, or lacks what every one must say.
    #[error("it is not a signed token with the claims iss, aud, exp and nbf")]
    Malformed,
    /// It is signed in a way that is not allowed.
    #[error("its signature algorithm is not allowed")]
    Algorithm,
    /// It names no key of the issuer.
    #[error("it is signed with a key that is not known")]
    UnknownKey,
    /// Its signature is another's.
    #[error("its signature is wrong")]
    Signature,
    /// It is too old.
    #[error("it has expired {seconds_ago} seconds ago")]
    Expired {
        /// How long it has been over.
        seconds_ago: u64,
    },
    /// It is too young.
    #[error("it becomes valid in {seconds_ahead} seconds")]
    NotYetValid {
        /// How long until it begins.
        seconds_ahead: u64,
    },
    /// Another party issued it.
    #[error("its issuer is not the configured one")]
    Issuer,
    /// It is meant for another service.
    #[error("its audience is not a configured one")]
    Audience,
    /// It does not say whom it stands for.
    #[error("it has neither an object id nor a subject")]
    Nobody,
}
