//! Seeded simulations of the whole engine against a naive model, and the judges they need.
//!
//! A seed is a course ([`scenario`]): concurrent clients, storage faults, crashes, clock jumps. It is played on the
//! real engine over a store in memory whose disk can fail ([`world`]) and judged at every quiet moment
//! ([`simulation`]) by rules that are said again as plainly as possible ([`naive`]). The same seed gives the same
//! run, to the byte of its trace.
//!
//! Knows the product from outside, through its façade; the only inner thing it looks at are the rows of the store.

pub mod ambient;
pub mod course;
pub mod desk;
pub mod feeds;
pub mod history;
pub mod hooks;
pub mod housekeeping;
pub mod identity;
mod life;
pub mod naive;
pub mod queries;
pub mod random;
pub mod recorded;
pub mod scenario;
pub mod shrink;
pub mod simulation;
mod trace;
pub mod world;
