//! The processing of a request in the API.
//!
//! Shape, credential, body, operation: in this order, so that a caller without a key learns nothing about what exists
//! and cannot make the server hold memory.

use crate::account::{AccountStyle, TableAccount};
use crate::auth::{self, Caller, Claim};
use crate::cors;
use crate::faults::{Code, TableFault, error_body, request};
use crate::operations::{self, Call};
use crate::query_string::QueryString;
use crate::route::{self, Operation, Selectors};
use crate::wire::reply::{Common, Reply};
use crate::wire::{accept, names};
use api_http::answer_body::AnswerBody;
use api_http::body::IncomingBody;
use api_http::request_headers::RequestHeaders;
use api_http::{ConnectionInfo, Guid};
use bytes::Bytes;
use engine::{Engine, MemoryHolder, MemoryKind, Reservation};
use http::request::Parts;
use http::{Request, Response, StatusCode, Version};
use hyper::body::Body;
use model::limits::BATCH_ANSWER_BYTES_MAX;
use model::{Charge, Fault, ReadQuorum, StorageFault};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// The database whose containers are the tables.
pub const DATABASE: &str = "TablesDB";

/// Largest URL and headers of a request in bytes.
const HEADER_BYTES_MAX: usize = 48 * 1024;
/// A body that arrived with its headers and is at most this large is in the connection's own buffer.
const BODY_BYTES_SMALL: usize = 64 * 1024;
/// Answers up to this size are not counted on a connection with one request at a time.
const ANSWER_BYTES_SMALL: usize = 4 * 1024;

/// Settings of the API.
#[derive(Clone, Debug)]
pub struct TableOptions {
    /// The accounts, at least one. A request that names none means the first.
    pub accounts: Vec<TableAccount>,
    /// The endpoint in addresses of answers; by default the address that the client used.
    pub public_endpoint: Option<String>,
    /// The replicas that the service asks for a read at the account's consistency level.
    pub read_quorum: ReadQuorum,
    /// How long a request body may take to arrive.
    pub body_timeout: Duration,
    /// Whether a bearer token is accepted that contains an account key. The token reveals the key, so this is for one
    /// machine only.
    pub takes_key_tokens: bool,
}

/// The Table API over one engine.
#[derive(Clone)]
pub struct TableApi {
    engine: Arc<Engine>,
    options: Arc<TableOptions>,
    /// Held while a table is created: names that differ only in case are compared with those that exist.
    creating: Arc<Mutex<()>>,
}

impl TableApi {
    /// An API to `engine`.
    pub fn new(engine: Arc<Engine>, options: TableOptions) -> TableApi {
        TableApi { engine, options: Arc::new(options), creating: Arc::default() }
    }

    /// Answers one request. Never fails: a fault is an answer too.
    pub async fn handle<B>(&self, request: Request<B>, connection: ConnectionInfo) -> Response<AnswerBody>
    where
        B: Body<Data = Bytes>,
    {
        let (mut parts, body) = request.into_parts();
        let headers = RequestHeaders::from(std::mem::take(&mut parts.headers));
        let common = Common {
            request_id: Guid::random(self.engine.ambient()),
            client_id: headers.get(&names::CLIENT_REQUEST_ID),
            version: headers.get(&names::VERSION),
            now_seconds: self.engine.ambient().now_seconds(),
        };
        let body = pin!(body);
        let mut body = IncomingBody::new(body, self.options.body_timeout);
        let place = self.place(&parts, &headers);
        let style = place.style;
        let reply = match self.answer(&parts, &headers, &place, &mut body, connection).await {
            Ok(reply) => reply,
            Err(fault) => {
                log(&fault, &common.request_id, style);
                let mut reply = refused(&fault, style, &headers, &common);
                if !body.drain().await && parts.version < Version::HTTP_2 {
                    reply.fixed(&CONNECTION, "close");
                }
                reply
            }
        };
        let mut response = reply.into_response(&common);
        if headers.get(&http::header::ORIGIN).is_some() {
            cors::mark(&self.engine, &parts.method, headers.map(), response.headers_mut());
        }
        response
    }

    /// Finds the account of a request: by its path, its credential or its host, or else the first. A credential of
    /// an account that does not exist is refused in the style of the account that was found.
    fn place<'a>(&'a self, parts: &'a Parts, headers: &RequestHeaders) -> Located<'a> {
        let accounts = &self.options.accounts;
        let known: Vec<&str> = accounts.iter().map(|account| account.name.as_str()).collect();
        let by_name = |name: &str| known.iter().position(|known| *known == name);
        let host = parts.uri.host().or_else(|| headers.get(&names::HOST)?.to_str().ok());
        let (in_path, path) = match route::is_table_like_account(parts.uri.path(), host, parts.uri.query()) {
            true => (None, parts.uri.path().trim_start_matches('/')),
            false => route::split_account(parts.uri.path(), &known),
        };
        let label = host.and_then(|host| host.split(['.', ':']).next());
        let by_label = |label: &str| by_name(label).or_else(|| by_name(route::without_secondary(label)));
        let index = in_path
            .or_else(|| auth::named_account(headers).and_then(by_name))
            .or_else(|| label.and_then(by_label))
            .unwrap_or(0);
        let account = accounts.get(index);
        let style = account.map_or(AccountStyle::Storage, |account| account.style);
        Located { account, style, path, is_in_path: in_path.is_some() }
    }

    async fn answer<B>(
        &self,
        parts: &Parts,
        headers: &RequestHeaders,
        place: &Located<'_>,
        body: &mut IncomingBody<'_, B>,
        connection: ConnectionInfo,
    ) -> Result<Reply, TableFault>
    where
        B: Body<Data = Bytes>,
    {
        check_size(parts, headers)?;
        if cors::is_preflight(&parts.method, headers.map()) {
            return self.preflight(headers);
        }
        let account = place.account.ok_or_else(|| request(Code::InvalidUri, "There is no account."))?;
        let query = QueryString::parse(parts.uri.query().unwrap_or_default())?;
        let tunnel = headers.map().get(route::TUNNEL).and_then(|value| value.to_str().ok());
        let verb = route::tunneled(&parts.method, tunnel)?;
        let selectors = Selectors { restype: query.get("restype"), comp: query.get("comp") };
        let operation = route::operation(&verb, route::place(place.path)?, selectors)?;
        let claim = Claim {
            engine: &self.engine,
            account,
            parts,
            headers,
            query: &query,
            connection: &connection,
            operation: &operation,
            takes_key_tokens: self.options.takes_key_tokens,
        };
        let Caller { principal, signer } = auth::authenticate(&claim)?;
        let principal = principal.with_read_quorum(self.options.read_quorum);
        body.know_sender();
        let mut call = Call {
            engine: &self.engine,
            options: &self.options,
            creating: &self.creating,
            account,
            is_account_in_path: place.is_in_path,
            principal,
            signer,
            connection,
            uri: &parts.uri,
            headers,
            query: &query,
            body: Bytes::new(),
        };
        let _body_memory = take_body(&mut call, body, &operation).await?;
        perform(&call, &operation).await
    }

    fn preflight(&self, headers: &RequestHeaders) -> Result<Reply, TableFault> {
        let refused = || {
            request(
                Code::CorsPreflightFailure,
                "CORS not enabled or no matching rule found for this request.",
            )
        };
        let allowed = cors::preflight(&self.engine, headers.map()).ok_or_else(refused)?;
        let mut reply = Reply::empty(StatusCode::OK, Charge::NONE);
        reply.headers.extend(allowed);
        Ok(reply)
    }
}

static CONNECTION: http::HeaderName = names::CONNECTION;

/// The account of a request, and the rest of its path.
struct Located<'a> {
    account: Option<&'a TableAccount>,
    style: AccountStyle,
    path: &'a str,
    is_in_path: bool,
}

/// The answer to a refused request.
fn refused(fault: &TableFault, style: AccountStyle, headers: &RequestHeaders, common: &Common<'_>) -> Reply {
    let code = fault.code(style);
    let form = accept::error_form(headers);
    let body =
        error_body(form, code, &fault.message(style), &trailer(&common.request_id, common.now_seconds));
    let content_type = match form {
        crate::faults::ErrorForm::Json => {
            "application/json;odata=minimalmetadata;streaming=true;charset=utf-8"
        }
        crate::faults::ErrorForm::Xml => "application/xml;charset=utf-8",
    };
    let mut reply = Reply::with_body(code.status(style), fault.charge(), content_type, body);
    reply.fixed(&names::ERROR_CODE, code.text());
    if let Some(retry_after_ms) = fault.retry_after_ms() {
        reply.text(&names::RETRY_AFTER_MS, retry_after_ms.to_string());
        reply.text(&RETRY_AFTER, retry_after_ms.div_ceil(1000).to_string());
    }
    reply
}

static RETRY_AFTER: http::HeaderName = names::RETRY_AFTER;

/// The end of every error message.
pub(crate) fn trailer(request_id: &Guid, now_seconds: u64) -> String {
    let mut time = Vec::new();
    let ticks = i64::try_from(model::Ticks::from_seconds(now_seconds).0).unwrap_or(i64::MAX);
    crate::edm::write_date_time(ticks, &mut time);
    format!("RequestId:{}\nTime:{}", request_id.as_str(), String::from_utf8_lossy(&time))
}

/// Performs an operation within the memory limit for its answer. An answer to a read that finds no room is dropped and
/// produced again when there is. A batch cannot be executed twice, so room for the largest answer is reserved before.
async fn perform(call: &Call<'_>, operation: &Operation) -> Result<Reply, TableFault> {
    let (memory, holder) = (call.engine.request_memory(), call.memory_holder());
    if matches!(operation, Operation::Batch) {
        let reservation = memory.reserve(MemoryKind::Answer, &holder, BATCH_ANSWER_BYTES_MAX).await?;
        let mut reply = operations::perform(call, operation).await?;
        reply.reservation = Some(Box::new(reservation));
        return Ok(reply);
    }
    let mut reply = operations::perform(call, operation).await?;
    let size = reply.body.capacity();
    if size <= ANSWER_BYTES_SMALL && call.connection.memory.is_none() {
        return Ok(reply);
    }
    let reservation = match memory.try_reserve(MemoryKind::Answer, &holder, size) {
        Some(reservation) => reservation,
        None if matches!(operation, Operation::QueryEntities(_) | Operation::ReadEntity(_)) => {
            drop(reply);
            let reservation = memory.reserve(MemoryKind::Answer, &holder, size).await?;
            reply = Box::pin(operations::perform(call, operation)).await?;
            reservation
        }
        // It exists and cannot be produced again: later ones wait.
        None => memory.reserve_anyway(MemoryKind::Answer, &holder, size),
    };
    reply.reservation = Some(Box::new(reservation));
    Ok(reply)
}

/// Reads the body of a call, with a reservation of memory if it is large or has not arrived yet. In the latter case the
/// caller must be authorised to send it: nothing is held for others.
async fn take_body<B>(
    call: &mut Call<'_>,
    body: &mut IncomingBody<'_, B>,
    operation: &Operation,
) -> Result<Option<Reservation>, TableFault>
where
    B: Body<Data = Bytes>,
{
    let memory = call.engine.request_memory();
    if let Some(whole) = body.read_at_once().await? {
        call.body = whole;
        if call.body.len() <= BODY_BYTES_SMALL {
            return Ok(None);
        }
        return Ok(Some(memory.reserve(MemoryKind::Body, &call.memory_holder(), call.body.len()).await?));
    }
    operations::check_sender(call, operation)?;
    let reservation = memory.reserve(MemoryKind::Body, &call.memory_holder(), body.bytes_expected()).await?;
    call.body = Box::pin(body.read()).await?;
    Ok(Some(reservation))
}

impl Call<'_> {
    /// The holder to which the memory of body and answer is charged.
    fn memory_holder(&self) -> MemoryHolder {
        MemoryHolder::new(&self.principal, self.connection.memory.clone())
    }
}

/// Refuses a request whose URL and headers are larger than any client sends.
fn check_size(parts: &Parts, headers: &RequestHeaders) -> Result<(), TableFault> {
    let bytes = headers.size_bytes() + parts.uri.path().len() + parts.uri.query().map_or(0, str::len);
    if bytes > HEADER_BYTES_MAX {
        let message = format!("URL and headers have {bytes} bytes, {HEADER_BYTES_MAX} are allowed.");
        return Err(request(Code::InvalidUri, message));
    }
    Ok(())
}

/// Logs faults that operators must know. Faults of clients are logged at debug level only, without what they quote.
fn log(fault: &TableFault, request_id: &Guid, style: AccountStyle) {
    let activity = request_id.as_str();
    match fault {
        TableFault::Core(Fault::Internal(_), _) => {
            tracing::error!(event = "request_failed", activity, %fault, "a request failed by a defect of the server")
        }
        TableFault::Core(Fault::Storage(StorageFault::Damaged { .. }), _) => {
            tracing::error!(event = "data_damaged", activity, %fault, "stored data is damaged: stop the server and run `perihelion verify`")
        }
        TableFault::Core(Fault::Storage(_), _) => {
            tracing::warn!(event = "storage_refused", activity, %fault, "the store refused a request")
        }
        TableFault::Core(..)
        | TableFault::Entity(_)
        | TableFault::Filter(_)
        | TableFault::Multipart(_)
        | TableFault::Body(_)
        | TableFault::Credential(_)
        | TableFault::Request { .. }
        | TableFault::Step { .. } => {
            let code = fault.code(style);
            let (status, code) = (code.status(style).as_u16(), code.text());
            tracing::debug!(event = "request_refused", activity, status, code, "a request was refused");
        }
    }
}
