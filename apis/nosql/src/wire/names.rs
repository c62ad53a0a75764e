//! The names of all headers that this API reads or writes.

use http::HeaderName;

/// Declares the names, which must be lower case. They are statics, so that a fault can contain the text of one.
macro_rules! names {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        $($(#[$doc])* pub(crate) static $name: HeaderName = HeaderName::from_static($text);)*
    };
}

names! {
    /// GUID of the request, chosen by the client or the server.
    ACTIVITY_ID = "x-ms-activity-id";
    /// Name path of the owner: of items, the container that a session token belongs to.
    ALT_CONTENT_PATH = "x-ms-alt-content-path";
    /// Requests a change feed instead of a plain feed.
    A_IM = "a-im";
    /// The credential.
    AUTHORIZATION = "authorization";
    /// Autoscale settings of a new database or container, as JSON.
    AUTOPILOT_SETTINGS = "x-ms-cosmos-offer-autopilot-settings";
    /// Whether a batch is a transaction.
    BATCH_ATOMIC = "x-ms-cosmos-batch-atomic";
    /// Whether the steps of a bulk behind a refused one are performed.
    BATCH_CONTINUE_ON_ERROR = "x-ms-cosmos-batch-continue-on-error";
    /// Who may cache an answer.
    CACHE_CONTROL = "cache-control";
    /// The form of the rows of a change feed.
    CHANGE_FEED_FORMAT = "x-ms-cosmos-changefeed-wire-format-version";
    /// The compatibility mode of this request, an extension of ours.
    COMPATIBILITY = "x-perihelion-compatibility";
    /// Whether the connection is kept open.
    CONNECTION = "connection";
    /// The consistency level that a client requests.
    CONSISTENCY_LEVEL = "x-ms-consistency-level";
    /// Whether the request is refused before others when throughput is scarce.
    PRIORITY_LEVEL = "x-ms-cosmos-priority-level";
    /// The length of the body.
    CONTENT_LENGTH = "content-length";
    /// RID of the container that a session token belongs to.
    CONTENT_PATH = "x-ms-content-path";
    /// The URL of the resource at the region that answered.
    CONTENT_LOCATION = "content-location";
    /// The type of the body.
    CONTENT_TYPE = "content-type";
    /// The position where a feed continues.
    CONTINUATION = "x-ms-continuation";
    /// The date of the signature, if `x-ms-date` is absent.
    DATE = "date";
    /// Whether a query may cover all partitions.
    ENABLE_CROSS_PARTITION = "x-ms-documentdb-query-enablecrosspartition";
    /// The end of a part of a range.
    END_EPK = "x-ms-end-epk";
    /// The version of a resource.
    ETAG = "etag";
    /// The host name that the client used.
    HOST = "host";
    /// Whether a query is explained instead of executed; not part of the service's protocol.
    EXPLAIN = "x-perihelion-explain";
    /// The requested lifetime of a resource token in seconds.
    EXPIRY_SECONDS = "x-ms-documentdb-expiry-seconds";
    /// The time since which changes are requested.
    IF_MODIFIED_SINCE = "if-modified-since";
    /// The version that must be stored.
    IF_MATCH = "if-match";
    /// The version that must not be stored.
    IF_NONE_MATCH = "if-none-match";
    /// The progress of an index build in percent.
    INDEX_PROGRESS = "x-ms-documentdb-collection-index-transformation-progress";
    /// The indexes that a query used, and those that might help it.
    INDEX_UTILIZATION = "x-ms-cosmos-index-utilization";
    /// RID of the container that the client expects.
    INTENDED_CONTAINER_RID = "x-ms-cosmos-intended-collection-rid";
    /// Whether the body is a batch.
    IS_BATCH = "x-ms-cosmos-is-batch-request";
    /// Whether the body is a query.
    IS_QUERY = "x-ms-documentdb-isquery";
    /// Requests a query plan.
    IS_QUERY_PLAN = "x-ms-cosmos-is-query-plan-request";
    /// Whether a create may replace.
    IS_UPSERT = "x-ms-documentdb-is-upsert";
    /// Number of items in a page.
    ITEM_COUNT = "x-ms-item-count";
    /// LSN of the item that was read or written.
    ITEM_LSN = "x-ms-item-lsn";
    /// LSN of the partition.
    LSN = "lsn";
    /// Megabytes of attachments that the account may have.
    MAX_MEDIA_STORAGE_MB = "x-ms-max-media-storage-usage-mb";
    /// Megabytes of attachments that the account has.
    MEDIA_STORAGE_MB = "x-ms-media-storage-usage-mb";
    /// Megabytes that the account uses.
    ACCOUNT_CONSUMED_MB = "x-ms-databaseaccount-consumed-mb";
    /// Megabytes that are provisioned for the account.
    ACCOUNT_PROVISIONED_MB = "x-ms-databaseaccount-provisioned-mb";
    /// Megabytes that are reserved for the account.
    ACCOUNT_RESERVED_MB = "x-ms-databaseaccount-reserved-mb";
    /// Most items of a page.
    MAX_ITEM_COUNT = "x-ms-max-item-count";
    /// Whether a manual throughput becomes an autoscale one.
    MIGRATE_TO_AUTOSCALE = "x-ms-cosmos-migrate-offer-to-autopilot";
    /// Whether an autoscale throughput becomes a manual one.
    MIGRATE_TO_MANUAL = "x-ms-cosmos-migrate-offer-to-manual-throughput";
    /// Minimum throughput of an offer.
    MIN_THROUGHPUT = "x-ms-cosmos-min-throughput";
    /// Whether a change of throughput is still in progress.
    OFFER_REPLACE_PENDING = "x-ms-offer-replace-pending";
    /// Throughput of a new database or container.
    OFFER_THROUGHPUT = "x-ms-offer-throughput";
    /// The partition key, a JSON array.
    PARTITION_KEY = "x-ms-documentdb-partitionkey";
    /// The id of a partition key range.
    PARTITION_KEY_RANGE_ID = "x-ms-documentdb-partitionkeyrangeid";
    /// Names of triggers that run after a write.
    POST_TRIGGERS = "x-ms-documentdb-post-trigger-include";
    /// Whether what scripts log is returned.
    ENABLE_SCRIPT_LOGGING = "x-ms-documentdb-script-enable-logging";
    /// What scripts have logged, percent-encoded.
    SCRIPT_LOG = "x-ms-documentdb-script-log-results";
    /// Names of triggers that run before a write.
    PRE_TRIGGERS = "x-ms-documentdb-pre-trigger-include";
    /// Requests the statistics of a container's partitions.
    POPULATE_STATISTICS = "x-ms-documentdb-populatepartitionstatistics";
    /// Requests quota and usage of a container.
    POPULATE_QUOTA = "x-ms-documentdb-populatequotainfo";
    /// Requests index metrics in the older form.
    POPULATE_INDEX_METRICS = "x-ms-cosmos-populateindexmetrics";
    /// Requests index metrics in the newer form.
    POPULATE_INDEX_METRICS_V2 = "x-ms-cosmos-populateindexmetrics-v2";
    /// Requests advice on a query.
    POPULATE_QUERY_ADVICE = "x-ms-cosmos-populatequeryadvice";
    /// Requests the metrics of a query.
    POPULATE_QUERY_METRICS = "x-ms-documentdb-populatequerymetrics";
    /// Whether answers to writes contain the item.
    PREFER = "prefer";
    /// How a query could be written better.
    QUERY_ADVICE = "x-ms-cosmos-query-advice";
    /// The order of rows with equal sort values.
    QUERY_EXECUTION_INFO = "x-ms-cosmos-query-execution-info";
    /// The metrics of a query.
    QUERY_METRICS = "x-ms-documentdb-query-metrics";
    /// The charge of the request.
    REQUEST_CHARGE = "x-ms-request-charge";
    /// How long the server worked on the request, in milliseconds.
    REQUEST_DURATION_MS = "x-ms-request-duration-ms";
    /// The quota of a container.
    RESOURCE_QUOTA = "x-ms-resource-quota";
    /// The usage of a container.
    RESOURCE_USAGE = "x-ms-resource-usage";
    /// When to retry.
    RETRY_AFTER_MS = "x-ms-retry-after-ms";
    /// The state that the client has seen; in an answer, the state that it has seen now.
    SESSION_TOKEN = "x-ms-session-token";
    /// The start of a part of a range.
    START_EPK = "x-ms-start-epk";
    /// The detailed reason of a refusal.
    SUBSTATUS = "x-ms-substatus";
    /// The features of a client for merging the answers of ranges.
    SUPPORTED_FEATURES = "x-ms-cosmos-supported-query-features";
    /// The version of the protocol that a client uses.
    VERSION = "x-ms-version";
    /// The date that was signed.
    X_MS_DATE = "x-ms-date";
}
