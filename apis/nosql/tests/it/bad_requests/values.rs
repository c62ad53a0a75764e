//! Invalid values of headers and members of bodies, by field.
//!
//! Headers are bytes, because they need not be text. Members of bodies are raw text at a JSON pointer, because they
//! need not be JSON.

pub(super) const SESSIONS: &[&[u8]] =
    &[b"x", b"0", b"0:", b"0:#", b"a:0#1", b"0:0#x", b"0:0#1#2", b"0:0#1,x,", b"0:0#-4", b"\xFF"];
pub(super) const COUNTS: &[&[u8]] = &[b"-2", b"x", b"1.5", b"99999999999999999999", b"\xFF", b"1 2"];
pub(super) const CONTINUATIONS: &[&[u8]] = &[
    b"x",
    b"{\"token\":\"+RID:AQAAAA==#RT:1\"}",
    b"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    b"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    b"AQ",
    b"\xC3\x28",
];
pub(super) const RANGES: &[&[u8]] = &[b"x", b"-1", b"+0", b"0,1", b"99999999999", b"\xFF", b"0.0"];
/// Positions in a change feed: no text, no position, ahead of the feed, of ranges that never were.
pub(super) const POSITIONS: &[&[u8]] = &[
    b"x",
    b"\"",
    b"\"1;\"",
    b"-1",
    b"W/\"1\"",
    b"1.5",
    b"\"9223372036854775807\"",
    b"18446744073709551616",
    b"\"0;9:1\"",
    b"\"0;0:9223372036854775807\"",
    b"\"0;;9\"",
    b"\xFF",
];
pub(super) const TIMES: &[&[u8]] = &[
    b"x",
    b"0",
    b"tomorrow",
    b"2023-01-01T00:00:00Z",
    b"Sun, 32 Jan 2023 00:00:00 GMT",
    b"Sun, 01 Jan 2023 25:00:00 GMT",
    b"Sun, 01 Jan 2023 00:00:00 CET",
    b"\xFF",
];
pub(super) const VERSIONS: &[&[u8]] =
    &[b"\"x\"", b"W/\"1\"", b"00000001-0000-0000-0000-000000000000", b"\xFF"];
pub(super) const RATES: &[&[u8]] =
    &[b"x", b"-400", b"0", b"399", b"450", b"1000100", b"400.5", b"99999999999999999999", b"\xFF"];
pub(super) const AUTOSCALES: &[&[u8]] = &[
    b"x",
    b"{",
    b"{}",
    b"[]",
    b"4000",
    b"{\"maxThroughput\":\"4000\"}",
    b"{\"maxThroughput\":-1}",
    b"{\"maxThroughput\":1500}",
    b"{\"maxThroughput\":null}",
    b"\xFF",
];
pub(super) const RIDS: &[&[u8]] = &[b"AQAAAA==", b"x", b"AQAAAIAAAAk=", b"\xFF"];
pub(super) const KEYS: &[&[u8]] = &[
    b"a",
    b"\"a\"",
    b"[",
    b"{}",
    b"null",
    b"[]",
    b"[\"a\",\"b\"]",
    b"[[\"a\"]]",
    b"[{\"a\":1}]",
    b"[1e999]",
    b"[01]",
    b"['a']",
    b"[\"\\ud800\"]",
    b"[\"\xC3\x28\"]",
    b"[\"a\"]]",
];

/// Members of a database definition and their invalid values.
pub(super) const DATABASES: &[(&str, &[&str])] = &[(
    "/id",
    &[
        "1",
        "null",
        "true",
        "[]",
        "{}",
        "\"\"",
        "\"a/b\"",
        "\"a\\\\b\"",
        "\"a#\"",
        "\"a?\"",
        "\"a \"",
        "\"a\\n\"",
    ],
)];

pub(super) const CONTAINERS: &[(&str, &[&str])] = &[
    ("/id", &["1", "null", "true", "[]", "{}", "\"\"", "\"a/b\"", "\"a#\"", "\"a \"", "\"other/one\""]),
    ("/partitionKey", &["1", "null", "[]", "{}", "\"/pk\"", "{\"paths\":[]}"]),
    (
        "/partitionKey/paths",
        &["1", "null", "{}", "[]", "[1]", "[\"pk\"]", "[\"/a\",\"/b\"]", "[\"\"]", "\"/pk\""],
    ),
    ("/partitionKey/kind", &["1", "\"Round\"", "\"MultiHash2\"", "[]"]),
    ("/partitionKey/version", &["3", "\"2\"", "-1", "1.5", "[]"]),
    ("/defaultTtl", &["0", "-2", "1.5", "\"60\"", "2147483648", "[]", "{}", "true"]),
    (
        "/indexingPolicy",
        &[
            "1",
            "[]",
            "\"none\"",
            "{\"indexingMode\":\"sometimes\"}",
            "{\"includedPaths\":1}",
            "{\"indexingMode\":\"none\",\"automatic\":true}",
            "{\"includedPaths\":[{\"path\":\"/*\"}],\"excludedPaths\":[{\"path\":\"/*\"}]}",
            "{\"unheardOf\":[1]}",
        ],
    ),
    ("/indexingPolicy/automatic", &["1", "\"yes\""]),
    (
        "/indexingPolicy/includedPaths/0",
        &[
            "1",
            "\"/*\"",
            "{}",
            "{\"path\":1}",
            "{\"path\":\"/a\"}",
            "{\"path\":\"/a b/?\"}",
            "{\"path\":\"/*/a/?\"}",
        ],
    ),
    ("/indexingPolicy/excludedPaths", &["1", "{}", "[1]", "[{}]", "[{\"path\":\"/x\"}]"]),
    (
        "/indexingPolicy/compositeIndexes",
        &[
            "1",
            "[1]",
            "[[]]",
            "[[{\"path\":\"/a\"}]]",
            "[[{\"path\":\"/a\"},{\"path\":\"/a\"}]]",
            "[[{\"path\":\"/a\"},{\"path\":\"/b\",\"order\":\"up\"}]]",
            "[[{\"path\":\"/a\"},{\"path\":\"/b/*\"}]]",
        ],
    ),
    (
        "/indexingPolicy/spatialIndexes",
        &[
            "1",
            "[1]",
            "[{}]",
            "[{\"path\":\"/a\"}]",
            "[{\"path\":\"/a/*\",\"types\":[\"Cube\"]}]",
            "[{\"path\":\"/a/*\",\"boundingBox\":{}}]",
        ],
    ),
    ("/indexingPolicy/vectorIndexes", &["1", "[1]", "[{}]", "[{\"path\":\"/v\",\"type\":\"flat\"}]"]),
    ("/indexingPolicy/fullTextIndexes", &["1", "[1]", "[{}]", "[{\"path\":\"/t\"}]"]),
    (
        "/vectorEmbeddingPolicy",
        &[
            "1",
            "[]",
            "{\"vectorEmbeddings\":1}",
            "{\"vectorEmbeddings\":[{}]}",
            "{\"vectorEmbeddings\":[{\"path\":\"/v\",\"dimensions\":5000}]}",
            "{\"vectorEmbeddings\":[{\"path\":\"/v\",\"dataType\":\"bit\"}]}",
        ],
    ),
    (
        "/fullTextPolicy",
        &[
            "1",
            "[]",
            "{\"defaultLanguage\":\"xx\"}",
            "{\"fullTextPaths\":[{}]}",
            "{\"fullTextPaths\":[{\"path\":\"/a/*\"}]}",
        ],
    ),
    ("/geospatialConfig", &["1", "[]", "{\"type\":\"Flat\"}", "{\"type\":1}"]),
    ("/changeFeedPolicy", &["1", "[]", "{\"retentionDuration\":-1}", "{\"retentionDuration\":\"1\"}"]),
    ("/analyticalStorageTtl", &["-2", "1.5", "\"1\"", "[]"]),
    (
        "/clientEncryptionPolicy",
        &[
            "1",
            "[]",
            "{}",
            "{\"policyFormatVersion\":9}",
            "{\"policyFormatVersion\":1,\"includedPaths\":[{}]}",
        ],
    ),
    (
        "/uniqueKeyPolicy",
        &["1", "[]", "{\"uniqueKeys\":1}", "{\"uniqueKeys\":[{}]}", "{\"uniqueKeys\":[{\"paths\":[]}]}"],
    ),
    (
        "/conflictResolutionPolicy",
        &[
            "1",
            "[]",
            "\"x\"",
            "{\"mode\":\"Never\"}",
            "{\"mode\":\"Custom\",\"conflictResolutionPath\":\"/a\"}",
            "{\"conflictResolutionPath\":\"a\"}",
        ],
    ),
    (
        "/computedProperties",
        &[
            "1",
            "{}",
            "[1]",
            "[{}]",
            "[{\"name\":\"id\",\"query\":\"SELECT VALUE 1 FROM c\"}]",
            "[{\"name\":\"x\",\"query\":\"SELECT 1\"}]",
        ],
    ),
];

pub(super) const ITEMS: &[(&str, &[&str])] = &[
    ("/id", &["1", "null", "true", "[]", "{}", "\"\""]),
    ("/pk", &["\"b\"", "null", "1", "{}", "[]", "[\"a\"]"]),
    ("/ttl", &["null", "0", "-2", "1.5", "\"60\"", "2147483648", "[]", "true"]),
    ("/x", &["1e999", "-1e999", "NaN", "01", "\"\\ud800\"", "\"\\x\"", "tru", "[1,]", "\"\u{1}\""]),
];

pub(super) const PATCHES: &[(&str, &[&str])] = &[
    ("/operations", &["1", "null", "{}", "[]", "[1]", "[null]", "[{}]", "\"set\""]),
    ("/operations/0/op", &["1", "null", "\"\"", "\"SET\"", "\"test\"", "[]"]),
    (
        "/operations/0/path",
        &["1", "null", "\"x\"", "\"\"", "\"/id\"", "\"/pk\"", "\"/_rid\"", "\"/_ts\"", "\"/no/where\""],
    ),
    ("/condition", &["\"from c where c.x = 1\"", "1"]),
];

pub(super) const BATCHES: &[(&str, &[&str])] = &[
    ("/0", &["1", "null", "\"Create\"", "[]", "{}"]),
    ("/0/operationType", &["1", "null", "[]", "{}"]),
    ("/0/partitionKey", &["1", "[\"a\"]", "{}"]),
    ("/0/ifMatch", &["1", "[]"]),
    ("/0/minimalReturnPreference", &["1", "\"yes\""]),
    ("/1/id", &["1", "[]", "{}"]),
];

pub(super) const LIVES: &[&[u8]] =
    &[b"0", b"9", b"86401", b"-1", b"x", b"1.5", b"99999999999999999999", b"\xFF"];
pub(super) const FLAGS: &[&[u8]] = &[b"yes", b"1", b"0", b"\xFF", b"true false"];

/// Invalid names and types.
const NAMES: &[&str] = &["1", "null", "true", "[]", "{}", "\"\"", "\"a/b\"", "\"a#\"", "\"a \"", "\"a\\n\""];

pub(super) const PERMISSIONS: &[(&str, &[&str])] = &[
    ("/id", NAMES),
    ("/permissionMode", &["1", "null", "\"\"", "\"Write\"", "[]", "{}"]),
    (
        "/resource",
        &[
            "1",
            "null",
            "\"\"",
            "\"x\"",
            "\"dbs/d\"",
            "\"dbs/d/colls\"",
            "\"dbs/d/colls/c/docs\"",
            "\"dbs/d/colls/c/docs/\"",
            "\"dbs/d/colls/c/users/u\"",
            "\"dbs/d/colls/c/docs/1/attachments/a\"",
            "\"dbs/d/colls/c/docs/%zz\"",
        ],
    ),
    ("/resourcePartitionKey", &["1", "\"a\"", "{}", "[]", "[\"a\",\"b\"]", "[[1]]", "[{\"a\":1}]"]),
];

/// The same for scripts, whose names may contain control characters.
const SCRIPT_NAMES: &[&str] = &["1", "null", "true", "[]", "{}", "\"\"", "\"a/b\"", "\"a#\"", "\"a \""];

pub(super) const SCRIPTS: &[(&str, &[&str])] =
    &[("/id", SCRIPT_NAMES), ("/body", &["1", "null", "true", "[]", "{}", "\"\"", "\" \\n\""])];

pub(super) const TRIGGERS: &[(&str, &[&str])] = &[
    ("/id", SCRIPT_NAMES),
    ("/body", &["1", "null", "\"\""]),
    ("/triggerType", &["1", "null", "\"\"", "\"During\"", "[]"]),
    ("/triggerOperation", &["1", "null", "\"\"", "\"Read\"", "[]"]),
];

pub(super) const ENCRYPTION_KEYS: &[(&str, &[&str])] = &[
    ("/id", NAMES),
    ("/encryptionAlgorithm", &["1", "null", "\"\"", "[]"]),
    ("/wrappedDataEncryptionKey", &["1", "null", "\"\"", "\"*\"", "\"A\"", "[]"]),
    ("/keyWrapMetadata", &["1", "null", "\"x\"", "[]", "{}"]),
    ("/keyWrapMetadata/type", &["1", "null", "\"\""]),
    ("/keyWrapMetadata/name", &["1", "null", "\"\""]),
    ("/keyWrapMetadata/value", &["1", "null", "\"\""]),
    ("/keyWrapMetadata/algorithm", &["1", "null", "\"\""]),
];

pub(super) const OFFERS: &[(&str, &[&str])] = &[
    ("/_rid", &["1", "\"AgAA\"", "[]"]),
    ("/resource", &["1", "\"dbs/x/\""]),
    ("/content", &["1", "null", "[]", "{}", "\"500\""]),
    ("/content/offerThroughput", &["null", "\"500\"", "0", "-400", "399", "450", "500.5", "1000100", "[]"]),
    (
        "/content/offerAutopilotSettings",
        &[
            "1",
            "{}",
            "[]",
            "\"4000\"",
            // Both, of which the first is right by itself: the offer is manual.
            "{\"maxThroughput\":4000}",
            "{\"maxThroughput\":\"4000\"}",
            "{\"maxThroughput\":1500}",
            "{\"maxThroughput\":-1000}",
            "{\"maxThroughput\":1001000}",
            "{\"maxThroughput\":4000,\"autoUpgradePolicy\":{\"throughputPolicy\":{\"incrementPercent\":101}}}",
            "{\"maxThroughput\":4000,\"autoUpgradePolicy\":{\"throughputPolicy\":{\"incrementPercent\":\"1\"}}}",
        ],
    ),
];

/// Members of a query and their invalid values.
pub(super) const QUERIES: &[(&str, &[&str])] = &[
    (
        "/query",
        &[
            "1",
            "null",
            "{}",
            "[\"SELECT 1\"]",
            "\"\"",
            "\"SELECT\"",
            "\"SELECT *\"",
            "\"SELECT * FROM c WHERE\"",
            "\"SELECT * FROM c; DROP\"",
            "\"DELETE FROM c\"",
            "\"SELECT d FROM c\"",
            "\"SELECT NOSUCH(c) FROM c\"",
            "\"SELECT ABS() FROM c\"",
            "\"SELECT TOP @absent * FROM c\"",
            "\"SELECT TOP -1 * FROM c\"",
            "\"SELECT TOP 1.5 * FROM c\"",
            "\"SELECT TOP 99999999999 * FROM c\"",
            "\"SELECT * FROM c ORDER BY c.a + 1\"",
            "\"SELECT * FROM c GROUP BY c.a\"",
            "\"SELECT c.a, COUNT(1) FROM c\"",
            "\"SELECT VALUE 'open FROM c\"",
            "\"SELECT \\u0000 FROM c\"",
            "\"\\ud800\"",
        ],
    ),
    (
        "/parameters",
        &[
            "1",
            "{}",
            "\"@n\"",
            "[1]",
            "[null]",
            "[[]]",
            "[{}]",
            "[{\"name\":\"@n\"}]",
            "[{\"value\":1}]",
            "[{\"name\":1,\"value\":1}]",
            "[{\"name\":\"n\",\"value\":1}]",
            "[{\"name\":\"@\",\"value\":1}]",
            "[]",
            "null",
        ],
    ),
    ("/parameters/0/value", &["nan", "01", "'x'", "1e999"]),
    ("/resumeFilter", &["{}", "{\"value\":[1],\"rid\":\"x\"}"]),
];
