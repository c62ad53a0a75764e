//! Request units: the deterministic price of a request.
//!
//! The published price model: two fixed points per operation (1 KB and 100 KB), linear between them.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

/// Request units in hundredths, so that sums are exact and the same everywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Charge(u64);

/// Hundredths of a request unit that 99 KB beyond the first add to a read: 1 RU at 1 KB, 10 RU at 100 KB.
const READ_SLOPE: u64 = 900;
/// The same for a write: 5 RU at 1 KB, 50 RU at 100 KB.
const WRITE_SLOPE: u64 = 4500;
/// Price of a write of up to 1 KB without an index, in hundredths.
const WRITE_BASE: u64 = 500;
/// Hundredths for each indexed value that a write adds or removes. A document of 1 KB with four values costs 5.28 RU.
const TERM: u64 = 7;
/// Base price of a query page in hundredths. The service charges 2.3 to 2.9 RU for a small result.
const QUERY_BASE: u64 = 230;
/// Hundredths for each document that a query reads, in addition to its bytes.
const QUERY_DOCUMENT: u64 = 3;
/// Values of an index that a query looks up or reads for one hundredth.
const QUERY_TERMS: u64 = 4;
/// Distance of the two published points in KB.
const SLOPE_KB: u64 = 99;

impl Charge {
    /// Nothing was charged.
    pub const NONE: Charge = Charge(0);
    /// The minimum charge of a request on data; also the charge of a refused one.
    pub const MINIMUM: Charge = Charge(100);

    /// A charge of `hundredths` of a request unit.
    pub const fn from_hundredths(hundredths: u64) -> Charge {
        Charge(hundredths)
    }

    /// Price of reading one document of `size_bytes`.
    pub(crate) fn read(size_bytes: usize) -> Charge {
        Charge(100 + line(size_bytes, READ_SLOPE))
    }

    /// Price of a page of a query that read `documents` documents of `size_bytes` in total and `terms` values of an
    /// index.
    pub(crate) fn query(documents: u64, size_bytes: u64, terms: u64) -> Charge {
        let by_bytes = size_bytes.saturating_mul(READ_SLOPE) / SLOPE_KB / 1024;
        let by_index = terms / QUERY_TERMS;
        let by_documents = documents.saturating_mul(QUERY_DOCUMENT);
        Charge(QUERY_BASE.saturating_add(by_documents).saturating_add(by_bytes).saturating_add(by_index))
    }

    /// Price of creating or deleting one document of `size_bytes` with this number of indexed values.
    pub(crate) fn write(size_bytes: usize, terms: u32) -> Charge {
        Charge(WRITE_BASE + line(size_bytes, WRITE_SLOPE) + TERM * u64::from(terms))
    }

    /// Price of replacing one document: the old version is removed and the new one is added. `terms` are the indexed
    /// values of both.
    pub(crate) fn replace(size_bytes_old: usize, size_bytes_new: usize, terms: u32) -> Charge {
        let by_bytes = (line(size_bytes_old, WRITE_SLOPE) + line(size_bytes_new, WRITE_SLOPE)) / 2;
        Charge(2 * WRITE_BASE + by_bytes + TERM * u64::from(terms))
    }

    /// The charge in hundredths of a request unit.
    pub fn hundredths(self) -> u64 {
        self.0
    }
}

/// Price of the bytes beyond the first KB.
fn line(size_bytes: usize, slope: u64) -> u64 {
    (size_bytes as u64).saturating_sub(1024) * slope / SLOPE_KB / 1024
}

impl Add for Charge {
    type Output = Charge;

    fn add(self, other: Charge) -> Charge {
        Charge(self.0 + other.0)
    }
}

impl AddAssign for Charge {
    fn add_assign(&mut self, other: Charge) {
        self.0 += other.0;
    }
}

impl Sum for Charge {
    fn sum<I: Iterator<Item = Charge>>(charges: I) -> Charge {
        charges.fold(Charge::NONE, Add::add)
    }
}

impl fmt::Display for Charge {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{:02}", self.0 / 100, self.0 % 100)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_points_are_met() {
        assert_eq!(Charge::read(1024).to_string(), "1.00");
        assert_eq!(Charge::read(100 * 1024).to_string(), "10.00");
        assert_eq!(Charge::write(1024, 0).to_string(), "5.00");
        assert_eq!(Charge::write(100 * 1024, 0).to_string(), "50.00");
        assert_eq!(Charge::write(1024, 10).to_string(), "5.70");
        assert_eq!(Charge::replace(1024, 1024, 20).to_string(), "11.40");
    }

    #[test]
    fn a_small_query_costs_what_was_seen() {
        assert_eq!(Charge::query(0, 0, 0).to_string(), "2.30");
        assert_eq!(Charge::query(0, 0, 16_000).to_string(), "42.30");
        assert_eq!(Charge::query(1, 1024, 1).to_string(), "2.42");
        assert!(Charge::query(1000, 1 << 20, 0) > Charge::query(100, 100 << 10, 0));
        assert!(Charge::query(u64::MAX, u64::MAX, u64::MAX) > Charge::NONE);
    }

    #[test]
    fn a_small_document_costs_as_much_as_one_kilobyte() {
        assert_eq!(Charge::read(10), Charge::read(1024));
    }
}
