//! Bytes that no encoder wrote, and trees deeper than any document: nothing panics, nothing overflows the stack.

use bytes::Bytes;
use proptest::prelude::*;
use value::{Document, Value, ValueRef, compare, encode_key};

use crate::generate;

/// Reads everything a reader can reach.
fn walk(document: &Document) {
    let root = document.root();
    let tree = root.to_value();
    let mut out = Vec::new();
    root.write_json(&mut out);
    encode_key(root, &mut out);
    let _ = compare(root, ValueRef::from(&tree));
    let _ = document.without(&["a"]);
    let _ = Document::from_value_ref(root);
    for (name, member) in root.members() {
        let _ = (root.member(name), member.as_str(), member.as_bool(), member.as_f64(), member.as_i64());
        let _ = (member.len(), member.element(0), member.element(usize::MAX), member.elements().count());
    }
    if document.validate().is_ok() {
        assert_eq!(Document::from_value(&tree).unwrap().to_value().to_json(), tree.to_json());
    }
}

proptest! {
    #[test]
    fn any_bytes_can_be_walked(body in prop::collection::vec(any::<u8>(), 0..60), tag in 0x20u8..0x23) {
        let bytes = std::iter::once(tag).chain(body).collect::<Vec<u8>>();
        if let Ok(document) = Document::from_stored(Bytes::from(bytes)) {
            walk(&document);
        }
    }

    #[test]
    fn damaged_documents_can_be_walked(
        value in generate::object(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = Document::from_value(&value).unwrap().bytes().to_vec();
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if let Ok(document) = Document::from_stored(Bytes::from(bytes)) {
            walk(&document);
        }
    }
}

#[test]
fn endless_nesting_in_stored_bytes_can_be_walked() {
    let wrap = |inner: Vec<u8>, tag: u8, name: &[u8], hashes: &[u8]| {
        let size = u32::try_from(name.len() + inner.len()).unwrap().to_le_bytes();
        [&[tag], name, &inner, hashes, &size, &1u32.to_le_bytes()].concat()
    };
    let deep = (0..5_000).fold(vec![1], |inner, _| wrap(inner, 0x12, &[], &[]));
    let document = Document::from_stored(Bytes::from(wrap(deep, 0x22, &[0], &[0]))).unwrap();
    assert_eq!(document.root().member("").unwrap().len(), 1);
    assert!(document.validate().is_err());
    walk(&document);
}

#[test]
fn trees_beyond_the_walk_end_in_null() {
    let deep = (0..2_000).fold(Value::Bool(true), |inner, _| Value::Array(vec![inner]));
    let root = ValueRef::from(&deep);
    assert!(deep.to_json().contains("null"));
    assert_eq!(compare(root, root), std::cmp::Ordering::Equal);
    encode_key(root, &mut Vec::new());
    let cut = root.to_value();
    assert_eq!(cut.to_json(), deep.to_json());
}
