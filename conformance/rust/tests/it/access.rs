//! Keys: a wrong one.

use conformance::fixture::{SHARED, ids};
use conformance::over_both;

#[test]
fn a_wrong_key_is_refused_at_once() {
    over_both(async |f| {
        let wrong = format!("{}==", "A".repeat(86));
        let error = match SHARED.client_with_key(f.scheme, &wrong).await {
            Err(error) => error,
            Ok(client) => client.create_database("never", None).await.err().unwrap(),
        };
        assert_eq!(u16::from(error.status().status_code()), 401, "{error}");
        assert!(ids(&f.container).await.is_empty());
    });
}
