//! Triggers before and after a write.

use crate::fixture::{CALLER, Documents, body, call, workers};
use bytes::Bytes;
use script::{Call, CallFault, Finished, Role, ScriptFault, TriggerOperation};
use serde_json::{Value, json};

fn before(source: &str, operation: TriggerOperation, document: &str) -> Call {
    let role = Role::PreTrigger { operation, document: Bytes::copy_from_slice(document.as_bytes()) };
    Call { role, ..call(source, &json!([])) }
}

fn after(source: &str, operation: TriggerOperation, document: &str) -> Call {
    let document = Bytes::copy_from_slice(document.as_bytes());
    let role = Role::PostTrigger { operation, request: document.clone(), document };
    Call { role, ..call(source, &json!([])) }
}

async fn run(call: &Call, documents: &mut Documents) -> Result<Finished, CallFault<&'static str>> {
    workers().run(CALLER, call, documents).await
}

#[tokio::test]
async fn a_pre_trigger_changes_the_document() {
    let source = "function () {
        var request = getContext().getRequest(), item = request.getBody();
        item.operation = request.getOperationType();
        item.hasResponse = typeof getContext().getResponse;
        request.setBody(item);
        item.later = true;
    }";
    let call = before(source, TriggerOperation::Replace, r#"{"id":"a"}"#);
    let finished = run(&call, &mut Documents::default()).await.unwrap();
    let document: Value = serde_json::from_slice(&finished.document.unwrap()).unwrap();
    let expected = json!({"id": "a", "operation": "Replace", "hasResponse": "undefined", "later": true});
    assert_eq!(document, expected);
    assert_eq!(finished.body, None);
}

#[tokio::test]
async fn a_pre_trigger_that_sets_nothing_changes_nothing() {
    let call =
        before("function () { getContext().getRequest().getBody().n = 1; }", TriggerOperation::Create, "{}");
    assert_eq!(run(&call, &mut Documents::default()).await.unwrap(), Finished::default());
    let call = before(
        "function () { if (getContext().getRequest().getBody() !== undefined) throw 1; }",
        TriggerOperation::Delete,
        "",
    );
    assert_eq!(run(&call, &mut Documents::default()).await.unwrap(), Finished::default());
}

#[tokio::test]
async fn a_pre_trigger_refuses_a_dangling_reference() {
    let source = "function () {
        var item = getContext().getRequest().getBody();
        __.readDocument(__.getAltLink() + '/docs/' + item.author, function (err) {
            if (err) throw new Error(400, 'no author ' + item.author);
        });
    }";
    let mut documents = Documents::with(json!([{"id": "author1"}]));
    let known = before(source, TriggerOperation::Create, r#"{"id":"a","author":"author1"}"#);
    run(&known, &mut documents).await.unwrap();
    let unknown = before(source, TriggerOperation::Create, r#"{"id":"a","author":"author2"}"#);
    let Err(CallFault::Script(ScriptFault::Thrown(error))) = run(&unknown, &mut documents).await else {
        panic!()
    };
    assert_eq!((error.number, error.message.as_str()), (Some(400), "no author author2"));
}

#[tokio::test]
async fn a_post_trigger_sees_the_written_document() {
    let source = "function () {
        var book = getContext().getResponse().getBody(), link = __.getAltLink() + '/docs/' + book.author;
        __.readDocument(link, function (err, author) {
            if (err) throw err;
            author.countOfBooks += 1;
            __.replaceDocument(link, author);
        });
    }";
    let mut documents = Documents::with(json!([{"id": "author1", "countOfBooks": 2}]));
    let call = after(source, TriggerOperation::Create, r#"{"id":"a","author":"author1"}"#);
    let finished = run(&call, &mut documents).await.unwrap();
    assert_eq!(body(&finished), Value::Null);
    assert_eq!(documents.documents, [json!({"id": "author1", "countOfBooks": 3})]);
}

#[tokio::test]
async fn a_fluent_query_of_a_pre_trigger_needs_a_callback() {
    let call =
        before("function () { __.filter(function () { return true; }); }", TriggerOperation::Create, "{}");
    let Err(CallFault::Script(ScriptFault::Thrown(error))) = run(&call, &mut Documents::default()).await
    else {
        panic!()
    };
    assert_eq!(error.number, Some(400));
}
