//! Paths: the resource and the operation of a request.
//!
//! One table for the whole API, in `table`. Only the shape of a path is checked, so an answer from here reveals nothing
//! about what exists. Whether an id is a name or a RID is decided by the catalog.

mod table;

use crate::faults::RouteFault;
use crate::wire::percent;
use crate::wire::pieces::pieces;
use http::Method;
use model::ScriptKind;
use std::borrow::Cow;
use table::{IDS_MAX, ROUTES};

/// The decoded segments of a path, without leading and trailing slashes. Many clients join an endpoint that ends with a
/// slash and a path that begins with one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Path<'a> {
    segments: Vec<Cow<'a, str>>,
}

/// Most segments of a path: permissions are the deepest.
const SEGMENTS_MAX: usize = 8;

impl<'a> Path<'a> {
    /// Splits and decodes the path of a URL. A path that cannot be decoded names no resource.
    pub(crate) fn parse(path: &'a str) -> Result<Path<'a>, RouteFault> {
        let inner = path.trim_start_matches('/');
        let inner = inner.strip_suffix('/').unwrap_or(inner);
        if inner.is_empty() {
            return Ok(Path { segments: Vec::new() });
        }
        let missing = || RouteFault::Path { path: path.to_owned() };
        let is_plain = !inner.as_bytes().contains(&b'%');
        let mut segments = Vec::with_capacity(SEGMENTS_MAX);
        for segment in pieces(inner, b'/') {
            if segments.len() == SEGMENTS_MAX {
                return Err(missing());
            }
            segments.push(match is_plain {
                true => Cow::Borrowed(segment),
                false => percent::decoded(segment).ok_or_else(missing)?,
            });
        }
        Ok(Path { segments })
    }

    pub(crate) fn segments(&self) -> &[Cow<'a, str>] {
        &self.segments
    }
}

/// A container as named by a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ContainerPath<'a> {
    pub(crate) database: &'a str,
    pub(crate) container: &'a str,
}

/// A document as named by a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DocumentPath<'a> {
    pub(crate) container: ContainerPath<'a>,
    pub(crate) document: &'a str,
}

/// A user as named by a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UserPath<'a> {
    pub(crate) database: &'a str,
    pub(crate) user: &'a str,
}

/// A permission as named by a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PermissionPath<'a> {
    pub(crate) user: UserPath<'a>,
    pub(crate) permission: &'a str,
}

/// A script as named by a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScriptPath<'a> {
    pub(crate) container: ContainerPath<'a>,
    pub(crate) kind: ScriptKind,
    pub(crate) script: &'a str,
}

/// A client encryption key as named by a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EncryptionKeyPath<'a> {
    pub(crate) database: &'a str,
    pub(crate) key: &'a str,
}

/// The operation of a request, with the names in its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation<'a> {
    ReadAccount,
    ListDatabases,
    CreateDatabase,
    ReadDatabase(&'a str),
    DeleteDatabase(&'a str),
    ListContainers(&'a str),
    CreateContainer(&'a str),
    ReadContainer(ContainerPath<'a>),
    ReplaceContainer(ContainerPath<'a>),
    DeleteContainer(ContainerPath<'a>),
    /// Plain or change feed.
    ListDocuments(ContainerPath<'a>),
    /// Create, upsert, batch or query, depending on headers.
    PostDocuments(ContainerPath<'a>),
    ReadDocument(DocumentPath<'a>),
    ReplaceDocument(DocumentPath<'a>),
    PatchDocument(DocumentPath<'a>),
    DeleteDocument(DocumentPath<'a>),
    ListAttachments(DocumentPath<'a>),
    DeletePartitionKey(ContainerPath<'a>),
    ListRanges(ContainerPath<'a>),
    ListOffers,
    QueryOffers,
    ReadOffer(&'a str),
    ReplaceOffer(&'a str),
    ListUsers(&'a str),
    CreateUser(&'a str),
    ReadUser(UserPath<'a>),
    ReplaceUser(UserPath<'a>),
    DeleteUser(UserPath<'a>),
    ListPermissions(UserPath<'a>),
    CreatePermission(UserPath<'a>),
    ReadPermission(PermissionPath<'a>),
    ReplacePermission(PermissionPath<'a>),
    DeletePermission(PermissionPath<'a>),
    ListScripts(ContainerPath<'a>, ScriptKind),
    CreateScript(ContainerPath<'a>, ScriptKind),
    ReadScript(ScriptPath<'a>),
    ReplaceScript(ScriptPath<'a>),
    DeleteScript(ScriptPath<'a>),
    ExecuteProcedure(ScriptPath<'a>),
    ListConflicts(ContainerPath<'a>),
    QueryConflicts(ContainerPath<'a>),
    ReadConflict(ContainerPath<'a>),
    DeleteConflict(ContainerPath<'a>),
    ListEncryptionKeys(&'a str),
    CreateEncryptionKey(&'a str),
    ReadEncryptionKey(EncryptionKeyPath<'a>),
    ReplaceEncryptionKey(EncryptionKeyPath<'a>),
}

/// Every verb and path of the table, with `*` for an id.
pub(crate) fn all() -> Vec<(Method, String)> {
    let routes = ROUTES.iter().flat_map(|resource| {
        let path = format!("/{}", resource.pattern.join("/"));
        resource.verbs.iter().map(move |(verb, _)| (verb.clone(), path.clone()))
    });
    routes.collect()
}

/// Finds the operation of a request in the table.
pub(crate) fn operation<'a>(verb: &Method, path: &'a Path<'_>) -> Result<Operation<'a>, RouteFault> {
    let segments = path.segments();
    for resource in &ROUTES {
        let Some(ids) = ids(resource.pattern, segments) else {
            continue;
        };
        let allowed = resource.verbs.iter().find(|(allowed, _)| allowed == verb);
        let (_, make) = allowed.ok_or_else(|| RouteFault::Verb { verb: verb.to_string() })?;
        return Ok(make(ids));
    }
    Err(unknown(segments))
}

/// The fault of a path that is not in the table.
fn unknown(segments: &[Cow<'_, str>]) -> RouteFault {
    let path = segments.join("/");
    match segments.first().map(AsRef::as_ref) {
        Some("addresses") => RouteFault::DirectMode,
        Some("offers") => RouteFault::OfferLink { path },
        Some(_) | None => RouteFault::Path { path },
    }
}

/// The ids of a path that matches `pattern`. An id is never empty.
fn ids<'a>(pattern: &[&str], segments: &'a [Cow<'_, str>]) -> Option<[&'a str; IDS_MAX]> {
    if pattern.len() != segments.len() {
        return None;
    }
    let mut ids = [""; IDS_MAX];
    let mut places = ids.iter_mut();
    for (piece, segment) in pattern.iter().zip(segments) {
        if *piece == "*" && !segment.is_empty() {
            *places.next()? = segment;
        } else if *piece != segment {
            return None;
        }
    }
    Some(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(verb: Method, path: &str, expected: Operation<'_>) {
        let path = Path::parse(path).unwrap();
        assert_eq!(operation(&verb, &path).unwrap(), expected);
    }

    const CONTAINER: ContainerPath<'_> = ContainerPath { database: "d", container: "c" };

    #[test]
    fn paths_are_found_with_any_slashes_at_their_ends() {
        check(Method::GET, "/", Operation::ReadAccount);
        check(Method::GET, "", Operation::ReadAccount);
        check(Method::POST, "/dbs", Operation::CreateDatabase);
        check(Method::POST, "/dbs/", Operation::CreateDatabase);
        check(Method::POST, "//dbs/", Operation::CreateDatabase);
        check(Method::GET, "///", Operation::ReadAccount);
        check(Method::GET, "/dbs/d/colls/c/docs/", Operation::ListDocuments(CONTAINER));
        check(Method::GET, "/dbs/d/colls/c/pkranges", Operation::ListRanges(CONTAINER));
        check(
            Method::POST,
            "/dbs/d/colls/c/operations/partitionkeydelete",
            Operation::DeletePartitionKey(CONTAINER),
        );
        check(Method::PUT, "/offers/AQAA", Operation::ReplaceOffer("AQAA"));
        let procedure = ScriptPath { container: CONTAINER, kind: ScriptKind::StoredProcedure, script: "s" };
        check(Method::POST, "/dbs/d/colls/c/sprocs/s/", Operation::ExecuteProcedure(procedure));
        let permission = PermissionPath { user: UserPath { database: "d", user: "u" }, permission: "p" };
        check(Method::PUT, "/dbs/d/users/u/permissions/p", Operation::ReplacePermission(permission));
    }

    #[test]
    fn ids_are_decoded_after_the_path_is_split() {
        let document = DocumentPath { container: CONTAINER, document: "Item 1/é%" };
        check(Method::GET, "/dbs/d/colls/%63/docs/Item%201%2F%C3%A9%25", Operation::ReadDocument(document));
    }

    #[test]
    fn other_paths_and_verbs_are_refused() {
        for path in ["/x", "/dbs//colls", "/dbs/d/", "/dbs/d/colls/c/docs/i/attachments/a", "/DBS"] {
            let parsed = Path::parse(path).unwrap();
            let found = operation(&Method::GET, &parsed);
            assert_eq!(found.is_ok(), path == "/dbs/d/", "{path}");
        }
        for path in ["/dbs/%", "/dbs/%4", "/dbs/%zz", "/dbs/%ff", "/a/b/c/d/e/f/g/h/i"] {
            assert!(Path::parse(path).is_err(), "{path}");
        }
        let refused = |path: &str| operation(&Method::GET, &Path::parse(path).unwrap()).unwrap_err();
        assert_eq!(refused("//addresses/"), RouteFault::DirectMode);
        assert_eq!(
            refused("/offers/offers/x/"),
            RouteFault::OfferLink { path: "offers/offers/x".to_owned() }
        );
        let database = Path::parse("/dbs/d").unwrap();
        let verb = "PUT".to_owned();
        assert_eq!(operation(&Method::PUT, &database), Err(RouteFault::Verb { verb }));
        // A client encryption key cannot be deleted, and only a stored procedure can be executed.
        for (verb, path) in [
            (Method::DELETE, "/dbs/d/clientencryptionkeys/k"),
            (Method::POST, "/dbs/d/colls/c/triggers/t"),
            (Method::PUT, "/dbs/d/colls/c/conflicts/x"),
        ] {
            let path = Path::parse(path).unwrap();
            assert!(matches!(operation(&verb, &path), Err(RouteFault::Verb { .. })));
        }
    }
}
