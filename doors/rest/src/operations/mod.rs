//! One file per operation, and the one place that calls them.
//!
//! An operation reads its headers and body, asks the engine for the pass and the deed, and writes the answer. It runs
//! only for a caller whose credential was good.

mod batch;
mod bulk;
mod create_container;
mod create_database;
mod create_document;
mod delete_container;
mod delete_database;
mod delete_document;
mod delete_partition_key;
mod document;
mod list_by_query;
mod list_containers;
mod list_databases;
mod list_documents;
mod list_offers;
mod list_ranges;
mod patch_document;
mod post_documents;
mod read_account;
mod read_container;
mod read_database;
mod read_document;
mod read_offer;
mod replace_container;
mod replace_document;
mod steps;

use crate::faults::Refusal;
use crate::route::{ContainerPath, Operation};
use crate::service::{ConnectionInfo, RestOptions};
use crate::wire::reply::Reply;
use crate::wire::{headers, names};
use bytes::Bytes;
use engine::{
    Action, Addressed, AdminPass, CatalogPass, Container, Engine, Page, PageRequest, Place, Principal, Reach,
    ReadPass, WritePass,
};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use model::{AccessFault, Charge, Fault, MissingFault, RequestFault};
use serde_json::Value as Json;
use std::sync::Arc;

/// What reading the catalog costs.
const CATALOG_READ: Charge = Charge::MINIMUM;
/// What changing the catalog costs.
const CATALOG_WRITE: Charge = Charge::from_hundredths(495);

/// A request whose caller is known and whose body is read.
pub(crate) struct Call<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) options: &'a RestOptions,
    pub(crate) principal: Principal,
    pub(crate) connection: ConnectionInfo,
    pub(crate) parts: &'a Parts,
    pub(crate) body: Bytes,
}

/// Does what the request asks for.
pub(crate) async fn perform(call: &Call<'_>, operation: Operation<'_>) -> Result<Reply, Refusal> {
    match operation {
        Operation::ReadDocument(path) => read_document::perform(call, path).await,
        Operation::PostDocuments(path) => post_documents::perform(call, path).await,
        Operation::ReplaceDocument(path) => replace_document::perform(call, path).await,
        Operation::PatchDocument(path) => patch_document::perform(call, path).await,
        Operation::DeleteDocument(path) => delete_document::perform(call, path).await,
        Operation::ListDocuments(path) => list_documents::perform(call, path).await,
        Operation::DeletePartitionKey(path) => delete_partition_key::perform(call, path).await,
        Operation::ReadAccount => read_account::perform(call),
        Operation::ListDatabases => list_databases::perform(call),
        Operation::CreateDatabase => create_database::perform(call).await,
        Operation::ReadDatabase(database) => read_database::perform(call, database),
        Operation::DeleteDatabase(database) => delete_database::perform(call, database).await,
        Operation::ListContainers(database) => list_containers::perform(call, database),
        Operation::CreateContainer(database) => create_container::perform(call, database).await,
        Operation::ReadContainer(path) => read_container::perform(call, path),
        Operation::ReplaceContainer(path) => replace_container::perform(call, path).await,
        Operation::DeleteContainer(path) => delete_container::perform(call, path).await,
        Operation::ListRanges(path) => list_ranges::perform(call, path),
        Operation::ListOffers => list_offers::perform(call),
        Operation::ReadOffer(offer) => read_offer::perform(call, offer),
        Operation::ReplaceOffer(_) => Err(not_supported("a change of throughput").into()),
        Operation::QueryOffers => Err(not_supported("a query over offers").into()),
        Operation::NotBuilt(feature) => Err(not_supported(feature).into()),
    }
}

/// The refusal of what is part of the protocol and not built.
fn not_supported(feature: &str) -> RequestFault {
    RequestFault::NotSupported { feature: feature.to_owned() }
}

impl Call<'_> {
    fn headers(&self) -> &HeaderMap {
        &self.parts.headers
    }

    /// Leave to read the catalog.
    fn read_catalog(&self, action: Action, place: Place<'_>) -> Result<CatalogPass, AccessFault> {
        self.engine.access().read_catalog(&self.principal, action, place)
    }

    /// Leave to change the catalog.
    fn change_catalog(&self, action: Action, place: Place<'_>) -> Result<AdminPass, AccessFault> {
        self.engine.access().change_catalog(&self.principal, action, place)
    }

    /// Leave to read documents.
    fn read<'a>(
        &self,
        action: Action,
        container: &'a Container,
        reach: Reach<'_>,
    ) -> Result<ReadPass<'a>, AccessFault> {
        self.engine.access().read(&self.principal, action, container, reach)
    }

    /// Leave to change documents.
    fn write<'a>(
        &self,
        actions: &[Action],
        container: &'a Container,
        reach: Reach<'_>,
    ) -> Result<WritePass<'a>, AccessFault> {
        self.engine.access().write(&self.principal, actions, container, reach)
    }

    /// The body as small JSON: definitions only. Items have a parser of their own.
    fn json_body(&self) -> Result<Json, RequestFault> {
        serde_json::from_slice(&self.body)
            .map_err(|error| RequestFault::BadJson { reason: error.to_string() })
    }

    /// The container whose data the request is about. Its absence is told apart from that of the data.
    fn owner(&self, path: ContainerPath<'_>) -> Result<Addressed<Arc<Container>>, Refusal> {
        let found = self.engine.find_container(path.database, path.container).map_err(owner_fault)?;
        if let Some(intended) = headers::text(self.headers(), &names::INTENDED_CONTAINER_RID)? {
            let actual = found.resource.rid().text();
            if intended != actual.as_str() {
                let (intended, actual) = (intended.to_owned(), actual.as_str().to_owned());
                return Err(RequestFault::ContainerChanged { intended, actual }.into());
            }
        }
        Ok(found)
    }

    /// How much of a feed is wanted and from where.
    fn page_request(&self) -> Result<PageRequest, RequestFault> {
        let continuation = headers::text(self.headers(), &names::CONTINUATION)?.map(str::to_owned);
        Ok(PageRequest { items_max: headers::page_items(self.headers())?, continuation })
    }
}

/// What is absent is the owner of what the request is about.
fn owner_fault(fault: Fault) -> Fault {
    match fault {
        Fault::Missing(MissingFault::Resource) => MissingFault::Owner.into(),
        Fault::Missing(
            MissingFault::Route { .. }
            | MissingFault::Verb { .. }
            | MissingFault::Owner
            | MissingFault::Range { .. }
            | MissingFault::Session,
        )
        | Fault::Request(_)
        | Fault::Access(_)
        | Fault::Conflict(_)
        | Fault::Precondition(_)
        | Fault::Limit(_)
        | Fault::Storage(_)
        | Fault::Internal(_) => fault,
    }
}

/// The answer with a page of small resources.
fn page_reply<T>(parent_rid: &str, envelope: &str, page: Page<T>, resource: impl Fn(&T) -> Json) -> Reply {
    let resources: Vec<Json> = page.items.iter().map(resource).collect();
    let count = resources.len();
    let body = crate::wire::resources::feed(parent_rid, envelope, resources);
    let mut reply = Reply::json(StatusCode::OK, CATALOG_READ, body);
    reply.number(&names::ITEM_COUNT, count);
    if let Some(continuation) = page.continuation {
        reply.text(&names::CONTINUATION, continuation);
    }
    reply
}
