//! Bodies to documents, documents to answers, and both one after the other.

use super::*;
use crate::account::{AccountStyle, EntityLimits};
use crate::edm::{EdmType, PARTITION_KEY, PROPERTIES_MAX, ROW_KEY, TICKS_MAX, TICKS_MIN, entity_bytes};
use model::Ticks;
use proptest::prelude::*;
use value::{Document, JsonErrorKind, Value};

const STORAGE: EntityLimits = AccountStyle::Storage.limits();
const COSMOS: EntityLimits = AccountStyle::Cosmos.limits();
const ETAG: &str = r#"W/"datetime'2024-02-03T04%3A05%3A06.7890001Z'""#;

fn read(text: &str) -> Result<Document, EntityFault> {
    let entity = read_entity(text.as_bytes(), EntityKeys::InBody, STORAGE)?;
    entity.document.validate().unwrap();
    Ok(entity.document)
}

/// Reads an entity with these members besides its keys.
fn read_members(members: &str) -> Result<Document, EntityFault> {
    read(&format!(r#"{{"PartitionKey":"p","RowKey":"r",{members}}}"#))
}

#[track_caller]
fn check_value(members: &str, expected: Value) {
    let document = read_members(members).unwrap();
    let found = document.root().member("x").map(value::ValueRef::to_value);
    assert_eq!(format!("{found:?}"), format!("{:?}", Some(expected)), "{members}");
}

#[track_caller]
fn check_fault(members: &str, expected: EntityFault) {
    assert_eq!(read_members(members), Err(expected), "{members}");
}

#[test]
fn types_come_from_annotations_or_from_the_form_of_the_value() {
    check_value(r#""x":3"#, Value::Int32(3));
    check_value(r#""x":-0"#, Value::Double(-0.0));
    check_value(r#""x":-2147483648"#, Value::Int32(i32::MIN));
    check_value(r#""x":2147483647"#, Value::Int32(i32::MAX));
    check_value(r#""x":2147483648.0"#, Value::Double(2_147_483_648.0));
    check_value(r#""x":9.007199254740994E15"#, Value::Double(9_007_199_254_740_994.0));
    check_value(r#""x":3.0"#, Value::Double(3.0));
    check_value(r#""x":-0.0"#, Value::Double(-0.0));
    check_value(r#""x":1e3"#, Value::Double(1000.0));
    check_value(r#""x":"3""#, Value::from("3"));
    check_value(r#""x":true"#, Value::Bool(true));
    check_value(r#""x@odata.type":"Edm.Int64","x":"3""#, Value::Int64(3));
    check_value(r#""x":"9223372036854775807","x@odata.type":"Edm.Int64""#, Value::Int64(i64::MAX));
    check_value(r#""x@odata.type":"Edm.Int64","x":3"#, Value::Int64(3));
    check_value(r#""x@odata.type":"Edm.Int32","x":3"#, Value::Int32(3));
    check_value(r#""x@odata.type":"Edm.Double","x":3"#, Value::Double(3.0));
    check_value(r#""x@odata.type":"Edm.Double","x":"NaN""#, Value::Double(f64::NAN));
    check_value(r#""x@odata.type":"Edm.Double","x":"-Infinity""#, Value::Double(f64::NEG_INFINITY));
    check_value(r#""x@odata.type":"Edm.String","x":"text""#, Value::from("text"));
    check_value(r#""x@odata.type":"Edm.Boolean","x":false"#, Value::Bool(false));
    let ticks = Value::Ticks(17_069_331_067_890_001);
    check_value(r#""x@odata.type":"Edm.DateTime","x":"2024-02-03T04:05:06.7890001Z""#, ticks.clone());
    check_value(r#""x@odata.type":"Edm.DateTime","x":"2024-02-03T05:05:06.7890001+01:00""#, ticks);
    let guid = r#""x@odata.type":"Edm.Guid","x":"01010101-0101-0101-0101-010101010101""#;
    check_value(guid, Value::Guid([1; 16]));
    let binary = Value::Binary { subtype: 0, bytes: vec![0, 1] };
    check_value(r#""x@odata.type":"Edm.Binary","x":"AAE=""#, binary);
}

#[test]
fn a_document_has_id_and_keys_first_and_nothing_of_the_metadata() {
    let text = r#"{"odata.etag":"W/x","b":1,"RowKey":"","odata.type":"t","Timestamp@odata.type":"Edm.DateTime",
        "Timestamp":"never","n":null,"n@odata.type":"Edm.Int64","PartitionKey":"p","id":"own","ttl":0,"a":2,
        "other@odata.type":"nonsense"}"#;
    let document = read(text).unwrap();
    let expected = r#"{"id":"~","PartitionKey":"p","RowKey":"","b":1,"$id":"own","$ttl":0,"a":2}"#;
    assert_eq!(document.to_value().to_json(), expected);
    plan::Item::new(document).unwrap();
}

#[test]
fn keys_come_from_the_address_if_it_has_them() {
    let keys = EntityKeys::InAddress { partition_key: "p", row_key: "r" };
    let read = |text: &str| read_entity(text.as_bytes(), keys, STORAGE);
    let entity = read(r#"{"a":1}"#).unwrap();
    assert_eq!((entity.partition_key.as_str(), entity.row_key.as_str()), ("p", "r"));
    let expected = r#"{"id":"r","PartitionKey":"p","RowKey":"r","a":1}"#;
    assert_eq!(entity.document.to_value().to_json(), expected);
    assert_eq!(read(r#"{"RowKey":"r","a":1,"PartitionKey":"p"}"#).unwrap(), entity);
    assert_eq!(read(r#"{"RowKey":"s"}"#), Err(EntityFault::KeyDiffers { key: ROW_KEY }));
    assert_eq!(read(r#"{"PartitionKey":"q"}"#), Err(EntityFault::KeyDiffers { key: PARTITION_KEY }));
    let keys = EntityKeys::InAddress { partition_key: "p", row_key: "a/b" };
    let fault = EntityFault::KeyCharacter { key: ROW_KEY, character: '/' };
    assert_eq!(read_entity(b"{}", keys, STORAGE), Err(fault));
}

#[test]
fn bodies_that_are_no_entities_are_refused() {
    for (text, expected) in [
        (r#"{"RowKey":"r"}"#, EntityFault::KeyMissing { key: PARTITION_KEY }),
        (r#"{"PartitionKey":"p","RowKey":null}"#, EntityFault::KeyMissing { key: ROW_KEY }),
        (r#"{"PartitionKey":1,"RowKey":"r"}"#, EntityFault::KeyNotText { key: PARTITION_KEY }),
        (
            r#"{"PartitionKey":"p#","RowKey":"r"}"#,
            EntityFault::KeyCharacter { key: PARTITION_KEY, character: '#' },
        ),
        (r#"{"PartitionKey":"p","RowKey":"r","a":1,"a":1}"#, EntityFault::RepeatedProperty { offset: 45 }),
    ] {
        assert_eq!(read(text), Err(expected), "{text}");
    }
    let kinds = ["", "[]", "{", "nonsense", r#"{"a":1"#].map(|text| match read(text) {
        Err(EntityFault::Json(error)) => error.kind,
        other => panic!("{other:?}"),
    });
    assert_eq!(kinds[..2], [JsonErrorKind::Empty, JsonErrorKind::NotAnObject]);
}

#[test]
fn values_that_are_not_of_their_type_are_refused() {
    let not_of = |edm_type| EntityFault::NotOfType { property: "x".to_owned(), edm_type };
    for (edm_type, texts) in [
        (EdmType::Int32, vec!["2147483648", "1.5", "\"a\"", "true", "\"\""]),
        (EdmType::Int64, vec!["\"9223372036854775808\"", "18446744073709551615", "1.0", "true"]),
        (EdmType::Double, vec!["\"x\"", "true", "\"1e309\""]),
        (EdmType::Boolean, vec!["1", "\"maybe\""]),
        (EdmType::String, vec!["1", "true"]),
        (
            EdmType::DateTime,
            vec!["\"yesterday\"", "1", "\"2024-02-30T00:00:00Z\"", "\"0000-01-01T00:00:00Z\""],
        ),
        (EdmType::Guid, vec!["\"1\"", "1"]),
        (EdmType::Binary, vec!["\"*\"", "1", "\"AAE\""]),
    ] {
        for text in texts {
            check_fault(&format!(r#""x@odata.type":"{}","x":{text}"#, edm_type.name()), not_of(edm_type));
        }
    }
    for whole in ["2147483648", "-2147483649", "9223372036854775808", "18446744073709551615"] {
        check_fault(&format!(r#""x":{whole}"#), not_of(EdmType::Int32));
    }
    check_fault(r#""x":[]"#, EntityFault::NotPrimitive { property: "x".to_owned() });
    check_fault(
        r#""x@odata.type":"Edm.String","x":{}"#,
        EntityFault::NotPrimitive { property: "x".to_owned() },
    );
    for annotation in [r#""Edm.Byte""#, "1", "null", r#""""#] {
        let fault = EntityFault::UnknownType { property: "x".to_owned() };
        check_fault(&format!(r#""x@odata.type":{annotation},"x":1"#), fault);
    }
    check_fault(r#""a-b":1"#, EntityFault::NameInvalid { name: "a-b".to_owned() });
    check_fault(r#""a-b":null"#, EntityFault::NameInvalid { name: "a-b".to_owned() });
}

#[test]
fn limits_hold_on_both_sides() {
    let text = |units: usize| read_members(&format!(r#""x":"{}""#, "t".repeat(units)));
    text(TEXT_UNITS_MAX).unwrap();
    let too_large = |size| EntityFault::ValueTooLarge { property: "x".to_owned(), size };
    assert_eq!(text(TEXT_UNITS_MAX + 1), Err(too_large(TEXT_UNITS_MAX + 1)));
    let pairs = |count: usize| read_members(&format!(r#""x":"{}""#, "😀".repeat(count)));
    pairs(TEXT_UNITS_MAX / 2).unwrap();
    assert_eq!(pairs(TEXT_UNITS_MAX / 2 + 1), Err(too_large(TEXT_UNITS_MAX + 2)));
    let binary = |bytes: usize| {
        let text = Value::Binary { subtype: 0, bytes: vec![7; bytes] }.to_json();
        read_members(&format!(r#""x@odata.type":"Edm.Binary","x":{text}"#))
    };
    binary(BINARY_BYTES_MAX).unwrap();
    assert_eq!(binary(BINARY_BYTES_MAX + 1), Err(too_large(BINARY_BYTES_MAX + 1)));
    let many = |count: usize| {
        let members: Vec<String> = (0..count).map(|index| format!(r#""n{index}":1"#)).collect();
        read_members(&members.join(","))
    };
    many(PROPERTIES_MAX).unwrap();
    let count = PROPERTIES_MAX + 1;
    assert_eq!(many(count), Err(EntityFault::TooManyProperties { count }));
    let text = br#"{"PartitionKey":"p","RowKey":"r","x":"some text"}"#;
    let bytes = entity_bytes(&read_entity(text, EntityKeys::InBody, STORAGE).unwrap().document);
    let limited = |bytes_max| EntityLimits { bytes_max, ..STORAGE };
    read_entity(text, EntityKeys::InBody, limited(bytes)).unwrap();
    let fault = read_entity(text, EntityKeys::InBody, limited(bytes - 1)).unwrap_err();
    assert_eq!(fault, EntityFault::EntityTooLarge { bytes });
}

#[test]
fn times_begin_with_1601_in_storage_and_with_the_year_1_in_cosmos() {
    let read = |time: &str, limits| {
        let text =
            format!(r#"{{"PartitionKey":"p","RowKey":"r","x@odata.type":"Edm.DateTime","x":"{time}"}}"#);
        read_entity(text.as_bytes(), EntityKeys::InBody, limits).map(|_| ())
    };
    let fault = EntityFault::NotOfType { property: "x".to_owned(), edm_type: EdmType::DateTime };
    assert_eq!(read("1601-01-01T00:00:00Z", STORAGE), Ok(()));
    assert_eq!(read("1600-12-31T23:59:59.9999999Z", STORAGE), Err(fault.clone()));
    assert_eq!(read("1600-12-31T23:59:59.9999999Z", COSMOS), Ok(()));
    assert_eq!(read("0001-01-01T00:00:00Z", COSMOS), Ok(()));
    assert_eq!(read("0001-01-01T00:00:00+00:01", COSMOS), Err(fault));
}

fn written(document: &Document, level: MetadataLevel, select: &str) -> String {
    let select = Select::parse(select).unwrap();
    let base = "http://127.0.0.1:10002/account";
    let frame = EntityFrame { level, base, account: "account", table: "Table", select: &select };
    let row = EntityRow { document: document.root(), timestamp: Ticks(17_069_331_067_890_001), etag: ETAG };
    let mut out = Vec::new();
    write_entity(&frame, &row, &mut out);
    let mut page = Vec::new();
    write_page(&frame, [row, row], &mut page);
    let _: serde_json::Value = serde_json::from_slice(&page).unwrap();
    String::from_utf8(out).unwrap()
}

fn sample() -> Document {
    let mut members: Vec<(String, Value)> = vec![
        ("id".to_owned(), Value::from("it's")),
        (PARTITION_KEY.to_owned(), Value::from("p q")),
        (ROW_KEY.to_owned(), Value::from("it's")),
    ];
    let properties = [
        ("s", Value::from("t")),
        ("$id", Value::from("own")),
        ("b", Value::Bool(true)),
        ("i", Value::Int32(3)),
        ("l", Value::Int64(3)),
        ("d", Value::Double(3.0)),
        ("n", Value::Double(f64::NAN)),
        ("t", Value::Ticks(0)),
        ("g", Value::Guid([0xab; 16])),
        ("y", Value::Binary { subtype: 0, bytes: vec![1] }),
    ];
    members.extend(properties.map(|(name, value)| (name.to_owned(), value)));
    Document::from_value(&Value::Object(members)).unwrap()
}

#[test]
fn answers_have_three_levels() {
    let none = concat!(
        r#"{"PartitionKey":"p q","RowKey":"it's","Timestamp":"2024-02-03T04:05:06.7890001Z","#,
        r#""s":"t","id":"own","b":true,"i":3,"l":"3","d":3.0,"n":"NaN","t":"1970-01-01T00:00:00.0000000Z","#,
        r#""g":"abababab-abab-abab-abab-abababababab","y":"AQ=="}"#
    );
    assert_eq!(written(&sample(), MetadataLevel::None, ""), none);
    let minimal = concat!(
        r#"{"odata.metadata":"http://127.0.0.1:10002/account/$metadata#Table/@Element","#,
        r#""odata.etag":"W/\"datetime'2024-02-03T04%3A05%3A06.7890001Z'\"","#,
        r#""PartitionKey":"p q","RowKey":"it's","Timestamp":"2024-02-03T04:05:06.7890001Z","#,
        r#""s":"t","id":"own","b":true,"i":3,"l@odata.type":"Edm.Int64","l":"3","d":3.0,"#,
        r#""n@odata.type":"Edm.Double","n":"NaN","#,
        r#""t@odata.type":"Edm.DateTime","t":"1970-01-01T00:00:00.0000000Z","#,
        r#""g@odata.type":"Edm.Guid","g":"abababab-abab-abab-abab-abababababab","#,
        r#""y@odata.type":"Edm.Binary","y":"AQ=="}"#
    );
    assert_eq!(written(&sample(), MetadataLevel::Minimal, "*"), minimal);
    let full = concat!(
        r#"{"odata.metadata":"http://127.0.0.1:10002/account/$metadata#Table/@Element","#,
        r#""odata.type":"account.Table","#,
        r#""odata.id":"http://127.0.0.1:10002/account/Table(PartitionKey='p%20q',RowKey='it%27%27s')","#,
        r#""odata.etag":"W/\"datetime'2024-02-03T04%3A05%3A06.7890001Z'\"","#,
        r#""odata.editLink":"Table(PartitionKey='p%20q',RowKey='it%27%27s')","#,
        r#""PartitionKey":"p q","Timestamp@odata.type":"Edm.DateTime","#,
        r#""Timestamp":"2024-02-03T04:05:06.7890001Z","i@odata.type":"Edm.Int32","i":3}"#
    );
    assert_eq!(written(&sample(), MetadataLevel::Full, "Timestamp,i,PartitionKey,absent"), full);
    assert_eq!(written(&sample(), MetadataLevel::None, "absent"), "{}");
}

#[test]
fn documents_of_other_apis_are_shown_as_entities() {
    let text = br#"{"id":"r","PartitionKey":"p","RowKey":"r","n":5,"big":18446744073709551615,"o":{"a":[1]},"z":null,"_x":"\""}"#;
    let document = Document::from_json(text).unwrap();
    let expected = concat!(
        r#"{"n@odata.type":"Edm.Int64","n":"5","big":1.8446744073709552e+19,"#,
        r#""o":"{\"a\":[1]}","_x":"\""}"#
    );
    let found = written(&document, MetadataLevel::Minimal, "n,big,o,z,_x");
    let start = found.find(r#""n@"#).unwrap();
    assert_eq!(format!("{{{}", &found[start..]), expected);
}

fn property_value() -> impl Strategy<Value = Value> {
    let text = prop_oneof!["\\PC{0,20}", any::<String>(), Just("NaN".to_owned()), Just("3".to_owned())];
    prop_oneof![
        text.prop_map(Value::String),
        any::<bool>().prop_map(Value::Bool),
        any::<i32>().prop_map(Value::Int32),
        any::<i64>().prop_map(Value::Int64),
        (-3i64..3).prop_map(Value::Int64),
        any::<u64>().prop_map(|bits| Value::Double(one_nan(f64::from_bits(bits)))),
        (-3i32..3).prop_map(|number| Value::Double(f64::from(number))),
        prop::sample::select(vec![0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, 5e-324])
            .prop_map(Value::Double),
        (TICKS_MIN..=TICKS_MAX).prop_map(Value::Ticks),
        any::<[u8; 16]>().prop_map(Value::Guid),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(|bytes| Value::Binary { subtype: 0, bytes }),
    ]
}

/// JSON has one text for all NaNs.
fn one_nan(double: f64) -> f64 {
    if double.is_nan() { f64::NAN } else { double }
}

fn entity() -> impl Strategy<Value = Document> {
    let name = prop_oneof![
        "[a-zA-Z_][a-zA-Z0-9_]{0,12}",
        prop::sample::select(vec!["id", "ttl", "_ts", "_etag", "größe", "名"]).prop_map(str::to_owned),
    ];
    let key = || "[a-zA-Z0-9 '%~é😀]{0,8}";
    (key(), key(), prop::collection::vec((name, property_value()), 0..12)).prop_map(
        |(partition, row, mut properties)| {
            let mut seen = std::collections::HashSet::new();
            properties.retain(|(name, _)| name != "Timestamp" && seen.insert(name.clone()));
            let properties = properties
                .into_iter()
                .map(|(name, value)| (crate::edm::member_name(&name).into_owned(), value));
            let mut members = vec![
                ("id".to_owned(), Value::String(crate::edm::document_id(&row).into_owned())),
                (PARTITION_KEY.to_owned(), Value::String(partition)),
                (ROW_KEY.to_owned(), Value::String(row)),
            ];
            members.extend(properties);
            Document::from_value(&Value::Object(members)).unwrap()
        },
    )
}

proptest! {
    /// An answer, sent back as a body, is stored as the same bytes, whatever the level that shows types.
    #[test]
    fn entities_come_back_to_the_bit(document in entity()) {
        for level in [MetadataLevel::Minimal, MetadataLevel::Full] {
            let text = written(&document, level, "");
            let again = read_entity(text.as_bytes(), EntityKeys::InBody, COSMOS).unwrap().document;
            prop_assert_eq!(again.bytes(), document.bytes(), "{}", text);
            prop_assert_eq!(written(&again, level, ""), text);
        }
        plan::Item::new(document).unwrap();
    }

    #[test]
    fn any_body_is_read_or_refused(text in "[{}\\[\\]\",:a-z0-9.@ ]{0,60}") {
        let _ = read(&text);
    }
}
