//! One file per operation, and the dispatch to them.
//!
//! An operation parses its headers and body, obtains a pass from the engine, calls the engine and writes the answer. It
//! runs only for an authenticated caller.

mod asked;
mod batch;
mod bulk;
mod create_container;
mod create_database;
mod create_document;
mod create_encryption_key;
mod create_permission;
mod create_script;
mod create_user;
mod delete_conflict;
mod delete_container;
mod delete_database;
mod delete_document;
mod delete_partition_key;
mod delete_permission;
mod delete_script;
mod delete_user;
pub(crate) mod document;
mod execute_procedure;
mod list_attachments;
mod list_conflicts;
mod list_containers;
mod list_databases;
mod list_documents;
mod list_encryption_keys;
mod list_offers;
mod list_permissions;
mod list_ranges;
mod list_scripts;
mod list_users;
mod patch_document;
mod post_documents;
mod query_conflicts;
mod query_documents;
mod query_offers;
mod query_plan;
mod read_account;
mod read_change_feed;
mod read_conflict;
mod read_container;
mod read_database;
mod read_document;
mod read_encryption_key;
mod read_offer;
mod read_permission;
mod read_script;
mod read_user;
mod replace_container;
mod replace_document;
mod replace_encryption_key;
mod replace_offer;
mod replace_permission;
mod replace_script;
mod replace_user;
mod scope;
mod sender;
mod steps;
mod triggered;

pub(crate) use read_container::{quota, used};
pub(crate) use sender::check_sender;

use crate::faults::{NosqlFault, Refusal, WireFault};
use crate::lower::{LoweredQuery, QueryText, TextCache};
use crate::route::{ContainerPath, Operation};
use crate::service::NosqlOptions;
use crate::wire::links::ContainerLinks;
use crate::wire::reply::Reply;
use crate::wire::request_headers::RequestHeaders;
use crate::wire::{definition, headers, names, resources, version};
use api_http::ConnectionInfo;
use bytes::Bytes;
use engine::{
    Action, Addressed, AdminPass, CatalogPass, Container, Creation, Database, Engine, Guarded, Keyed,
    LARGE_TEXT_BYTES, ListRequest, MemoryHolder, Principal, Resource, WritePass,
};
use http::StatusCode;
use http::request::Parts;
use model::{AccessFault, Charge, Etag, Fault, MissingFault};
use serde_json::Value as Json;
use std::sync::Arc;

/// Charge of a catalog read.
const CATALOG_READ: Charge = Charge::MINIMUM;
/// Charge of a catalog change.
const CATALOG_WRITE: Charge = Charge::from_hundredths(495);

/// A request with an authenticated caller and a complete body.
pub(crate) struct Call<'a> {
    pub(crate) engine: &'a Arc<Engine>,
    pub(crate) options: &'a NosqlOptions,
    pub(crate) texts: &'a Arc<TextCache>,
    pub(crate) principal: Principal,
    pub(crate) connection: ConnectionInfo,
    pub(crate) parts: &'a Parts,
    pub(crate) headers: &'a RequestHeaders,
    pub(crate) body: Bytes,
}

/// Performs the operation of a request.
///
/// The future of a request is moved often and lives as long as its connection, so it is only as large as reads and
/// creates of documents need; the futures of the other operations are boxed.
pub(crate) async fn perform(call: &Call<'_>, operation: Operation<'_>) -> Result<Reply, Refusal> {
    if let Operation::ReadDocument(path) = operation {
        return read_document::perform(call, path).await;
    }
    if let Operation::PostDocuments(path) = operation {
        return post_documents::perform(call, path).await;
    }
    Box::pin(perform_any(call, operation)).await
}

async fn perform_any(call: &Call<'_>, operation: Operation<'_>) -> Result<Reply, Refusal> {
    match operation {
        Operation::ReadDocument(path) => read_document::perform(call, path).await,
        Operation::PostDocuments(path) => post_documents::perform(call, path).await,
        Operation::ReplaceDocument(path) => replace_document::perform(call, path).await,
        Operation::PatchDocument(path) => patch_document::perform(call, path).await,
        Operation::DeleteDocument(path) => delete_document::perform(call, path).await,
        Operation::ListDocuments(path) => list_documents::perform(call, path).await,
        Operation::ListAttachments(path) => list_attachments::perform(call, path).await,
        Operation::DeletePartitionKey(path) => delete_partition_key::perform(call, path).await,
        Operation::ReadAccount => read_account::perform(call),
        Operation::ListDatabases => list_databases::perform(call).await,
        Operation::CreateDatabase => create_database::perform(call).await,
        Operation::ReadDatabase(database) => read_database::perform(call, database),
        Operation::DeleteDatabase(database) => delete_database::perform(call, database).await,
        Operation::ListContainers(database) => list_containers::perform(call, database).await,
        Operation::CreateContainer(database) => create_container::perform(call, database).await,
        Operation::ReadContainer(path) => read_container::perform(call, path).await,
        Operation::ReplaceContainer(path) => replace_container::perform(call, path).await,
        Operation::DeleteContainer(path) => delete_container::perform(call, path).await,
        Operation::ListRanges(path) => list_ranges::perform(call, path),
        Operation::ListOffers => list_offers::perform(call).await,
        Operation::ReadOffer(offer) => read_offer::perform(call, offer).await,
        Operation::ReplaceOffer(offer) => replace_offer::perform(call, offer).await,
        Operation::QueryOffers => query_offers::perform(call).await,
        Operation::ListUsers(database) => list_users::perform(call, database).await,
        Operation::CreateUser(database) => create_user::perform(call, database).await,
        Operation::ReadUser(path) => read_user::perform(call, path),
        Operation::ReplaceUser(path) => replace_user::perform(call, path).await,
        Operation::DeleteUser(path) => delete_user::perform(call, path).await,
        Operation::ListPermissions(path) => list_permissions::perform(call, path).await,
        Operation::CreatePermission(path) => create_permission::perform(call, path).await,
        Operation::ReadPermission(path) => read_permission::perform(call, path),
        Operation::ReplacePermission(path) => replace_permission::perform(call, path).await,
        Operation::DeletePermission(path) => delete_permission::perform(call, path).await,
        Operation::ListScripts(path, kind) => list_scripts::perform(call, path, kind).await,
        Operation::CreateScript(path, kind) => create_script::perform(call, path, kind).await,
        Operation::ReadScript(path) => read_script::perform(call, path),
        Operation::ReplaceScript(path) => replace_script::perform(call, path).await,
        Operation::DeleteScript(path) => delete_script::perform(call, path).await,
        Operation::ExecuteProcedure(path) => execute_procedure::perform(call, path).await,
        Operation::ListConflicts(path) => list_conflicts::perform(call, path).await,
        Operation::QueryConflicts(path) => query_conflicts::perform(call, path).await,
        Operation::ReadConflict(path) => read_conflict::perform(call, path),
        Operation::DeleteConflict(path) => delete_conflict::perform(call, path),
        Operation::ListEncryptionKeys(database) => list_encryption_keys::perform(call, database).await,
        Operation::CreateEncryptionKey(database) => create_encryption_key::perform(call, database).await,
        Operation::ReadEncryptionKey(path) => read_encryption_key::perform(call, path),
        Operation::ReplaceEncryptionKey(path) => replace_encryption_key::perform(call, path).await,
    }
}

/// The fault for a part of the protocol that is not implemented.
fn not_supported(feature: &str) -> WireFault {
    WireFault::NotSupported { feature: feature.to_owned() }
}

impl Call<'_> {
    pub(crate) fn headers(&self) -> &RequestHeaders {
        self.headers
    }

    /// Refuses a caller that may not do `action` at `resource`.
    fn authorise(&self, action: Action, resource: Resource<'_>) -> Result<(), AccessFault> {
        self.engine.access().authorise(&self.principal, action, resource)
    }

    /// Permission to read a resource of the catalog.
    fn read_catalog<R: Guarded>(&self, resource: R) -> Result<CatalogPass<R>, AccessFault> {
        self.engine.access().read_catalog(&self.principal, resource)
    }

    /// Permission to change a resource of the catalog.
    fn change_catalog<R: Guarded>(&self, resource: R) -> Result<AdminPass<R>, AccessFault> {
        self.engine.access().change_catalog(&self.principal, resource)
    }

    /// Permission to change a document.
    fn write<'a>(&'a self, keyed: Keyed<'a>) -> Result<WritePass<'a>, AccessFault> {
        self.engine.access().write(&self.principal, keyed)
    }

    /// The holder to which the memory of body and answer is charged.
    pub(crate) fn memory_holder(&self) -> MemoryHolder {
        MemoryHolder::new(&self.principal, self.connection.memory.clone())
    }

    /// The query in the body. A long text is parsed on the query threads.
    async fn query(&self) -> Result<LoweredQuery, NosqlFault> {
        if self.body.len() <= LARGE_TEXT_BYTES {
            return QueryText::read(self.headers(), &self.body)?.lower(self.texts);
        }
        let (headers, body, texts) = (self.headers().clone(), self.body.clone(), Arc::clone(self.texts));
        self.compute(move || QueryText::read(&headers, &body)?.lower(&texts)).await
    }

    /// Runs a computation whose time depends on the length of the query in the body: on the query threads if that is
    /// long.
    async fn compute<T: Send + 'static>(
        &self,
        compute: impl FnOnce() -> Result<T, NosqlFault> + Send + 'static,
    ) -> Result<T, NosqlFault> {
        self.engine.compute(&self.principal, self.body.len(), move || Ok(compute())).await?
    }

    /// The body as small JSON: definitions only. Items have their own parser.
    fn json_body(&self) -> Result<Json, WireFault> {
        serde_json::from_slice(&self.body).map_err(|error| WireFault::Json { reason: error.to_string() })
    }

    /// The name in a body that needs no other member.
    fn name_in_body(&self) -> Result<String, NosqlFault> {
        let body = self.json_body()?;
        let members = body.as_object();
        let bad = || WireFault::Body { reason: "a definition is a JSON object".to_owned() };
        definition::name_of(members.ok_or_else(bad)?)
    }

    /// The database that the request addresses, if the caller may know that it exists.
    fn database(&self, segment: &str, action: Action) -> Result<Arc<Database>, Fault> {
        self.engine.find_database(&self.principal, action, segment)
    }

    /// The database that contains the addressed resource.
    fn owner_database(&self, segment: &str, action: Action) -> Result<Arc<Database>, Fault> {
        self.database(segment, action).map_err(owner_fault)
    }

    /// The container that the request addresses, if the caller may know that it exists.
    fn container(&self, path: ContainerPath<'_>, action: Action) -> Result<Addressed<Arc<Container>>, Fault> {
        self.engine.find_container(&self.principal, action, path.database, path.container)
    }

    /// The container of the addressed data. Its absence has a fault of its own, different from absent data.
    fn owner(&self, path: ContainerPath<'_>, action: Action) -> Result<Addressed<Arc<Container>>, Refusal> {
        let found = self.container(path, action).map_err(owner_fault)?;
        let intended = headers::text(self.headers(), &names::INTENDED_CONTAINER_RID)?;
        if let Some(intended) =
            intended.filter(|intended| *intended.as_bytes() != ContainerLinks::of(&found.resource).rid)
        {
            let (intended, actual) = (intended.to_owned(), found.resource.rid().to_string());
            return Err(WireFault::ContainerChanged { intended, actual }.into());
        }
        Ok(found)
    }

    /// What a create does if the resource exists.
    fn creation(&self) -> Result<Creation, WireFault> {
        Ok(match headers::flag(self.headers(), &names::IS_UPSERT)? {
            true => Creation::OrReplace(headers::write_condition(self.headers())?),
            false => Creation::OnlyNew,
        })
    }

    /// Adds the URL of the read resource.
    fn add_location(&self, reply: &mut Reply) {
        let path = self.parts.uri.path().trim_start_matches('/').as_bytes();
        if let Some(endpoint) = &self.options.public_endpoint {
            return reply.location(&[endpoint.trim_end_matches('/').as_bytes(), b"/", path]);
        }
        let host = match self.parts.uri.authority() {
            Some(authority) => authority.as_str().as_bytes(),
            None => self.headers().get(&names::HOST).map_or(&[][..], |host| host.as_bytes()),
        };
        let scheme: &[u8] = if self.connection.secure { b"https://" } else { b"http://" };
        reply.location(&[scheme, host, b"/", path]);
    }

    /// A container as its client knows it: old ones do not know a key that no item has.
    fn container_json(&self, container: &Container) -> Json {
        let mut json = resources::container(container);
        if container.definition().partition_key.is_system_key()
            && version::is_before(self.headers(), version::SYSTEM_KEYS)
            && let Some(members) = json.as_object_mut()
        {
            members.remove("partitionKey");
        }
        json
    }

    /// The answer to the read of a small resource: without a body if the client has this version.
    fn read_reply(&self, resource: &Json, etag: Etag) -> Result<Reply, WireFault> {
        let seen = headers::text(self.headers(), &names::IF_NONE_MATCH)?;
        if !seen.is_some_and(|seen| seen == "*" || seen.as_bytes() == etag.text()) {
            let mut reply = resource_reply(StatusCode::OK, CATALOG_READ, resource, etag);
            self.add_location(&mut reply);
            return Ok(reply);
        }
        let mut reply = Reply::empty(StatusCode::NOT_MODIFIED, CATALOG_READ);
        reply.etag(etag);
        Ok(reply)
    }

    /// Size and start of the requested page.
    fn page_request(&self) -> Result<ListRequest, WireFault> {
        let continuation = headers::text(self.headers(), &names::CONTINUATION)?.map(str::to_owned);
        Ok(ListRequest { items_max: headers::page_items(self.headers())?, continuation })
    }
}

/// Converts the fault: the absent resource is the owner of the addressed one.
fn owner_fault(fault: Fault) -> Fault {
    match fault {
        Fault::Missing(MissingFault::Resource) => MissingFault::Owner.into(),
        Fault::Missing(MissingFault::Owner | MissingFault::Range { .. } | MissingFault::Session)
        | Fault::Request(_)
        | Fault::Access(_)
        | Fault::Conflict(_)
        | Fault::Precondition(_)
        | Fault::Query(_)
        | Fault::Limit(_)
        | Fault::Storage(_)
        | Fault::Internal(_) => fault,
    }
}

/// The answer with one small resource.
fn resource_reply(status: StatusCode, charge: Charge, resource: &Json, etag: Etag) -> Reply {
    let mut reply = Reply::json(status, charge, resources::text(resource));
    reply.etag(etag);
    reply
}

/// The same with the name path of the resource's owner.
fn owned_reply(status: StatusCode, charge: Charge, resource: &Json, etag: Etag, owner: &str) -> Reply {
    let mut reply = resource_reply(status, charge, resource, etag);
    reply.owner_path(owner);
    reply
}

/// The status of a resource that was created or replaced.
fn written_status(created: bool) -> StatusCode {
    if created { StatusCode::CREATED } else { StatusCode::OK }
}
