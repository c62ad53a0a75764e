//! The API of procedures.

use crate::fixture::{Documents, body, check, execute};
use serde_json::json;

#[tokio::test]
async fn a_procedure_gets_its_parameters_and_answers() {
    check(
        "function (a, b) { getContext().getResponse().setBody({ sum: a + b.c }); }",
        json!([1, {"c": 2}]),
        json!({"sum": 3}),
    )
    .await;
}
