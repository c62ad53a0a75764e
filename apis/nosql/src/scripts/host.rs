//! The documents of a script: its operations, executed in its transaction.

use super::container_size;
use crate::faults::{self, NosqlFault};
use crate::lower::{QueryText, TextCache};
use crate::operations::document::{Patch, item, patch};
use crate::wire::headers::{if_match, if_none_match};
use crate::wire::resources::ItemWriter;
use crate::wire::{continuation, json};
use bytes::Bytes;
use engine::script::{
    self, ContainerSize, DocumentLink, Host, Operation, PageOptions, REPLIES_BYTES_MAX, Replies, Reply,
};
use engine::{Container, ContainerUsage, FeedRequest, QueryRequest, QueryRow, Transaction};
use model::{ConflictFault, Fault, LimitFault, MissingFault, RequestFault, Rid};
use plan::{Condition, DocumentOperation, Mutation, Outcome, Rename, StoredDocument, Target};
use std::sync::Arc;

/// Results of a page if the script does not say how many.
const PAGE_ITEMS_DEFAULT: usize = 100;
/// Most results of a page.
const PAGE_ITEMS_MAX: usize = 1_000;

/// Operations after which others get the processor. Few of them take less time than a yield.
const OPERATIONS_PER_YIELD: usize = 16;

/// Executes the operations of a script in a transaction.
pub(crate) struct ScriptHost<'t> {
    transaction: &'t mut Transaction,
    container: Arc<Container>,
    texts: Arc<TextCache>,
    /// The size of the container, for scripts that read it.
    size: Option<ContainerSize>,
    /// Whether the script has changed documents.
    has_written: bool,
    /// What a script that has failed has logged.
    log: String,
}

impl<'t> ScriptHost<'t> {
    pub(crate) fn new(
        transaction: &'t mut Transaction,
        texts: &Arc<TextCache>,
        usage: Option<&ContainerUsage>,
    ) -> ScriptHost<'t> {
        let container = Arc::clone(transaction.container());
        let texts = Arc::clone(texts);
        let size = usage.map(container_size);
        ScriptHost { transaction, container, texts, size, has_written: false, log: String::new() }
    }

    /// Whether the script has changed documents.
    pub(crate) fn has_written(&self) -> bool {
        self.has_written
    }

    /// The log of a script that has failed.
    pub(crate) fn into_log(self) -> String {
        self.log
    }

    async fn perform(&mut self, operation: Operation) -> Result<script::Outcome, NosqlFault> {
        let wants_document = match operation {
            Operation::Create { wants_document, .. }
            | Operation::Upsert { wants_document, .. }
            | Operation::Replace { wants_document, .. }
            | Operation::Patch { wants_document, .. } => wants_document,
            Operation::Read { .. }
            | Operation::Delete { .. }
            | Operation::Query { .. }
            | Operation::ReadAll { .. } => true,
        };
        let step = match operation {
            Operation::Create { document, .. } => {
                DocumentOperation::Write(Mutation::Create { item: item(&document)? })
            }
            Operation::Upsert { document, if_match, .. } => {
                let condition = required(if_match);
                DocumentOperation::Write(Mutation::Upsert { item: item(&document)?, condition })
            }
            Operation::Read { document, if_none_match } => {
                let condition = if_none_match.map_or(Condition::None, |etag| self::if_none_match(&etag));
                DocumentOperation::Read { target: self.target(document)?, condition }
            }
            Operation::Replace { document, content, if_match, .. } => {
                let (target, item) = (self.target(document)?, item(&content)?);
                let condition = required(if_match);
                let rename = Rename::Allowed;
                DocumentOperation::Write(Mutation::Replace { target, item, condition, rename })
            }
            Operation::Delete { document, if_match } => {
                let (target, condition) = (self.target(document)?, required(if_match));
                DocumentOperation::Write(Mutation::Delete { target, condition })
            }
            Operation::Patch { document, changes, if_match, .. } => {
                let (target, condition) = (self.target(document)?, required(if_match));
                let Patch { operations, filter } = patch(&self.container, &changes)?;
                DocumentOperation::Write(Mutation::Patch { target, operations, condition, filter })
            }
            Operation::Query { text, parameters, page, enable_scan: _ } => {
                return self.query(&text, &parameters, page).await;
            }
            Operation::ReadAll { page } => return self.read_all(page).await,
        };
        let is_write = matches!(step, DocumentOperation::Write(_));
        let receipt = self.transaction.execute(step).await?;
        self.has_written |= is_write;
        Ok(match receipt.outcome {
            _ if !wants_document => script::Outcome::default(),
            Outcome::Created(stored) | Outcome::Replaced(stored) | Outcome::Read(stored) => {
                script::Outcome { body: Some(self.written(&stored)), ..Default::default() }
            }
            Outcome::NotModified(_) => script::Outcome { is_not_modified: true, ..Default::default() },
            Outcome::Deleted | Outcome::Nothing => script::Outcome::default(),
        })
    }

    async fn query(
        &mut self,
        text: &str,
        parameters: &[u8],
        page: PageOptions,
    ) -> Result<script::Outcome, NosqlFault> {
        let query = QueryText::with_parameters(text, parameters)?.lower(&self.texts)?.query;
        let request = QueryRequest {
            query,
            items_max: items_max(page.size),
            ends_at_ranges: false,
            continuation: page.continuation.map(continuation::token).transpose()?,
            session: Vec::new(),
            text_bytes: text.len() + parameters.len(),
        };
        let page = self.transaction.query(&request).await?;
        let writer = ItemWriter::new(&self.container);
        let rows = json_array(&page.rows, |row, out| match row {
            QueryRow::Document(stored) => writer.push(stored, out),
            QueryRow::Value(value) => value.as_ref().write_json(out),
        });
        let continuation = page.continuation.as_ref().map(continuation::text);
        Ok(script::Outcome { body: Some(rows), continuation, ..Default::default() })
    }

    async fn read_all(&mut self, page: PageOptions) -> Result<script::Outcome, NosqlFault> {
        let request = FeedRequest {
            items_max: items_max(page.size),
            continuation: page.continuation.map(continuation::token).transpose()?,
            session: Vec::new(),
        };
        let page = self.transaction.feed(&request).await?;
        let writer = ItemWriter::new(&self.container);
        let documents = json_array(&page.documents, |stored, out| writer.push(stored, out));
        let continuation = page.continuation.as_ref().map(continuation::text);
        Ok(script::Outcome { body: Some(documents), continuation, ..Default::default() })
    }

    /// The document that a link names. An RID of another container names none.
    fn target(&self, document: DocumentLink) -> Result<Target, NosqlFault> {
        match document {
            DocumentLink::Id(id) => Ok(Target::Id(id)),
            DocumentLink::Rid(text) => match Rid::parse(&text) {
                Some(rid @ Rid::Document(_, _, number)) if rid.parent() == Some(self.container.rid()) => {
                    Ok(Target::Number(number))
                }
                Some(_) | None => Err(MissingFault::Resource.into()),
            },
        }
    }

    fn written(&self, stored: &StoredDocument) -> Bytes {
        document_json(&self.container, stored)
    }
}

/// A stored document as JSON with its system properties.
pub(crate) fn document_json(container: &Container, stored: &StoredDocument) -> Bytes {
    let mut out = Vec::with_capacity(stored.document.bytes().len() * 5 / 4 + 256);
    ItemWriter::new(container).push(stored, &mut out);
    out.into()
}

impl Host for ScriptHost<'_> {
    type Fault = Fault;

    async fn operate(&mut self, operations: Vec<Operation>) -> Result<Replies, Fault> {
        let mut replies = Vec::with_capacity(operations.len());
        let mut replies_bytes = 0;
        for (index, operation) in operations.into_iter().enumerate() {
            let reply = match self.perform(operation).await {
                Ok(outcome) => Reply::Done(script::Outcome { container_size: self.size, ..outcome }),
                Err(fault) => Reply::Refused(refusal(fault)?),
            };
            replies_bytes += reply.size_bytes();
            replies.push(reply);
            if replies_bytes >= REPLIES_BYTES_MAX {
                break;
            }
            // Operations on cached documents never wait; without this the time of the script could not end them.
            if index % OPERATIONS_PER_YIELD == OPERATIONS_PER_YIELD - 1 {
                tokio::task::yield_now().await;
            }
        }
        // What is queued already still fits.
        Ok(Replies { replies, is_budget_low: self.transaction.is_half_full() })
    }

    fn failed(&mut self, log: String) {
        self.log = log;
    }
}

/// What a script learns of a refused operation; `Err` if the script cannot go on.
fn refusal(fault: NosqlFault) -> Result<script::Refusal, Fault> {
    if let NosqlFault::Core(fault) = &fault
        && ends_script(fault)
    {
        return Err(fault.clone());
    }
    let (status, ..) = faults::wire(&fault);
    let mut message = br#"{"Errors":["#.to_vec();
    json::push_string(&script_text(&fault), &mut message);
    message.extend_from_slice(b"]}");
    let message = String::from_utf8_lossy(&message).into_owned();
    Ok(script::Refusal { number: status.as_u16(), message })
}

/// Whether the reason is not the operation, but the state of the server or of the transaction.
fn ends_script(fault: &Fault) -> bool {
    matches!(
        fault,
        Fault::Storage(_)
            | Fault::Internal(_)
            | Fault::Conflict(ConflictFault::ConcurrentChange | ConflictFault::Locked { .. })
            | Fault::Limit(
                LimitFault::TransactionTime { .. }
                    | LimitFault::Overloaded { .. }
                    | LimitFault::Stopping { .. }
            )
    )
}

/// The text of a fault, as the service has it for operations of scripts.
fn script_text(fault: &NosqlFault) -> String {
    let NosqlFault::Core(core) = fault else { return faults::text(fault) };
    if matches!(core, Fault::Missing(MissingFault::Resource)) {
        return "Resource Not Found".to_owned();
    }
    if matches!(core, Fault::Request(RequestFault::OutsideTransaction { .. })) {
        let text = "Requests originating from scripts cannot reference partition keys other than the one for which \
                    client request was submitted.";
        return text.to_owned();
    }
    faults::text(fault)
}

fn required(etag: Option<String>) -> Condition {
    etag.map_or(Condition::None, |etag| if_match(&etag))
}

fn items_max(size: Option<i64>) -> usize {
    match size.map(usize::try_from) {
        None => PAGE_ITEMS_DEFAULT,
        Some(Ok(size)) => size.clamp(1, PAGE_ITEMS_MAX),
        // The server chooses.
        Some(Err(_)) => PAGE_ITEMS_MAX,
    }
}

fn json_array<T>(elements: &[T], mut write: impl FnMut(&T, &mut Vec<u8>)) -> Bytes {
    let mut out = vec![b'['];
    for (index, element) in elements.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(element, &mut out);
    }
    out.push(b']');
    out.into()
}
