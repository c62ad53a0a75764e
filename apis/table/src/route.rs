//! Paths and verbs: which operation a request means.
//!
//! ```text
//! /                                           service: ?restype=service&comp=properties|stats
//! /Tables  /Tables()                          list, create
//! /Tables('name')                             read, delete
//! /name  /name()                              query, insert; ?comp=acl
//! /name(PartitionKey='p',RowKey='r')          read, replace, merge, delete
//! /$batch                                     group transaction
//! ```
//!
//! The name of an account may precede all of them. Quotes inside a key are doubled.

use crate::faults::{Code, TableFault, request};
use api_http::percent;
use http::Method;
use std::borrow::Cow;

/// The header that tunnels a verb through `POST`.
pub(crate) const TUNNEL: &str = "x-http-method";

/// What a path addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Service,
    Tables,
    Table(String),
    Rows(String),
    Entity(EntityPath),
    Batch,
}

/// The address of an entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EntityPath {
    pub(crate) table: String,
    pub(crate) partition_key: String,
    pub(crate) row_key: String,
}

/// An operation with what it addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    ReadServiceProperties,
    ReplaceServiceProperties,
    ReadStatistics,
    ListTables,
    CreateTable,
    ReadTable(String),
    DeleteTable(String),
    ReadTableAcl(String),
    ReplaceTableAcl(String),
    QueryEntities(String),
    InsertEntity(String),
    ReadEntity(EntityPath),
    /// Replace, or insert if there is no condition.
    PutEntity(EntityPath),
    /// Merge, or insert if there is no condition.
    MergeEntity(EntityPath),
    DeleteEntity(EntityPath),
    Batch,
}

/// Ends the name of an account in addresses of its second region.
pub(crate) const SECONDARY: &str = "-secondary";

/// The name of the account whose second region has this name; other names stay as they are.
pub(crate) fn without_secondary(name: &str) -> &str {
    name.strip_suffix(SECONDARY).unwrap_or(name)
}

/// Splits the account off a path, if its first segment is one of `accounts`, or the address of its second region.
/// Returns its index and the rest.
pub(crate) fn split_account<'p>(path: &'p str, accounts: &[&str]) -> (Option<usize>, &'p str) {
    let inside = path.strip_prefix('/').unwrap_or(path);
    let (first, rest) = inside.split_once('/').unwrap_or((inside, ""));
    let first = without_secondary(first);
    match accounts.iter().position(|account| *account == first) {
        Some(index) => (Some(index), rest),
        None => (None, inside),
    }
}

/// Whether a path whose only segment is the name of an account means a table of that name: in host style the account is
/// in the host already. In path style the same path is the service, of which requests name `restype`.
pub(crate) fn is_table_like_account(uri_path: &str, host: Option<&str>, query: Option<&str>) -> bool {
    let segment = uri_path.strip_prefix('/').unwrap_or(uri_path);
    let label = host.and_then(|host| host.split_once('.')).map(|(label, _)| label);
    let is_service = query.is_some_and(|query| query.split('&').any(|field| field.starts_with("restype=")));
    label == Some(segment) && !is_service
}

/// What a path without its account addresses.
pub(crate) fn place(path: &str) -> Result<Place, TableFault> {
    let malformed =
        || request(Code::InvalidUri, "The requested URI does not represent any resource on the server.");
    let path = percent::decoded(path).ok_or_else(malformed)?;
    let path = path.trim_end_matches('/');
    if path.is_empty() {
        return Ok(Place::Service);
    }
    if path == "$batch" {
        return Ok(Place::Batch);
    }
    if path.split('(').next().is_some_and(|name| name.contains('/')) {
        return Err(request(Code::ResourceNotFound, "The specified resource does not exist."));
    }
    let Some((name, predicate)) = path.split_once('(') else {
        return Ok(if path == "Tables" { Place::Tables } else { Place::Rows(path.to_owned()) });
    };
    let predicate = predicate.strip_suffix(')').ok_or_else(malformed)?.trim();
    match (name, predicate.is_empty()) {
        ("Tables", true) => Ok(Place::Tables),
        ("Tables", false) => match quoted(predicate) {
            Some((table, "")) => Ok(Place::Table(table.into_owned())),
            Some(_) | None => Err(malformed()),
        },
        (table, true) => Ok(Place::Rows(table.to_owned())),
        (table, false) => entity_path(table, predicate).map(Place::Entity).ok_or_else(malformed),
    }
}

/// `PartitionKey='p',RowKey='r'` in any order.
fn entity_path(table: &str, predicate: &str) -> Option<EntityPath> {
    let (first_name, first, rest) = key_value(predicate)?;
    let (second_name, second, rest) = key_value(rest.strip_prefix(',')?)?;
    if !rest.is_empty() {
        return None;
    }
    let (partition_key, row_key) = match (first_name, second_name) {
        ("PartitionKey", "RowKey") => (first, second),
        ("RowKey", "PartitionKey") => (second, first),
        _ => return None,
    };
    let (table, partition_key, row_key) =
        (table.to_owned(), partition_key.into_owned(), row_key.into_owned());
    Some(EntityPath { table, partition_key, row_key })
}

fn key_value(text: &str) -> Option<(&str, Cow<'_, str>, &str)> {
    let (name, value) = text.split_once('=')?;
    let (value, rest) = quoted(value.trim_start())?;
    Some((name.trim(), value, rest.trim_start()))
}

/// A text in quotes, in which quotes are doubled, and what follows it.
fn quoted(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let inner = text.strip_prefix('\'')?;
    let mut from = 0;
    loop {
        let end = from + inner.get(from..)?.find('\'')?;
        if inner.as_bytes().get(end + 1) == Some(&b'\'') {
            from = end + 2;
            continue;
        }
        let (content, rest) = (inner.get(..end)?, inner.get(end + 1..)?);
        let content = if from == 0 { Cow::Borrowed(content) } else { Cow::Owned(content.replace("''", "'")) };
        return Some((content, rest));
    }
}

/// Query parameters that select an operation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Selectors<'a> {
    pub(crate) restype: Option<&'a str>,
    pub(crate) comp: Option<&'a str>,
}

/// The operation of a verb on a place.
pub(crate) fn operation(
    verb: &Method,
    place: Place,
    selectors: Selectors<'_>,
) -> Result<Operation, TableFault> {
    let verb = verb.as_str();
    match place {
        Place::Service => match (verb, selectors.restype, selectors.comp) {
            ("GET", Some("service"), Some("properties")) => Ok(Operation::ReadServiceProperties),
            ("PUT", Some("service"), Some("properties")) => Ok(Operation::ReplaceServiceProperties),
            ("GET", Some("service"), Some("stats")) => Ok(Operation::ReadStatistics),
            (_, Some("service"), Some("properties" | "stats")) => Err(unsupported_verb()),
            _ => Err(request(
                Code::InvalidUri,
                "The requested URI does not represent any resource on the server.",
            )),
        },
        Place::Tables => match verb {
            "GET" => Ok(Operation::ListTables),
            "POST" => Ok(Operation::CreateTable),
            _ => Err(unsupported_verb()),
        },
        Place::Table(table) => match verb {
            "GET" => Ok(Operation::ReadTable(table)),
            "DELETE" => Ok(Operation::DeleteTable(table)),
            _ => Err(unsupported_verb()),
        },
        Place::Rows(table) => match (verb, selectors.comp) {
            ("GET", Some("acl")) => Ok(Operation::ReadTableAcl(table)),
            ("PUT", Some("acl")) => Ok(Operation::ReplaceTableAcl(table)),
            ("GET", None) => Ok(Operation::QueryEntities(table)),
            ("POST", None) => Ok(Operation::InsertEntity(table)),
            (_, Some(comp)) if comp != "acl" => Err(request(
                Code::InvalidQueryParameterValue,
                "Value for one of the query parameters specified in the request URI is invalid.",
            )),
            _ => Err(unsupported_verb()),
        },
        Place::Entity(path) => match verb {
            "GET" => Ok(Operation::ReadEntity(path)),
            "PUT" => Ok(Operation::PutEntity(path)),
            "MERGE" | "PATCH" => Ok(Operation::MergeEntity(path)),
            "DELETE" => Ok(Operation::DeleteEntity(path)),
            _ => Err(unsupported_verb()),
        },
        Place::Batch => match verb {
            "POST" => Ok(Operation::Batch),
            _ => Err(unsupported_verb()),
        },
    }
}

fn unsupported_verb() -> TableFault {
    request(Code::UnsupportedHttpVerb, "The resource doesn't support specified Http Verb.")
}

/// The verb that a `POST` tunnels.
pub(crate) fn tunneled(method: &Method, tunnel: Option<&str>) -> Result<Method, TableFault> {
    match (method.as_str(), tunnel) {
        ("POST", Some(verb)) => match verb.to_ascii_uppercase().as_str() {
            verb @ ("MERGE" | "PATCH" | "PUT" | "DELETE" | "GET") => {
                Method::from_bytes(verb.as_bytes()).map_err(|_| unsupported_verb())
            }
            _ => Err(unsupported_verb()),
        },
        _ => Ok(method.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entity(partition_key: &str, row_key: &str) -> Option<Place> {
        let (partition_key, row_key) = (partition_key.to_owned(), row_key.to_owned());
        Some(Place::Entity(EntityPath { table: "t".to_owned(), partition_key, row_key }))
    }

    #[test]
    fn paths_are_read() {
        for (path, expected) in [
            ("", Some(Place::Service)),
            ("Tables", Some(Place::Tables)),
            ("Tables()", Some(Place::Tables)),
            ("Tables('abc')", Some(Place::Table("abc".to_owned()))),
            ("$batch", Some(Place::Batch)),
            ("%24batch", Some(Place::Batch)),
            ("abc", Some(Place::Rows("abc".to_owned()))),
            ("abc()", Some(Place::Rows("abc".to_owned()))),
            ("abc()/", Some(Place::Rows("abc".to_owned()))),
            ("t(PartitionKey='p',RowKey='r')", entity("p", "r")),
            ("t(RowKey='r', PartitionKey='p')", entity("p", "r")),
            ("t(PartitionKey='',RowKey='')", entity("", "")),
            ("t(PartitionKey='it''s',RowKey='''')", entity("it's", "'")),
            ("t(PartitionKey='a%27%27b',RowKey='%2C%29%C3%A9')", entity("a'b", ",)é")),
            ("t(PartitionKey='a)',RowKey='b=''c')", entity("a)", "b='c")),
            ("t(PartitionKey='p')", None),
            ("t(PartitionKey='p',RowKey='r',RowKey='r')", None),
            ("t(PartitionKey='p',PartitionKey='r')", None),
            ("t(PartitionKey=p,RowKey='r')", None),
            ("t(PartitionKey='p',RowKey='r'", None),
            ("t(PartitionKey='p'',RowKey='r')", None),
            ("Tables('abc'x)", None),
            ("Tables(abc)", None),
            ("t%zz", None),
        ] {
            assert_eq!(place(path).ok(), expected, "{path}");
        }
    }

    #[test]
    fn the_account_may_precede() {
        let accounts = ["one", "two"];
        assert_eq!(split_account("/two/Tables", &accounts), (Some(1), "Tables"));
        assert_eq!(split_account("/two", &accounts), (Some(1), ""));
        assert_eq!(split_account("/two-secondary/abc()", &accounts), (Some(1), "abc()"));
        assert_eq!(split_account("/Tables('two')", &accounts), (None, "Tables('two')"));
        assert_eq!(split_account("/", &accounts), (None, ""));
    }

    #[test]
    fn a_table_may_be_named_like_the_account_of_the_host() {
        let host = Some("one.table.example:443");
        assert!(is_table_like_account("/one", host, None));
        assert!(is_table_like_account("/one", host, Some("comp=acl")));
        assert!(!is_table_like_account("/one", host, Some("comp=stats&restype=service")));
        assert!(!is_table_like_account("/one/", host, None));
        assert!(!is_table_like_account("/one/one", host, None));
        // A host without a domain is that of an emulator, which has the account in its paths.
        assert!(!is_table_like_account("/one", Some("one:10002"), None));
        assert!(!is_table_like_account("/one", Some("127.0.0.1"), None));
        assert!(!is_table_like_account("/one", None, None));
    }

    #[test]
    fn a_post_tunnels_other_verbs() {
        let verb_of = |verb: Method, tunnel| tunneled(&verb, tunnel).ok().map(|verb| verb.to_string());
        assert_eq!(verb_of(Method::POST, Some("MERGE")).as_deref(), Some("MERGE"));
        assert_eq!(verb_of(Method::POST, Some("merge")).as_deref(), Some("MERGE"));
        assert_eq!(verb_of(Method::POST, Some("BREW")), None);
        assert_eq!(verb_of(Method::PUT, Some("MERGE")).as_deref(), Some("PUT"));
        assert_eq!(verb_of(Method::POST, None).as_deref(), Some("POST"));
    }
}
