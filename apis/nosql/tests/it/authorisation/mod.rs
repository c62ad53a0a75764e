//! Authorisation of every route of the API: a handwritten table, compared with what the API does.
//!
//! The table does not depend on how rights are computed. A route without a row fails, so that a new one cannot be
//! forgotten; a row without a route is for a future one.

mod credentials;

use crate::client::{Call, Client, DOCS, KEY, container};
use credentials::{ASSIGNMENTS, Account, PRIMARY_READ, SECONDARY, SECONDARY_READ, Shown};
use http::{Method, StatusCode};
use nosql::NosqlApi;
use serde_json::{Value as Json, json};

/// The callers, in the order of the columns below.
fn callers() -> Vec<(&'static str, Shown)> {
    let mut callers = vec![
        ("primary", Shown::Signed(KEY, 0)),
        ("secondary", Shown::Signed(SECONDARY, 0)),
        ("primary-readonly", Shown::Signed(PRIMARY_READ, 0)),
        ("secondary-readonly", Shown::Signed(SECONDARY_READ, 0)),
    ];
    callers.extend(ASSIGNMENTS.map(|(principal, ..)| (principal, Shown::Token(principal, 60))));
    callers.push(("nobody", Shown::Token("nobody", 60)));
    callers
}

/// Verb, route, body, and a `+` for each caller that is permitted.
///
/// Columns: two read-write keys, two read-only keys | reader, contributor and item reader of the account | reader and
/// contributor of the database | reader and contributor of the container, contributor to another container |
/// contributor to another database | no role. The substatus is that of refused tokens.
const TABLE: &[(&str, &str, Body, &str, u32)] = &[
    ("GET", "/", Body::None, "++++ ++- ++ +++ + -", 5301),
    ("GET", "/dbs", Body::None, "++++ ++- -- --- - -", 5301),
    ("POST", "/dbs", Body::Name("new"), "++-- --- -- --- - -", 5300),
    ("POST", "/dbs", Body::Query, "++++ ++- -- --- - -", 5301),
    ("GET", "/dbs/*", Body::None, "++++ ++- ++ --- - -", 5301),
    ("DELETE", "/dbs/*", Body::None, "++-- --- -- --- - -", 5300),
    ("GET", "/dbs/*/colls", Body::None, "++++ ++- ++ --- - -", 5301),
    ("POST", "/dbs/*/colls", Body::Container, "++-- --- -- --- - -", 5300),
    ("POST", "/dbs/*/colls", Body::Query, "++++ ++- ++ --- - -", 5301),
    ("GET", "/dbs/*/colls/*", Body::None, "++++ ++- ++ ++- - -", 5301),
    ("PUT", "/dbs/*/colls/*", Body::Container, "++-- --- -- --- - -", 5300),
    ("DELETE", "/dbs/*/colls/*", Body::None, "++-- --- -- --- - -", 5300),
    ("GET", "/dbs/*/colls/*/pkranges", Body::None, "++++ ++- ++ ++- - -", 5301),
    ("GET", "/dbs/*/colls/*/docs", Body::None, "++++ ++- ++ ++- - -", 5302),
    ("GET", "/dbs/*/colls/*/docs", Body::ChangeFeed, "++++ ++- ++ ++- - -", 5302),
    ("POST", "/dbs/*/colls/*/docs", Body::Item, "++-- -+- -+ -+- - -", 5302),
    ("POST", "/dbs/*/colls/*/docs", Body::Upsert, "++-- -+- -+ -+- - -", 5302),
    ("POST", "/dbs/*/colls/*/docs", Body::Query, "++++ ++- ++ ++- - -", 5302),
    ("POST", "/dbs/*/colls/*/docs", Body::Plan, "++++ ++- ++ ++- - -", 5302),
    ("POST", "/dbs/*/colls/*/docs", Body::BatchOfReads, "++++ +++ ++ ++- - -", 5302),
    ("POST", "/dbs/*/colls/*/docs", Body::BatchOfBoth, "++-- -+- -+ -+- - -", 5302),
    ("POST", "/dbs/*/colls/*/docs", Body::Bulk, "++-- -+- -+ -+- - -", 5302),
    ("GET", "/dbs/*/colls/*/docs/*", Body::None, "++++ +++ ++ ++- - -", 5302),
    ("GET", "/dbs/*/colls/*/docs/*/attachments", Body::None, "++++ +++ ++ ++- - -", 5302),
    ("PUT", "/dbs/*/colls/*/docs/*", Body::Item, "++-- -+- -+ -+- - -", 5302),
    ("PATCH", "/dbs/*/colls/*/docs/*", Body::Patch, "++-- -+- -+ -+- - -", 5302),
    ("DELETE", "/dbs/*/colls/*/docs/*", Body::None, "++-- -+- -+ -+- - -", 5302),
    ("POST", "/dbs/*/colls/*/operations/partitionkeydelete", Body::None, "++-- -+- -+ -+- - -", 5302),
    ("GET", "/offers", Body::None, "++++ ++- -- --- - -", 5301),
    ("POST", "/offers", Body::Query, "++++ ++- -- --- - -", 5301),
    ("GET", "/offers/*", Body::None, "++++ ++- -- --- - -", 5301),
    ("PUT", "/offers/*", Body::Offer, "++-- --- -- --- - -", 5300),
    ("GET", "/dbs/*/users", Body::None, "++++ --- -- --- - -", 5300),
    ("POST", "/dbs/*/users", Body::Name("new"), "++-- --- -- --- - -", 5300),
    ("POST", "/dbs/*/users", Body::Query, "++++ --- -- --- - -", 5300),
    ("GET", "/dbs/*/users/*", Body::None, "++++ --- -- --- - -", 5300),
    ("PUT", "/dbs/*/users/*", Body::Name("c"), "++-- --- -- --- - -", 5300),
    ("DELETE", "/dbs/*/users/*", Body::None, "++-- --- -- --- - -", 5300),
    ("GET", "/dbs/*/users/*/permissions", Body::None, "++-- --- -- --- - -", 5300),
    ("POST", "/dbs/*/users/*/permissions", Body::Permission, "++-- --- -- --- - -", 5300),
    ("POST", "/dbs/*/users/*/permissions", Body::Query, "++-- --- -- --- - -", 5300),
    ("GET", "/dbs/*/users/*/permissions/*", Body::None, "++-- --- -- --- - -", 5300),
    ("PUT", "/dbs/*/users/*/permissions/*", Body::Permission, "++-- --- -- --- - -", 5300),
    ("DELETE", "/dbs/*/users/*/permissions/*", Body::None, "++-- --- -- --- - -", 5300),
    ("GET", "/dbs/*/clientencryptionkeys", Body::None, "++++ ++- ++ --- - -", 5301),
    ("POST", "/dbs/*/clientencryptionkeys", Body::EncryptionKey, "++-- --- -- --- - -", 5300),
    ("POST", "/dbs/*/clientencryptionkeys", Body::Query, "++++ ++- ++ --- - -", 5301),
    ("GET", "/dbs/*/clientencryptionkeys/*", Body::None, "++++ ++- ++ --- - -", 5301),
    ("PUT", "/dbs/*/clientencryptionkeys/*", Body::EncryptionKey, "++-- --- -- --- - -", 5300),
    ("GET", "/dbs/*/colls/*/sprocs", Body::None, "++++ ++- ++ ++- - -", 5301),
    ("POST", "/dbs/*/colls/*/sprocs", Body::Script, "++-- --- -- --- - -", 5300),
    ("POST", "/dbs/*/colls/*/sprocs", Body::Query, "++++ ++- ++ ++- - -", 5301),
    ("GET", "/dbs/*/colls/*/sprocs/*", Body::None, "++++ ++- ++ ++- - -", 5301),
    ("PUT", "/dbs/*/colls/*/sprocs/*", Body::Script, "++-- --- -- --- - -", 5300),
    ("DELETE", "/dbs/*/colls/*/sprocs/*", Body::None, "++-- --- -- --- - -", 5300),
    ("GET", "/dbs/*/colls/*/triggers", Body::None, "++++ ++- ++ ++- - -", 5301),
    ("POST", "/dbs/*/colls/*/triggers", Body::Script, "++-- --- -- --- - -", 5300),
    ("POST", "/dbs/*/colls/*/triggers", Body::Query, "++++ ++- ++ ++- - -", 5301),
    ("GET", "/dbs/*/colls/*/triggers/*", Body::None, "++++ ++- ++ ++- - -", 5301),
    ("PUT", "/dbs/*/colls/*/triggers/*", Body::Script, "++-- --- -- --- - -", 5300),
    ("DELETE", "/dbs/*/colls/*/triggers/*", Body::None, "++-- --- -- --- - -", 5300),
    ("GET", "/dbs/*/colls/*/udfs", Body::None, "++++ ++- ++ ++- - -", 5301),
    ("POST", "/dbs/*/colls/*/udfs", Body::Script, "++-- --- -- --- - -", 5300),
    ("POST", "/dbs/*/colls/*/udfs", Body::Query, "++++ ++- ++ ++- - -", 5301),
    ("GET", "/dbs/*/colls/*/udfs/*", Body::None, "++++ ++- ++ ++- - -", 5301),
    ("PUT", "/dbs/*/colls/*/udfs/*", Body::Script, "++-- --- -- --- - -", 5300),
    ("DELETE", "/dbs/*/colls/*/udfs/*", Body::None, "++-- --- -- --- - -", 5300),
    ("GET", "/dbs/*/colls/*/conflicts", Body::None, "++++ -+- -+ -+- - -", 5302),
    ("POST", "/dbs/*/colls/*/conflicts", Body::Query, "++++ -+- -+ -+- - -", 5302),
    ("GET", "/dbs/*/colls/*/conflicts/*", Body::None, "++++ -+- -+ -+- - -", 5302),
    ("DELETE", "/dbs/*/colls/*/conflicts/*", Body::None, "++-- -+- -+ -+- - -", 5302),
];

/// Routes that answer "not supported" to permitted callers: there is nothing to protect.
const NOT_SUPPORTED: [&str; 1] = ["POST /dbs/*/colls/*/sprocs/*"];

/// The body of a request.
#[derive(Clone, Copy, Debug)]
enum Body {
    None,
    Name(&'static str),
    Container,
    Item,
    Upsert,
    Query,
    ChangeFeed,
    Plan,
    BatchOfReads,
    BatchOfBoth,
    Bulk,
    Patch,
    Offer,
    Permission,
    Script,
    EncryptionKey,
}

impl Body {
    fn add_to(self, call: Call) -> Call {
        let item = json!({ "id": "1", "pk": "k" });
        let read = json!({ "operationType": "Read", "id": "1" });
        let write = json!({ "operationType": "Upsert", "resourceBody": item });
        let batch =
            |call: Call, steps: Json| call.header("x-ms-cosmos-is-batch-request", "True").json(&steps);
        match self {
            Body::None => call,
            Body::Name(name) => call.json(&json!({ "id": name })),
            Body::Container => call.json(&container("c")),
            Body::Item => call.json(&item),
            Body::Upsert => call.header("x-ms-documentdb-is-upsert", "True").json(&item),
            Body::Query => call
                .header("x-ms-documentdb-isquery", "True")
                .header("content-type", "application/query+json")
                .json(&json!({ "query": "SELECT * FROM c" })),
            Body::ChangeFeed => call.header("a-im", "Incremental feed"),
            Body::Plan => call
                .header("x-ms-cosmos-is-query-plan-request", "True")
                .json(&json!({ "query": "SELECT * FROM c" })),
            Body::BatchOfReads => batch(call, json!([read])).header("x-ms-cosmos-batch-atomic", "True"),
            Body::BatchOfBoth => batch(call, json!([read, write])).header("x-ms-cosmos-batch-atomic", "True"),
            Body::Bulk => batch(call, json!([write])),
            Body::Offer => call.json(&json!({ "content": { "offerThroughput": 400 } })),
            Body::Permission => call.json(&permission()),
            Body::Script => call.json(&script()),
            Body::EncryptionKey => call.json(&encryption_key()),
            Body::Patch => call.json(&json!([{ "op": "set", "path": "/n", "value": 2 }])),
        }
    }
}

fn permission() -> Json {
    json!({ "id": "1", "permissionMode": "Read", "resource": "dbs/d/colls/c" })
}

fn script() -> Json {
    json!({ "id": "1", "body": "function () {}", "triggerType": "Pre", "triggerOperation": "All" })
}

fn encryption_key() -> Json {
    json!({
        "id": "c",
        "encryptionAlgorithm": "A",
        "wrappedDataEncryptionKey": "AQID",
        "keyWrapMetadata": { "type": "t", "name": "n", "value": "v", "algorithm": "a" },
    })
}

/// Creates everything that a request may address; earlier requests may have removed it.
async fn prepare(client: &Client) -> String {
    for name in ["d", "e"] {
        client.send(Call::post("/dbs").json(&json!({ "id": name }))).await;
    }
    for name in ["c", "other"] {
        client.send(Call::post("/dbs/d/colls").json(&container(name))).await;
    }
    client.send(Call::post(DOCS).key(&json!(["k"])).json(&json!({ "id": "1", "pk": "k" }))).await;
    client.send(Call::delete("/dbs/new")).await;
    client.send(Call::post("/dbs/d/users").json(&json!({ "id": "c" }))).await;
    client.send(Call::post("/dbs/d/users/c/permissions").json(&permission())).await;
    client.send(Call::post("/dbs/d/clientencryptionkeys").json(&encryption_key())).await;
    for kind in ["sprocs", "triggers", "udfs"] {
        client.send(Call::post(&format!("/dbs/d/colls/c/{kind}")).json(&script())).await;
    }
    let offers = client.send(Call::get("/offers")).await.json();
    offers["Offers"][0]["_rid"].as_str().unwrap().to_owned()
}

/// The path of a route with the names that [`prepare`] creates.
fn path(route: &str, offer: &str) -> String {
    let ids = if route.starts_with("/offers") { vec![offer] } else { vec!["d", "c", "1", "1"] };
    ids.into_iter().fold(route.to_owned(), |path, id| path.replacen('*', id, 1))
}

/// Status and substatus; for a bulk, of its only step.
fn code(answer: &crate::client::Answer, body: Body) -> (u16, u32) {
    if !matches!(body, Body::Bulk) || answer.status != StatusCode::MULTI_STATUS {
        return answer.code();
    }
    let step = &answer.json()[0];
    let number = |name: &str| u32::try_from(step[name].as_u64().unwrap_or(0)).unwrap();
    (u16::try_from(number("statusCode")).unwrap(), number("subStatusCode"))
}

#[tokio::test]
async fn every_route_is_open_to_those_of_the_table_and_to_nobody_else() {
    let account = Account::new().await;
    let callers = callers();
    let mut cases = 0;
    for (verb, route, body, row, substatus) in TABLE {
        let row: Vec<char> = row.chars().filter(|column| *column != ' ').collect();
        assert_eq!(row.len(), callers.len(), "{verb} {route}");
        for ((caller, shown), column) in callers.iter().zip(row) {
            let offer = prepare(&account.client).await;
            let call = Call::new(verb.parse().unwrap(), &path(route, &offer)).key(&json!(["k"]));
            let answer = account.client.send(account.shown(body.add_to(call), *shown)).await;
            let refused = match shown {
                Shown::Token(..) => (403, *substatus),
                Shown::Nothing | Shown::Text(_) | Shown::Signed(..) => (403, 0),
            };
            let is_refused = code(&answer, *body) == refused;
            // No conflict ever exists; permitted callers get 404.
            let is_absent = route.ends_with("/conflicts/*") && answer.status == StatusCode::NOT_FOUND;
            let is_done = answer.status.is_success() || answer.status == StatusCode::CONFLICT || is_absent;
            let what = format!("{caller}: {verb} {route} {body:?}: {answer:?}");
            assert_eq!((is_done && !is_refused, is_refused), (column == '+', column == '-'), "{what}");
            cases += 1;
        }
    }
    assert!(cases >= 300, "{cases} cases");
}

/// The contents of a refusal, without names and the activity id.
fn words(answer: &crate::client::Answer, named: &str) -> ((u16, u32), String) {
    let text = answer.message().split("\r\n").next().unwrap().replace(named, "NAMED");
    (answer.code(), text)
}

/// A role at another scope gives no information about this one, not even with odd headers.
#[tokio::test]
async fn outside_of_a_role_what_is_absent_looks_like_what_is_there() {
    let account = Account::new().await;
    let holder = Shown::Token("contributor to e", 60);
    let mut cases = 0;
    for (verb, route, body, ..) in TABLE.iter().filter(|(_, route, ..)| route.starts_with("/dbs/*")) {
        prepare(&account.client).await;
        let mut seen = Vec::new();
        for names in [["d", "c"], ["absent", "c"], ["d", "absent"]] {
            let in_container = route.starts_with("/dbs/*/colls/*");
            if names[1] == "absent" && !in_container {
                continue;
            }
            let ids = [names[0], names[1], "1"];
            let path = ids.iter().fold((*route).to_owned(), |path, id| path.replacen('*', id, 1));
            let named = match in_container {
                true => format!("/dbs/{}/colls/{}", names[0], names[1]),
                false => format!("/dbs/{}", names[0]),
            };
            for odd in [false, true] {
                let call = body.add_to(Call::new(verb.parse().unwrap(), &path).key(&json!(["k"])));
                let call = match odd {
                    true => call
                        .key(&json!(["too", "many"]))
                        .header("x-ms-cosmos-intended-collection-rid", "AQAAAIAAAAk="),
                    false => call,
                };
                let answer = account.client.send(account.shown(call, holder)).await;
                seen.push(words(&answer, &named));
                cases += 1;
            }
        }
        assert_eq!(seen[0].0.0, 403, "{verb} {route}: {seen:?}");
        assert!(seen.iter().all(|answer| *answer == seen[0]), "{verb} {route}: {seen:?}");
    }
    assert!(cases >= 150, "{cases} cases");
}

#[tokio::test]
async fn no_route_is_without_a_row() {
    let rows: Vec<String> = TABLE.iter().map(|(verb, route, ..)| format!("{verb} {route}")).collect();
    for (verb, route) in NosqlApi::routes() {
        let name = format!("{verb} {route}");
        let is_empty = NOT_SUPPORTED.contains(&name.as_str());
        assert!(rows.contains(&name) || is_empty, "{name} is in no table: who may use it?");
    }
}

#[tokio::test]
async fn no_route_answers_without_a_good_credential() {
    let account = Account::new().await;
    let offer = prepare(&account.client).await;
    let bad = [
        Shown::Nothing,
        Shown::Text(""),
        Shown::Text("nonsense"),
        Shown::Text("type=master&ver=1.0&sig=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="),
        Shown::Text("type=aad&ver=1.0&sig=eyJhbGciOiJub25lIn0.e30."),
        Shown::Text("type=resource&ver=1.0&sig=AAAA"),
        Shown::Text("type%3Dresource%26ver%3D1%26sig%3D"),
        // Of the same length and version as a real one.
        Shown::Text(
            "type=resource&ver=1&sig=AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        ),
        Shown::Signed(b"a key of somebody else", 0),
        Shown::Token("reader of all", -1),
    ];
    let late = Shown::Signed(KEY, 1000);
    let before = account.client.send(Call::get("/dbs")).await.body;
    let mut cases = 0;
    for (verb, route) in NosqlApi::routes() {
        let call =
            || Call::new(verb.clone(), &path(&route, &offer)).key(&json!(["k"])).json(&json!({ "id": "x" }));
        for shown in bad {
            let answer = account.client.send(account.shown(call(), shown)).await;
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{verb} {route} {shown:?}: {answer:?}");
            cases += 1;
        }
        let answer = account.client.send(account.shown(call(), late)).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{verb} {route}: {answer:?}");
    }
    assert!(cases >= 500, "{cases} cases");
    assert_eq!(account.client.send(Call::get("/dbs")).await.body, before, "somebody changed something");
}

#[tokio::test]
async fn verbs_and_paths_outside_of_the_table_are_refused_before_anything_is_looked_at() {
    let account = Account::new().await;
    for (verb, path) in [
        (Method::OPTIONS, "/dbs"),
        (Method::TRACE, "/"),
        (Method::HEAD, "/dbs"),
        (Method::CONNECT, "/dbs/d"),
        (Method::PUT, "/dbs/d"),
        (Method::GET, "/dbs/d/colls/c/docs/1/attachments/a"),
        (Method::GET, "/admin"),
    ] {
        let answer = account.client.send(account.shown(Call::new(verb.clone(), path), Shown::Nothing)).await;
        assert!(matches!(answer.status.as_u16(), 404 | 405), "{verb} {path}: {answer:?}");
    }
}

/// A body that arrives after its headers.
struct Late(Option<bytes::Bytes>, bool);

impl hyper::body::Body for Late {
    type Data = bytes::Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<bytes::Bytes>, Self::Error>>> {
        if !std::mem::replace(&mut self.1, true) {
            context.waker().wake_by_ref();
            return std::task::Poll::Pending;
        }
        std::task::Poll::Ready(self.0.take().map(|bytes| Ok(hyper::body::Frame::data(bytes))))
    }
}

#[tokio::test]
async fn a_late_body_changes_no_right() {
    let account = Account::new().await;
    let client = &account.client;
    client.create("/dbs", json!({ "id": "d" })).await;
    client.create("/dbs/d/colls", container("c")).await;
    let steps = json!([{ "operationType": "Create", "resourceBody": { "id": "1", "pk": "a" }, "partitionKey": "[\"a\"]" }]);
    for atomic in ["true", "false"] {
        for caller in ["item creator of all", "item reader of all", "nobody"] {
            let call = Call::post("/dbs/d/colls/c/docs").key(&json!(["a"]));
            let call = call
                .header("x-ms-cosmos-is-batch-request", "true")
                .header("x-ms-cosmos-batch-atomic", atomic);
            let call = account.shown(call, Shown::Token(caller, 60));
            let at_once = client.send(call.clone().json(&steps)).await;
            let late = client.send_body(call, Late(Some(steps.to_string().into()), false)).await;
            // The item exists the second time.
            let (first, second) = (at_once.json(), late.json());
            let status = |answer: &serde_json::Value| answer[0]["statusCode"].as_u64();
            assert_eq!(at_once.status.is_client_error(), late.status.is_client_error(), "{caller}: {second}");
            if caller == "item creator of all" {
                let seen = if atomic == "true" { 201 } else { 409 };
                assert_eq!((status(&first), status(&second)), (Some(seen), Some(409)), "{first} {second}");
            }
        }
    }
}
