//! Users, permissions and client encryption keys as resources.

use crate::client::{Call, Client, container};
use http::StatusCode;
use serde_json::{Value as Json, json};

const USERS: &str = "/dbs/d/users";
const PERMISSIONS: &str = "/dbs/d/users/u/permissions";
const KEYS: &str = "/dbs/d/clientencryptionkeys";

async fn with_user() -> Client {
    let client = Client::with_container().await;
    client.create(USERS, json!({ "id": "u" })).await;
    client
}

fn permission(id: &str, resource: &str) -> Json {
    json!({ "id": id, "permissionMode": "Read", "resource": resource })
}

/// A request by the `_self` link of a resource.
fn by_self(call: fn(&str) -> Call, resource: &Json, kind: &str) -> Call {
    let rid = resource["_rid"].as_str().unwrap().to_lowercase();
    call(&format!("/{}", resource["_self"].as_str().unwrap())).signed_as(kind, &rid)
}

#[tokio::test]
async fn a_user_lives_by_name_and_by_rid() {
    let client = Client::with_container().await;
    let made = client.create(USERS, json!({ "id": "the user" })).await;
    assert_eq!(made["_permissions"], "permissions/");
    let read = client.send(Call::get("/dbs/d/users/the%20user")).await;
    assert_eq!((read.json(), read.header("etag")), (made.clone(), made["_etag"].as_str()));
    assert_eq!(client.send(by_self(Call::get, &made, "users")).await.json(), made);
    assert_eq!(client.send(Call::post(USERS).json(&json!({ "id": "the user" }))).await.code(), (409, 0));

    let upsert =
        |id: &str| Call::post(USERS).header("x-ms-documentdb-is-upsert", "True").json(&json!({ "id": id }));
    let replaced = client.send(upsert("the user")).await;
    assert_eq!((replaced.status, &replaced.json()["_rid"]), (StatusCode::OK, &made["_rid"]));
    assert_eq!(client.send(upsert("other")).await.status, StatusCode::CREATED);

    let rename = |id: &str| Call::put("/dbs/d/users/the%20user").json(&json!({ "id": id }));
    assert_eq!(client.send(rename("other")).await.code(), (409, 0));
    let stale = rename("renamed").header("if-match", made["_etag"].as_str().unwrap());
    assert_eq!(client.send(stale).await.code(), (412, 0));
    let renamed = client.send(rename("renamed")).await;
    assert_eq!((&renamed.json()["id"], &renamed.json()["_rid"]), (&json!("renamed"), &made["_rid"]));
    assert_eq!(client.send(Call::get("/dbs/d/users/the%20user")).await.code(), (404, 0));
    assert_eq!(client.send(Call::delete("/dbs/d/users/renamed")).await.status, StatusCode::NO_CONTENT);
    assert_eq!(client.send(Call::get("/dbs/d/users/renamed")).await.code(), (404, 0));
    assert_eq!(client.send(Call::get("/dbs/nowhere/users/renamed")).await.code(), (404, 1003));
}

#[tokio::test]
async fn users_and_permissions_are_listed_in_pages() {
    let client = with_user().await;
    for number in 1..5 {
        client.create(USERS, json!({ "id": format!("u{number}") })).await;
        let link = format!("dbs/d/colls/c/docs/{number}");
        client.create(PERMISSIONS, permission(&format!("p{number}"), &link)).await;
    }
    assert_eq!(client.listed(USERS, "Users").await, ["u", "u1", "u2", "u3", "u4"]);
    assert_eq!(client.listed(PERMISSIONS, "Permissions").await, ["p1", "p2", "p3", "p4"]);
    assert_eq!(client.listed("/dbs/d/users/u1/permissions", "Permissions").await, Vec::<String>::new());
    let page = client.send(Call::get(USERS).header("x-ms-max-item-count", "2")).await;
    let foreign =
        Call::get(PERMISSIONS).header("x-ms-continuation", page.header("x-ms-continuation").unwrap());
    assert_eq!(client.send(foreign).await.code(), (400, 0));
}

#[tokio::test]
async fn a_permission_names_something_of_its_database() {
    let client = with_user().await;
    client.create("/dbs", json!({ "id": "e" })).await;
    client.create("/dbs/e/colls", container("c")).await;
    let owner = client.send(Call::get("/dbs/d/colls/c")).await.json();
    let script = client.create("/dbs/d/colls/c/udfs", json!({ "id": "f", "body": "function f() {}" })).await;
    let good = ["dbs/d/colls/c", "/dbs/d/colls/c/docs/a%20b", "dbs/d/colls/c/docs/1", "dbs/d/colls/c/udfs/f"];
    for (number, link) in good.into_iter().enumerate() {
        let made = client.create(PERMISSIONS, permission(&format!("p{number}"), link)).await;
        assert_eq!((&made["resource"], &made["permissionMode"]), (&json!(link), &json!("Read")));
        assert!(made["_token"].as_str().unwrap().starts_with("type=resource&ver=1&sig="));
    }
    // The same resources by other links, and resources that do not exist.
    let absent = ["dbs/d/colls/nothing", "dbs/nothing/colls/c", "dbs/d/colls/c/udfs/nothing"];
    let by_rid = [&owner["_self"], &script["_self"]].map(|link| link.as_str().unwrap());
    for (number, link) in by_rid.into_iter().chain(absent).enumerate() {
        client.create(PERMISSIONS, permission(&format!("q{number}"), link)).await;
        let twice = permission("x", &format!("/{}/", link.trim_matches('/')));
        assert_eq!(client.send(Call::post(PERMISSIONS).json(&twice)).await.code(), (409, 0), "{link}");
    }
    for (link, code) in [
        ("dbs/e/colls/c", (400, 0)),
        ("dbs/d", (400, 0)),
        ("", (400, 0)),
        ("dbs/d/colls/c/pkranges/0", (400, 0)),
        ("dbs/d/colls/c/docs/1/attachments/a", (400, 0)),
        ("dbs/d/colls/c/docs/%zz", (400, 0)),
    ] {
        let answer = client.send(Call::post(PERMISSIONS).json(&permission("x", link))).await;
        assert_eq!(answer.code(), code, "{link}: {answer:?}");
    }
}

#[tokio::test]
async fn a_permission_is_replaced_upserted_and_deleted() {
    let client = with_user().await;
    let made = client.create(PERMISSIONS, permission("p", "dbs/d/colls/c")).await;
    let link = "/dbs/d/users/u/permissions/p";
    let mut read = client.send(by_self(Call::get, &made, "permissions")).await.json();
    read["_token"] = made["_token"].clone();
    assert_eq!(read, made);
    let mut body = permission("p", "dbs/d/colls/c");
    body["permissionMode"] = json!("all");
    body["resourcePartitionKey"] = json!(["a"]);
    let replaced = client.send(Call::put(link).json(&body)).await.json();
    assert_eq!((&replaced["permissionMode"], &replaced["_rid"]), (&json!("all"), &made["_rid"]));
    assert_eq!(replaced["resourcePartitionKey"], json!(["a"]));
    body["resourcePartitionKey"] = json!(["a", "b"]);
    assert_eq!(client.send(Call::put(link).json(&body)).await.code(), (400, 1001));
    // The container with and without a key are two resources.
    client.create(PERMISSIONS, permission("q", "dbs/d/colls/c")).await;
    let upsert = Call::post(PERMISSIONS).header("x-ms-documentdb-is-upsert", "true");
    let onto = client.send(upsert.clone().json(&permission("p", "dbs/d/colls/c"))).await;
    assert_eq!(onto.code(), (409, 0));
    let renamed = client.send(Call::put(link).json(&permission("p2", "dbs/d/colls/c/docs/9"))).await;
    assert_eq!(renamed.json()["id"], "p2");
    let again = client.send(upsert.json(&permission("p2", "dbs/d/colls/c/docs/8"))).await;
    assert_eq!((again.status, &again.json()["_rid"]), (StatusCode::OK, &made["_rid"]));
    let gone = client.send(Call::delete("/dbs/d/users/u/permissions/p2")).await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT);
    assert_eq!(client.listed(PERMISSIONS, "Permissions").await, ["q"]);
    assert_eq!(client.send(Call::get("/dbs/d/users/nobody/permissions/q")).await.code(), (404, 1003));
}

#[tokio::test]
async fn what_is_below_goes_with_its_owner() {
    let client = with_user().await;
    client.create(PERMISSIONS, permission("p", "dbs/d/colls/c")).await;
    assert_eq!(client.send(Call::delete("/dbs/d/users/u")).await.status, StatusCode::NO_CONTENT);
    client.create(USERS, json!({ "id": "u" })).await;
    assert_eq!(client.listed(PERMISSIONS, "Permissions").await, Vec::<String>::new());
    client.create(PERMISSIONS, permission("p", "dbs/d/colls/c")).await;
    client.create(KEYS, key("k")).await;
    assert_eq!(client.send(Call::delete("/dbs/d")).await.status, StatusCode::NO_CONTENT);
    client.create("/dbs", json!({ "id": "d" })).await;
    assert_eq!(client.listed(USERS, "Users").await, Vec::<String>::new());
    assert_eq!(client.listed(KEYS, "ClientEncryptionKeys").await, Vec::<String>::new());
}

fn key(id: &str) -> Json {
    json!({
        "id": id,
        "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256",
        "wrappedDataEncryptionKey": "AQIDBA==",
        "keyWrapMetadata": { "type": "AZURE_KEY_VAULT", "name": "n", "value": "v", "algorithm": "RSA-OAEP" },
    })
}

#[tokio::test]
async fn encryption_keys_are_kept_and_never_deleted() {
    let client = Client::with_container().await;
    let made = client.create(KEYS, key("k")).await;
    assert_eq!(made["keyWrapMetadata"], key("k")["keyWrapMetadata"]);
    let one = format!("{KEYS}/k");
    assert_eq!(client.send(Call::get(&one)).await.json(), made);
    assert_eq!(client.send(by_self(Call::get, &made, "clientencryptionkeys")).await.json(), made);
    assert_eq!(client.send(Call::post(KEYS).json(&key("k"))).await.code(), (409, 0));
    client.create(KEYS, key("k2")).await;
    client.create(KEYS, key("k3")).await;
    assert_eq!(client.listed(KEYS, "ClientEncryptionKeys").await, ["k", "k2", "k3"]);
    let mut wrapped_anew = key("k");
    wrapped_anew["wrappedDataEncryptionKey"] = json!("BQYHCA==");
    let call = Call::put(&one).header("if-match", made["_etag"].as_str().unwrap()).json(&wrapped_anew);
    let replaced = client.send(call.clone()).await;
    assert_eq!(replaced.json()["wrappedDataEncryptionKey"], "BQYHCA==");
    assert_eq!(client.send(call).await.code(), (412, 0));
    assert_eq!(client.send(Call::put(&one).json(&key("other"))).await.code(), (400, 0));
    assert_eq!(client.send(Call::delete(&one)).await.code(), (405, 0));
    // A key and a user have the same form of RID; the path distinguishes them.
    let as_user = format!("/dbs/d/users/{}", made["_rid"].as_str().unwrap());
    assert_eq!(client.send(Call::get(&as_user)).await.code(), (404, 0));
}
