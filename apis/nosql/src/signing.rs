//! Headers of requests that the program itself sends to a server.

use crate::wire::percent;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use engine::AccountKey;
use std::time::{Duration, UNIX_EPOCH};

/// The version of the protocol that these requests use.
const VERSION: &str = "2020-07-15";

/// The headers that authenticate a request by an account key; the time is in seconds since 1970. `path` is by names, without a leading slash and not
/// encoded.
pub fn signed_headers(
    key: &AccountKey,
    verb: &str,
    path: &str,
    now_seconds: u64,
) -> [(&'static str, String); 3] {
    let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(now_seconds));
    let segments: Vec<&str> = path.split('/').collect();
    // The last name is that of a resource, or that of a feed.
    let (kind, link) = match segments.len() % 2 {
        0 => (segments[segments.len() - 2], path),
        _ => path.rsplit_once('/').map_or((path, ""), |(link, kind)| (kind, link)),
    };
    let payload = format!("{}\n{kind}\n{link}\n{}\n\n", verb.to_lowercase(), date.to_lowercase());
    let signature = BASE64_STANDARD.encode(key.sign(payload.as_bytes()));
    let authorization = percent::strictly_encoded(&format!("type=master&ver=1.0&sig={signature}"));
    [("authorization", authorization), ("x-ms-date", date), ("x-ms-version", VERSION.to_owned())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_those_of_the_service() {
        // The well-known key of emulators, and a signature that an SDK has made with it.
        let key = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
        let key = AccountKey::new(&BASE64_STANDARD.decode(key).unwrap());
        for (verb, path, signature) in [
            ("GET", "dbs/ToDoList", "mM0rMK/7o1MZhQwDitGRoGisPRPx09os/86Jk0YwquY="),
            ("POST", "dbs/Db1/colls/C1/docs", "4YZ8f+Qzq5jvHQVGlVcll+L6fdhNCmdosLymuH7KWys="),
        ] {
            let [(_, authorization), (_, date), _] = signed_headers(&key, verb, path, 1_493_254_272);
            assert_eq!(date, "Thu, 27 Apr 2017 00:51:12 GMT");
            assert!(
                percent::decoded(&authorization).unwrap().ends_with(&format!("sig={signature}")),
                "{authorization}"
            );
        }
    }
}
