//! Names of headers.

pub(crate) use http::header::{
    ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, DATE, ETAG, HOST, IF_MATCH, LOCATION,
    RETRY_AFTER,
};

use http::HeaderName;

macro_rules! names {
    ($($name:ident = $text:literal,)+) => {
        $(pub(crate) static $name: HeaderName = HeaderName::from_static($text);)+
    };
}

names! {
    AUTOPILOT_SETTINGS = "x-ms-cosmos-offer-autopilot-settings",
    CLIENT_REQUEST_ID = "x-ms-client-request-id",
    CONTENT_MD5 = "content-md5",
    DATA_SERVICE_ID = "dataserviceid",
    ERROR_CODE = "x-ms-error-code",
    NEXT_PARTITION_KEY = "x-ms-continuation-nextpartitionkey",
    NEXT_ROW_KEY = "x-ms-continuation-nextrowkey",
    NEXT_TABLE_NAME = "x-ms-continuation-nexttablename",
    OFFER_THROUGHPUT = "x-ms-offer-throughput",
    PREFER = "prefer",
    PREFERENCE_APPLIED = "preference-applied",
    REQUEST_CHARGE = "x-ms-request-charge",
    REQUEST_ID = "x-ms-request-id",
    RETRY_AFTER_MS = "x-ms-retry-after-ms",
    VERSION = "x-ms-version",
    X_MS_DATE = "x-ms-date",
}
