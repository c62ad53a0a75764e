//! Simulations, exhaustive faults, and the sanity of the judges.

mod planted_histories;
mod planted_rows;
mod seeds;
mod sweep;
