//! Key codes sort like values, can be decoded, and decoding is robust against invalid input.

use std::cmp::Ordering;

use proptest::prelude::*;
use value::{
    Document, Value, ValueRef, compare, decode_key, decode_key_descending, decode_key_optional, encode_key,
    encode_key_descending, encode_key_value,
};

use crate::generate;

fn key(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    encode_key_value(value, &mut out);
    out
}

fn descending(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    encode_key_descending(Some(value.into()), &mut out);
    out
}

proptest! {
    #[test]
    fn bytes_sort_as_values_both_ways(left in generate::value(), right in generate::value()) {
        let expected = compare((&left).into(), (&right).into());
        prop_assert_eq!(compare((&right).into(), (&left).into()), expected.reverse());
        prop_assert_eq!(key(&left).cmp(&key(&right)), expected);
        prop_assert_eq!(descending(&left).cmp(&descending(&right)), expected.reverse());
    }

    /// Values with equal prefixes, so that the order is decided late.
    #[test]
    fn joined_codes_sort_as_rows(
        prefix in prop::collection::vec(generate::value(), 0..3),
        left in prop::collection::vec(generate::value(), 2),
        right in prop::collection::vec(generate::value(), 2),
    ) {
        let row = |tail: &[Value]| prefix.iter().chain(tail).cloned().collect::<Vec<_>>();
        let (left, right) = (row(&left), row(&right));
        let pairs = left.iter().zip(&right).map(|(left, right)| compare(left.into(), right.into()));
        let expected = pairs.fold(Ordering::Equal, Ordering::then);
        let joined = |row: &[Value]| row.iter().flat_map(key).collect::<Vec<u8>>();
        prop_assert_eq!(joined(&left).cmp(&joined(&right)), expected);
        let joined_descending = |row: &[Value]| row.iter().flat_map(descending).collect::<Vec<u8>>();
        prop_assert_eq!(joined_descending(&left).cmp(&joined_descending(&right)), expected.reverse());
    }

    #[test]
    fn decoded_values_are_equal(value in generate::value(), after in prop::collection::vec(any::<u8>(), 0..4)) {
        let mut code = key(&value);
        code.extend_from_slice(&after);
        let (decoded, rest) = decode_key(&code).unwrap();
        prop_assert_eq!(compare((&value).into(), (&decoded).into()), Ordering::Equal);
        prop_assert_eq!(rest, &after);
        prop_assert_eq!(key(&decoded), key(&value));
        let mut code = descending(&value);
        code.extend_from_slice(&after);
        let (decoded, rest) = decode_key_descending(&code).unwrap();
        prop_assert_eq!(compare((&value).into(), decoded.as_ref().unwrap().into()), Ordering::Equal);
        prop_assert_eq!(rest, &after);
    }

    #[test]
    fn encoded_and_tree_have_one_code(value in generate::object()) {
        let document = Document::from_value(&value).unwrap();
        let mut code = Vec::new();
        encode_key(document.root(), &mut code);
        prop_assert_eq!(code, key(&value));
        prop_assert_eq!(compare(document.root(), ValueRef::from(&value)), Ordering::Equal);
    }

    #[test]
    fn any_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let _ = decode_key(&bytes);
        let _ = decode_key_optional(&bytes);
        let _ = decode_key_descending(&bytes);
    }

    #[test]
    fn damaged_codes_are_refused_or_read(value in generate::value(), place in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut code = key(&value);
        let place = place.index(code.len());
        code[place] = byte;
        if let Ok((decoded, _)) = decode_key(&code) {
            key(&decoded);
        }
        let _ = decode_key(&code[..place]);
    }
}
