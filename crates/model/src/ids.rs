//! Numbers that crates exchange, each with its own type so that they cannot be confused.

use std::fmt;

/// Number of a database in its account. Never reused, never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DatabaseNumber(pub u32);

/// Number of a container in its account. Never reused, never 0; at most 31 bits, see the RID layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContainerNumber(pub u32);

/// Number of an offer in its account: 24 bits, since its RID has three bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OfferNumber(pub u32);

/// Number of a user, permission, script or client encryption key; all of them share one counter per account. Never
/// reused, never 0; at most 31 bits, see the RID layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceNumber(pub u32);

impl ResourceNumber {
    /// The largest number that fits a RID.
    pub const MAX: ResourceNumber = ResourceNumber((1 << 31) - 1);

    /// Converts an unchecked number; `None` if no resource can have it.
    pub(crate) fn from_raw(raw: u64) -> Option<ResourceNumber> {
        let number = ResourceNumber(u32::try_from(raw).ok()?);
        (number.0 != 0 && number <= ResourceNumber::MAX).then_some(number)
    }
}

/// Number of a physical partition in its container: 20 bits, never reused. On the wire it is the id of a partition key
/// range. Stored in 32 bits, of which bits 24 to 31 are reserved for the region that wrote a version; they are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionOrdinal(pub u32);

impl PartitionOrdinal {
    /// The largest ordinal that fits a document number.
    pub(crate) const MAX: PartitionOrdinal = PartitionOrdinal((1 << 20) - 1);

    /// Converts a stored ordinal; `None` if no partition can have it.
    pub fn from_raw(raw: u32) -> Option<PartitionOrdinal> {
        let ordinal = PartitionOrdinal(raw);
        (ordinal <= PartitionOrdinal::MAX).then_some(ordinal)
    }
}

impl fmt::Display for PartitionOrdinal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Position in the history of one partition; it only increases. All changes of a transaction have the same LSN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

impl Lsn {
    /// The next position.
    #[must_use]
    pub fn next(self) -> Lsn {
        Lsn(self.0 + 1)
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// The number of a document, fixed at creation: the partition that created it, and its count there.
///
/// It increases in insertion order within a partition and is the tie-break of every order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocumentNumber(u64);

/// Bits of a number below the ordinal.
const COUNTER_BITS: u32 = 40;
/// The upper bits of the count, reserved for the region that created the document; they are 0. Two regions that write
/// to one partition must never assign the same number.
const REGION_BITS: u32 = 5;

impl DocumentNumber {
    /// The largest count a partition can reach.
    pub const COUNTER_MAX: u64 = (1 << (COUNTER_BITS - REGION_BITS)) - 1;

    /// The number of the `counter`-th document created by partition `ordinal`; `None` if either is too large.
    pub fn new(ordinal: PartitionOrdinal, counter: u64) -> Option<DocumentNumber> {
        let fits = ordinal <= PartitionOrdinal::MAX && counter <= DocumentNumber::COUNTER_MAX;
        fits.then_some(DocumentNumber(u64::from(ordinal.0) << COUNTER_BITS | counter))
    }

    /// Converts a stored or unchecked number; `None` if it has more than 60 bits.
    pub fn from_raw(raw: u64) -> Option<DocumentNumber> {
        (raw >> 60 == 0).then_some(DocumentNumber(raw))
    }

    /// The 60 bits.
    pub fn raw(self) -> u64 {
        self.0
    }

    /// Count within the partition that created the document.
    pub fn counter(self) -> u64 {
        self.0 & ((1 << COUNTER_BITS) - 1)
    }
}

impl fmt::Debug for DocumentNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "DocumentNumber({}.{})", self.0 >> COUNTER_BITS, self.counter())
    }
}

/// Version of a resource: the partition that wrote it and its count of versions there, so an ETag never repeats in a
/// container. It is known as soon as the version is evaluated, before its transaction has an LSN.
///
/// Catalog resources have ordinal 0 and the catalog's own change count as stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Etag {
    /// The partition that wrote this version.
    pub ordinal: PartitionOrdinal,
    /// The count of this version in that partition.
    pub stamp: u64,
}

/// Characters of an ETag's text.
const ETAG_LENGTH: usize = 38;

impl Etag {
    /// The quoted text that clients compare, in the format of the service. Formatted by hand because every item that is
    /// read or written carries it twice.
    pub fn text(self) -> [u8; ETAG_LENGTH] {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        /// Offsets of the two digits of each byte, between the dashes.
        const PLACES: [usize; 16] = [1, 3, 5, 7, 10, 12, 15, 17, 20, 22, 25, 27, 29, 31, 33, 35];
        let (stamp, ordinal) = (u128::from(self.stamp), u128::from(self.ordinal.0));
        let groups =
            (stamp & 0xFFFF_FFFF) << 96 | (stamp >> 32 & 0xFFFF) << 80 | (stamp >> 48) << 64 | ordinal;
        let mut text = [b'-'; ETAG_LENGTH];
        [text[0], text[ETAG_LENGTH - 1]] = [b'"'; 2];
        for (byte, place) in groups.to_be_bytes().into_iter().zip(PLACES) {
            text[place] = DIGITS[usize::from(byte >> 4)];
            text[place + 1] = DIGITS[usize::from(byte & 15)];
        }
        text
    }
}

impl fmt::Display for Etag {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(str::from_utf8(&self.text()).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_number_keeps_both_parts_and_their_order() {
        let number = DocumentNumber::new(PartitionOrdinal(3), 7).unwrap();
        assert_eq!(format!("{number:?}"), "DocumentNumber(3.7)");
        assert!(number < DocumentNumber::new(PartitionOrdinal(3), 8).unwrap());
        assert_eq!(DocumentNumber::new(PartitionOrdinal(1 << 20), 0), None);
        assert!(DocumentNumber::new(PartitionOrdinal(0), (1 << 35) - 1).is_some());
        assert_eq!(DocumentNumber::new(PartitionOrdinal(0), 1 << 35), None, "the bits of the region");
        assert_eq!(PartitionOrdinal::from_raw(PartitionOrdinal::MAX.0), Some(PartitionOrdinal::MAX));
        assert_eq!(PartitionOrdinal::from_raw(1 << 24), None, "the bits of the region");
        assert_eq!(DocumentNumber::from_raw(1 << 60), None);
    }

    #[test]
    fn an_etag_is_a_quoted_guid_shape() {
        let etag = Etag { ordinal: PartitionOrdinal(2), stamp: 0x0001_0002_0000_0003 };
        assert_eq!(etag.to_string(), "\"00000003-0002-0001-0000-000000000002\"");
    }
}
