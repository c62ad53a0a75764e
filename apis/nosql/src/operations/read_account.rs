//! `GET /`: the first request of clients. The answer says where to send all other requests.

use super::{CATALOG_READ, Call};
use crate::faults::Refusal;
use crate::faults::WireFault;
use crate::wire::headers;
use crate::wire::reply::Reply;
use crate::wire::{names, resources};
use engine::{Action, Resource};
use http::StatusCode;
use serde_json::json;

/// The capabilities of the query engine, as a text that clients parse.
const QUERY_ENGINE: &str = "{\"maxSqlQueryInputLength\":262144,\"maxJoinsPerSqlQuery\":5,\
\"maxLogicalAndPerSqlQuery\":500,\"maxLogicalOrPerSqlQuery\":500,\"maxUdfRefPerSqlQuery\":10,\
\"maxInExpressionItemsCount\":16000,\"queryMaxInMemorySortDocumentCount\":500,\
\"maxQueryRequestTimeoutFraction\":0.9,\"sqlAllowNonFiniteNumbers\":false,\"sqlAllowAggregateFunctions\":true,\
\"sqlAllowSubQuery\":true,\"sqlAllowScalarSubQuery\":true,\"allowNewKeywords\":true,\"sqlAllowLike\":true,\
\"sqlAllowGroupByClause\":true,\"maxSpatialQueryCells\":12,\"spatialMaxGeometryPointCount\":256,\
\"sqlDisableOptimizationFlags\":0,\"sqlAllowTop\":true,\"enableSpatialIndexing\":true}";

/// Longest host that is returned to clients: no host name is longer.
const HOST_BYTES_MAX: usize = 255;

pub(super) fn perform(call: &Call<'_>) -> Result<Reply, Refusal> {
    call.authorise(Action::ReadAccount, Resource::Account)?;
    let endpoint = endpoint(call)?;
    let id = account_id(&endpoint);
    let locations = json!([{ "name": call.options.region, "databaseAccountEndpoint": endpoint }]);
    let account = json!({
        "id": id,
        "_rid": format!("{id}.sql.cosmos.azure.com"),
        "_self": "",
        "_dbs": "//dbs/",
        "media": "//media/",
        "addresses": "//addresses/",
        "writableLocations": locations,
        "readableLocations": locations,
        "enableMultipleWriteLocations": false,
        "continuousBackupEnabled": false,
        "enableNRegionSynchronousCommit": false,
        "enablePerPartitionFailoverBehavior": false,
        "disableCrossRegionalHedging": false,
        "userReplicationPolicy": { "asyncReplication": false, "minReplicaSetSize": 1, "maxReplicasetSize": 4 },
        "systemReplicationPolicy": { "minReplicaSetSize": 1, "maxReplicasetSize": 4 },
        "userConsistencyPolicy": {
            "defaultConsistencyLevel": call.options.consistency.name(),
            "maxStalenessPrefix": 100,
            "maxIntervalInSeconds": 5,
        },
        "readPolicy": { "primaryReadCoefficient": 1, "secondaryReadCoefficient": 1 },
        "queryEngineConfiguration": QUERY_ENGINE,
    });
    let mut reply = Reply::json(StatusCode::OK, CATALOG_READ, resources::text(&account));
    // Old clients read these numbers and fail without them. There are no attachments and no quotas.
    for name in [
        &names::MAX_MEDIA_STORAGE_MB,
        &names::MEDIA_STORAGE_MB,
        &names::ACCOUNT_CONSUMED_MB,
        &names::ACCOUNT_PROVISIONED_MB,
        &names::ACCOUNT_RESERVED_MB,
    ] {
        reply.number(name, 0_u32);
    }
    Ok(reply)
}

/// The configured endpoint, or scheme and host as the client used them: they are known to work for this client.
fn endpoint(call: &Call<'_>) -> Result<String, WireFault> {
    if let Some(endpoint) = &call.options.public_endpoint {
        let slash = if endpoint.ends_with('/') { "" } else { "/" };
        return Ok(format!("{endpoint}{slash}"));
    }
    let host = match call.parts.uri.authority() {
        Some(authority) => authority.as_str(),
        None => headers::text(call.headers(), &names::HOST)?.unwrap_or_default(),
    };
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
    if host.is_empty() || host.len() > HOST_BYTES_MAX || !host.bytes().all(is_host) {
        return Err(headers::bad(&names::HOST, host, "it is no host name"));
    }
    let scheme = if call.connection.secure { "https" } else { "http" };
    Ok(format!("{scheme}://{host}/"))
}

/// The account is named after the first label of its host; an IP address is not a name.
fn account_id(endpoint: &str) -> &str {
    let host = endpoint.split_once("://").map_or(endpoint, |(_, host)| host);
    let label = host.split(['.', ':', '/']).next().unwrap_or_default();
    if label.starts_with(|first: char| first.is_ascii_alphabetic()) { label } else { "localhost" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_is_named_after_its_host() {
        assert_eq!(account_id("https://acct.documents.example:443/"), "acct");
        assert_eq!(account_id("http://db:8081/"), "db");
        assert_eq!(account_id("http://127.0.0.1:8081/"), "localhost");
        assert_eq!(account_id("http://[::1]:8081/"), "localhost");
    }

    #[test]
    fn the_query_engine_text_is_json() {
        assert!(serde_json::from_str::<serde_json::Value>(QUERY_ENGINE).unwrap().is_object());
    }
}
