//! The contract of a store, checked on every backend, and behaviour specific to some.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "all of this is test code, helpers included, though clippy only knows the test functions as such"
)]

mod conformance;
mod crash;
mod damage;
mod disk_space;
mod faults;
mod folder;
mod journal;
mod model;
mod repair;
mod round_trip;
mod stores;
