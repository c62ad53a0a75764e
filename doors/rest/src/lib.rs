//! The REST door of the NoSQL API.
