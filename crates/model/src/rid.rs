//! Resource ids: addresses assigned by the server, as bytes in base64 with `-` in place of `/`.
//!
//! ```text
//! database    d d d d                                      number, little-endian
//! container   d d d d  C c c c                             number, big-endian, top bit of C set
//! user, key   d d d d  U u u u                             number, big-endian, top bit of U clear
//! permission  d d d d  U u u u  n n n n n n n n            number, little-endian
//! document    d d d d  C c c c  n n n n n n n 0            number, little-endian, top nibble 0
//! range       d d d d  C c c c  n n n n n n n 5            ordinal + 1, little-endian, top nibble 5
//! script      d d d d  C c c c  n n n n n n n k            number, little-endian, top nibble 6, 7 or 8
//! offer       o o o                                        number, little-endian
//! ```
//!
//! Clients compare documents by their number, read the kind from the top nibble, and treat 0 as "absent". Users and
//! client encryption keys have the same form: the path says which is meant.

use crate::{
    ContainerNumber, DatabaseNumber, DocumentNumber, OfferNumber, PartitionOrdinal, ResourceNumber,
    ScriptKind,
};
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
    /// A user or client encryption key of a database.
    DatabaseChild(DatabaseNumber, ResourceNumber),
    /// A permission of a user.
    Permission(DatabaseNumber, ResourceNumber, ResourceNumber),
    /// A script of a container.
    Script(DatabaseNumber, ContainerNumber, ScriptKind, ResourceNumber),
    /// The throughput of a database or container.
    Offer(OfferNumber),
}

const CHARACTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-";
const ALPHABET: Alphabet = match str::from_utf8(CHARACTERS) {
    Ok(characters) => match Alphabet::new(characters) {
        Ok(alphabet) => alphabet,
        Err(_) => panic!("64 distinct characters"),
    },
    Err(_) => panic!("ASCII"),
};
const BASE64: GeneralPurpose = GeneralPurpose::new(&ALPHABET, PAD);

/// Bytes of the longest RID, rounded up to a multiple of three, because three bytes make four characters.
const BYTES_MAX: usize = 18;
/// Characters of the longest RID.
const TEXT_MAX: usize = 24;
/// Distinguishes containers from other children of a database.
const CONTAINER_BIT: u32 = 1 << 31;
/// Bit offset of the kind of a container's child.
const KIND_SHIFT: u32 = 60;
const KIND_DOCUMENT: u64 = 0;
const KIND_RANGE: u64 = 5;
const KIND_FUNCTION: u64 = 6;
const KIND_TRIGGER: u64 = 7;
const KIND_PROCEDURE: u64 = 8;

impl Rid {
    /// Parses the text form; `None` if this server cannot have issued it.
    pub fn parse(text: &str) -> Option<Rid> {
        // Names are tried as well; the length excludes most of them.
        if text.len() > TEXT_MAX || !text.len().is_multiple_of(4) {
            return None;
        }
        let mut buffer = [0; BYTES_MAX];
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
        let (second, rest) = rest.split_first_chunk::<4>()?;
        let second = u32::from_be_bytes(*second);
        let child = match rest.is_empty() {
            true => None,
            false => Some(u64::from_le_bytes(rest.try_into().ok()?)),
        };
        match (second & CONTAINER_BIT != 0, second & !CONTAINER_BIT) {
            (_, 0) => None,
            (true, container) => parse_below_container(database, ContainerNumber(container), child),
            (false, user) => parse_below_user(database, ResourceNumber(user), child),
        }
    }

    /// The direct parent; `None` for resources of the account.
    pub fn parent(&self) -> Option<Rid> {
        match *self {
            Rid::Database(_) | Rid::Offer(_) => None,
            Rid::Container(database, _) | Rid::DatabaseChild(database, _) => Some(Rid::Database(database)),
            Rid::Document(database, container, _)
            | Rid::Range(database, container, _)
            | Rid::Script(database, container, ..) => Some(Rid::Container(database, container)),
            Rid::Permission(database, user, _) => Some(Rid::DatabaseChild(database, user)),
        }
    }

    /// The number of a user, permission, script or client encryption key.
    pub fn resource_number(&self) -> Option<ResourceNumber> {
        match *self {
            Rid::DatabaseChild(_, number) | Rid::Permission(_, _, number) | Rid::Script(_, _, _, number) => {
                Some(number)
            }
            Rid::Database(_) | Rid::Container(..) | Rid::Document(..) | Rid::Range(..) | Rid::Offer(_) => {
                None
            }
        }
    }

    /// The text form without an allocation. Formatted by hand because every item that is read or written carries one.
    pub fn text(&self) -> RidText {
        let mut bytes = [0; BYTES_MAX];
        let count = self.fill(&mut bytes);
        let mut characters = [b'='; TEXT_MAX];
        let groups = bytes.as_chunks().0.iter().zip(characters.as_chunks_mut().0);
        for (&[first, second, third], four) in groups.take(count.div_ceil(3)) {
            let digits =
                [first >> 2, (first & 3) << 4 | second >> 4, (second & 15) << 2 | third >> 6, third & 63];
            *four = digits.map(|digit| CHARACTERS[usize::from(digit)]);
        }
        let length = count.div_ceil(3) * 4;
        let padding = length / 4 * 3 - count;
        characters[length - padding..length].fill(b'=');
        RidText { characters, length }
    }

    /// Writes the bytes and returns their number.
    fn fill(&self, bytes: &mut [u8; BYTES_MAX]) -> usize {
        let in_container = |container: ContainerNumber| Some(container.0 | CONTAINER_BIT);
        let child = |kind: u64, number: u64| Some(kind << KIND_SHIFT | number);
        let (database, second, child) = match *self {
            Rid::Offer(number) => {
                bytes[..3].copy_from_slice(&number.0.to_le_bytes()[..3]);
                return 3;
            }
            Rid::Database(database) => (database, None, None),
            Rid::Container(database, container) => (database, in_container(container), None),
            Rid::Document(database, container, number) => {
                (database, in_container(container), child(KIND_DOCUMENT, number.raw()))
            }
            Rid::Range(database, container, ordinal) => {
                (database, in_container(container), child(KIND_RANGE, u64::from(ordinal.0) + 1))
            }
            Rid::Script(database, container, kind, number) => {
                (database, in_container(container), child(script_nibble(kind), u64::from(number.0)))
            }
            Rid::DatabaseChild(database, number) => (database, Some(number.0), None),
            Rid::Permission(database, user, number) => {
                (database, Some(user.0), child(0, u64::from(number.0)))
            }
        };
        bytes[..4].copy_from_slice(&database.0.to_le_bytes());
        let Some(second) = second else { return 4 };
        bytes[4..8].copy_from_slice(&second.to_be_bytes());
        let Some(child) = child else { return 8 };
        bytes[8..16].copy_from_slice(&child.to_le_bytes());
        16
    }
}

fn script_nibble(kind: ScriptKind) -> u64 {
    match kind {
        ScriptKind::StoredProcedure => KIND_PROCEDURE,
        ScriptKind::Trigger => KIND_TRIGGER,
        ScriptKind::UserDefinedFunction => KIND_FUNCTION,
    }
}

fn parse_below_user(database: DatabaseNumber, user: ResourceNumber, child: Option<u64>) -> Option<Rid> {
    let Some(child) = child else {
        return Some(Rid::DatabaseChild(database, user));
    };
    Some(Rid::Permission(database, user, ResourceNumber::from_raw(child)?))
}

fn parse_below_container(
    database: DatabaseNumber,
    container: ContainerNumber,
    child: Option<u64>,
) -> Option<Rid> {
    let Some(child) = child else {
        return Some(Rid::Container(database, container));
    };
    let number = child & !(0xF << KIND_SHIFT);
    let script = |kind| Some(Rid::Script(database, container, kind, ResourceNumber::from_raw(number)?));
    match child >> KIND_SHIFT {
        KIND_PROCEDURE => script(ScriptKind::StoredProcedure),
        KIND_TRIGGER => script(ScriptKind::Trigger),
        KIND_FUNCTION => script(ScriptKind::UserDefinedFunction),
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

/// The text of a RID, stored inline: answers with items carry two of them.
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
        let mut bytes = [0; BYTES_MAX];
        let count = rid.fill(&mut bytes);
        assert_eq!(BASE64.encode(&bytes[..count]), text);
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
    fn small_resources_are_told_from_containers_and_documents() {
        let number = ResourceNumber(1);
        check(Rid::DatabaseChild(DATABASE, number), "AQAAAAAAAAE=");
        check(Rid::Permission(DATABASE, number, ResourceNumber(2)), "AQAAAAAAAAECAAAAAAAAAA==");
        let script = |kind| Rid::Script(DATABASE, CONTAINER, kind, number);
        check(script(ScriptKind::StoredProcedure), "AQAAAIAAAAEBAAAAAAAAgA==");
        check(script(ScriptKind::Trigger), "AQAAAIAAAAEBAAAAAAAAcA==");
        check(script(ScriptKind::UserDefinedFunction), "AQAAAIAAAAEBAAAAAAAAYA==");
        let most = ResourceNumber::MAX;
        check(Rid::Permission(DATABASE, most, most), "AQAAAH--------9-AAAAAA==");
    }

    #[test]
    fn large_numbers_keep_every_bit_and_no_slash_appears() {
        let document = DocumentNumber::from_raw((1 << 60) - 1).unwrap();
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
            "AQAAAAAAAAA=",
            "AQAAAIAAAAA=",
            "AQAAAIAAAAEBAAAAAAAAkA==",
            "AQAAAIAAAAEAAAAAAAAAgA==",
            "AQAAAAAAAAEAAAAAAAAAAA==",
            "AQAAAAAAAAEBAAAAAAAAAQ==",
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
