//! Links of resources by RID and by name, as in answers.

use super::percent;
use engine::{Container, Database, User};
use http::HeaderValue;
use model::{Rid, ScriptKind};

/// The links of a container. Every answer about its documents contains them, so they are built once.
#[derive(Debug)]
pub(crate) struct ContainerLinks {
    pub(crate) rid: HeaderValue,
    /// `dbs/…/colls/…/` by RIDs.
    pub(crate) rid_path: String,
    /// `dbs/…/colls/…` by names. Names can be any text, the path is ASCII: other characters are percent-encoded.
    pub(crate) name_path: HeaderValue,
}

impl ContainerLinks {
    pub(crate) fn of(container: &Container) -> &ContainerLinks {
        container.derived().get_or_make(|| {
            let name_path = container_names(container);
            ContainerLinks {
                rid: header_value(container.rid().to_string()),
                rid_path: container_path(container.database().rid(), container.rid()),
                name_path: header_value(percent::encoded(&name_path).into_owned()),
            }
        })
    }
}

/// The path of a database by names.
pub(crate) fn database_names(database: &Database) -> String {
    format!("dbs/{}", database.id())
}

/// The path of a user by names.
pub(crate) fn user_names(database: &Database, user: &User) -> String {
    format!("dbs/{}/users/{}", database.id(), user.id())
}

/// The path of a container by names.
pub(crate) fn container_names(container: &Container) -> String {
    format!("dbs/{}/colls/{}", container.database().id(), container.id())
}

/// A header value that is validated once, not in every answer. Links are ASCII, so it is never empty.
fn header_value(text: String) -> HeaderValue {
    HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

fn container_path(database: Rid, container: Rid) -> String {
    format!("dbs/{database}/colls/{container}/")
}

/// The link of the document with this RID, as in its `_self`.
pub fn document_link(rid: Rid) -> String {
    match rid {
        Rid::Document(database, container, _) => {
            let owner = container_path(Rid::Database(database), Rid::Container(database, container));
            format!("{owner}docs/{rid}/")
        }
        Rid::Database(_)
        | Rid::Container(..)
        | Rid::Range(..)
        | Rid::DatabaseChild(..)
        | Rid::Permission(..)
        | Rid::Script(..)
        | Rid::Offer(_) => rid.to_string(),
    }
}

/// The path segment for scripts of a kind.
pub(crate) fn script_segment(kind: ScriptKind) -> &'static str {
    match kind {
        ScriptKind::StoredProcedure => "sprocs",
        ScriptKind::Trigger => "triggers",
        ScriptKind::UserDefinedFunction => "udfs",
    }
}

/// The link of the database or container of an offer, as in its `_self`.
pub(crate) fn offer_owner(owner: Rid) -> String {
    match owner {
        Rid::Container(database, _) => container_path(Rid::Database(database), owner),
        Rid::Database(_)
        | Rid::Document(..)
        | Rid::Range(..)
        | Rid::DatabaseChild(..)
        | Rid::Permission(..)
        | Rid::Script(..)
        | Rid::Offer(_) => format!("dbs/{owner}/"),
    }
}
