//! The accounts that the API answers for, and the two styles in which it does.

use crate::edm::{ENTITY_BYTES_MAX, ENTITY_BYTES_MAX_COSMOS, TICKS_MIN, TICKS_MIN_STORAGE};
use crate::wire::entity::{KEY_UNITS_MAX, KEY_UNITS_MAX_COSMOS};
use engine::AccountKey;

/// Which of the two services an account resembles where they differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountStyle {
    /// Azure Table storage and its emulators.
    Storage,
    /// Azure Cosmos DB for Table.
    Cosmos,
}

/// Fewest characters of a table name.
pub const TABLE_NAME_MIN: usize = 3;
/// Most characters of a table name in an account of Storage.
pub const TABLE_NAME_MAX: usize = 63;
/// Most characters of a table name in an account of Cosmos DB.
pub const TABLE_NAME_MAX_COSMOS: usize = 254;

impl AccountStyle {
    /// What an entity may have.
    pub const fn limits(self) -> EntityLimits {
        match self {
            AccountStyle::Storage => EntityLimits {
                bytes_max: ENTITY_BYTES_MAX,
                key_units_max: KEY_UNITS_MAX,
                ticks_min: TICKS_MIN_STORAGE,
            },
            AccountStyle::Cosmos => EntityLimits {
                bytes_max: ENTITY_BYTES_MAX_COSMOS,
                key_units_max: KEY_UNITS_MAX_COSMOS,
                ticks_min: TICKS_MIN,
            },
        }
    }

    /// Whether two names mean one table.
    pub(crate) fn is_same_table(self, name: &str, other: &str) -> bool {
        match self {
            AccountStyle::Storage => name.eq_ignore_ascii_case(other),
            AccountStyle::Cosmos => name == other,
        }
    }

    /// Whether `name` can be the name of a table.
    pub(crate) fn is_table_name(self, name: &str) -> bool {
        let max = match self {
            AccountStyle::Storage => TABLE_NAME_MAX,
            AccountStyle::Cosmos => TABLE_NAME_MAX_COSMOS,
        };
        let is_formed = name.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && name.bytes().next().is_some_and(|first| first.is_ascii_alphabetic());
        is_formed && (TABLE_NAME_MIN..=max).contains(&name.len()) && !name.eq_ignore_ascii_case("tables")
    }
}

/// Limits of an entity that depend on the style of the account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntityLimits {
    /// Largest entity, by [`entity_bytes`](crate::edm::entity_bytes).
    pub bytes_max: usize,
    /// Longest PartitionKey and RowKey in UTF-16 units.
    pub key_units_max: usize,
    /// Earliest `Edm.DateTime`.
    pub ticks_min: i64,
}

/// The keys of an account.
#[derive(Clone, Debug)]
pub enum AccountKeys {
    /// The keys of the store.
    Store,
    /// This key, and no other.
    Own(AccountKey),
}

/// An account of the API. All accounts have the same tables.
#[derive(Clone, Debug)]
pub struct TableAccount {
    /// Its name.
    pub name: String,
    /// Its style.
    pub style: AccountStyle,
    /// Its keys.
    pub keys: AccountKeys,
}

#[test]
fn names_of_tables_have_letters_digits_and_a_length() {
    use AccountStyle::{Cosmos, Storage};
    for style in [Storage, Cosmos] {
        assert!(
            style.is_table_name("abc") && style.is_table_name("A1b") && style.is_table_name(&"t".repeat(63))
        );
        for name in ["", "ab", "1ab", "a_b", "a-b", "Tables", "tAbLeS", "täb", "a b"] {
            assert!(!style.is_table_name(name), "{name}");
        }
    }
    assert!(!Storage.is_table_name(&"t".repeat(64)) && Cosmos.is_table_name(&"t".repeat(64)));
    assert!(Cosmos.is_table_name(&"t".repeat(254)) && !Cosmos.is_table_name(&"t".repeat(255)));
}
