//! Consistency levels of the service. There is one store, so every read satisfies all of them; they differ in the price
//! of reads.

use model::ReadQuorum;
use std::str::FromStr;

/// A consistency level, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConsistencyLevel {
    /// Reads may be old and in any order.
    Eventual,
    /// Reads may be old, in order.
    ConsistentPrefix,
    /// A client sees its own writes.
    Session,
    /// Reads are old by a limited time.
    BoundedStaleness,
    /// Reads see all writes.
    Strong,
}

impl ConsistencyLevel {
    /// All levels, weakest first.
    pub const ALL: [ConsistencyLevel; 5] = [
        ConsistencyLevel::Eventual,
        ConsistencyLevel::ConsistentPrefix,
        ConsistencyLevel::Session,
        ConsistencyLevel::BoundedStaleness,
        ConsistencyLevel::Strong,
    ];

    /// The replicas that the service asks for a read at this level.
    pub fn read_quorum(self) -> ReadQuorum {
        match self {
            ConsistencyLevel::Eventual | ConsistencyLevel::ConsistentPrefix | ConsistencyLevel::Session => {
                ReadQuorum::One
            }
            ConsistencyLevel::BoundedStaleness | ConsistencyLevel::Strong => ReadQuorum::Two,
        }
    }

    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            ConsistencyLevel::Eventual => "Eventual",
            ConsistencyLevel::ConsistentPrefix => "ConsistentPrefix",
            ConsistencyLevel::Session => "Session",
            ConsistencyLevel::BoundedStaleness => "BoundedStaleness",
            ConsistencyLevel::Strong => "Strong",
        }
    }
}

impl FromStr for ConsistencyLevel {
    type Err = String;

    /// Reads a name in any letter case.
    fn from_str(text: &str) -> Result<ConsistencyLevel, String> {
        let found = ConsistencyLevel::ALL.into_iter().find(|level| level.name().eq_ignore_ascii_case(text));
        found.ok_or_else(|| {
            let names = ConsistencyLevel::ALL.map(ConsistencyLevel::name).join(", ");
            format!("it must be one of: {names}")
        })
    }
}
