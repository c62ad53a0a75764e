//! A line protocol over the engine, written as a test: what an API needs beside its wire format is in the core, and the
//! core needs no change for another API.
//!
//! ```text
//! create <document>               merge <key> <members>
//! read <key> <id> <key> <id> …    query <text>                more <continuation> <text>
//! batch <key> [{"create": <document>}, {"merge": <members>}, {"read": <id>}, {"delete": <id>}]
//! ```
//!
//! Documents, members and keys are JSON; a key has no spaces. An answer is any number of lines, the last of which begins
//! with `ok`, `more` or `error`. A merge creates what is not there.

use engine::{
    Action, Container, DocumentAddress, Engine, Keyed, Principal, QueryRequest, QueryRow, Scope, pinned_keys,
};
use model::limits::PAGE_ITEMS_DEFAULT;
use model::{Fault, KeyComponent, PartitionKey};
use plan::{
    Condition, DocumentOperation, Item, Mutation, Outcome, Returned, StoredDocument, Target, WhenAbsent,
};
use std::sync::Arc;
use thiserror::Error;
use value::{Document, Value, ValueRef};

/// A refused request.
#[derive(Debug, Error)]
enum LineFault {
    #[error(transparent)]
    Core(Fault),
    #[error("the query is invalid: {0}")]
    Query(sql::SqlFaults),
    #[error("the request is malformed: {0}")]
    Form(&'static str),
}

impl<F: Into<Fault>> From<F> for LineFault {
    fn from(fault: F) -> LineFault {
        LineFault::Core(fault.into())
    }
}

impl LineFault {
    /// The code that clients branch on.
    fn code(&self) -> &'static str {
        match self {
            LineFault::Core(fault) => match fault {
                Fault::Request(_) | Fault::Query(_) => "invalid",
                Fault::Access(_) => "forbidden",
                Fault::Missing(_) => "missing",
                Fault::Conflict(_) => "conflict",
                Fault::Precondition(_) => "precondition",
                Fault::Limit(_) => "limit",
                Fault::Storage(_) => "storage",
                Fault::Internal(_) => "internal",
            },
            LineFault::Query(_) | LineFault::Form(_) => "invalid",
        }
    }
}

/// One client at one container.
pub struct Session {
    engine: Arc<Engine>,
    principal: Principal,
    container: Arc<Container>,
}

impl Session {
    /// A session of a caller who is known, if they may know of the container.
    pub fn open(engine: Arc<Engine>, principal: Principal, path: (&str, &str)) -> Result<Session, Fault> {
        let found = engine.find_container(&principal, Action::ReadMetadata, path.0, path.1)?;
        Ok(Session { engine, principal, container: found.resource })
    }

    /// Answers one line.
    pub async fn answer(&self, line: &str) -> String {
        match self.perform(line.trim()).await {
            Ok(answer) => answer,
            Err(fault) => format!("error {} {fault}\n", fault.code()),
        }
    }

    async fn perform(&self, line: &str) -> Result<String, LineFault> {
        let (command, rest) = line.split_once(' ').ok_or(LineFault::Form("a command has arguments"))?;
        match command {
            "create" => self.write(None, step("create", json(rest)?.as_ref())?).await,
            "merge" => {
                let (key, members) = self.keyed(rest)?;
                self.write(Some(key), step("merge", json(members)?.as_ref())?).await
            }
            "read" => self.read(rest).await,
            "query" => self.query(None, rest).await,
            "more" => {
                let (continuation, text) = two(rest)?;
                self.query(Some(continuation.to_owned()), text).await
            }
            "batch" => self.batch(rest).await,
            _ => Err(LineFault::Form("the command is unknown")),
        }
    }

    async fn write(
        &self,
        key: Option<PartitionKey>,
        operation: DocumentOperation,
    ) -> Result<String, LineFault> {
        let keyed = Keyed::new(&self.container, key, operation)?;
        let pass = self.engine.access().write(&self.principal, keyed)?;
        let receipt = self.engine.write(pass).await.map_err(|refusal| refusal.fault)?;
        Ok(format!("{}ok\n", shown(&receipt.outcome)))
    }

    async fn read(&self, rest: &str) -> Result<String, LineFault> {
        let words: Vec<&str> = rest.split_whitespace().collect();
        let address = |pair: &[&str]| match pair {
            [key_text, id] => {
                let target = Target::Id((*id).to_owned());
                Ok(DocumentAddress { key: self.key(key_text)?, target })
            }
            _ => Err(LineFault::Form("a key has an id")),
        };
        let addresses = words.chunks(2).map(address).collect::<Result<_, _>>()?;
        let access = self.engine.access();
        let pass = access.read_documents(&self.principal, &self.container, addresses)?;
        let read = self.engine.read_many(pass, &[]).await?;
        let lines = read.documents.iter().map(|found| found.as_ref().map_or("none\n".to_owned(), line_of));
        Ok(lines.collect::<String>() + "ok\n")
    }

    async fn query(&self, continuation: Option<String>, text: &str) -> Result<String, LineFault> {
        let query = sql::parse(text).and_then(|tree| sql::lower(&tree, &sql::Parameters::none()));
        let query = query.map_err(LineFault::Query)?;
        let scope = match pinned_keys(&query, &self.container.definition().partition_key).as_deref() {
            Some([key]) => Scope::Key(key.clone()),
            Some(_) | None => Scope::Container,
        };
        let pass = self.engine.access().query_documents(&self.principal, &self.container, scope)?;
        let request = QueryRequest {
            query: Arc::new(query),
            items_max: PAGE_ITEMS_DEFAULT,
            continuation,
            session: Vec::new(),
            ends_at_ranges: false,
            text_bytes: text.len(),
        };
        let page = self.engine.query(pass, &request).await?;
        let lines = page.rows.iter().map(|row| match row {
            QueryRow::Document(stored) => line_of(stored),
            QueryRow::Value(value) => format!("{}\n", value.to_json()),
        });
        let end = page.continuation.map_or("ok\n".to_owned(), |next| format!("more {}\n", next.text));
        Ok(lines.collect::<String>() + &end)
    }

    async fn batch(&self, rest: &str) -> Result<String, LineFault> {
        let (key, list) = self.keyed(rest)?;
        let Value::Array(list) = json(list)? else { return Err(LineFault::Form("a batch is an array")) };
        let operation = |step_of: &Value| match step_of.as_ref().members().next() {
            Some((name, argument)) => step(name, argument),
            None => Err(LineFault::Form("a step has a name")),
        };
        let operations = list.iter().map(operation).collect::<Result<Vec<_>, _>>()?;
        let pass = self.engine.access().batch(&self.principal, &self.container, key, operations)?;
        let receipt = self.engine.batch(pass, Returned::All, &[]).await?;
        let steps = receipt.result.map_err(|refused| refused.fault)?;
        Ok(steps.iter().map(|step| shown(&step.outcome)).collect::<String>() + "ok\n")
    }

    fn key(&self, text: &str) -> Result<PartitionKey, LineFault> {
        let component = KeyComponent::from_value(json(text)?.as_ref());
        let component = component.ok_or(LineFault::Form("a key is a scalar"))?;
        Ok(self.container.definition().partition_key.key(vec![component])?)
    }

    /// A key and what follows it.
    fn keyed<'a>(&self, text: &'a str) -> Result<(PartitionKey, &'a str), LineFault> {
        let (key, rest) = two(text)?;
        Ok((self.key(key)?, rest))
    }
}

fn two(text: &str) -> Result<(&str, &str), LineFault> {
    text.split_once(' ').ok_or(LineFault::Form("an argument is missing"))
}

fn json(text: &str) -> Result<Value, LineFault> {
    Value::from_json(text.as_bytes()).map_err(|_| LineFault::Form("not JSON"))
}

fn step(name: &str, argument: ValueRef<'_>) -> Result<DocumentOperation, LineFault> {
    let item = || {
        let document = Document::from_value_ref(argument).map_err(|_| LineFault::Form("not an object"))?;
        Ok::<Item, LineFault>(Item::new(document)?)
    };
    let target = || argument.as_str().map(|id| Target::Id(id.to_owned())).ok_or(LineFault::Form("not an id"));
    let condition = Condition::None;
    Ok(match name {
        "create" => DocumentOperation::Write(Mutation::Create { item: item()? }),
        "merge" => DocumentOperation::Write(Mutation::Merge {
            item: item()?,
            condition,
            absent: WhenAbsent::Create,
            check: None,
        }),
        "delete" => DocumentOperation::Write(Mutation::Delete { target: target()?, condition }),
        "read" => DocumentOperation::Read { target: target()?, condition },
        _ => return Err(LineFault::Form("the step is unknown")),
    })
}

fn shown(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Created(stored) | Outcome::Replaced(stored) | Outcome::Read(stored) => line_of(stored),
        Outcome::Deleted | Outcome::NotModified(_) | Outcome::Nothing => String::new(),
    }
}

fn line_of(stored: &StoredDocument) -> String {
    format!("{}\n", stored.document.to_value().to_json())
}
