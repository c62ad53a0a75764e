//! From the body of a query to its plan: text, parameters, tree, plan.
//!
//! Does not know what is queried: documents and small resources have the same query language.

mod advice;
mod computed;
mod condition;
mod texts;

pub(crate) use advice::advice;
pub use computed::read_computed_property;
pub(crate) use computed::{check_computed_query, first_fault};
pub(crate) use condition::condition;
pub(crate) use texts::TextCache;

use crate::client_plan::{ResumePoint, resumed};
use crate::faults::{NosqlFault, NosqlQueryFault, WireFault};
use crate::wire::headers;
use crate::wire::request_headers::RequestHeaders;
use model::Rid;
use plan::query::Query;
use sql::Parameters;
use std::sync::Arc;
use value::{Decoded, Document, Kind, Value, ValueRef};

/// Most parameters of a query.
const PARAMETERS_MAX: usize = 10_000;

/// A query as sent.
#[derive(Debug)]
pub(crate) struct QueryText {
    text: String,
    parameters: Parameters,
    resume: Option<ResumePoint>,
}

/// A query as written and as it is executed.
#[derive(Debug)]
pub(crate) struct LoweredQuery {
    /// The syntax tree, without a resume position.
    pub(crate) tree: Arc<sql::ast::Query>,
    /// The plan.
    pub(crate) query: Arc<Query>,
}

impl QueryText {
    /// Parses the body: an object with `query` and `parameters`, or the bare text that old clients send.
    pub(crate) fn read(headers: &RequestHeaders, body: &[u8]) -> Result<QueryText, WireFault> {
        if headers::is_bare_sql(headers)? {
            let text = str::from_utf8(body).map_err(|_| bad("the text of a query is UTF-8"))?;
            return Ok(QueryText { text: text.to_owned(), parameters: Parameters::none(), resume: None });
        }
        let body =
            Document::from_json(body).map_err(|error| WireFault::Json { reason: error.to_string() })?;
        let body = body.root();
        let Some(text) = body.member("query").and_then(ValueRef::as_str) else {
            return Err(bad("a query is an object with a string \"query\""));
        };
        let resume = body.member("resumeFilter").filter(|filter| !filter.is_null());
        let resume = resume.map(resume_point).transpose()?;
        let parameters = match body.member("parameters").filter(|list| !list.is_null()) {
            None => Parameters::none(),
            Some(list) => parameters(list)?,
        };
        Ok(QueryText { text: text.to_owned(), parameters, resume })
    }

    /// A query whose parameters are a JSON array, or nothing.
    pub(crate) fn with_parameters(text: &str, json: &[u8]) -> Result<QueryText, WireFault> {
        let parameters = match json {
            [] => Parameters::none(),
            json => {
                let bad_json = |error: value::JsonError| WireFault::Json { reason: error.to_string() };
                parameters(Value::from_json(json).map_err(bad_json)?.as_ref())?
            }
        };
        Ok(QueryText { text: text.to_owned(), parameters, resume: None })
    }

    /// The same query for a plan: clients ask for plans before parameters have values.
    pub(crate) fn without_values(self) -> QueryText {
        QueryText { parameters: self.parameters.or_undefined(), ..self }
    }

    /// Lowers the query, starting at its resume position.
    pub(crate) fn lower(&self, texts: &TextCache) -> Result<LoweredQuery, NosqlFault> {
        let (tree, whole) = self.tree_and_query(texts)?;
        let Some(point) = &self.resume else {
            return Ok(LoweredQuery { tree, query: Arc::new(whole) });
        };
        let resumed = resumed(&tree, point).ok_or_else(|| {
            bad("\"resumeFilter\" needs an ORDER BY with as many keys as it has values, none an array or object")
        })?;
        let query = sql::lower(&resumed, &self.parameters).map_err(NosqlQueryFault::Text)?;
        Ok(LoweredQuery { tree, query: Arc::new(query) })
    }

    /// The syntax tree and the plan.
    pub(crate) fn tree_and_query(
        &self,
        texts: &TextCache,
    ) -> Result<(Arc<sql::ast::Query>, Query), NosqlQueryFault> {
        let tree = texts.read(&self.text).map_err(NosqlQueryFault::Text)?;
        let query = sql::lower(&tree, &self.parameters).map_err(NosqlQueryFault::Text)?;
        Ok((tree, query))
    }
}

fn bad(reason: &str) -> WireFault {
    WireFault::Body { reason: reason.to_owned() }
}

/// `[{"name": "@a", "value": 1}, …]`
fn parameters(list: ValueRef<'_>) -> Result<Parameters, WireFault> {
    let Decoded::Array(elements) = list.decode() else {
        return Err(bad("\"parameters\" is an array"));
    };
    if list.len() > PARAMETERS_MAX {
        return Err(bad(&format!("a query has at most {PARAMETERS_MAX} parameters")));
    }
    elements.map(parameter).collect()
}

fn parameter(parameter: ValueRef<'_>) -> Result<(String, Value), WireFault> {
    let name = parameter.member("name").and_then(ValueRef::as_str);
    let name = name.filter(|name| name.len() > 1 && name.starts_with('@'));
    let name = name.ok_or_else(|| bad("a parameter has a \"name\" that begins with @"))?;
    let value = parameter.member("value").ok_or_else(|| bad("a parameter has a \"value\""))?;
    Ok((name.to_owned(), value.to_value()))
}

/// `{"value": [5], "rid": "…", "exclude": true}`; an undefined value is an empty array.
fn resume_point(filter: ValueRef<'_>) -> Result<ResumePoint, WireFault> {
    let Some(Decoded::Array(values)) = filter.member("value").map(ValueRef::decode) else {
        return Err(bad("\"resumeFilter\" has an array \"value\""));
    };
    let is_undefined = |value: ValueRef<'_>| value.kind() == Kind::Array && value.is_empty();
    let values = values.map(|value| (!is_undefined(value)).then(|| value.to_value()));
    let number = match filter.member("rid").filter(|rid| !rid.is_null()) {
        None => None,
        Some(rid) => match rid.as_str().and_then(Rid::parse) {
            Some(Rid::Document(_, _, number)) => Some(number.raw()),
            Some(_) | None => return Err(bad("\"rid\" of a \"resumeFilter\" is that of an item")),
        },
    };
    let is_excluded = filter.member("exclude").and_then(ValueRef::as_bool).unwrap_or(false);
    Ok(ResumePoint { values: values.collect(), number, is_excluded })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::names;
    use http::{HeaderMap, HeaderValue};

    fn read(body: &str) -> Result<QueryText, WireFault> {
        QueryText::read(&RequestHeaders::default(), body.as_bytes())
    }

    #[test]
    fn parameters_are_bound_by_name() {
        let query = read(r#"{"query":"SELECT VALUE @a","parameters":[{"name":"@a","value":7}]}"#).unwrap();
        assert_eq!(query.lower(&TextCache::new()).unwrap().query.to_string(), "select value 7");
        assert!(read(r#"{"query":"SELECT VALUE 1","parameters":null}"#).is_ok());
    }

    #[test]
    fn bodies_of_other_shapes_are_refused() {
        for body in [
            "",
            "[]",
            "7",
            "{}",
            r#"{"query":7}"#,
            r#"{"query":"SELECT 1","parameters":{}}"#,
            r#"{"query":"SELECT 1","parameters":[7]}"#,
            r#"{"query":"SELECT 1","parameters":[{"name":"@a"}]}"#,
            r#"{"query":"SELECT 1","parameters":[{"name":"a","value":1}]}"#,
            r#"{"query":"SELECT 1","parameters":[{"name":"@","value":1}]}"#,
            r#"{"query":"SELECT 1","resumeFilter":7}"#,
            r#"{"query":"SELECT 1","resumeFilter":{"value":1}}"#,
            r#"{"query":"SELECT 1","resumeFilter":{"value":[1],"rid":"x"}}"#,
        ] {
            assert!(read(body).is_err(), "{body}");
        }
        let many = r#"{"name":"@a","value":1},"#.repeat(PARAMETERS_MAX);
        let body = |rest: &str| format!(r#"{{"query":"SELECT 1","parameters":[{many}{rest}]}}"#);
        assert!(read(&body(r#"{"name":"@a","value":1}"#)).is_err());
    }

    #[test]
    fn bare_text_is_taken_from_old_clients() {
        let mut headers = HeaderMap::new();
        headers.insert(&names::CONTENT_TYPE, HeaderValue::from_static("application/sql"));
        let headers = RequestHeaders::from(headers);
        let query = QueryText::read(&headers, b"SELECT VALUE 1").unwrap();
        assert_eq!(query.lower(&TextCache::new()).unwrap().query.to_string(), "select value 1");
        assert!(QueryText::read(&headers, b"\xFF").is_err());
    }

    #[test]
    fn faults_keep_code_and_place() {
        let fault = read(r#"{"query":"SELECT BADFUNC(1)"}"#).unwrap().lower(&TextCache::new()).unwrap_err();
        let NosqlFault::Query(NosqlQueryFault::Text(faults)) = fault else { panic!("{fault:?}") };
        let sql::SqlFault { kind, span } = &faults.0[0];
        assert_eq!((crate::faults::code(kind), span.start, span.end), ("SC2005", 7, 14));
    }
}
