//! Credentials: shared keys, bearer tokens, and who is refused.

use crate::client::{Call, Client, KEY, NOW, READER_KEY, STORAGE_KEY, Signing, code};
use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};

#[tokio::test]
async fn both_forms_of_shared_key_are_accepted_in_both_accounts() {
    let client = Client::with_table().await;
    for signing in [Signing::SharedKey, Signing::Lite] {
        for path in
            ["people()", "people(PartitionKey='a',RowKey='b')?$select=x", "?restype=service&comp=properties"]
        {
            let expected = if path.contains("Key") { 404 } else { 200 };
            let call = || Call::get(path).signing(signing.clone());
            client.send(call()).await.expect(expected);
            client.send(call().cosmos()).await.expect(expected);
        }
    }
    let insert = Call::new("POST", "people").json(r#"{"PartitionKey":"p","RowKey":"r"}"#);
    client.send(insert.signing(Signing::Lite)).await.expect(201);
}

#[tokio::test]
async fn a_wrong_credential_reveals_nothing() {
    let client = Client::with_table().await;
    let wrong = [
        Signing::None,
        Signing::Header("SharedKey storage:AAAA".to_owned()),
        Signing::Header("SharedKey storage:%%%".to_owned()),
        Signing::Header("SharedKey storage".to_owned()),
        Signing::Header("SharedKey other:AAAA".to_owned()),
        Signing::Header("Basic abc".to_owned()),
        Signing::Header("x".to_owned()),
        Signing::Header("Bearer abc".to_owned()),
    ];
    for signing in wrong {
        for path in ["people()", "absent()", "Tables", "$batch"] {
            let verb = if path == "$batch" { "POST" } else { "GET" };
            let refused = client.refusal(Call::new(verb, path).signing(signing.clone())).await;
            assert_eq!(refused, code(403, "AuthenticationFailed"), "{signing:?} {path}");
        }
        let signing = match signing {
            Signing::Header(text) => Signing::Header(text.replace("storage", "cosmos")),
            other @ (Signing::None | Signing::SharedKey | Signing::Lite) => other,
        };
        let refused = client.refusal(Call::get("people()").cosmos().signing(signing.clone())).await;
        // Also for an account that does not exist: the server's first one answers.
        assert_eq!(refused, code(401, "AuthenticationFailed"), "{signing:?}");
    }
    assert_eq!(client.refusal(Call::get("people()").key(KEY)).await, code(403, "AuthenticationFailed"));
    assert_eq!(client.refusal(Call::get("people()").cosmos().key(STORAGE_KEY)).await.0, 401);
}

#[tokio::test]
async fn a_clock_may_differ_by_fifteen_minutes() {
    let client = Client::with_table().await;
    for seconds in [NOW - 900, NOW + 900] {
        client.send(Call::get("people()").at(seconds)).await.expect(200);
    }
    for seconds in [NOW - 901, NOW + 901] {
        let refused = client.refusal(Call::get("people()").at(seconds)).await;
        assert_eq!(refused, code(403, "AuthenticationFailed"));
    }
}

#[tokio::test]
async fn a_key_that_only_reads_changes_nothing() {
    let client = Client::with_table().await;
    client.insert(r#"{"PartitionKey":"p","RowKey":"r"}"#).await;
    let reader = |call: Call| call.cosmos().key(READER_KEY);
    client.send(reader(Call::get("people()"))).await.expect(200);
    client.send(reader(Call::get("Tables"))).await.expect(200);
    for call in [
        Call::new("POST", "people").json(r#"{"PartitionKey":"p","RowKey":"s"}"#),
        Call::new("PUT", "people(PartitionKey='p',RowKey='r')").json("{}"),
        Call::new("DELETE", "people(PartitionKey='p',RowKey='r')").header("if-match", "*"),
        Call::new("POST", "Tables").json(r#"{"TableName":"more"}"#),
        Call::new("DELETE", "Tables('people')"),
    ] {
        let refused = client.refusal(reader(call.clone())).await;
        assert_eq!(refused, code(403, "AuthorizationPermissionMismatch"), "{call:?}");
    }
}

#[tokio::test]
async fn a_token_with_the_key_is_accepted_where_that_is_allowed() {
    let client = Client::with_table().await;
    let token = |key: &[u8]| {
        let key = BASE64_URL_SAFE_NO_PAD.encode(BASE64_STANDARD.encode(key));
        Signing::Header(format!("Bearer a.b.{key}"))
    };
    client.send(Call::get("people()").cosmos().signing(token(KEY))).await.expect(200);
    let refused = client.refusal(Call::get("people()").cosmos().signing(token(b"other"))).await;
    assert_eq!(refused, code(401, "AuthenticationFailed"));
}

#[tokio::test]
async fn errors_are_json_or_xml() {
    let client = Client::with_table().await;
    let json = client.send(Call::get("absent()")).await.expect(404).json();
    assert_eq!(json["odata.error"]["code"], "TableNotFound");
    let message = json["odata.error"]["message"]["value"].as_str().unwrap();
    assert!(message.starts_with("The table specified does not exist.\nRequestId:"), "{message}");
    let xml = client.send(Call::get("absent()").header("accept", "application/xml")).await.expect(404);
    assert!(xml.text().contains("<code>TableNotFound</code>"), "{xml:?}");
    assert_eq!(xml.header("content-type"), Some("application/xml;charset=utf-8"));
}
