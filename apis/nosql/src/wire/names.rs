//! The names of all headers that this API reads or writes.

use http::HeaderName;

/// Makes the names, which must be lower case. Statics, so that a fault can carry the text of one.
macro_rules! names {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        $($(#[$doc])* pub(crate) static $name: HeaderName = HeaderName::from_static($text);)*
    };
}

names! {
    /// GUID of the request, chosen by the client or by us.
    ACTIVITY_ID = "x-ms-activity-id";
    /// Name path of the container that a session token belongs to.
    ALT_CONTENT_PATH = "x-ms-alt-content-path";
    /// The wish for a change feed instead of a plain one.
    A_IM = "a-im";
    /// The credential.
    AUTHORIZATION = "authorization";
    /// Autoscale settings of a new database or container, as JSON.
    AUTOPILOT_SETTINGS = "x-ms-cosmos-offer-autopilot-settings";
    /// Whether a batch is a transaction.
    BATCH_ATOMIC = "x-ms-cosmos-batch-atomic";
    /// Who may keep an answer.
    CACHE_CONTROL = "cache-control";
    /// Whether the connection goes on.
    CONNECTION = "connection";
    /// The level a client wants for this request.
    CONSISTENCY_LEVEL = "x-ms-consistency-level";
    /// How many bytes the body has.
    CONTENT_LENGTH = "content-length";
    /// RID of the container that a session token belongs to.
    CONTENT_PATH = "x-ms-content-path";
    /// What the body is.
    CONTENT_TYPE = "content-type";
    /// Where a feed goes on.
    CONTINUATION = "x-ms-continuation";
    /// When a request was signed, if the protocol's own header does not say it.
    DATE = "date";
    /// Whether a query may go over all partitions.
    ENABLE_CROSS_PARTITION = "x-ms-documentdb-query-enablecrosspartition";
    /// Where a part of a range ends.
    END_EPK = "x-ms-end-epk";
    /// The version of a resource.
    ETAG = "etag";
    /// The name by which the client called us.
    HOST = "host";
    /// Whether a query is to be explained instead of answered; a header of our own.
    EXPLAIN = "x-perihelion-explain";
    /// How long a resource token shall live, in seconds.
    EXPIRY_SECONDS = "x-ms-documentdb-expiry-seconds";
    /// The version that must be there.
    IF_MATCH = "if-match";
    /// The version that must not be there.
    IF_NONE_MATCH = "if-none-match";
    /// How much of a changed index is built, in percent.
    INDEX_PROGRESS = "x-ms-documentdb-collection-index-transformation-progress";
    /// The indexes that a query used, and those that might help it.
    INDEX_UTILIZATION = "x-ms-cosmos-index-utilization";
    /// RID of the container that the client means.
    INTENDED_CONTAINER_RID = "x-ms-cosmos-intended-collection-rid";
    /// Whether the body is a batch.
    IS_BATCH = "x-ms-cosmos-is-batch-request";
    /// Whether the body is a query.
    IS_QUERY = "x-ms-documentdb-isquery";
    /// Whether the answer should be a query plan.
    IS_QUERY_PLAN = "x-ms-cosmos-is-query-plan-request";
    /// Whether a create may replace.
    IS_UPSERT = "x-ms-documentdb-is-upsert";
    /// Number of items in a page.
    ITEM_COUNT = "x-ms-item-count";
    /// LSN of the item that was read or written.
    ITEM_LSN = "x-ms-item-lsn";
    /// LSN of the partition.
    LSN = "lsn";
    /// Most items of a page.
    MAX_ITEM_COUNT = "x-ms-max-item-count";
    /// Whether a manual throughput becomes an autoscale one.
    MIGRATE_TO_AUTOSCALE = "x-ms-cosmos-migrate-offer-to-autopilot";
    /// Whether an autoscale throughput becomes a manual one.
    MIGRATE_TO_MANUAL = "x-ms-cosmos-migrate-offer-to-manual-throughput";
    /// Least throughput of an offer.
    MIN_THROUGHPUT = "x-ms-cosmos-min-throughput";
    /// Whether a change of throughput is still running.
    OFFER_REPLACE_PENDING = "x-ms-offer-replace-pending";
    /// Throughput of a new database or container.
    OFFER_THROUGHPUT = "x-ms-offer-throughput";
    /// The partition key, a JSON array.
    PARTITION_KEY = "x-ms-documentdb-partitionkey";
    /// The id of a partition key range.
    PARTITION_KEY_RANGE_ID = "x-ms-documentdb-partitionkeyrangeid";
    /// Names of triggers that run after a write.
    POST_TRIGGERS = "x-ms-documentdb-post-trigger-include";
    /// Names of triggers that run before a write.
    PRE_TRIGGERS = "x-ms-documentdb-pre-trigger-include";
    /// Whether quota and usage of a container are wanted.
    POPULATE_QUOTA = "x-ms-documentdb-populatequotainfo";
    /// Whether the indexes of a query are wanted, in the older form.
    POPULATE_INDEX_METRICS = "x-ms-cosmos-populateindexmetrics";
    /// The same in the newer form.
    POPULATE_INDEX_METRICS_V2 = "x-ms-cosmos-populateindexmetrics-v2";
    /// Whether advice on a query is wanted.
    POPULATE_QUERY_ADVICE = "x-ms-cosmos-populatequeryadvice";
    /// Whether the measurements of a query are wanted.
    POPULATE_QUERY_METRICS = "x-ms-documentdb-populatequerymetrics";
    /// How bodies of writes are answered.
    PREFER = "prefer";
    /// How a query could be written better.
    QUERY_ADVICE = "x-ms-cosmos-query-advice";
    /// How rows with equal sort values follow each other.
    QUERY_EXECUTION_INFO = "x-ms-cosmos-query-execution-info";
    /// The measurements of a query.
    QUERY_METRICS = "x-ms-documentdb-query-metrics";
    /// What the request cost.
    REQUEST_CHARGE = "x-ms-request-charge";
    /// How much a container may hold.
    RESOURCE_QUOTA = "x-ms-resource-quota";
    /// How much a container holds.
    RESOURCE_USAGE = "x-ms-resource-usage";
    /// When to try again.
    RETRY_AFTER_MS = "x-ms-retry-after-ms";
    /// What the client has seen, or has seen now.
    SESSION_TOKEN = "x-ms-session-token";
    /// Where a part of a range starts.
    START_EPK = "x-ms-start-epk";
    /// The finer reason of a refusal.
    SUBSTATUS = "x-ms-substatus";
    /// What a client can do with the answers of ranges.
    SUPPORTED_FEATURES = "x-ms-cosmos-supported-query-features";
    /// The date that was signed.
    X_MS_DATE = "x-ms-date";
}
