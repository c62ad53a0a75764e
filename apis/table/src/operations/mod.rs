//! One file per operation, and the dispatch to them.
//!
//! An operation parses its headers and body, obtains a pass from the engine, calls the engine and writes the answer. It
//! runs only for an authenticated caller.

mod batch;
mod create_table;
mod delete_entity;
mod delete_table;
mod entity;
mod insert_entity;
mod list_tables;
mod merge_entity;
mod put_entity;
mod query_entities;
mod read_entity;
mod read_service_properties;
mod read_statistics;
mod read_table;
mod read_table_acl;
mod replace_service_properties;
mod replace_table_acl;
mod sender;
pub(crate) mod tables;

pub(crate) use sender::check_sender;

use crate::account::{AccountStyle, TableAccount};
use crate::faults::{Code, TableFault, request};
use crate::query_string::QueryString;
use crate::route::Operation;
use crate::service::TableOptions;
use crate::wire::entity::{EntityFrame, MetadataLevel, Select};
use crate::wire::reply::Reply;
use crate::wire::{accept, names};
use api_http::ConnectionInfo;
use api_http::request_headers::RequestHeaders;
use bytes::Bytes;
use engine::{Action, Container, Engine, Principal};
use http::{HeaderName, Uri};
use model::Charge;
use std::sync::Arc;
use tokio::sync::Mutex;

/// Charge of a catalog read.
const CATALOG_READ: Charge = Charge::MINIMUM;
/// Charge of a catalog change.
const CATALOG_WRITE: Charge = Charge::from_hundredths(495);

const XML: &str = "application/xml;charset=utf-8";

/// A request with an authenticated caller and a complete body, or one of a batch.
pub(crate) struct Call<'a> {
    pub(crate) engine: &'a Arc<Engine>,
    pub(crate) options: &'a TableOptions,
    pub(crate) creating: &'a Mutex<()>,
    pub(crate) account: &'a TableAccount,
    pub(crate) is_account_in_path: bool,
    pub(crate) principal: Principal,
    /// Finds tables and creates their database on behalf of a delegate.
    pub(crate) signer: Principal,
    pub(crate) connection: ConnectionInfo,
    pub(crate) uri: &'a Uri,
    pub(crate) headers: &'a RequestHeaders,
    pub(crate) query: &'a QueryString<'a>,
    pub(crate) body: Bytes,
}

/// Performs the operation of a request.
///
/// The future of a request is moved often, so it is only as large as point reads and inserts need; the futures of the
/// other operations are boxed.
pub(crate) async fn perform(call: &Call<'_>, operation: &Operation) -> Result<Reply, TableFault> {
    if let Operation::ReadEntity(path) = operation {
        return read_entity::perform(call, path).await;
    }
    if let Operation::InsertEntity(table) = operation {
        return insert_entity::perform(call, table).await;
    }
    Box::pin(perform_any(call, operation)).await
}

async fn perform_any(call: &Call<'_>, operation: &Operation) -> Result<Reply, TableFault> {
    match operation {
        Operation::ReadEntity(path) => read_entity::perform(call, path).await,
        Operation::InsertEntity(table) => insert_entity::perform(call, table).await,
        Operation::PutEntity(path) => entity::update(call, path, put_entity::operation).await,
        Operation::MergeEntity(path) => entity::update(call, path, merge_entity::operation).await,
        Operation::DeleteEntity(path) => delete_entity::perform(call, path).await,
        Operation::QueryEntities(table) => query_entities::perform(call, table).await,
        Operation::Batch => batch::perform(call).await,
        Operation::ListTables => list_tables::perform(call),
        Operation::CreateTable => create_table::perform(call).await,
        Operation::ReadTable(table) => read_table::perform(call, table),
        Operation::DeleteTable(table) => delete_table::perform(call, table).await,
        Operation::ReadTableAcl(table) => read_table_acl::perform(call, table),
        Operation::ReplaceTableAcl(table) => replace_table_acl::perform(call, table).await,
        Operation::ReadServiceProperties => read_service_properties::perform(call),
        Operation::ReplaceServiceProperties => replace_service_properties::perform(call).await,
        Operation::ReadStatistics => read_statistics::perform(call),
    }
}

impl Call<'_> {
    fn style(&self) -> AccountStyle {
        self.account.style
    }

    /// The text of a header.
    fn header(&self, name: &HeaderName) -> Result<Option<&str>, TableFault> {
        let Some(value) = self.headers.get(name) else { return Ok(None) };
        let invalid = |_| request(Code::InvalidHeaderValue, format!("The header {name} is not text."));
        value.to_str().map(Some).map_err(invalid)
    }

    /// The table of this name, if the caller may know that it exists.
    fn table(&self, name: &str, action: Action) -> Result<Arc<Container>, TableFault> {
        tables::find(self.engine, (&self.principal, &self.signer), action, self.style(), name)
    }

    /// The level of metadata of the answer.
    fn level(&self) -> Result<MetadataLevel, TableFault> {
        accept::level(self.headers, self.query.get("$format"))
    }

    /// The address of the service, without a slash at its end.
    fn base(&self) -> String {
        let account = match self.is_account_in_path {
            true => format!("/{}", self.account.name),
            false => String::new(),
        };
        if let Some(endpoint) = &self.options.public_endpoint {
            return format!("{}{account}", endpoint.trim_end_matches('/'));
        }
        let host = match self.uri.authority() {
            Some(authority) => authority.as_str(),
            None => self.headers.get(&HOST).and_then(|host| host.to_str().ok()).unwrap_or_default(),
        };
        let scheme = if self.connection.secure { "https" } else { "http" };
        format!("{scheme}://{host}{account}")
    }

    /// What the entities of an answer have in common.
    fn frame<'f>(
        &'f self,
        level: MetadataLevel,
        base: &'f str,
        table: &'f Container,
        select: &'f Select,
    ) -> EntityFrame<'f> {
        EntityFrame { level, base, account: &self.account.name, table: table.id(), select }
    }

    /// Whether the client prefers to get back what it has written; `None` if it does not say.
    fn prefers_content(&self) -> Result<Option<bool>, TableFault> {
        Ok(match self.header(&names::PREFER)? {
            Some(text) if text.trim().eq_ignore_ascii_case("return-no-content") => Some(false),
            Some(text) if text.trim().eq_ignore_ascii_case("return-content") => Some(true),
            Some(_) | None => None,
        })
    }

    /// The body as text.
    fn text_body(&self) -> Result<&str, TableFault> {
        let invalid = |_| request(Code::InvalidXmlDocument, "XML specified is not valid: it is not UTF-8.");
        str::from_utf8(&self.body).map_err(invalid)
    }

    /// Refuses an operation that accounts of Cosmos DB do not have.
    fn require_storage(&self, what: &str) -> Result<(), TableFault> {
        match self.style() {
            AccountStyle::Storage => Ok(()),
            AccountStyle::Cosmos => Err(request(
                Code::NotImplemented,
                format!("Accounts of Cosmos DB for Table do not support {what}."),
            )),
        }
    }
}

static HOST: HeaderName = names::HOST;
static LOCATION: HeaderName = names::LOCATION;
static ETAG: HeaderName = names::ETAG;
static IF_MATCH: HeaderName = names::IF_MATCH;
