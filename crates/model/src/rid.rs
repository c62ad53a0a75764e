//! Resource ids: the addresses that the server gives, as bytes in base64 with `-` in place of `/`.
//!
//! ```text
//! database    d d d d                                      number, little-endian
//! container   d d d d  C c c c                             number, big-endian, top bit of C set
//! document    d d d d  C c c c  n n n n n n n 0            number, little-endian, top nibble 0
//! range       d d d d  C c c c  n n n n n n n 5            ordinal + 1, little-endian, top nibble 5
//! offer       o o o                                        number, little-endian
//! ```
//!
//! Clients compare documents by their number, read the kind from the top nibble, and take 0 for "absent".

use crate::{ContainerNumber, DatabaseNumber, DocumentNumber, OfferNumber, PartitionOrdinal};
use base64::Engine as _;
use base64::alphabet::Alphabet;
use base64::engine::general_purpose::{GeneralPurpose, PAD};
use std::fmt;

/// The address of a resource, fixed at its creation and never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rid {
    /// A database.
    Database(DatabaseNumber),
    /// A container of a database.
    Container(DatabaseNumber, ContainerNumber),
    /// A document of a container.
    Document(DatabaseNumber, ContainerNumber, DocumentNumber),
    /// A partition key range of a container.
    Range(DatabaseNumber, ContainerNumber, PartitionOrdinal),
    /// The throughput of a database or container.
    Offer(OfferNumber),
}

const ALPHABET: Alphabet =
    match Alphabet::new("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-") {
        Ok(alphabet) => alphabet,
        Err(_) => panic!("64 distinct characters"),
    };
const BASE64: GeneralPurpose = GeneralPurpose::new(&ALPHABET, PAD);

/// Bytes of the longest RID here.
const BYTES_MAX: usize = 16;
/// Characters of the longest RID here.
const TEXT_MAX: usize = 24;
/// Marks a container among the children of a database.
const CONTAINER_BIT: u32 = 1 << 31;
/// Where the kind of a container's child stands.
const KIND_SHIFT: u32 = 60;
const KIND_DOCUMENT: u64 = 0;
const KIND_RANGE: u64 = 5;

impl Rid {
    /// Reads the text form; `None` for anything that this server cannot have given.
    pub fn parse(text: &str) -> Option<Rid> {
        let mut buffer = [0; BYTES_MAX + 2];
        if text.len() > TEXT_MAX {
            return None;
        }
        let length = BASE64.decode_slice(text, &mut buffer).ok()?;
        let bytes = &buffer[..length];
        if let [first, second, third] = *bytes {
            let number = u32::from_le_bytes([first, second, third, 0]);
            return (number != 0).then_some(Rid::Offer(OfferNumber(number)));
        }
        let (database, rest) = bytes.split_first_chunk::<4>()?;
        let database = DatabaseNumber(u32::from_le_bytes(*database));
        if database.0 == 0 {
            return None;
        }
        if rest.is_empty() {
            return Some(Rid::Database(database));
        }
        let (container, rest) = rest.split_first_chunk::<4>()?;
        let container = u32::from_be_bytes(*container);
        if container & CONTAINER_BIT == 0 || container == CONTAINER_BIT {
            return None;
        }
        let container = ContainerNumber(container & !CONTAINER_BIT);
        if rest.is_empty() {
            return Some(Rid::Container(database, container));
        }
        let child = u64::from_le_bytes(rest.try_into().ok()?);
        parse_child(database, container, child)
    }

    /// The text form without an allocation.
    pub fn text(&self) -> RidText {
        let mut bytes = [0; BYTES_MAX];
        let length = self.fill(&mut bytes);
        let mut text = RidText { characters: [0; TEXT_MAX], length: 0 };
        // 16 bytes make 24 characters, so the slice is always large enough.
        text.length = BASE64.encode_slice(&bytes[..length], &mut text.characters).unwrap_or(0);
        text
    }

    /// Writes the bytes and says how many there are.
    fn fill(&self, bytes: &mut [u8; BYTES_MAX]) -> usize {
        let (database, container, child) = match *self {
            Rid::Offer(number) => {
                bytes[..3].copy_from_slice(&number.0.to_le_bytes()[..3]);
                return 3;
            }
            Rid::Database(database) => (database, None, None),
            Rid::Container(database, container) => (database, Some(container), None),
            Rid::Document(database, container, number) => {
                (database, Some(container), Some(KIND_DOCUMENT << KIND_SHIFT | number.raw()))
            }
            Rid::Range(database, container, ordinal) => {
                (database, Some(container), Some(KIND_RANGE << KIND_SHIFT | (u64::from(ordinal.0) + 1)))
            }
        };
        bytes[..4].copy_from_slice(&database.0.to_le_bytes());
        let Some(container) = container else { return 4 };
        bytes[4..8].copy_from_slice(&(container.0 | CONTAINER_BIT).to_be_bytes());
        let Some(child) = child else { return 8 };
        bytes[8..].copy_from_slice(&child.to_le_bytes());
        BYTES_MAX
    }
}

fn parse_child(database: DatabaseNumber, container: ContainerNumber, child: u64) -> Option<Rid> {
    let number = child & !(0xF << KIND_SHIFT);
    match child >> KIND_SHIFT {
        KIND_DOCUMENT => Some(Rid::Document(database, container, DocumentNumber::from_raw(number)?)),
        KIND_RANGE => {
            let ordinal = PartitionOrdinal(u32::try_from(number.checked_sub(1)?).ok()?);
            (ordinal <= PartitionOrdinal::MAX).then_some(Rid::Range(database, container, ordinal))
        }
        _ => None,
    }
}

impl fmt::Display for Rid {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.text().as_str())
    }
}

/// The text of a RID, held in place: item answers carry two of them.
#[derive(Clone, Copy)]
pub struct RidText {
    characters: [u8; TEXT_MAX],
    length: usize,
}

impl RidText {
    /// The text.
    pub fn as_str(&self) -> &str {
        // Base64 is ASCII, so this never fails.
        str::from_utf8(&self.characters[..self.length]).unwrap_or_default()
    }

    /// The text as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.characters[..self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATABASE: DatabaseNumber = DatabaseNumber(1);
    const CONTAINER: ContainerNumber = ContainerNumber(1);

    #[track_caller]
    fn check(rid: Rid, text: &str) {
        assert_eq!(rid.to_string(), text);
        assert_eq!(Rid::parse(text), Some(rid));
    }

    #[test]
    fn the_recorded_shapes_are_met() {
        let document = DocumentNumber::from_raw(1).unwrap();
        check(Rid::Database(DATABASE), "AQAAAA==");
        check(Rid::Container(DATABASE, CONTAINER), "AQAAAIAAAAE=");
        check(Rid::Document(DATABASE, CONTAINER, document), "AQAAAIAAAAEBAAAAAAAAAA==");
        check(Rid::Range(DATABASE, CONTAINER, PartitionOrdinal(1)), "AQAAAIAAAAECAAAAAAAAUA==");
        check(Rid::Offer(OfferNumber(1)), "AQAA");
    }

    #[test]
    fn large_numbers_keep_every_bit_and_no_slash_appears() {
        let document = DocumentNumber::new(PartitionOrdinal::MAX, DocumentNumber::COUNTER_MAX).unwrap();
        let container = ContainerNumber((1 << 31) - 1);
        let rid = Rid::Document(DatabaseNumber(u32::MAX), container, document);
        check(rid, "--------------------Dw==");
        check(
            Rid::Range(DatabaseNumber(u32::MAX), container, PartitionOrdinal::MAX),
            "----------8AABAAAAAAUA==",
        );
    }

    #[test]
    fn what_this_server_cannot_have_given_is_no_rid() {
        for text in [
            "",
            "A",
            "AAAA",
            "AAAAAA==",
            "AQAAAA",
            "AQAAAA=",
            "AQAAAB==x",
            "AQAAAAAAAAE=",
            "AQAAAIAAAAA=",
            "AQAAAIAAAAEBAAAAAAAAgA==",
            "AQAAAIAAAAEAAAAAAAAAUA==",
            "AQAAAIAAAAEBAAAA",
            "AQAAAIAAAAEBAAAAAAAAAAEAAAA=",
            "AQ/AAA==",
            "my-database",
            "é",
        ] {
            assert_eq!(Rid::parse(text), None, "{text}");
        }
    }
}
