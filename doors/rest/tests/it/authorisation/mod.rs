//! Who may do what, for every route of the door: a table written by hand, compared with what the door does.
//!
//! The table says nothing about how rights are computed. A route without a row fails, so that a new one cannot be
//! forgotten; a row without a route is what the next one will need.

mod credentials;

use crate::client::{Call, Client, DOCS, KEY, container};
use credentials::{ASSIGNMENTS, Account, PRIMARY_READ, SECONDARY, SECONDARY_READ, Shown};
use http::{Method, StatusCode};
use rest::RestDoor;
use serde_json::{Value as Json, json};

/// Who asks, in the order of the columns below.
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

/// Verb, route, what is sent, and a `+` for each caller who may.
///
/// Columns: two read-write keys, two read-only keys | reader, contributor and item reader of the account | reader and
/// contributor of the database | reader and contributor of the container, contributor to another container |
/// contributor to another database | no role. The substatus is that of refused tokens.
const TABLE: &[(&str, &str, Body, &str, u32)] = &[
    ("GET", "/", Body::None, "++++ ++- ++ +++ + -", 5301),
    ("GET", "/dbs", Body::None, "++++ ++- -- --- - -", 5301),
    ("POST", "/dbs", Body::Name("new"), "++-- --- -- --- - -", 5300),
    ("GET", "/dbs/*", Body::None, "++++ ++- ++ --- - -", 5301),
    ("DELETE", "/dbs/*", Body::None, "++-- --- -- --- - -", 5300),
    ("GET", "/dbs/*/colls", Body::None, "++++ ++- ++ --- - -", 5301),
    ("POST", "/dbs/*/colls", Body::Container, "++-- --- -- --- - -", 5300),
    ("GET", "/dbs/*/colls/*", Body::None, "++++ ++- ++ ++- - -", 5301),
    ("PUT", "/dbs/*/colls/*", Body::Container, "++-- --- -- --- - -", 5300),
    ("DELETE", "/dbs/*/colls/*", Body::None, "++-- --- -- --- - -", 5300),
    ("GET", "/dbs/*/colls/*/pkranges", Body::None, "++++ ++- ++ ++- - -", 5301),
    ("GET", "/dbs/*/colls/*/docs", Body::None, "++++ ++- ++ ++- - -", 5302),
    ("POST", "/dbs/*/colls/*/docs", Body::Item, "++-- -+- -+ -+- - -", 5302),
    ("POST", "/dbs/*/colls/*/docs", Body::Upsert, "++-- -+- -+ -+- - -", 5302),
    ("POST", "/dbs/*/colls/*/docs", Body::Query, "++++ ++- ++ ++- - -", 5302),
    ("POST", "/dbs/*/colls/*/docs", Body::BatchOfReads, "++++ +++ ++ ++- - -", 5302),
    ("POST", "/dbs/*/colls/*/docs", Body::BatchOfBoth, "++-- -+- -+ -+- - -", 5302),
    ("POST", "/dbs/*/colls/*/docs", Body::Bulk, "++-- -+- -+ -+- - -", 5302),
    ("GET", "/dbs/*/colls/*/docs/*", Body::None, "++++ +++ ++ ++- - -", 5302),
    ("PUT", "/dbs/*/colls/*/docs/*", Body::Item, "++-- -+- -+ -+- - -", 5302),
    ("PATCH", "/dbs/*/colls/*/docs/*", Body::Patch, "++-- -+- -+ -+- - -", 5302),
    ("DELETE", "/dbs/*/colls/*/docs/*", Body::None, "++-- -+- -+ -+- - -", 5302),
    ("POST", "/dbs/*/colls/*/operations/partitionkeydelete", Body::None, "++-- -+- -+ -+- - -", 5302),
    ("GET", "/offers", Body::None, "++++ ++- -- --- - -", 5301),
    ("GET", "/offers/*", Body::None, "++++ ++- -- --- - -", 5301),
];

/// Routes that answer everybody who is somebody with "not supported": there is nothing behind them to protect.
const NOT_SUPPORTED: &[&str] = &[
    "POST /offers",
    "PUT /offers/*",
    "/sprocs",
    "/triggers",
    "/udfs",
    "/conflicts",
    "/users",
    "/clientencryptionkeys",
];

/// What a request carries.
#[derive(Clone, Copy, Debug)]
enum Body {
    None,
    Name(&'static str),
    Container,
    Item,
    Upsert,
    Query,
    BatchOfReads,
    BatchOfBoth,
    Bulk,
    Patch,
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
            Body::BatchOfReads => batch(call, json!([read])).header("x-ms-cosmos-batch-atomic", "True"),
            Body::BatchOfBoth => batch(call, json!([read, write])).header("x-ms-cosmos-batch-atomic", "True"),
            Body::Bulk => batch(call, json!([write])),
            Body::Patch => call.json(&json!([{ "op": "set", "path": "/n", "value": 2 }])),
        }
    }
}

/// Puts everything there that a request may be about; requests before may have removed it.
async fn prepare(client: &Client) -> String {
    for name in ["d", "e"] {
        client.send(Call::post("/dbs").json(&json!({ "id": name }))).await;
    }
    for name in ["c", "other"] {
        client.send(Call::post("/dbs/d/colls").json(&container(name))).await;
    }
    client.send(Call::post(DOCS).key(&json!(["k"])).json(&json!({ "id": "1", "pk": "k" }))).await;
    client.send(Call::delete("/dbs/new")).await;
    let offers = client.send(Call::get("/offers")).await.json();
    offers["Offers"][0]["_rid"].as_str().unwrap().to_owned()
}

/// The path of a route with the names of what [`prepare`] makes.
fn path(route: &str, offer: &str) -> String {
    let ids = if route.starts_with("/offers") { vec![offer] } else { vec!["d", "c", "1", "1"] };
    ids.into_iter().fold(route.to_owned(), |path, id| path.replacen('*', id, 1))
}

/// Status and substatus, of the one step in a bulk.
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
            let is_done = answer.status.is_success() || answer.status == StatusCode::CONFLICT;
            let what = format!("{caller}: {verb} {route} {body:?}: {answer:?}");
            assert_eq!((is_done && !is_refused, is_refused), (column == '+', column == '-'), "{what}");
            cases += 1;
        }
    }
    assert!(cases >= 300, "{cases} cases");
}

#[tokio::test]
async fn no_route_is_without_a_row() {
    let rows: Vec<String> = TABLE.iter().map(|(verb, route, ..)| format!("{verb} {route}")).collect();
    for (verb, route) in RestDoor::routes() {
        let name = format!("{verb} {route}");
        let is_empty =
            NOT_SUPPORTED.iter().any(|part| name == *part || (part.starts_with('/') && route.contains(part)));
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
        Shown::Signed(b"a key of somebody else", 0),
        Shown::Token("reader of all", -1),
    ];
    let late = Shown::Signed(KEY, 1000);
    let before = account.client.send(Call::get("/dbs")).await.body;
    let mut cases = 0;
    for (verb, route) in RestDoor::routes() {
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
        (Method::GET, "/dbs/d/colls/c/docs/1/attachments"),
        (Method::GET, "/admin"),
    ] {
        let answer = account.client.send(account.shown(Call::new(verb.clone(), path), Shown::Nothing)).await;
        assert!(matches!(answer.status.as_u16(), 404 | 405), "{verb} {path}: {answer:?}");
    }
}
