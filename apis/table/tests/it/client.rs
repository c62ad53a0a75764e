//! A client that signs like the SDKs, and the API that it uses.

use api_http::{AnswerBody, ConnectionInfo};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use engine::{AccountKey, Engine, EngineOptions, KeyName};
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use kv::{CommitMode, Store};
use model::{Ambient, ReadQuorum};
use partition::keyspace::SPACES;
use serde_json::Value as Json;
use sha2::Sha256;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use table::{AccountKeys, AccountStyle, TableAccount, TableApi, TableOptions};

pub(crate) const KEY: &[u8] = b"the key of these tests";
pub(crate) const READER_KEY: &[u8] = b"a key that only reads";
pub(crate) const STORAGE_KEY: &[u8] = b"the key of the storage account";
/// The time of all tests: 2023-11-14T22:13:20Z.
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

/// An API with two accounts: `storage`, whose requests have it in their path, and `cosmos`.
pub(crate) struct Client {
    api: TableApi,
    pub(crate) engine: Arc<Engine>,
    ambient: Arc<Still>,
}

/// How a request is signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Signing {
    SharedKey,
    Lite,
    None,
    Header(String),
}

/// A request, before it is signed.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) verb: Method,
    /// Below the account, with the query string.
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) account: &'static str,
    pub(crate) key: Vec<u8>,
    pub(crate) signing: Signing,
    pub(crate) date_seconds: u64,
    pub(crate) secure: bool,
}

impl Call {
    pub(crate) fn new(verb: &str, path: impl Into<String>) -> Call {
        Call {
            verb: Method::from_bytes(verb.as_bytes()).unwrap(),
            path: path.into(),
            headers: Vec::new(),
            body: Vec::new(),
            account: "storage",
            key: STORAGE_KEY.to_vec(),
            signing: Signing::SharedKey,
            date_seconds: NOW,
            secure: true,
        }
    }

    pub(crate) fn get(path: impl Into<String>) -> Call {
        Call::new("GET", path)
    }

    pub(crate) fn header(mut self, name: &str, value: impl Into<String>) -> Call {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub(crate) fn json(self, body: &str) -> Call {
        self.body("application/json", body)
    }

    pub(crate) fn body(mut self, content_type: &str, body: &str) -> Call {
        self.body = body.as_bytes().to_vec();
        self.header("content-type", content_type)
    }

    pub(crate) fn cosmos(mut self) -> Call {
        (self.account, self.key) = ("cosmos", KEY.to_vec());
        self
    }

    pub(crate) fn key(mut self, key: &[u8]) -> Call {
        self.key = key.to_vec();
        self
    }

    pub(crate) fn signing(mut self, signing: Signing) -> Call {
        self.signing = signing;
        self
    }

    pub(crate) fn at(mut self, date_seconds: u64) -> Call {
        self.date_seconds = date_seconds;
        self
    }

    fn into_request<B>(self, body: B) -> Request<B> {
        let path = match self.account {
            "storage" => format!("/storage/{}", self.path),
            _ => format!("/{}", self.path),
        };
        let (signed_path, query) = path.split_once('?').unwrap_or((&path, ""));
        let comp = query.split('&').find_map(|pair| pair.strip_prefix("comp="));
        let comp = comp.map(|comp| format!("?comp={comp}")).unwrap_or_default();
        let resource = format!("/{}{signed_path}{comp}", self.account);
        let date = date(self.date_seconds);
        let content_type = self.headers.iter().find(|(name, _)| name == "content-type");
        let content_type = content_type.map_or("", |(_, value)| value);
        let authorization = match &self.signing {
            Signing::SharedKey => {
                let payload = format!("{}\n\n{content_type}\n{date}\n{resource}", self.verb);
                Some(format!("SharedKey {}:{}", self.account, sign(&self.key, &payload)))
            }
            Signing::Lite => {
                let payload = format!("{date}\n{resource}");
                Some(format!("SharedKeyLite {}:{}", self.account, sign(&self.key, &payload)))
            }
            Signing::None => None,
            Signing::Header(text) => Some(text.clone()),
        };
        let mut request = Request::builder().method(self.verb).uri(&path);
        if !self.headers.iter().any(|(name, _)| name == "host") {
            request = request.header("host", "tables.example");
        }
        request = request.header("x-ms-date", date);
        if let Some(authorization) = authorization {
            request = request.header("authorization", authorization);
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        request.body(body).unwrap()
    }
}

pub(crate) fn sign(key: &[u8], payload: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(payload.as_bytes());
    BASE64_STANDARD.encode(mac.finalize().into_bytes())
}

/// An HTTP date.
pub(crate) fn date(seconds: u64) -> String {
    api_http::date::text(seconds)
}

/// An answer, completely read.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn text(&self) -> &str {
        str::from_utf8(&self.body).unwrap()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Json {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Status and code, which are the same in header and body.
    #[track_caller]
    pub(crate) fn refusal(&self) -> (u16, String) {
        let code = self.header("x-ms-error-code").unwrap_or_else(|| panic!("{self:?}")).to_owned();
        assert!(self.text().contains(&code), "{self:?}");
        (self.status.as_u16(), code)
    }

    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Answer {
        assert_eq!(self.status.as_u16(), status, "{self:?}");
        self
    }
}

impl Client {
    pub(crate) async fn empty() -> Client {
        Client::with(EngineOptions::default()).await
    }

    pub(crate) async fn with(options: EngineOptions) -> Client {
        let store = Store::memory(&SPACES, CommitMode::Thread);
        let keys = vec![AccountKey::new(KEY), AccountKey::named(KeyName::PrimaryReadOnly, READER_KEY)];
        let ambient = Arc::new(Still::default());
        let options = EngineOptions { keys, ..options };
        let engine = Engine::open(store, options, Arc::<Still>::clone(&ambient)).await.unwrap();
        let account = |name: &str, style, keys| TableAccount { name: name.to_owned(), style, keys };
        let options = TableOptions {
            accounts: vec![
                account("cosmos", AccountStyle::Cosmos, AccountKeys::Store),
                account("storage", AccountStyle::Storage, AccountKeys::Own(AccountKey::new(STORAGE_KEY))),
            ],
            public_endpoint: None,
            read_quorum: ReadQuorum::One,
            body_timeout: Duration::from_secs(5),
            takes_key_tokens: true,
        };
        Client { api: TableApi::new(Arc::clone(&engine), options), engine, ambient }
    }

    /// An account with the table `people`.
    pub(crate) async fn with_table() -> Client {
        let client = Client::empty().await;
        client.send(Call::new("POST", "Tables").json(r#"{"TableName":"people"}"#)).await.expect(201);
        client
    }

    /// Advances the clock.
    pub(crate) fn advance(&self, seconds: u64) {
        self.ambient.later_seconds.fetch_add(seconds, Ordering::Relaxed);
    }

    pub(crate) async fn send(&self, call: Call) -> Answer {
        let body = Full::from(call.body.clone());
        self.send_body(call, body).await
    }

    /// Sends a call with another body.
    pub(crate) async fn send_body<B>(&self, call: Call, body: B) -> Answer
    where
        B: hyper::body::Body<Data = Bytes>,
    {
        let (parts, body) = self.answered(call, body).await.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer { status: parts.status, headers: parts.headers, body }
    }

    /// The answer to a call, not read yet.
    pub(crate) async fn answered<B>(&self, call: Call, body: B) -> Response<AnswerBody>
    where
        B: hyper::body::Body<Data = Bytes>,
    {
        let connection =
            ConnectionInfo { secure: call.secure, peer: std::net::Ipv4Addr::LOCALHOST.into(), memory: None };
        self.api.handle(call.into_request(body), connection).await
    }

    /// Status and code of a refused request.
    pub(crate) async fn refusal(&self, call: Call) -> (u16, String) {
        self.send(call).await.refusal()
    }

    /// Inserts an entity of `people`.
    pub(crate) async fn insert(&self, json: &str) -> Answer {
        self.send(Call::new("POST", "people").json(json)).await.expect(201)
    }

    /// An entity of `people`; `None` if it does not exist.
    pub(crate) async fn entity(&self, partition_key: &str, row_key: &str) -> Option<Json> {
        let answer = self.send(Call::get(address(partition_key, row_key))).await;
        match answer.status {
            StatusCode::OK => Some(answer.json()),
            _ => {
                assert_eq!(answer.refusal(), (404, "ResourceNotFound".to_owned()));
                None
            }
        }
    }
}

/// The address of an entity of `people`.
pub(crate) fn address(partition_key: &str, row_key: &str) -> String {
    format!("people(PartitionKey='{partition_key}',RowKey='{row_key}')")
}

pub(crate) fn code(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}
