//! Seeded simulations of the whole engine against a naive model, and their checkers.
//!
//! A seed generates a [`scenario`]: concurrent clients, storage faults, crashes, clock jumps. It is run on the real
//! engine over a store in memory whose disk can fail ([`world`]) and checked at every quiet moment ([`simulation`])
//! against rules that are as simple as possible ([`naive`]). The same seed gives the same run, to the byte of its
//! trace.
//!
//! Uses the product through its public interface; the only internals it reads are the rows of the store.

pub mod ambient;
pub mod change_readers;
pub mod clients;
pub mod course;
pub mod feeds;
pub mod history;
pub mod hooks;
pub mod housekeeping;
pub mod identity;
mod life;
pub mod naive;
mod policies;
pub mod queries;
pub mod random;
pub mod recorded;
pub mod scenario;
pub mod shrink;
pub mod simulation;
pub mod splits;
mod trace;
pub mod world;
