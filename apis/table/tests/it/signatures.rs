//! Shared access signatures: who may do what, and forged or stale ones.

use crate::client::{Answer, Call, Client, STORAGE_KEY, Signing, address, code, sign};
use serde_json::json;

const LATER: &str = "2023-11-15T00:00:00Z";
const BEFORE: &str = "2023-11-14T00:00:00Z";

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// The fields of an account signature.
#[derive(Clone, Copy)]
struct AccountSas<'a> {
    permissions: &'a str,
    services: &'a str,
    kinds: &'a str,
    start: &'a str,
    expiry: &'a str,
    address: &'a str,
    protocol: &'a str,
}

impl AccountSas<'_> {
    const ALL: AccountSas<'static> = AccountSas {
        permissions: "raudlwc",
        services: "t",
        kinds: "sco",
        start: "",
        expiry: LATER,
        address: "",
        protocol: "",
    };

    fn query(&self) -> String {
        let AccountSas { permissions, services, kinds, start, expiry, address, protocol } = self;
        let payload = format!(
            "storage\n{permissions}\n{services}\n{kinds}\n{start}\n{expiry}\n{address}\n{protocol}\n2019-02-02\n"
        );
        let mut query = format!("sv=2019-02-02&ss={services}&srt={kinds}&sp={permissions}&se={expiry}");
        for (name, value) in [("st", start), ("sip", address), ("spr", protocol)] {
            if !value.is_empty() {
                query.push_str(&format!("&{name}={value}"));
            }
        }
        format!("{query}&sig={}", encoded(&sign(STORAGE_KEY, &payload)))
    }
}

/// The query string of a table signature; `keys` are spk, srk, epk and erk.
fn table_sas(table: &str, permissions: &str, expiry: &str, policy: &str, keys: [Option<&str>; 4]) -> String {
    let [first_partition, first_row, last_partition, last_row] = keys.map(Option::unwrap_or_default);
    let payload = format!(
        "{permissions}\n\n{expiry}\n/table/storage/{table}\n{policy}\n\n\n2019-02-02\n{first_partition}\n{first_row}\n\
         {last_partition}\n{last_row}"
    );
    let mut query = format!("sv=2019-02-02&tn={table}");
    for (name, value) in [("sp", permissions), ("se", expiry), ("si", policy)] {
        if !value.is_empty() {
            query.push_str(&format!("&{name}={value}"));
        }
    }
    for (name, value) in ["spk", "srk", "epk", "erk"].into_iter().zip(keys) {
        if let Some(value) = value {
            query.push_str(&format!("&{name}={value}"));
        }
    }
    format!("{query}&sig={}", encoded(&sign(STORAGE_KEY, &payload)))
}

fn with(mut call: Call, query: &str) -> Call {
    let separator = if call.path.contains('?') { '&' } else { '?' };
    call.path = format!("{}{separator}{query}", call.path);
    call.signing(Signing::None)
}

/// One operation of each kind, with the status that a caller with all rights gets.
fn operations() -> Vec<(&'static str, Call, u16)> {
    vec![
        ("r", Call::get(address("p", "r")), 200),
        ("r", Call::get("people()"), 200),
        ("a", Call::new("POST", "people").json(r#"{"PartitionKey":"p","RowKey":"n"}"#), 201),
        ("u", Call::new("PUT", address("p", "r")).json("{}").header("if-match", "*"), 204),
        ("u", Call::new("MERGE", address("p", "r")).json("{}").header("if-match", "*"), 204),
        ("au", Call::new("PUT", address("p", "r")).json("{}"), 204),
        ("au", Call::new("MERGE", address("p", "r")).json("{}"), 204),
        ("d", Call::new("DELETE", address("p", "r")).header("if-match", "*"), 204),
    ]
}

async fn filled() -> Client {
    let client = Client::with_table().await;
    client.insert(r#"{"PartitionKey":"p","RowKey":"r"}"#).await;
    client
}

#[tokio::test]
async fn permissions_on_entities_by_both_kinds_of_signature() {
    for granted in ["", "r", "a", "u", "d", "au", "raud"] {
        for (needed, call, expected) in operations() {
            let account = AccountSas { permissions: granted, ..AccountSas::ALL }.query();
            for query in [account, table_sas("people", granted, LATER, "", [None; 4])] {
                let client = filled().await;
                let answer = client.send(with(call.clone(), &query)).await;
                match needed.chars().all(|permission| granted.contains(permission)) {
                    true => assert_eq!(answer.status.as_u16(), expected, "{granted}: {call:?} {answer:?}"),
                    false => {
                        let refused = answer.refusal();
                        assert_eq!(
                            refused,
                            code(403, "AuthorizationPermissionMismatch"),
                            "{granted}: {call:?}"
                        );
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn permissions_on_tables_and_the_service() {
    let create = || Call::new("POST", "Tables").json(r#"{"TableName":"more"}"#);
    let properties = "<StorageServiceProperties><Cors/></StorageServiceProperties>";
    let cases = [
        ("l", "c", Call::get("Tables"), 200),
        ("l", "c", Call::get("Tables('people')"), 200),
        ("c", "c", create(), 201),
        ("w", "c", create(), 201),
        ("d", "c", Call::new("DELETE", "Tables('people')"), 204),
        ("r", "s", Call::get("?restype=service&comp=properties"), 200),
        ("r", "s", Call::get("?restype=service&comp=stats"), 200),
        (
            "w",
            "s",
            Call::new("PUT", "?restype=service&comp=properties").body("application/xml", properties),
            202,
        ),
    ];
    for (permissions, kinds, call, expected) in cases {
        let client = filled().await;
        let send = |sas: AccountSas<'_>| client.send(with(call.clone(), &sas.query()));
        let kind = if kinds == "s" { "o" } else { "so" };
        let other_kind = send(AccountSas {
            kinds: if call.path.starts_with("Tables") && call.verb == "GET" { "o" } else { kind },
            ..AccountSas::ALL
        })
        .await;
        assert_eq!(other_kind.refusal(), code(403, "AuthorizationResourceTypeMismatch"), "{call:?}");
        let nothing = send(AccountSas { permissions: "u", kinds, ..AccountSas::ALL }).await;
        assert_eq!(nothing.refusal(), code(403, "AuthorizationPermissionMismatch"), "{call:?}");
        let by_table =
            client.send(with(call.clone(), &table_sas("people", "raud", LATER, "", [None; 4]))).await;
        assert_eq!(by_table.refusal(), code(403, "AuthorizationPermissionMismatch"), "{call:?}");
        send(AccountSas { permissions, kinds, ..AccountSas::ALL }).await.expect(expected);
    }
    let client = filled().await;
    for call in
        [Call::get("people?comp=acl"), Call::new("PUT", "people?comp=acl").body("application/xml", "")]
    {
        let refused = client.refusal(with(call, &AccountSas::ALL.query())).await;
        assert_eq!(refused, code(403, "AuthorizationPermissionMismatch"));
    }
}

#[tokio::test]
async fn the_first_table_may_be_created_by_a_signature() {
    let client = Client::empty().await;
    let create = Call::new("POST", "Tables").json(r#"{"TableName":"first"}"#);
    client.send(with(create, &AccountSas::ALL.query())).await.expect(201);
}

#[tokio::test]
async fn forged_stale_and_foreign_signatures_are_refused() {
    let client = filled().await;
    let refused = |sas: AccountSas<'static>| client.refusal(with(Call::get("people()"), &sas.query()));
    let all = AccountSas::ALL;
    assert_eq!(refused(AccountSas { expiry: BEFORE, ..all }).await, code(403, "AuthenticationFailed"));
    assert_eq!(
        refused(AccountSas { start: LATER, expiry: "2024-01-01", ..all }).await,
        code(403, "AuthenticationFailed")
    );
    assert_eq!(refused(AccountSas { expiry: "soon", ..all }).await, code(403, "AuthenticationFailed"));
    assert_eq!(refused(AccountSas { expiry: "", ..all }).await, code(403, "AuthenticationFailed"));
    assert_eq!(
        refused(AccountSas { services: "bq", ..all }).await,
        code(403, "AuthorizationServiceMismatch")
    );
    assert_eq!(
        refused(AccountSas { kinds: "sc", ..all }).await,
        code(403, "AuthorizationResourceTypeMismatch")
    );
    assert_eq!(
        refused(AccountSas { address: "10.0.0.1", ..all }).await,
        code(403, "AuthorizationSourceIPMismatch")
    );
    assert_eq!(refused(AccountSas { address: "x", ..all }).await, code(403, "AuthenticationFailed"));
    let inside = AccountSas { address: "127.0.0.0-127.0.0.9", protocol: "https", start: BEFORE, ..all };
    client.send(with(Call::get("people()"), &inside.query())).await.expect(200);
    let mut plain = with(Call::get("people()"), &inside.query());
    plain.secure = false;
    assert_eq!(client.refusal(plain).await, code(403, "AuthorizationProtocolMismatch"));
    for query in [
        all.query().replace("sp=raudlwc", "sp=raudlwcx"),
        table_sas("people", "r", LATER, "", [None; 4]).replace("sp=r&", "sp=ra&"),
        table_sas("people", "r", LATER, "", [Some("a"), None, None, None]).replace("spk=a&", ""),
        "sv=2019-02-02&sig=AAAA".to_owned(),
        format!("{}&tn=people", all.query()),
    ] {
        let refused = client.refusal(with(Call::get("people()"), &query)).await;
        assert_eq!(refused, code(403, "AuthenticationFailed"), "{query}");
    }
    let other = table_sas("others", "raud", LATER, "", [None; 4]);
    assert_eq!(
        client.refusal(with(Call::get("people()"), &other)).await,
        code(403, "AuthorizationPermissionMismatch")
    );
}

fn rows(answer: &Answer) -> Vec<String> {
    let body = answer.json();
    let rows = body["value"].as_array().unwrap().iter();
    rows.map(|row| format!("{}{}", row["PartitionKey"].as_str().unwrap(), row["RowKey"].as_str().unwrap()))
        .collect()
}

#[tokio::test]
async fn an_interval_of_keys_limits_everything() {
    let client = Client::with_table().await;
    for partition in ["a", "b", "c", "d"] {
        for row in ["1", "2", "3"] {
            let body = json!({ "PartitionKey": partition, "RowKey": row });
            client.insert(&body.to_string()).await;
        }
    }
    let sas = |keys| table_sas("people", "raud", LATER, "", keys);
    let inside = sas([Some("b"), Some("2"), Some("c"), Some("1")]);
    let found = client.send(with(Call::get("people()"), &inside)).await.expect(200);
    assert_eq!(rows(&found), ["b2", "b3", "c1"]);
    let filtered =
        client.send(with(Call::get("people()?$filter=RowKey%20lt%20'3'"), &inside)).await.expect(200);
    assert_eq!(rows(&filtered), ["b2", "c1"]);
    let outside = "people()?$filter=PartitionKey%20eq%20'a'%20and%20RowKey%20eq%20'1'";
    assert_eq!(rows(&client.send(with(Call::get(outside), &inside)).await.expect(200)), Vec::<String>::new());
    for (partition, row, is_inside) in [
        ("a", "3", false),
        ("b", "1", false),
        ("b", "2", true),
        ("c", "1", true),
        ("c", "2", false),
        ("d", "1", false),
    ] {
        for call in [
            Call::get(address(partition, row)),
            Call::new("PUT", address(partition, row)).json("{}"),
            Call::new("MERGE", address(partition, row)).json("{}").header("if-match", "*"),
        ] {
            let answer = client.send(with(call.clone(), &inside)).await;
            assert_eq!(answer.status.is_success(), is_inside, "{call:?} {answer:?}");
        }
    }
    let insert = |partition: &str| {
        let body = json!({ "PartitionKey": partition, "RowKey": "2x" });
        with(Call::new("POST", "people").json(&body.to_string()), &inside)
    };
    client.send(insert("b")).await.expect(201);
    assert_eq!(client.refusal(insert("a")).await, code(403, "AuthorizationPermissionMismatch"));
    let open = sas([Some("c"), None, None, None]);
    assert_eq!(rows(&client.send(with(Call::get("people()"), &open)).await).len(), 6);
    let last = sas([None, None, Some("a"), None]);
    assert_eq!(rows(&client.send(with(Call::get("people()"), &last)).await), ["a1", "a2", "a3"]);
    let lone = sas([None, Some("1"), None, None]);
    assert_eq!(client.refusal(with(Call::get("people()"), &lone)).await, code(403, "AuthenticationFailed"));
}

#[tokio::test]
async fn stored_policies_complete_a_signature_and_end_it() {
    let client = filled().await;
    let put = |policies: &str| {
        let body = format!("<SignedIdentifiers>{policies}</SignedIdentifiers>");
        client.send(Call::new("PUT", "people?comp=acl").body("application/xml", &body))
    };
    let policy = |expiry: &str| {
        format!(
            "<SignedIdentifier><Id>one</Id><AccessPolicy><Expiry>{expiry}</Expiry><Permission>r</Permission>\
             </AccessPolicy></SignedIdentifier>"
        )
    };
    let by_policy = with(Call::get("people()"), &table_sas("people", "", "", "one", [None; 4]));
    assert_eq!(client.refusal(by_policy.clone()).await, code(403, "AuthenticationFailed"));
    put(&policy(LATER)).await.expect(204);
    client.send(by_policy.clone()).await.expect(200);
    let write = Call::new("POST", "people").json(r#"{"PartitionKey":"p","RowKey":"x"}"#);
    let write = with(write, &table_sas("people", "", "", "one", [None; 4]));
    assert_eq!(client.refusal(write).await, code(403, "AuthorizationPermissionMismatch"));
    let both = with(Call::get("people()"), &table_sas("people", "r", LATER, "one", [None; 4]));
    assert_eq!(client.refusal(both).await, code(403, "AuthenticationFailed"));
    put(&policy(BEFORE)).await.expect(204);
    assert_eq!(client.refusal(by_policy.clone()).await, code(403, "AuthenticationFailed"));
    put("").await.expect(204);
    assert_eq!(client.refusal(by_policy).await, code(403, "AuthenticationFailed"));
}

#[tokio::test]
async fn a_batch_is_authorised_for_each_of_its_operations() {
    let client = filled().await;
    let part = |verb: &str, path: &str, headers: &str, body: &str| {
        format!(
            "--c\r\nContent-Type: application/http\r\n\r\n{verb} http://h/storage/{path} HTTP/1.1\r\n{headers}\r\n{body}\r\n"
        )
    };
    let body = format!(
        "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n{}{}--c--\r\n--b--\r\n",
        part("POST", "people", "", r#"{"PartitionKey":"p","RowKey":"n"}"#),
        part("DELETE", &address("p", "r"), "If-Match: *\r\n", "")
    );
    let batch = |permissions: &str| {
        let call = Call::new("POST", "$batch").body("multipart/mixed; boundary=b", &body);
        with(call, &table_sas("people", permissions, LATER, "", [None; 4]))
    };
    assert_eq!(client.refusal(batch("a")).await, code(403, "AuthorizationPermissionMismatch"));
    assert!(client.entity("p", "n").await.is_none());
    client.send(batch("ad")).await.expect(202);
    assert!(client.entity("p", "n").await.is_some() && client.entity("p", "r").await.is_none());
}

/// Tables that differ only in case, through an account that allows them.
async fn two_cases() -> Client {
    let client = Client::with_table().await;
    client.send(Call::new("POST", "Tables").json(r#"{"TableName":"PEOPLE"}"#).cosmos()).await.expect(201);
    let entity = r#"{"PartitionKey":"p","RowKey":"secret"}"#;
    client.send(Call::new("POST", "PEOPLE").json(entity).cosmos()).await.expect(201);
    client
}

#[tokio::test]
async fn a_signature_does_not_choose_between_tables_that_differ_in_case() {
    let client = two_cases().await;
    let query = table_sas("people", "r", LATER, "", [None; 4]);
    let other = query.replace("tn=people", "tn=PEOPLE");
    for query in [&query, &other] {
        for table in ["people()", "PEOPLE()", "People()"] {
            let refused = client.refusal(with(Call::get(table), query)).await;
            assert_eq!(refused.0, 403, "{table} {query}");
        }
    }
}

#[tokio::test]
async fn an_empty_last_key_is_refused_because_its_holder_could_omit_it() {
    let client = Client::with_table().await;
    client.insert(r#"{"PartitionKey":"p","RowKey":"r"}"#).await;
    for keys in [[Some(""), None, Some(""), None], [Some("p"), None, Some("p"), Some("")]] {
        let query = table_sas("people", "r", LATER, "", keys);
        assert_eq!(client.refusal(with(Call::get("people()"), &query)).await.0, 403, "{query}");
    }
    let query = table_sas("people", "r", LATER, "", [Some(""), Some(""), Some("p"), Some("r")]);
    client.send(with(Call::get("people()"), &query)).await.expect(200);
}

#[tokio::test]
async fn the_case_of_a_name_does_not_matter_to_a_table_signature() {
    let client = Client::with_table().await;
    client.insert(r#"{"PartitionKey":"p","RowKey":"r"}"#).await;
    let query = table_sas("people", "r", LATER, "", [None; 4]);
    for table in ["people()", "PEOPLE()", "People(PartitionKey='p',RowKey='r')"] {
        client.send(with(Call::get(table), &query)).await.expect(200);
    }
    assert_eq!(client.refusal(with(Call::get("others()"), &query)).await.0, 403);
}

/// The account was found by its name in paths and in the primary host only.
#[tokio::test]
async fn the_host_of_the_second_region_names_the_account() {
    let client = filled().await;
    let query = table_sas("people", "r", LATER, "", [None; 4]);
    for host in ["storage", "storage-secondary"] {
        let call = with(Call::get("people()"), &query).header("host", format!("{host}.table.example"));
        // Without the account in the path.
        client.send(call.cosmos()).await.expect(200);
    }
}
