//! The connection of a request.

use engine::ConnectionMemory;
use std::net::IpAddr;
use std::sync::Arc;

/// Properties of the connection of a request.
#[derive(Clone, Debug)]
pub struct ConnectionInfo {
    /// Whether it is encrypted.
    pub secure: bool,
    /// The address of the other end.
    pub peer: IpAddr,
    /// Its memory limits, if it carries several requests at a time.
    pub memory: Option<Arc<ConnectionMemory>>,
}
