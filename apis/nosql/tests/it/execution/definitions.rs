//! Definitions that are replaced and deleted while they are in use: the next request on any partition has the new one.

use super::client;
use crate::client::{Answer, Call, Client, container};
use serde_json::{Value as Json, json};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// More calls than a script needs to get a shared runtime.
const CALLS: usize = 8;
/// Partition keys; with this number each of ten partitions has some.
const KEYS: usize = 60;
/// Times that a definition is replaced under load.
const VERSIONS: u64 = 12;

const PARTS: &str = "/dbs/d/colls/parts";
const DOCS: &str = "/dbs/d/colls/parts/docs";
const PRE: &str = "x-ms-documentdb-pre-trigger-include";
const POST: &str = "x-ms-documentdb-post-trigger-include";

/// An account with a container of ten partitions, each with items.
async fn with_partitions() -> Client {
    let client = client().await;
    let made = Call::post("/dbs/d/colls").header("x-ms-offer-throughput", "60000").json(&container("parts"));
    assert_eq!(client.send(made).await.code(), (201, 0));
    let ranges = client.send(Call::get(&format!("{PARTS}/pkranges"))).await.json();
    assert_eq!(ranges["PartitionKeyRanges"].as_array().unwrap().len(), 10);
    for n in 0..KEYS {
        assert_eq!(client.send(write(n)).await.code(), (201, 0));
    }
    client
}

/// Writes the item of a partition key.
fn write(n: usize) -> Call {
    let item = json!({ "id": "item", "pk": n });
    Call::post(DOCS).key(&json!([n])).header("x-ms-documentdb-is-upsert", "true").json(&item)
}

/// The four kinds of scripts, each with a text that shows its version.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Procedure,
    PreTrigger,
    PostTrigger,
    Function,
}

impl Kind {
    const ALL: [Kind; 4] = [Kind::Procedure, Kind::PreTrigger, Kind::PostTrigger, Kind::Function];

    fn feed(self) -> String {
        let kind = match self {
            Kind::Procedure => "sprocs",
            Kind::PreTrigger | Kind::PostTrigger => "triggers",
            Kind::Function => "udfs",
        };
        format!("{PARTS}/{kind}")
    }

    fn path(self) -> String {
        format!("{}/s", self.feed())
    }

    fn definition(self, version: u64) -> Json {
        let trigger = |time: &str, body: String| json!({ "id": "s", "body": body, "triggerType": time, "triggerOperation": "All" });
        let body = "getContext().getRequest().getBody()";
        match self {
            Kind::Procedure => {
                json!({ "id": "s", "body": format!("function () {{ __.response.setBody({version}); }}") })
            }
            Kind::PreTrigger => trigger(
                "Pre",
                format!(
                    "function () {{ var d = {body}; d.v = {version}; getContext().getRequest().setBody(d); }}"
                ),
            ),
            Kind::PostTrigger => {
                trigger("Post", format!("function () {{ __.response.setBody({{ v: {version} }}); }}"))
            }
            Kind::Function => json!({ "id": "s", "body": format!("function () {{ return {version}; }}") }),
        }
    }

    /// A call of the script on a partition key.
    async fn call(self, client: &Client, n: usize) -> Answer {
        let call = match self {
            Kind::Procedure => Call::post(&self.path()).key(&json!([n])).json(&json!([])),
            Kind::PreTrigger => write(n).header(PRE, "s"),
            Kind::PostTrigger => write(n).header(POST, "s"),
            Kind::Function => Call::post(DOCS)
                .header("x-ms-documentdb-isquery", "true")
                .header("content-type", "application/query+json")
                .key(&json!([n]))
                .json(&json!({ "query": "SELECT VALUE udf.s() FROM c" })),
        };
        client.send(call).await
    }

    /// The version that an answer shows.
    fn version(self, answer: &Answer) -> u64 {
        assert!(answer.status.is_success(), "{self:?}: {answer:?}");
        let body = answer.json();
        let shown = match self {
            Kind::Procedure => &body,
            Kind::PreTrigger | Kind::PostTrigger => &body["v"],
            Kind::Function => &body["Documents"][0],
        };
        shown.as_u64().unwrap_or_else(|| panic!("{self:?}: {body}"))
    }

    async fn replace(self, client: &Client, version: u64) {
        let replaced = client.send(Call::put(&self.path()).json(&self.definition(version))).await;
        assert_eq!(replaced.code(), (200, 0), "{self:?}: {replaced:?}");
    }
}

#[tokio::test]
async fn a_changed_definition_takes_effect_at_once_on_all_partitions() {
    let client = with_partitions().await;
    for kind in Kind::ALL {
        client.create(&kind.feed(), kind.definition(1)).await;
        for n in 0..CALLS * 2 {
            assert_eq!(kind.version(&kind.call(&client, n).await), 1);
        }
        for version in [2, 3] {
            kind.replace(&client, version).await;
            for n in 0..KEYS {
                assert_eq!(kind.version(&kind.call(&client, n).await), version, "{kind:?} of {n}");
            }
        }
        assert_eq!(client.send(Call::delete(&kind.path())).await.code(), (204, 0));
        for n in 0..KEYS {
            let refused = kind.call(&client, n).await;
            assert!(refused.status.is_client_error(), "{kind:?} of {n}: {refused:?}");
        }
        // A new one of the same name is not the old one.
        client.create(&kind.feed(), kind.definition(4)).await;
        assert_eq!(kind.version(&kind.call(&client, 0).await), 4);
        client.send(Call::delete(&kind.path())).await;
    }
}

#[tokio::test]
async fn a_definition_that_is_replaced_under_load_is_never_the_old_one_after_the_answer() {
    let client = with_partitions().await;
    for kind in Kind::ALL {
        client.create(&kind.feed(), kind.definition(0)).await;
        let (begun, done, has_ended) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
        let calls = async |start: usize| {
            let mut count = 0;
            while !has_ended.load(Ordering::SeqCst) || count < CALLS {
                let oldest = done.load(Ordering::SeqCst);
                let version = kind.version(&kind.call(&client, (start + count) % KEYS).await);
                let newest = begun.load(Ordering::SeqCst);
                assert!((oldest..=newest).contains(&version), "{kind:?}: {version} of {oldest}..={newest}");
                count += 1;
            }
        };
        let replaces = async {
            for version in 1..=VERSIONS {
                for n in 0..CALLS {
                    kind.version(&kind.call(&client, n).await);
                }
                begun.store(version, Ordering::SeqCst);
                kind.replace(&client, version).await;
                done.store(version, Ordering::SeqCst);
            }
            has_ended.store(true, Ordering::SeqCst);
        };
        tokio::join!(replaces, calls(0), calls(20), calls(40));
        // The next kind has a script of the same name.
        assert_eq!(client.send(Call::delete(&kind.path())).await.code(), (204, 0));
    }
}

/// Two containers whose functions have the same name, and later the same text too.
#[tokio::test]
async fn functions_of_one_name_belong_to_their_containers() {
    let client = client().await;
    client.create("/dbs/d/colls", container("other")).await;
    let query = async |id: &str| {
        let call = Call::post(&format!("/dbs/d/colls/{id}/docs"))
            .header("x-ms-documentdb-isquery", "true")
            .header("content-type", "application/query+json")
            .key(&json!(["k"]));
        client.send(call.json(&json!({ "query": "SELECT VALUE udf.f(c.n) FROM c" }))).await.json()["Documents"].clone()
    };
    let rows = |factor: i64| json!((0..20).map(|n| n * factor).collect::<Vec<_>>());
    for (id, factor) in [("c", 2), ("other", 3)] {
        let body = format!("function (n) {{ return n * {factor}; }}");
        client.create(&format!("/dbs/d/colls/{id}/udfs"), json!({ "id": "f", "body": body })).await;
        for n in 0..20_u32 {
            let item = json!({ "id": n.to_string(), "pk": "k", "n": if id == "c" { n } else { 10 * n } });
            let made = Call::post(&format!("/dbs/d/colls/{id}/docs")).key(&json!(["k"])).json(&item);
            assert_eq!(client.send(made).await.code(), (201, 0));
        }
    }
    for _ in 0..CALLS {
        assert_eq!((query("c").await, query("other").await), (rows(2), rows(30)));
    }
    let same = json!({ "id": "f", "body": "function (n) { return n * 2; }" });
    assert_eq!(client.send(Call::put("/dbs/d/colls/other/udfs/f").json(&same)).await.code(), (200, 0));
    for _ in 0..CALLS {
        assert_eq!((query("c").await, query("other").await), (rows(2), rows(20)));
    }
}
