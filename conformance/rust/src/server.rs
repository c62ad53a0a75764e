//! The server under test as a child process: started, stopped in order, killed, started again on the same folder.

use azure_core::credentials::{Secret, TokenCredential};
use azure_core::hmac::hmac_sha256;
use azure_core::time::{OffsetDateTime, to_rfc7231};
use azure_data_cosmos::options::Region;
use azure_data_cosmos::{
    AccountReference, CosmosClient, CosmosClientBuilder, CosmosRuntime, RoutingStrategy,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use tokio::sync::OnceCell;

/// The key that everybody knows.
pub const KEY: &str =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
const READY_MAX: Duration = Duration::from_secs(30);

/// One server and its data folder. The port is chosen at the first start and kept at later ones.
pub struct Server {
    folder: tempfile::TempDir,
    mode: &'static str,
    flags: Vec<String>,
    process: Option<Child>,
    port: u16,
    /// Connections of the SDK. Those of another server would not trust this one's authority.
    connections: OnceCell<CosmosRuntime>,
    /// Waits for the end of this process; see `end_with_this_process`.
    guard: Option<Child>,
}

impl Server {
    /// Starts a server with an empty data folder.
    pub fn start_new() -> Server {
        Server::start_in("dev", &[])
    }

    /// The same in a mode of the program, with more flags.
    pub fn start_in(mode: &'static str, flags: &[&str]) -> Server {
        let folder = tempfile::Builder::new().prefix("conformance-").tempdir().unwrap();
        let flags = flags.iter().map(|&flag| flag.to_owned()).collect();
        let connections = OnceCell::new();
        let mut server = Server { folder, mode, flags, process: None, port: 0, connections, guard: None };
        server.start();
        server
    }

    pub fn start(&mut self) {
        let log = self.folder.path().join("log");
        let log = std::fs::OpenOptions::new().append(true).create(true).open(log).unwrap();
        let mut process = Command::new(program())
            .args([self.mode, "--data"])
            .arg(self.data())
            .args(["--nosql", &format!("127.0.0.1:{}", self.port)])
            .args(&self.flags)
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        self.process = Some(process);
        let (sender, receiver) = mpsc::channel();
        // Reads on after the ready line, so that the pipe never fills.
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let place = line.strip_prefix("ready nosql=").and_then(|rest| rest.split(' ').next());
                let port =
                    place.and_then(|place| place.trim_end_matches('/').rsplit(':').next()?.parse().ok());
                if let Some(port) = port {
                    // Nobody listens after the first.
                    let _ = sender.send(port);
                }
            }
        });
        self.port =
            receiver.recv_timeout(READY_MAX).unwrap_or_else(|_| panic!("not ready\n{}", self.errors()));
        trust(&self.authority());
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Does something with the account's keys, as an operator would, and answers what the program printed.
    pub fn keys(&self, verb: &str, name: &str) -> String {
        let mut command = Command::new(program());
        let output = command.args(["keys", verb, name, "--data"]).arg(self.data()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Has the server killed and its folder removed when this process ends, however it ends: a static is never dropped.
    pub fn end_with_this_process(mut self) -> Server {
        let id = self.process.as_ref().unwrap().id().to_string();
        // The guard reads a pipe that nobody writes to; it ends with the last holder of its other end, which is us.
        let guard = Command::new("sh")
            .args(["-c", "cat; kill -9 \"$0\"; sleep 0.2; rm -rf \"$1\"", &id])
            .arg(self.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        self.guard = Some(guard.unwrap());
        self
    }

    /// Asks it to end, as an operator would; answers whether it ended well.
    pub fn stop(&mut self) -> bool {
        let mut process = self.process.take().unwrap();
        assert!(Command::new("kill").arg(process.id().to_string()).status().unwrap().success());
        process.wait().unwrap().success()
    }

    /// Ends it as a crash would: no last words, no flush.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    pub fn endpoint(&self, scheme: &str) -> String {
        format!("{scheme}://127.0.0.1:{}/", self.port)
    }

    /// A client as an application makes it.
    pub async fn client(&self, scheme: &str) -> CosmosClient {
        self.build(self.builder().await, scheme, KEY).await.unwrap()
    }

    pub async fn client_with_key(&self, scheme: &str, key: &str) -> azure_data_cosmos::Result<CosmosClient> {
        self.build(stranger().await, scheme, key).await
    }

    /// A client that asks a credential for tokens.
    pub async fn client_with_tokens(
        &self,
        scheme: &str,
        credential: Arc<dyn TokenCredential>,
    ) -> azure_data_cosmos::Result<CosmosClient> {
        let account = AccountReference::with_credential(self.endpoint(scheme).parse().unwrap(), credential);
        stranger().await.build(account, RoutingStrategy::ProximityTo(Region::EAST_US)).await
    }

    pub async fn builder(&self) -> CosmosClientBuilder {
        let connections =
            self.connections.get_or_try_init(|| CosmosRuntime::builder().build()).await.unwrap();
        CosmosClient::builder().with_runtime(connections.clone())
    }

    pub async fn build(
        &self,
        builder: CosmosClientBuilder,
        scheme: &str,
        key: &str,
    ) -> azure_data_cosmos::Result<CosmosClient> {
        let endpoint = self.endpoint(scheme).parse().unwrap();
        let account = AccountReference::with_authentication_key(endpoint, key.to_owned());
        builder.build(account, RoutingStrategy::ProximityTo(Region::EAST_US)).await
    }

    /// The certificate of the server's own authority.
    fn authority(&self) -> String {
        self.send("GET /_explorer/emulator.pem", "", "").split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    /// Creates a resource of a kind under a parent as the SDK does not.
    pub fn create_by_hand(&self, parent: &str, kind: &str, body: &Value) {
        self.create_with_headers(parent, kind, body, "");
    }

    /// Creates a database whose containers share its throughput, which the SDK cannot.
    pub fn create_sharing_database(&self, name: &str, throughput: u64) {
        let headers = format!("x-ms-offer-throughput: {throughput}\r\n");
        self.create_with_headers("", "dbs", &json!({ "id": name }), &headers);
    }

    fn create_with_headers(&self, parent: &str, kind: &str, body: &Value, more_headers: &str) {
        let date = to_rfc7231(&OffsetDateTime::now_utc());
        let text = format!("post\n{kind}\n{parent}\n{}\n\n", date.to_lowercase());
        let signature = hmac_sha256(&text, &Secret::new(KEY)).unwrap();
        let signature = signature.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
        let headers = format!(
            "authorization: type%3Dmaster%26ver%3D1.0%26sig%3D{signature}\r\n\
             x-ms-date: {date}\r\nx-ms-version: 2020-07-15\r\n{more_headers}"
        );
        let path = format!("{parent}/{kind}");
        let answer =
            self.send(&format!("POST /{}", path.trim_start_matches('/')), &headers, &body.to_string());
        assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    }

    /// The physical partitions of a container, from the control API.
    pub fn partitions(&self, database: &str, container: &str) -> Vec<Value> {
        let path = format!("GET /_control/dbs/{database}/colls/{container}/partitions");
        let answer = self.send(&path, &format!("authorization: Bearer {KEY}\r\n"), "");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
        body["partitions"].as_array().unwrap().clone()
    }

    /// How many requests each partition of a container has had, from the metrics.
    pub fn requests_by_partition(&self, database: &str, container: &str) -> BTreeMap<String, u64> {
        let start = format!(
            "perihelion_partition_requests_total{{database=\"{database}\",container=\"{container}\",partition=\""
        );
        let sample = |line: &str| {
            let (partition, count) = line.strip_prefix(&start)?.split_once("\"} ")?;
            Some((partition.to_owned(), count.parse().unwrap()))
        };
        self.send("GET /metrics", "", "").lines().filter_map(sample).collect()
    }

    /// One request on a connection of its own, and the whole answer.
    fn send(&self, verb_and_path: &str, headers: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let size = body.len();
        let request = format!(
            "{verb_and_path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {size}\r\n\
             {headers}\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn errors(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A builder that shares nothing. Clients of one runtime for one endpoint share the credential of the first.
pub async fn stranger() -> CosmosClientBuilder {
    CosmosClient::builder().with_runtime(CosmosRuntime::builder().build().await.unwrap())
}

/// The program to test: the release build, or what the environment names.
fn program() -> PathBuf {
    let named = std::env::var_os("PERIHELION_BIN").filter(|named| !named.is_empty());
    let release = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/release/perihelion");
    let path = named.map_or_else(release, PathBuf::from);
    assert!(
        path.exists(),
        "no server at {}: run `cargo build --release -p perihelion` first",
        path.display()
    );
    path
}

/// Adds an authority to the file that every new client reads.
fn trust(certificate: &str) {
    static AUTHORITIES: Mutex<String> = Mutex::new(String::new());
    let file = std::env::var("SSL_CERT_FILE").expect("cargo sets it, see .cargo/config.toml");
    let mut authorities = AUTHORITIES.lock().unwrap();
    authorities.push_str(certificate);
    // Never half a file: another test may make a client now.
    let whole = format!("{file}.new");
    std::fs::write(&whole, &*authorities).unwrap();
    std::fs::rename(&whole, &file).unwrap();
}
