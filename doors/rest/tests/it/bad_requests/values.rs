//! What headers and members of bodies cannot be, by field.
//!
//! Headers are bytes, since they need not be text. Members of bodies are raw text at a JSON pointer, since they need
//! not be JSON.

pub(super) const SESSIONS: &[&[u8]] =
    &[b"x", b"0", b"0:", b"0:#", b"a:0#1", b"0:0#x", b"0:0#1#2", b"0:0#1,,", b"0:0#-4", b"\xFF"];
pub(super) const COUNTS: &[&[u8]] = &[b"0", b"-2", b"x", b"1.5", b"99999999999999999999", b"\xFF", b"1 2"];
pub(super) const CONTINUATIONS: &[&[u8]] = &[
    b"x",
    b"{\"token\":\"+RID:AQAAAA==#RT:1\"}",
    b"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    b"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    b"AQ",
    b"\xC3\x28",
];
pub(super) const RANGES: &[&[u8]] = &[b"x", b"-1", b"0,1", b"99999999999", b"\xFF", b"0.0"];
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

/// Members of a database definition and what they cannot be.
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
        &["1", "[]", "\"none\"", "{\"indexingMode\":\"sometimes\"}", "{\"includedPaths\":1}"],
    ),
    ("/indexingPolicy/automatic", &["1", "\"yes\""]),
    (
        "/uniqueKeyPolicy",
        &["1", "[]", "{\"uniqueKeys\":1}", "{\"uniqueKeys\":[{}]}", "{\"uniqueKeys\":[{\"paths\":[]}]}"],
    ),
    ("/conflictResolutionPolicy", &["1", "[]", "\"x\""]),
    ("/computedProperties", &["1", "{}"]),
];

pub(super) const ITEMS: &[(&str, &[&str])] = &[
    ("/id", &["1", "null", "true", "[]", "{}", "\"\"", "\"a/b\"", "\"a\\\\b\"", "\"a#b\"", "\"a?b\""]),
    ("/pk", &["\"b\"", "null", "1", "{}", "[]", "[\"a\"]"]),
    ("/ttl", &["0", "-2", "1.5", "\"60\"", "2147483648", "[]", "true"]),
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
