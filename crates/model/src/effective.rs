//! Effective keys: the position of a partition key in the hash space of a container.
//!
//! Clients compute the same bytes and compare them as upper-case hex text, so every rule here is part of the protocol:
//! a different byte sends a request to the wrong range. Which partition owns a range is not known here.

use crate::murmur::{murmur3_32, murmur3_128};
use crate::{KeyComponent, PartitionKey, PartitionKeyDefinition, PartitionKeyKind};
use std::fmt;

/// A point of the hash space. The order of its bytes is the order of its hex text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EffectiveKey(Vec<u8>);

impl EffectiveKey {
    /// The lowest point, `""`; it belongs to the first range.
    pub const MIN: EffectiveKey = EffectiveKey(Vec::new());

    /// The point above all keys, `FF`; no key has it and it ends the last range.
    pub fn max() -> EffectiveKey {
        EffectiveKey(vec![0xFF])
    }

    /// Creates a key from bytes that [`EffectiveKey::as_bytes`] returned.
    pub fn from_bytes(bytes: &[u8]) -> EffectiveKey {
        EffectiveKey(bytes.to_vec())
    }

    /// Parses hex text in either case; `None` if it is not a whole number of hex bytes.
    pub fn from_hex(text: &str) -> Option<EffectiveKey> {
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if !rest.is_empty() {
            return None;
        }
        let bytes = pairs.iter().map(|[high, low]| Some(hex_digit(*high)? << 4 | hex_digit(*low)?));
        bytes.collect::<Option<_>>().map(EffectiveKey)
    }

    /// The upper-case hex text that clients compare.
    pub fn to_hex(&self) -> String {
        const DIGITS: [char; 16] =
            ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];
        let digits = |byte: &u8| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
        self.0.iter().flat_map(digits).collect()
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// This point with `byte` appended.
    fn followed_by(&self, byte: u8) -> EffectiveKey {
        let mut bytes = Vec::with_capacity(self.0.len() + 1);
        bytes.extend_from_slice(&self.0);
        bytes.push(byte);
        EffectiveKey(bytes)
    }
}

impl fmt::Debug for EffectiveKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "EffectiveKey({})", self.to_hex())
    }
}

impl fmt::Display for EffectiveKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.to_hex())
    }
}

/// An interval of the hash space: the lower end is included, the upper end is not.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EffectiveRange {
    /// The lower end, included.
    pub min: EffectiveKey,
    /// The upper end, excluded.
    pub max: EffectiveKey,
}

impl EffectiveRange {
    /// The whole hash space.
    pub fn full() -> EffectiveRange {
        EffectiveRange { min: EffectiveKey::MIN, max: EffectiveKey::max() }
    }

    /// The range of `key` and all keys with this prefix; a complete key is no prefix of another.
    ///
    /// The range ends at the key followed by `FF`, not directly after the key, so that it also contains the stored keys
    /// of the documents, which begin with the hash.
    pub fn point(key: EffectiveKey) -> EffectiveRange {
        let max = key.followed_by(0xFF);
        EffectiveRange { min: key, max }
    }

    /// Whether `key` lies inside.
    pub fn contains(&self, key: &EffectiveKey) -> bool {
        self.min <= *key && *key < self.max
    }

    /// The intersection; an empty range if there is none.
    #[must_use]
    pub fn intersect(&self, other: &EffectiveRange) -> EffectiveRange {
        EffectiveRange {
            min: self.min.clone().max(other.min.clone()),
            max: self.max.clone().min(other.max.clone()),
        }
    }

    /// Whether the range contains no key.
    pub fn is_empty(&self) -> bool {
        self.min >= self.max
    }

    /// Whether the ranges have a key in common.
    pub fn overlaps(&self, other: &EffectiveRange) -> bool {
        (&self.min).max(&other.min) < (&self.max).min(&other.max)
    }
}

/// Type bytes in front of hashed and encoded components.
mod tag {
    pub(super) const UNDEFINED: u8 = 0x00;
    pub(super) const NULL: u8 = 0x01;
    pub(super) const FALSE: u8 = 0x02;
    pub(super) const TRUE: u8 = 0x03;
    pub(super) const NUMBER: u8 = 0x05;
    pub(super) const STRING: u8 = 0x08;
}

/// Terminates a string in the input of the first hash.
const STRING_END_V1: u8 = 0x00;
/// Terminates a string in the input of the second hash; this byte never occurs in UTF-8.
const STRING_END_V2: u8 = 0xFF;
/// UTF-16 units of a string that the first hash uses.
const STRING_UNITS_V1: usize = 100;
/// The largest 128-bit hash: the two top bits are cleared.
const HASH_MAX_V2: u128 = u128::MAX >> 2;
/// Number of values of the first hash.
const HASH_COUNT_V1: u64 = 1 << 32;

impl PartitionKeyDefinition {
    /// The point of `key` in the hash space; for a prefix of a hierarchical key, the lowest of its points.
    pub fn effective_key(&self, key: &PartitionKey) -> EffectiveKey {
        if key.components.is_empty() {
            return EffectiveKey::MIN;
        }
        match self.kind() {
            PartitionKeyKind::HashV1 => effective_key_v1(&key.components),
            PartitionKeyKind::HashV2 => effective_key_v2(&key.components),
            PartitionKeyKind::MultiHash => effective_key_multi(&key.components),
        }
    }

    /// All points of `key`: one for a complete key, an interval for a prefix of a hierarchical one.
    pub fn effective_range(&self, key: &PartitionKey) -> EffectiveRange {
        EffectiveRange::point(self.effective_key(key))
    }

    /// Splits the hash space evenly into `count` ranges without gaps (at least one).
    pub fn initial_ranges(&self, count: u32) -> Vec<EffectiveRange> {
        let count = count.max(1);
        let boundary = |index: u32| match index {
            0 => EffectiveKey::MIN,
            _ if index == count => EffectiveKey::max(),
            _ => self.boundary(index, count),
        };
        (0..count).map(|index| EffectiveRange { min: boundary(index), max: boundary(index + 1) }).collect()
    }

    /// The point that divides the hashes of `range` evenly; `None` if it is too narrow.
    pub fn middle(&self, range: &EffectiveRange) -> Option<EffectiveKey> {
        let (first, end) = (self.hash_at(&range.min), self.hash_at(&range.max));
        let middle = first + end.checked_sub(first)? / 2;
        let key = match self.kind() {
            PartitionKeyKind::HashV1 => {
                let mut bytes = Vec::with_capacity(10);
                // A hash of this kind has 32 bits, so the conversion is exact.
                push_number_v1(u64::try_from(middle).ok()? as f64, &mut bytes);
                EffectiveKey(bytes)
            }
            PartitionKeyKind::HashV2 | PartitionKeyKind::MultiHash => {
                EffectiveKey(middle.to_be_bytes().to_vec())
            }
        };
        (range.min < key && key < range.max).then_some(key)
    }

    /// The number of hashes in `range`; bounds between two hashes are rounded down.
    pub fn hash_count(&self, range: &EffectiveRange) -> u128 {
        self.hash_at(&range.max).saturating_sub(self.hash_at(&range.min))
    }

    /// The hash at which a bound of a range lies, as a number.
    fn hash_at(&self, bound: &EffectiveKey) -> u128 {
        match self.kind() {
            PartitionKeyKind::HashV1 if *bound == EffectiveKey::max() => u128::from(HASH_COUNT_V1),
            PartitionKeyKind::HashV1 => number_v1(&bound.0).map_or(0, |hash| u128::from(whole(hash))),
            PartitionKeyKind::HashV2 | PartitionKeyKind::MultiHash => {
                let mut bytes = [0; 16];
                let length = bound.0.len().min(16);
                bytes[..length].copy_from_slice(&bound.0[..length]);
                u128::from_be_bytes(bytes).min(HASH_MAX_V2)
            }
        }
    }

    /// The lower boundary of range `index` of `count`.
    fn boundary(&self, index: u32, count: u32) -> EffectiveKey {
        match self.kind() {
            PartitionKeyKind::HashV1 => {
                let mut bytes = Vec::with_capacity(10);
                let hash = HASH_COUNT_V1 / u64::from(count) * u64::from(index);
                push_number_v1(hash as f64, &mut bytes);
                EffectiveKey(bytes)
            }
            PartitionKeyKind::HashV2 | PartitionKeyKind::MultiHash => {
                let hash = HASH_MAX_V2 / u128::from(count) * u128::from(index);
                EffectiveKey(hash.to_be_bytes().to_vec())
            }
        }
    }
}

/// Hashes all components together.
fn effective_key_v2(components: &[KeyComponent]) -> EffectiveKey {
    let mut bytes = Vec::with_capacity(64);
    components.iter().for_each(|component| push_hashed(component, STRING_END_V2, &mut bytes));
    let hash = hash_v2(&bytes);
    // The hash reuses the buffer of its input: one allocation for both.
    bytes.clear();
    bytes.extend_from_slice(&hash);
    EffectiveKey(bytes)
}

/// Hashes each component separately, so that a prefix of the key is a prefix of the bytes.
fn effective_key_multi(components: &[KeyComponent]) -> EffectiveKey {
    let mut bytes = Vec::with_capacity(16 * components.len());
    let mut input = Vec::with_capacity(64);
    for component in components {
        input.clear();
        push_hashed(component, STRING_END_V2, &mut input);
        bytes.extend_from_slice(&hash_v2(&input));
    }
    EffectiveKey(bytes)
}

/// The high half first, both big-endian, the two top bits clear.
fn hash_v2(input: &[u8]) -> [u8; 16] {
    let (low, high) = murmur3_128(input);
    let hash = u128::from(high) << 64 | u128::from(low);
    (hash & HASH_MAX_V2).to_be_bytes()
}

/// The first hash is short, so the value is appended to distinguish equal hashes.
fn effective_key_v1(components: &[KeyComponent]) -> EffectiveKey {
    let components: Vec<KeyComponent> = components.iter().map(truncate_v1).collect();
    let mut input = Vec::with_capacity(64);
    components.iter().for_each(|component| push_hashed(component, STRING_END_V1, &mut input));
    let mut bytes = Vec::with_capacity(128);
    push_number_v1(f64::from(murmur3_32(&input)), &mut bytes);
    for component in &components {
        push_component_v1(component, &mut bytes);
    }
    EffectiveKey(bytes)
}

/// Keeps the first 100 UTF-16 units of a string; a surrogate pair at the cut is dropped. Longer keys that agree in this
/// part have one effective key, and remain different logical partitions.
fn truncate_v1(component: &KeyComponent) -> KeyComponent {
    match component {
        KeyComponent::String(text) => {
            let mut units = 0;
            let fits = |character: &char| {
                units += character.len_utf16();
                units <= STRING_UNITS_V1
            };
            KeyComponent::String(text.chars().take_while(fits).collect())
        }
        KeyComponent::Undefined | KeyComponent::Null | KeyComponent::Bool(_) | KeyComponent::Number(_) => {
            component.clone()
        }
    }
}

/// Appends the hash input of one component.
fn push_hashed(component: &KeyComponent, string_end: u8, input: &mut Vec<u8>) {
    match component {
        KeyComponent::Undefined => input.push(tag::UNDEFINED),
        KeyComponent::Null => input.push(tag::NULL),
        KeyComponent::Bool(false) => input.push(tag::FALSE),
        KeyComponent::Bool(true) => input.push(tag::TRUE),
        KeyComponent::Number(number) => {
            input.push(tag::NUMBER);
            input.extend_from_slice(&number.to_le_bytes());
        }
        KeyComponent::String(text) => {
            input.push(tag::STRING);
            input.extend_from_slice(text.as_bytes());
            input.push(string_end);
        }
    }
}

/// Appends one component in the ordered binary form that follows the first hash.
fn push_component_v1(component: &KeyComponent, bytes: &mut Vec<u8>) {
    match component {
        KeyComponent::Undefined => bytes.push(tag::UNDEFINED),
        KeyComponent::Null => bytes.push(tag::NULL),
        KeyComponent::Bool(false) => bytes.push(tag::FALSE),
        KeyComponent::Bool(true) => bytes.push(tag::TRUE),
        KeyComponent::Number(number) => push_number_v1(*number, bytes),
        KeyComponent::String(text) => push_string_v1(text, bytes),
    }
}

/// Bytes are incremented by one so that none equals the terminator; a text of more than 100 bytes is cut and has none.
fn push_string_v1(text: &str, bytes: &mut Vec<u8>) {
    const BYTES_MAX: usize = 100;
    bytes.push(tag::STRING);
    let kept = text.len().min(BYTES_MAX + 1);
    bytes.extend(text.as_bytes()[..kept].iter().map(|byte| byte.saturating_add(1)));
    if text.len() <= BYTES_MAX {
        bytes.push(0);
    }
}

/// The top 8 bits of the order-preserving form, then 7 bits per byte; the low bit says whether another byte follows.
fn push_number_v1(number: f64, bytes: &mut Vec<u8>) {
    const SIGN: u64 = 1 << 63;
    let bits = number.to_bits();
    let ordered = if bits & SIGN == 0 { bits ^ SIGN } else { bits.wrapping_neg() };
    bytes.push(tag::NUMBER);
    bytes.push(ordered.to_be_bytes()[0]);
    let mut rest = ordered << 8;
    loop {
        let [top, ..] = rest.to_be_bytes();
        rest <<= 7;
        if rest == 0 {
            bytes.push(top & 0xFE);
            return;
        }
        bytes.push(top | 1);
    }
}

/// A hash of the first kind as an integer.
#[expect(clippy::cast_possible_truncation, reason = "the cast saturates, and hashes have 32 bits")]
fn whole(hash: f64) -> u64 {
    hash as u64
}

/// The number at the start of bytes that [`push_number_v1`] has written.
fn number_v1(bytes: &[u8]) -> Option<f64> {
    const SIGN: u64 = 1 << 63;
    let [tag::NUMBER, top, rest @ ..] = bytes else { return None };
    let mut ordered = u64::from(*top) << 56;
    let mut shift = 56_u32;
    for byte in rest {
        let group = u64::from(byte >> 1);
        ordered |= if shift >= 7 { group << (shift - 7) } else { group >> (7 - shift) };
        shift = shift.saturating_sub(7);
        if byte & 1 == 0 {
            break;
        }
    }
    let bits = if ordered & SIGN == 0 { ordered.wrapping_neg() } else { ordered ^ SIGN };
    Some(f64::from_bits(bits))
}

/// The value of a hex digit of either case.
fn hex_digit(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(kind: PartitionKeyKind, paths: &[&str]) -> PartitionKeyDefinition {
        PartitionKeyDefinition::new(kind, paths.iter().copied()).unwrap()
    }

    fn v1() -> PartitionKeyDefinition {
        definition(PartitionKeyKind::HashV1, &["/pk"])
    }

    fn v2() -> PartitionKeyDefinition {
        definition(PartitionKeyKind::HashV2, &["/pk"])
    }

    fn multi() -> PartitionKeyDefinition {
        definition(PartitionKeyKind::MultiHash, &["/a", "/b", "/c"])
    }

    fn string(text: &str) -> KeyComponent {
        KeyComponent::String(text.to_owned())
    }

    fn key(components: &[KeyComponent]) -> PartitionKey {
        PartitionKey { components: components.to_vec() }
    }

    #[track_caller]
    fn check(component: KeyComponent, first: &str, second: &str) {
        let key = key(&[component]);
        assert_eq!(v1().effective_key(&key).to_hex(), first);
        assert_eq!(v2().effective_key(&key).to_hex(), second);
    }

    #[test]
    fn strings_hash_as_the_clients_do() {
        check(string(""), "05C1CF33970FF80800", "32E9366E637A71B4E710384B2F4970A0");
        check(string("a"), "05C1D78593652C086200", "3A5381E1114EB8D3FCC90795045B49B7");
        check(
            string("partitionKey"),
            "05C1E1B3D9CD2608716273756A756A706F4C667A00",
            "013AEFCF77FA271571CF665A58C933F1",
        );
        check(string("redmond"), "05C1EFE313830C087366656E706F6500", "22E342F38A486A088463DFF7838A5963");
        check(string("é"), "05C1B3CD91912008C4AA00", "007199F104E04116EE25AF912CA4889B");
    }

    #[test]
    fn long_strings_count_whole_in_the_second_hash_only() {
        let first = format!("05C1EB5921F70608{}00", "62".repeat(100));
        check(string(&"a".repeat(100)), &first, "0DBD7D229437BB665DE6417747994D57");
        check(string(&"a".repeat(101)), &first, "08042541D30C8BF90D7092B1519AE0BC");
        check(string(&"a".repeat(1024)), &first, "332BDF5512AE49615F32C7D98C2DB86C");
        let first = format!("05C1D9C91DF1D808{}C4", "C4AA".repeat(50));
        assert_eq!(v1().effective_key(&key(&[string(&"é".repeat(100))])).to_hex(), first);
    }

    #[test]
    fn constants_hash_as_the_clients_do() {
        check(KeyComponent::Null, "05C1ED45D7475601", "378867E4430E67857ACE5C908374FE16");
        check(KeyComponent::Bool(true), "05C1D7C5A903D803", "0E711127C5B5A8E4726AC6DD306A3E59");
        check(KeyComponent::Bool(false), "05C1DB857D857C02", "2FE1BE91E90A3439635E0E9E37361EF2");
        check(KeyComponent::Undefined, "05C1D529E345DC00", "11622DAA78F835834610ABE56EFF5CB5");
    }

    #[test]
    fn numbers_hash_as_the_clients_do() {
        for (number, first, second) in [
            (0.0, "05C1BF6DA11560058000", "155B95BEDAC4B1E9EC1CDC9BB0DDDE58"),
            (1.0, "05C1ED172B6B2605BFF0", "20CD98B339BA78A5D0CF6953B87070B0"),
            (-1.0, "05C1D1A5BDDF9C054010", "19938E7A936C1C5B9E3AE842BBC16839"),
            (5.0, "05C1D9C1C5517C05C014", "19C08621B135968252FB34B4CF66F811"),
            (5.5, "05C1D7A771716C05C016", "0E2EE47829D1AF775EEFB6540FD1D0ED"),
            (-0.5, "05C1C10D33EB18054020", "04C8191FC18308BCB37FDA5DCC5C9768"),
            (1.5, "05C1E9694167A805BFF8", "35C5DDEB6C795D16A9963C73C54E97BC"),
            (123_456_789.0, "05C1D9E1A5311C05C19DB7CD8B40", "1F56D2538088EBA82CCF988F36E16760"),
            (5_000_000_000.0, "05C1EF8B71A51C05C1F35117E4", "16F894F0AE2435AD817406B3E58D36F8"),
            (
                9_007_199_254_740_991.0,
                "05C1B3FBA771A005C33FFFFFFFFFFFFFFE",
                "12C221C7032CED1F9E6693CE1428E6CF",
            ),
            (1e308, "05C145CFAE05FFE1E73D715F5F2340", "1E0D61F83E0EBE180144F756FA5C918A"),
        ] {
            check(KeyComponent::Number(number), first, second);
        }
    }

    #[test]
    fn hierarchical_keys_are_hashed_level_by_level() {
        let letters = key(&[string("a"), string("b"), string("c")]);
        assert_eq!(
            multi().effective_key(&letters).to_hex(),
            "3A5381E1114EB8D3FCC90795045B49B7195644569A78B1E22D200348AF9416CE2562D4841EF4AF76D90EC904CEE5FA9A"
        );
        let mixed = key(&[string("tenant1"), string("user1"), KeyComponent::Number(1.0)]);
        assert_eq!(
            multi().effective_key(&mixed).to_hex(),
            "0DAE0B8467B011E957BC0B8B0DEB5ACA236A5BE3329A7AD57D4B998E8602BD7B20CD98B339BA78A5D0CF6953B87070B0"
        );
    }

    #[test]
    fn a_prefix_covers_all_its_keys_and_a_complete_key_only_itself() {
        let prefix = multi().effective_range(&key(&[string("a")]));
        assert_eq!(prefix.min.to_hex(), "3A5381E1114EB8D3FCC90795045B49B7");
        assert_eq!(prefix.max.to_hex(), "3A5381E1114EB8D3FCC90795045B49B7FF");
        let complete = key(&[string("a"), string("b"), string("c")]);
        assert!(prefix.contains(&multi().effective_key(&complete)));
        let point = multi().effective_range(&complete);
        assert!(point.contains(&multi().effective_key(&complete)));
        assert!(!point.contains(&multi().effective_key(&key(&[string("a"), string("b"), string("d")]))));
    }

    #[test]
    fn no_components_lie_at_the_lowest_point() {
        assert_eq!(v2().effective_key(&key(&[])), EffectiveKey::MIN);
        assert_eq!(v1().effective_key(&key(&[])), EffectiveKey::MIN);
    }

    #[track_caller]
    fn check_boundaries(definition: &PartitionKeyDefinition, count: u32, expected: &[String]) {
        let ranges = definition.initial_ranges(count);
        assert_eq!(ranges[0].min, EffectiveKey::MIN);
        assert_eq!(ranges[ranges.len() - 1].max, EffectiveKey::max());
        assert!(ranges.windows(2).all(|pair| pair[0].max == pair[1].min));
        assert!(ranges.iter().all(|range| !range.is_empty()));
        let boundaries: Vec<String> = ranges[1..].iter().map(|range| range.min.to_hex()).collect();
        assert_eq!(boundaries, expected);
    }

    #[test]
    fn the_hash_space_is_cut_as_the_service_cuts_it() {
        let full = |start: &str, fill: &str, end: &str| format!("{start}{}{end}", fill.repeat(30));
        check_boundaries(&v2(), 1, &[]);
        check_boundaries(&v2(), 0, &[]);
        check_boundaries(&v2(), 2, &[full("1", "F", "F")]);
        check_boundaries(&multi(), 4, &[full("0", "F", "F"), full("1", "F", "E"), full("2", "F", "D")]);
        let fifths = [full("0", "C", "C"), full("1", "9", "8"), full("2", "6", "4"), full("3", "3", "0")];
        check_boundaries(&v2(), 5, &fifths);
        check_boundaries(&v1(), 2, &["05C1E0".to_owned()]);
    }

    #[test]
    fn a_range_is_halved_as_the_whole_space_is() {
        for definition in [v1(), v2(), multi()] {
            let halves = definition.initial_ranges(2);
            assert_eq!(definition.middle(&EffectiveRange::full()).as_ref(), Some(&halves[1].min));
            let full = definition.hash_count(&EffectiveRange::full());
            assert!(halves.iter().all(|half| definition.hash_count(half).abs_diff(full / 2) <= 1));
            // Halving again and again ends, and every half is inside its range.
            let mut range = EffectiveRange::full();
            let mut count = 0;
            while let Some(middle) = definition.middle(&range) {
                assert!(range.contains(&middle) && middle > range.min);
                range.min = middle;
                count += 1;
            }
            assert!((31..=127).contains(&count), "{count}");
        }
    }

    #[test]
    fn a_number_of_the_first_hash_is_read_back() {
        for number in [0.0, 1.0, 2.0, 5.5, 4_294_967_295.0, 2_147_483_648.0, 1e308, -1.0, -0.5] {
            let mut bytes = Vec::new();
            push_number_v1(number, &mut bytes);
            assert_eq!(number_v1(&bytes), Some(number));
            bytes.extend_from_slice(&[8, 99, 0]);
            assert_eq!(number_v1(&bytes), Some(number), "what follows does not count");
        }
        assert_eq!(number_v1(&[]), None);
        assert_eq!(number_v1(&[8, 1]), None);
    }

    #[test]
    fn ranges_are_half_open() {
        let point = |hex: &str| EffectiveKey::from_hex(hex).unwrap();
        let range = |min: &str, max: &str| EffectiveRange { min: point(min), max: point(max) };
        assert!(range("10", "20").contains(&point("10")));
        assert!(!range("10", "20").contains(&point("20")));
        assert!(!range("10", "20").overlaps(&range("20", "30")));
        assert!(range("10", "20").overlaps(&range("1FFF", "FF")));
        assert_eq!(range("10", "20").intersect(&range("18", "FF")), range("18", "20"));
        assert!(range("10", "20").intersect(&range("20", "FF")).is_empty());
        assert!(EffectiveRange::full().contains(&EffectiveKey::MIN));
    }

    #[test]
    fn hex_is_read_in_both_cases_and_only_whole() {
        assert_eq!(EffectiveKey::from_hex("0aFf").unwrap().to_hex(), "0AFF");
        assert_eq!(EffectiveKey::from_hex("").unwrap(), EffectiveKey::MIN);
        for text in ["0", "0g", "+1", "é"] {
            assert_eq!(EffectiveKey::from_hex(text), None, "{text}");
        }
    }
}
