//! Paths: which resource a request names and what its verb does there.
//!
//! One table for the whole door. A path is judged by its shape alone, so an answer from here says nothing about what
//! exists. Whether an id is a name or a RID is the catalog's question.

use http::Method;
use model::MissingFault;
use std::borrow::Cow;

/// The decoded segments of a path, without the slash at its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Path<'a> {
    segments: Vec<Cow<'a, str>>,
}

/// Most segments of any path: permissions are the deepest.
const SEGMENTS_MAX: usize = 8;

impl<'a> Path<'a> {
    /// Splits and decodes the path of a URL. What cannot be decoded names no resource.
    pub(crate) fn parse(path: &'a str) -> Result<Path<'a>, MissingFault> {
        let inner = path.strip_prefix('/').unwrap_or(path);
        let inner = inner.strip_suffix('/').unwrap_or(inner);
        if inner.is_empty() {
            return Ok(Path { segments: Vec::new() });
        }
        let missing = || MissingFault::Route { path: path.to_owned() };
        let mut segments = Vec::with_capacity(SEGMENTS_MAX);
        for segment in inner.split('/') {
            if segments.len() == SEGMENTS_MAX {
                return Err(missing());
            }
            segments.push(percent_decoded(segment).ok_or_else(missing)?);
        }
        Ok(Path { segments })
    }

    /// The segments.
    pub(crate) fn segments(&self) -> &[Cow<'a, str>] {
        &self.segments
    }
}

/// Undoes percent-encoding; `None` for a broken escape or bytes that are no UTF-8.
pub(crate) fn percent_decoded(text: &str) -> Option<Cow<'_, str>> {
    if !text.as_bytes().contains(&b'%') {
        return Some(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, others @ ..] = rest {
        rest = others;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let [high, low, others @ ..] = rest else {
            return None;
        };
        bytes.push(hex_value(*high)? << 4 | hex_value(*low)?);
        rest = others;
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

fn hex_value(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

/// A container as a path names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ContainerPath<'a> {
    pub(crate) database: &'a str,
    pub(crate) container: &'a str,
}

/// A document as a path names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DocumentPath<'a> {
    pub(crate) container: ContainerPath<'a>,
    pub(crate) document: &'a str,
}

/// What a request asks for, with the names in its path.
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
    /// Create, upsert, batch, query: headers tell.
    PostDocuments(ContainerPath<'a>),
    ReadDocument(DocumentPath<'a>),
    ReplaceDocument(DocumentPath<'a>),
    PatchDocument(DocumentPath<'a>),
    DeleteDocument(DocumentPath<'a>),
    DeletePartitionKey(ContainerPath<'a>),
    ListRanges(ContainerPath<'a>),
    ListOffers,
    QueryOffers,
    ReadOffer(&'a str),
    ReplaceOffer(&'a str),
    /// Part of the protocol that is not built; the text names it.
    NotBuilt(&'static str),
}

/// Most ids in a path.
const IDS_MAX: usize = 4;

/// Makes the operation from the ids of the path, in order; absent ones are empty.
type Make = for<'a> fn([&'a str; IDS_MAX]) -> Operation<'a>;

/// A kind of resource: the shape of its path, with `*` for an id, and its verbs.
struct Resource {
    pattern: &'static [&'static str],
    verbs: &'static [(Method, Make)],
}

fn container_path<'a>([database, container, ..]: [&'a str; IDS_MAX]) -> ContainerPath<'a> {
    ContainerPath { database, container }
}

fn document_path<'a>(ids: [&'a str; IDS_MAX]) -> DocumentPath<'a> {
    DocumentPath { container: container_path(ids), document: ids[2] }
}

/// Every route that is built. Documents stand first: they are what most requests are about.
static ROUTES: [Resource; 11] = [
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
];

/// Resources of the protocol that are not built, for whatever verb.
static NOT_BUILT: [(&[&str], &str); 14] = [
    (&["dbs", "*", "colls", "*", "sprocs"], "stored procedures"),
    (&["dbs", "*", "colls", "*", "sprocs", "*"], "stored procedures"),
    (&["dbs", "*", "colls", "*", "triggers"], "triggers"),
    (&["dbs", "*", "colls", "*", "triggers", "*"], "triggers"),
    (&["dbs", "*", "colls", "*", "udfs"], "user-defined functions"),
    (&["dbs", "*", "colls", "*", "udfs", "*"], "user-defined functions"),
    (&["dbs", "*", "colls", "*", "conflicts"], "the conflicts feed"),
    (&["dbs", "*", "colls", "*", "conflicts", "*"], "the conflicts feed"),
    (&["dbs", "*", "users"], "users"),
    (&["dbs", "*", "users", "*"], "users"),
    (&["dbs", "*", "users", "*", "permissions"], "permissions"),
    (&["dbs", "*", "users", "*", "permissions", "*"], "permissions"),
    (&["dbs", "*", "clientencryptionkeys"], "client encryption keys"),
    (&["dbs", "*", "clientencryptionkeys", "*"], "client encryption keys"),
];

/// Every verb and path of the table, with `*` for an id. What is not built counts with all verbs that clients use.
pub(crate) fn all() -> Vec<(Method, String)> {
    let path = |pattern: &[&str]| format!("/{}", pattern.join("/"));
    let built = ROUTES.iter().flat_map(|resource| {
        resource.verbs.iter().map(move |(verb, _)| (verb.clone(), path(resource.pattern)))
    });
    let verbs = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
    let not_built =
        NOT_BUILT.iter().flat_map(|(pattern, _)| verbs.iter().map(move |verb| (verb.clone(), path(pattern))));
    built.chain(not_built).collect()
}

/// Looks a request up in the table.
pub(crate) fn operation<'a>(verb: &Method, path: &'a Path<'_>) -> Result<Operation<'a>, MissingFault> {
    let segments = path.segments();
    for resource in &ROUTES {
        let Some(ids) = ids(resource.pattern, segments) else {
            continue;
        };
        let allowed = resource.verbs.iter().find(|(allowed, _)| allowed == verb);
        let (_, make) = allowed.ok_or_else(|| MissingFault::Verb { verb: verb.to_string() })?;
        return Ok(make(ids));
    }
    let not_built = NOT_BUILT.iter().find(|(pattern, _)| ids(pattern, segments).is_some());
    let (_, feature) = not_built.ok_or_else(|| MissingFault::Route { path: segments.join("/") })?;
    Ok(Operation::NotBuilt(feature))
}

/// The ids of a path of the shape `pattern`. An id is never empty.
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
    fn paths_are_found_with_and_without_the_last_slash() {
        check(Method::GET, "/", Operation::ReadAccount);
        check(Method::GET, "", Operation::ReadAccount);
        check(Method::POST, "/dbs", Operation::CreateDatabase);
        check(Method::POST, "/dbs/", Operation::CreateDatabase);
        check(Method::GET, "/dbs/d/colls/c/docs/", Operation::ListDocuments(CONTAINER));
        check(Method::GET, "/dbs/d/colls/c/pkranges", Operation::ListRanges(CONTAINER));
        check(
            Method::POST,
            "/dbs/d/colls/c/operations/partitionkeydelete",
            Operation::DeletePartitionKey(CONTAINER),
        );
        check(Method::PUT, "/offers/AQAA", Operation::ReplaceOffer("AQAA"));
        check(Method::POST, "/dbs/d/colls/c/sprocs/s/", Operation::NotBuilt("stored procedures"));
    }

    #[test]
    fn ids_are_decoded_after_the_path_is_split() {
        let document = DocumentPath { container: CONTAINER, document: "Item 1/é%" };
        check(Method::GET, "/dbs/d/colls/%63/docs/Item%201%2F%C3%A9%25", Operation::ReadDocument(document));
    }

    #[test]
    fn other_paths_and_verbs_are_refused() {
        for path in
            ["/x", "///", "/dbs//colls", "//dbs", "/dbs/d/", "/dbs/d/colls/c/docs/i/attachments", "/DBS"]
        {
            let parsed = Path::parse(path).unwrap();
            let found = operation(&Method::GET, &parsed);
            assert_eq!(found.is_ok(), path == "/dbs/d/", "{path}");
        }
        for path in ["/dbs/%", "/dbs/%4", "/dbs/%zz", "/dbs/%ff", "/a/b/c/d/e/f/g/h/i"] {
            assert!(Path::parse(path).is_err(), "{path}");
        }
        let database = Path::parse("/dbs/d").unwrap();
        let verb = "PUT".to_owned();
        assert_eq!(operation(&Method::PUT, &database), Err(MissingFault::Verb { verb }));
    }
}
