//! What the APIs over HTTP have in common: request bodies, answer bodies, dates, percent-encoding, request ids.
//!
//! Knows no protocol: neither routes nor credentials, codes or wire formats of resources.

pub mod answer_body;
pub mod body;
mod connection;
pub mod date;
mod guid;
mod key_token;
pub mod percent;
pub mod request_headers;

pub use answer_body::AnswerBody;
pub use connection::ConnectionInfo;
pub use guid::Guid;
pub use key_token::key_holder;
