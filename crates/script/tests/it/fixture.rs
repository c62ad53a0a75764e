//! A pool of test workers and a host with documents in memory.

use bytes::Bytes;
use script::{
    Call, CallFault, CallerId, Clock, ContainerSize, DocumentLink, Finished, Host, Limits, Links, Operation,
    Outcome, PageOptions, Quota, Refusal, Replies, Reply, Role, ScriptFault, Thrown, WorkerProgram, Workers,
};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Who calls in tests.
pub(crate) const CALLER: CallerId = CallerId(1);

pub(crate) const SELF_LINK: &str = "dbs/AAAA==/colls/BBBB=/";
pub(crate) const ALT_LINK: &str = "dbs/shop/colls/orders";

/// 2026-01-02T03:04:05.678Z
pub(crate) const NOW_MS: u64 = 1_767_323_045_678;

/// How the test workers are started.
pub(crate) fn program() -> WorkerProgram {
    WorkerProgram { path: env!("CARGO_BIN_EXE_script-test-worker").into(), arguments: Vec::new() }
}

/// Limits that a slow machine does not reach by accident.
pub(crate) fn limits() -> Limits {
    Limits { time: Duration::from_secs(60), wait_max: Duration::from_secs(300), ..Limits::for_cores(3) }
}

pub(crate) fn workers() -> Workers {
    Workers::new(program(), limits())
}

pub(crate) fn call(source: &str, parameters: &Value) -> Call {
    Call {
        name: "proc".to_owned(),
        source: Arc::from(source),
        role: Role::Procedure { parameters: Bytes::from(parameters.to_string()) },
        links: Links { self_link: SELF_LINK.to_owned(), alt_link: ALT_LINK.to_owned() },
        clock: Clock::Fixed { at_ms: NOW_MS },
        seed: 7,
        logs: true,
        quota: Quota { max: "documentSize=10240;".to_owned(), usage: "documentSize=1;".to_owned() },
        needs_own_runtime: false,
    }
}

/// Executes a procedure on `documents`.
pub(crate) async fn execute(
    documents: &mut Documents,
    source: &str,
    parameters: &Value,
) -> Result<Finished, CallFault<&'static str>> {
    workers().run(CALLER, &call(source, parameters), documents).await
}

/// The response body of a procedure that ends normally.
#[track_caller]
pub(crate) fn body(finished: &Finished) -> Value {
    match &finished.body {
        Some(body) => serde_json::from_slice(body).unwrap(),
        None => Value::Null,
    }
}

/// Executes a procedure on an empty container and compares its response body.
pub(crate) async fn check(source: &str, parameters: Value, expected: Value) {
    let mut documents = Documents::default();
    let finished = execute(&mut documents, source, &parameters).await.unwrap();
    assert_eq!(body(&finished), expected, "{source}");
}

/// The error that a procedure throws on an empty container.
pub(crate) async fn thrown(source: &str) -> Thrown {
    match execute(&mut Documents::default(), source, &json!([])).await {
        Err(CallFault::Script(ScriptFault::Thrown(thrown))) => thrown,
        other => panic!("{source}: {other:?}"),
    }
}

/// Documents in the order they were created, all in one logical partition.
#[derive(Debug, Default)]
pub(crate) struct Documents {
    pub(crate) documents: Vec<Value>,
    /// The messages received: the operations executed of each.
    pub(crate) messages: Vec<Vec<Operation>>,
    /// Operations after which the budget is low.
    pub(crate) budget: Option<usize>,
    /// Operations after which the host ends the script.
    pub(crate) end: Option<usize>,
    /// Most operations executed of one message.
    pub(crate) prefix: Option<usize>,
}

impl Documents {
    pub(crate) fn with(documents: Value) -> Documents {
        let Value::Array(documents) = documents else { panic!("documents are an array") };
        Documents { documents, ..Documents::default() }
    }

    pub(crate) fn ids(&self) -> Vec<&str> {
        self.documents.iter().map(|document| document["id"].as_str().unwrap()).collect()
    }

    pub(crate) fn operations(&self) -> Vec<&Operation> {
        self.messages.iter().flatten().collect()
    }

    fn find(&self, link: &DocumentLink) -> Result<usize, Reply> {
        let (DocumentLink::Rid(id) | DocumentLink::Id(id)) = link;
        let position = self.documents.iter().position(|document| document["id"] == **id);
        position.ok_or_else(|| refused(404, "Resource Not Found."))
    }

    fn put(&mut self, document: &Bytes, may_replace: bool) -> Reply {
        let document: Value = serde_json::from_slice(document).unwrap();
        let id = DocumentLink::Id(document["id"].as_str().unwrap_or_default().to_owned());
        match self.find(&id) {
            Ok(_) if !may_replace => return refused(409, "Entity with the specified id already exists."),
            Ok(position) => self.documents[position] = document.clone(),
            Err(_) => self.documents.push(document.clone()),
        }
        done(&document)
    }

    fn page(&self, page: &PageOptions) -> Reply {
        let from: usize = page.continuation.as_ref().map_or(0, |text| text.parse().unwrap());
        let size = match page.size {
            Some(size @ 1..) => usize::try_from(size).unwrap(),
            Some(_) | None => 100,
        };
        let until = (from + size).min(self.documents.len());
        Reply::Done(Outcome {
            body: Some(Bytes::from(json!(self.documents[from..until]).to_string())),
            continuation: (until < self.documents.len()).then(|| until.to_string()),
            container_size: Some(ContainerSize { current_mb: 1.5, max_mb: 50.0 }),
            ..Outcome::default()
        })
    }

    fn one(&mut self, operation: &Operation) -> Result<Reply, Reply> {
        Ok(match operation {
            Operation::Create { document, .. } => self.put(document, false),
            Operation::Upsert { document, .. } => self.put(document, true),
            Operation::Read { document, if_none_match } => {
                let found = &self.documents[self.find(document)?];
                if if_none_match.is_some() && found["_etag"].as_str() == if_none_match.as_deref() {
                    return Ok(Reply::Done(Outcome { is_not_modified: true, ..Outcome::default() }));
                }
                done(found)
            }
            Operation::Replace { document, content, .. } => {
                let position = self.find(document)?;
                self.documents[position] = serde_json::from_slice(content).unwrap();
                done(&self.documents[position])
            }
            Operation::Delete { document, .. } => {
                let position = self.find(document)?;
                self.documents.remove(position);
                Reply::Done(Outcome::default())
            }
            Operation::Patch { document, changes, .. } => {
                let position = self.find(document)?;
                self.documents[position]["patch"] = serde_json::from_slice(changes).unwrap();
                done(&self.documents[position])
            }
            Operation::Query { page, .. } | Operation::ReadAll { page } => self.page(page),
        })
    }
}

impl Host for Documents {
    type Fault = &'static str;

    async fn operate(&mut self, mut operations: Vec<Operation>) -> Result<Replies, &'static str> {
        operations.truncate(self.prefix.unwrap_or(usize::MAX));
        let replies = operations
            .iter()
            .map(|operation| self.one(operation).unwrap_or_else(|refused| refused))
            .collect();
        self.messages.push(operations);
        let count = self.operations().len();
        if self.end.is_some_and(|end| count >= end) {
            return Err("ended by the host");
        }
        Ok(Replies { replies, is_budget_low: self.budget.is_some_and(|budget| count >= budget) })
    }
}

fn done(document: &Value) -> Reply {
    Reply::Done(Outcome { body: Some(Bytes::from(document.to_string())), ..Outcome::default() })
}

fn refused(number: u16, message: &str) -> Reply {
    Reply::Refused(Refusal { number, message: message.to_owned() })
}
