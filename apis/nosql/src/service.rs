//! The processing of a request in the API.
//!
//! Shape, credential, common headers, body, operation: in this order, so that a caller without a key learns nothing
//! about what exists and cannot make the server hold memory.

use crate::answers;
use crate::auth::{self, Signed};
use crate::compatibility::{self, Compatibility};
use crate::consistency::ConsistencyLevel;
use crate::cors::CorsPolicy;
use crate::faults::{self, NosqlFault, Refusal, Subject};
use crate::lower::TextCache;
use crate::operations::{self, Call};
use crate::resource_token;
use crate::route::{self, Operation, Path};
use crate::wire::activity::{self, ActivityId};
use crate::wire::answer_body::AnswerBody;
use crate::wire::body::IncomingBody;
use crate::wire::reply::Reply;
use crate::wire::request_headers::RequestHeaders;
use crate::wire::{headers, version};
use api_http::ConnectionInfo;
use bytes::Bytes;
use engine::{Engine, MemoryKind, Reservation};
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{Request, Response, Version};
use hyper::body::Body;
use model::{Fault, LimitFault, StorageFault};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Largest URL and headers of a request in bytes.
const HEADER_BYTES_MAX: usize = 32 * 1024;

/// A body that arrived with its headers and is at most this large is in the connection's own buffer.
const BODY_BYTES_SMALL: usize = 64 * 1024;

/// Settings of the API.
#[derive(Clone, Debug)]
pub struct NosqlOptions {
    /// The endpoint that is returned to clients; by default the address that they used.
    pub public_endpoint: Option<String>,
    /// How long a request body may take to arrive.
    pub body_timeout: Duration,
    /// Whether requests are refused that only the service refuses.
    pub compatibility: Compatibility,
    /// Origins whose pages may use the API from a browser; none by default.
    pub cors: Option<CorsPolicy>,
    /// The name of the account's only region.
    pub region: String,
    /// The account's consistency level.
    pub consistency: ConsistencyLevel,
    /// Whether a bearer token is accepted whose signature is an account key, as the emulator does. The token proves
    /// knowledge of the key and reveals it, so this is for one machine only.
    pub takes_key_tokens: bool,
}

impl Default for NosqlOptions {
    fn default() -> NosqlOptions {
        NosqlOptions {
            public_endpoint: None,
            body_timeout: Duration::from_secs(30),
            compatibility: Compatibility::Strict,
            cors: None,
            region: "Local".to_owned(),
            consistency: ConsistencyLevel::Session,
            takes_key_tokens: false,
        }
    }
}

/// The NoSQL API over one engine.
#[derive(Clone)]
pub struct NosqlApi {
    engine: Arc<Engine>,
    options: NosqlOptions,
    texts: Arc<TextCache>,
}

impl NosqlApi {
    /// An API to `engine`.
    pub fn new(engine: Arc<Engine>, options: NosqlOptions) -> NosqlApi {
        NosqlApi { engine, options, texts: Arc::new(TextCache::new()) }
    }

    /// Every route that the API answers, with `*` for an id: for tests that must not overlook one.
    #[doc(hidden)]
    pub fn routes() -> Vec<(http::Method, String)> {
        route::all()
    }

    /// Answers one request. Never fails: a fault is an answer too.
    pub async fn handle<B>(&self, request: Request<B>, connection: ConnectionInfo) -> Response<AnswerBody>
    where
        B: Body<Data = Bytes>,
    {
        let started = Instant::now();
        let (mut parts, body) = request.into_parts();
        let cors = self.options.cors.as_ref();
        if let Some(answer) = cors.and_then(|cors| cors.preflight(&parts)) {
            return answer;
        }
        let headers = RequestHeaders::from(std::mem::take(&mut parts.headers));
        let activity = activity::of(&headers, self.engine.ambient());
        let body = pin!(body);
        let mut body = IncomingBody::new(body, self.options.body_timeout);
        let mut reply = match self.answer(&parts, &headers, &mut body, connection).await {
            Ok(reply) => reply,
            Err(refusal) => {
                log(&refusal.fault, &activity);
                let mut reply = Reply::refused(&refusal, &activity, subject(&parts, &headers));
                if !body.drain().await && parts.version < Version::HTTP_2 {
                    reply.close_connection();
                }
                reply
            }
        };
        if version::is_before(&headers, version::VECTOR_SESSIONS) {
            reply.simplify_session();
        }
        let mut response = reply.into_response(&activity, started.elapsed(), parts.version);
        if let Some(cors) = cors {
            cors.mark(headers.map(), response.headers_mut());
        }
        response
    }

    async fn answer<B>(
        &self,
        parts: &Parts,
        headers: &RequestHeaders,
        body: &mut IncomingBody<'_, B>,
        connection: ConnectionInfo,
    ) -> Result<Reply, Refusal>
    where
        B: Body<Data = Bytes>,
    {
        check_size(parts, headers)?;
        headers::check_repeated(headers)?;
        let path = Path::parse(parts.uri.path())?;
        let operation = route::operation(&parts.method, &path)?;
        let authorization = headers.get(&AUTHORIZATION);
        let principal = match resource_token::of(authorization)? {
            Some(token) => self.engine.verify_token(&token)?,
            None => {
                let verb = &parts.method;
                let signed = Signed { verb, path: &path, headers, authorization };
                let now_seconds = self.engine.ambient().now_seconds();
                auth::authenticate(self.engine.access(), now_seconds, &signed, self.options.takes_key_tokens)?
            }
        };
        body.know_sender();
        let principal = principal.with_priority(headers::priority(headers)?);
        let consistency = headers::consistency(headers, self.options.consistency)?;
        let principal = principal.with_read_quorum(consistency.read_quorum());
        if let Some(fault) = compatibility::unknown_version(headers)
            && compatibility::mode(headers, self.options.compatibility)? == Compatibility::Strict
        {
            return Err(fault.into());
        }
        let NosqlApi { engine, options, texts } = self;
        let mut call =
            Call { engine, options, texts, principal, connection, parts, headers, body: Bytes::new() };
        let _body_memory = take_body(&mut call, body, operation).await?;
        answers::perform(&call, operation).await
    }
}

/// What a refused request was about, as far as its path and headers say it.
fn subject(parts: &Parts, headers: &RequestHeaders) -> Option<Subject> {
    let path = Path::parse(parts.uri.path()).ok()?;
    let operation = route::operation(&parts.method, &path).ok()?;
    Some(Subject::of(operation, headers))
}

/// Reads the body of a call, with a reservation of memory. If the body has not arrived yet, the caller must be
/// authorised to send it: nothing is held for others.
async fn take_body<B>(
    call: &mut Call<'_>,
    body: &mut IncomingBody<'_, B>,
    operation: Operation<'_>,
) -> Result<Option<Reservation>, Refusal>
where
    B: Body<Data = Bytes>,
{
    if let Some(whole) = body.read_at_once().await? {
        call.body = whole;
        if call.body.len() <= BODY_BYTES_SMALL {
            return Ok(None);
        }
        let memory = call.engine.request_memory();
        return Ok(Some(memory.reserve(MemoryKind::Body, &call.memory_holder(), call.body.len()).await?));
    }
    operations::check_sender(call, operation)?;
    // Boxed, because the future of a request is moved often and only large bodies need this part.
    Box::pin(take_late_body(call, body)).await.map(Some)
}

async fn take_late_body<B>(
    call: &mut Call<'_>,
    body: &mut IncomingBody<'_, B>,
) -> Result<Reservation, Refusal>
where
    B: Body<Data = Bytes>,
{
    let memory = call.engine.request_memory();
    let reservation = memory.reserve(MemoryKind::Body, &call.memory_holder(), body.bytes_expected()).await?;
    call.body = body.read().await?;
    Ok(reservation)
}

/// Refuses a request whose URL and headers are larger than any client sends.
fn check_size(parts: &Parts, headers: &RequestHeaders) -> Result<(), LimitFault> {
    let bytes = headers.size_bytes() + parts.uri.path().len() + parts.uri.query().map_or(0, str::len);
    if bytes > HEADER_BYTES_MAX {
        return Err(LimitFault::TooLarge { bytes, limit: HEADER_BYTES_MAX });
    }
    Ok(())
}

/// Logs faults that operators must know. Faults of clients are logged at debug level only.
fn log(fault: &NosqlFault, activity: &ActivityId) {
    let NosqlFault::Core(core) = fault else { return log_refusal(fault, activity) };
    match core {
        Fault::Internal(_) => {
            tracing::error!(event = "request_failed", activity = activity.as_str(), %fault, "a request failed by a defect of the server")
        }
        Fault::Storage(StorageFault::Damaged { .. }) => {
            tracing::error!(event = "data_damaged", activity = activity.as_str(), %fault, "stored data is damaged: stop the server and run `perihelion verify`")
        }
        Fault::Storage(
            StorageFault::Full { .. } | StorageFault::Unavailable { .. } | StorageFault::Uncertain { .. },
        ) => {
            tracing::warn!(event = "storage_refused", activity = activity.as_str(), %fault, "the store refused a request")
        }
        Fault::Request(_)
        | Fault::Access(_)
        | Fault::Missing(_)
        | Fault::Conflict(_)
        | Fault::Precondition(_)
        | Fault::Query(_)
        | Fault::Limit(_) => log_refusal(fault, activity),
    }
}

/// Without the text of the fault, which may quote what the client sent.
fn log_refusal(fault: &NosqlFault, activity: &ActivityId) {
    let (status, substatus, _) = faults::wire(fault);
    let (activity, status) = (activity.as_str(), status.as_u16());
    tracing::debug!(event = "request_refused", activity, status, substatus, "a request was refused");
}
