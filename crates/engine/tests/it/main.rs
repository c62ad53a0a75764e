//! The engine on a store in memory: what a door can ask, and what it is told.

mod catalog;
mod documents;
mod doubt;
mod expiry;
mod feed;
mod harness;
