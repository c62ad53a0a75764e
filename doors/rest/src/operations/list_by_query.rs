//! `POST` to a feed as a query: the one query that is a list.
//!
//! `SELECT * FROM c` without anything else asks for what the read feed gives, and some SDKs list items in no other way. All other queries need a query engine and are refused.

use super::{Call, list_documents};
use crate::faults::Refusal;
use crate::route::ContainerPath;
use crate::wire::reply::Reply;
use engine::Action;
use model::RequestFault;

pub(super) async fn perform(call: &Call<'_>, path: ContainerPath<'_>) -> Result<Reply, Refusal> {
    list_documents::list(call, path, Action::QueryDocuments).await
}

/// Whether the body asks for everything.
pub(super) fn is_list(body: &[u8]) -> Result<bool, RequestFault> {
    Ok(lists_everything(&query_text(body)?))
}

/// The text of the query: a member of a JSON object.
fn query_text(body: &[u8]) -> Result<String, RequestFault> {
    let body: serde_json::Value =
        serde_json::from_slice(body).map_err(|error| RequestFault::BadJson { reason: error.to_string() })?;
    match body.get("query") {
        Some(serde_json::Value::String(query)) => Ok(query.clone()),
        Some(_) | None => {
            Err(RequestFault::BadBody { reason: "a query is an object with a string \"query\"".to_owned() })
        }
    }
}

/// Whether the query is `SELECT * FROM` and a name.
fn lists_everything(query: &str) -> bool {
    let mut words = query.split_ascii_whitespace();
    let mut is = |word: &str| words.next().is_some_and(|found| found.eq_ignore_ascii_case(word));
    if !(is("select") && is("*") && is("from")) {
        return false;
    }
    let name = words.next().is_some_and(|name| {
        let mut characters = name.chars();
        characters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
            && characters.all(|character| character.is_ascii_alphanumeric() || character == '_')
    });
    name && words.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_plain_list_is_taken() {
        for query in ["SELECT * from c", "select  *\nfrom root", " SELECT * FROM c "] {
            assert!(lists_everything(query), "{query}");
        }
        for query in [
            "",
            "SELECT c FROM c",
            "SELECT * FROM c WHERE true",
            "SELECT * FROM c.x",
            "SELECT * FROM c, d",
            "SELECT *",
        ] {
            assert!(!lists_everything(query), "{query}");
        }
        assert!(query_text(b"{\"query\":1}").is_err() && query_text(b"[").is_err());
    }
}
