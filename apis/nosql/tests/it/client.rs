//! A client that signs like the SDKs, and the API that it uses.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use engine::{AccountKey, Engine, EngineOptions, ScriptOptions};
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, Method, Request, Response, StatusCode, Version};
use http_body_util::{BodyExt, Full};
use kv::{CommitMode, Store};
use model::Ambient;
use nosql::{AnswerBody, ConnectionInfo, NosqlApi, NosqlOptions};
use partition::keyspace::SPACES;
use serde_json::{Value as Json, json};
use sha2::Sha256;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

pub(crate) const KEY: &[u8] = b"the key of these tests";
/// The time of all tests.
pub(crate) const NOW: u64 = 1_700_000_000;

/// A clock that only moves when it is set, and randomness that counts.
#[derive(Debug, Default)]
pub(crate) struct Still {
    later_seconds: AtomicU64,
    random: AtomicU64,
}

impl Ambient for Still {
    fn now_ms(&self) -> u64 {
        (NOW + self.later_seconds.load(Ordering::Relaxed)) * 1000
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        for byte in bytes {
            *byte = self.random.fetch_add(1, Ordering::Relaxed).to_le_bytes()[0];
        }
    }
}

/// An API with an account.
pub(crate) struct Client {
    api: NosqlApi,
    ambient: Arc<Still>,
}

impl Client {
    /// An empty account.
    pub(crate) async fn empty() -> Client {
        Client::with_options(NosqlOptions::default()).await
    }

    /// An API over an engine that was opened elsewhere.
    pub(crate) fn over(engine: Arc<Engine>) -> Client {
        Client { api: NosqlApi::new(engine, NosqlOptions::default()), ambient: Arc::default() }
    }

    pub(crate) async fn with_options(options: NosqlOptions) -> Client {
        Client::with_scripts(options, None).await
    }

    /// The same, with scripts that are executed.
    pub(crate) async fn with_scripts(options: NosqlOptions, scripts: Option<ScriptOptions>) -> Client {
        Client::on_store(Store::memory(&SPACES, CommitMode::Thread), options, scripts).await
    }

    /// The same on a store that may have an account already.
    pub(crate) async fn on_store(
        store: Store,
        options: NosqlOptions,
        scripts: Option<ScriptOptions>,
    ) -> Client {
        Client::opened(store, options, EngineOptions { scripts, ..EngineOptions::default() }).await
    }

    /// An empty account of an engine with these options.
    pub(crate) async fn with_engine(options: NosqlOptions, engine_options: EngineOptions) -> Client {
        Client::opened(Store::memory(&SPACES, CommitMode::Thread), options, engine_options).await
    }

    async fn opened(store: Store, options: NosqlOptions, engine_options: EngineOptions) -> Client {
        let engine_options = EngineOptions {
            keys: vec![AccountKey::new(KEY)],
            computed_reader: nosql::read_computed_property,
            document_link: nosql::document_link,
            ..engine_options
        };
        let ambient = Arc::new(Still::default());
        let engine = Engine::open(store, engine_options, Arc::<Still>::clone(&ambient)).await.unwrap();
        Client { api: NosqlApi::new(engine, options), ambient }
    }

    /// Advances the clock.
    pub(crate) fn advance(&self, seconds: u64) {
        self.ambient.later_seconds.fetch_add(seconds, Ordering::Relaxed);
    }

    /// An account with database `d` and container `c`, keyed by `/pk`.
    pub(crate) async fn with_container() -> Client {
        let client = Client::empty().await;
        client.create("/dbs", json!({ "id": "d" })).await;
        client.create("/dbs/d/colls", container("c")).await;
        client
    }

    /// Creates a small resource that must be new.
    pub(crate) async fn create(&self, path: &str, body: Json) -> Json {
        let answer = self.send(Call::post(path).json(&body)).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{path}: {answer:?}");
        answer.json()
    }

    /// Reads a list in pages of two and returns the ids.
    pub(crate) async fn listed(&self, path: &str, envelope: &str) -> Vec<String> {
        let mut ids = Vec::new();
        let mut call = Call::get(path).header("x-ms-max-item-count", "2");
        loop {
            let answer = self.send(call.clone()).await;
            let page = answer.json();
            let items = page[envelope].as_array().unwrap();
            assert!(items.len() <= 2 && page["_count"] == items.len());
            ids.extend(items.iter().map(|item| item["id"].as_str().unwrap().to_owned()));
            let Some(continuation) = answer.header("x-ms-continuation") else {
                return ids;
            };
            call = call.header("x-ms-continuation", continuation);
        }
    }

    /// Creates an item with partition key `pk` in `/dbs/d/colls/c`.
    pub(crate) async fn put_item(&self, id: &str, key: &str) -> Answer {
        let body = json!({ "id": id, "pk": key, "n": 1 });
        let answer = self.send(Call::post(DOCS).key(&json!([key])).json(&body)).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
        answer
    }

    /// Sends a request and reads the whole answer.
    pub(crate) async fn send(&self, call: Call) -> Answer {
        self.send_by(
            call,
            ConnectionInfo { secure: false, peer: std::net::Ipv4Addr::LOCALHOST.into(), memory: None },
        )
        .await
    }

    pub(crate) async fn send_by(&self, call: Call, connection: ConnectionInfo) -> Answer {
        let response = self.answered(call, connection).await;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer { status: parts.status, headers: parts.headers, body }
    }

    /// Sends a request and does not read the body of the answer. A connection with its own memory is an HTTP/2 one.
    pub(crate) async fn answered(&self, call: Call, connection: ConnectionInfo) -> Response<AnswerBody> {
        let mut request = call.into_request();
        if connection.memory.is_some() {
            *request.version_mut() = Version::HTTP_2;
        }
        self.api.handle(request, connection).await
    }

    /// Sends a request with a body of another kind.
    pub(crate) async fn send_body<B>(&self, call: Call, body: B) -> Answer
    where
        B: hyper::body::Body<Data = Bytes>,
    {
        let (parts, _) = call.into_request().into_parts();
        let response = self
            .api
            .handle(
                Request::from_parts(parts, body),
                ConnectionInfo { secure: false, peer: std::net::Ipv4Addr::LOCALHOST.into(), memory: None },
            )
            .await;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer { status: parts.status, headers: parts.headers, body }
    }
}

/// The documents of the usual container.
pub(crate) const DOCS: &str = "/dbs/d/colls/c/docs";

/// A definition keyed by `/pk`.
pub(crate) fn container(id: &str) -> Json {
    json!({ "id": id, "partitionKey": { "paths": ["/pk"], "kind": "Hash", "version": 2 } })
}

/// A request before it is signed.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) verb: Method,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
    /// Headers that would be added but are not wanted.
    pub(crate) omitted: Vec<String>,
    /// Kind and link to sign, if they differ from those of the path.
    pub(crate) signed_as: Option<(String, String)>,
}

impl Call {
    pub(crate) fn new(verb: Method, path: &str) -> Call {
        Call {
            verb,
            path: path.to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
            omitted: Vec::new(),
            signed_as: None,
        }
    }

    pub(crate) fn get(path: &str) -> Call {
        Call::new(Method::GET, path)
    }

    pub(crate) fn post(path: &str) -> Call {
        Call::new(Method::POST, path)
    }

    pub(crate) fn put(path: &str) -> Call {
        Call::new(Method::PUT, path)
    }

    pub(crate) fn patch(path: &str) -> Call {
        Call::new(Method::PATCH, path)
    }

    pub(crate) fn delete(path: &str) -> Call {
        Call::new(Method::DELETE, path)
    }

    /// Sets a header, replacing one of the same name.
    pub(crate) fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Call {
        self.headers.retain(|(other, _)| other != name);
        self.headers.push((name.to_owned(), value.as_ref().to_vec()));
        self
    }

    pub(crate) fn without_header(mut self, name: &str) -> Call {
        self.headers.retain(|(other, _)| other != name);
        self
    }

    /// Omits a header that every request has.
    pub(crate) fn omit(mut self, name: &str) -> Call {
        self.omitted.push(name.to_owned());
        self
    }

    pub(crate) fn key(self, key: &Json) -> Call {
        self.header("x-ms-documentdb-partitionkey", key.to_string())
    }

    /// Sends a resource token instead of a signature, as SDKs do: encoded, and without a date.
    pub(crate) fn token(self, token: &str) -> Call {
        self.header("authorization", encoded(token)).omit("x-ms-date")
    }

    pub(crate) fn json(self, body: &Json) -> Call {
        self.body(body.to_string().into_bytes())
    }

    pub(crate) fn body(mut self, body: Vec<u8>) -> Call {
        self.body = body;
        self
    }

    pub(crate) fn signed_as(mut self, kind: &str, link: &str) -> Call {
        self.signed_as = Some((kind.to_owned(), link.to_owned()));
        self
    }

    fn into_request(self) -> Request<Full<Bytes>> {
        let date = self.given("x-ms-date").unwrap_or_else(|| date_at(NOW));
        let authorization = self.given("authorization").unwrap_or_else(|| self.authorization(&date));
        let mut request = Request::builder().method(&self.verb).uri(&self.path);
        let host = "localhost:8081".to_owned();
        for (name, value) in [("x-ms-date", date), ("authorization", authorization), ("host", host)] {
            if self.given(name).is_none() && !self.omitted.iter().any(|omitted| omitted == name) {
                request = request.header(name, value);
            }
        }
        for (name, value) in &self.headers {
            request = request.header(name, &value[..]);
        }
        request.body(Full::new(Bytes::from(self.body))).unwrap()
    }

    fn given(&self, name: &str) -> Option<String> {
        let found = self.headers.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| String::from_utf8_lossy(value).into_owned())
    }

    fn authorization(&self, date: &str) -> String {
        self.authorization_by(KEY, date)
    }

    /// The credential for an account key.
    pub(crate) fn authorization_by(&self, key: &[u8], date: &str) -> String {
        let (kind, link) = self.signed_as.clone().unwrap_or_else(|| subject(&self.path));
        let payload =
            format!("{}\n{}\n{link}\n{}\n\n", self.verb.as_str().to_lowercase(), kind, date.to_lowercase());
        let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
        mac.update(payload.as_bytes());
        let signature = BASE64_STANDARD.encode(mac.finalize().into_bytes());
        encoded(&format!("type=master&ver=1.0&sig={signature}"))
    }
}

/// An RFC 1123 date.
pub(crate) fn date_at(seconds: u64) -> String {
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds))
}

fn encoded(text: &str) -> String {
    text.replace('%', "%25").replace('=', "%3d").replace('&', "%26").replace('+', "%2B").replace('/', "%2F")
}

/// Kind and link of a path, as computed by clients that only know names.
fn subject(path: &str) -> (String, String) {
    let path = path.split('?').next().unwrap().trim_matches('/');
    let path = decoded(path);
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    match &segments[..] {
        [] => (String::new(), String::new()),
        ["offers", rid] => ("offers".to_owned(), rid.to_lowercase()),
        [owner @ .., "operations", _] => ("colls".to_owned(), owner.join("/")),
        all if all.len() % 2 == 0 => (all[all.len() - 2].to_owned(), all.join("/")),
        [owner @ .., kind] => ((*kind).to_owned(), owner.join("/")),
    }
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, others @ ..] = rest {
        rest = others;
        match (first, rest) {
            (b'%', [high, low, others @ ..]) => {
                let digits = [*high, *low];
                let hex = str::from_utf8(&digits).ok().and_then(|hex| u8::from_str_radix(hex, 16).ok());
                bytes.push(hex.unwrap_or(b'%'));
                rest = others;
            }
            _ => bytes.push(*first),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The answer to a request.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    #[track_caller]
    pub(crate) fn json(&self) -> Json {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// Status and substatus.
    pub(crate) fn code(&self) -> (u16, u32) {
        let substatus = self.header("x-ms-substatus").map_or(0, |text| text.parse().unwrap());
        (self.status.as_u16(), substatus)
    }

    /// The message of a refusal.
    #[track_caller]
    pub(crate) fn message(&self) -> String {
        self.json()["message"].as_str().unwrap().to_owned()
    }
}
