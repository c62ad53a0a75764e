//! Session tokens: which position of which partition a client has seen.

use crate::pieces::{cut_once, pieces};
use crate::{Lsn, PartitionOrdinal, RequestFault};

/// One partition's entry in the vector form `<range>:<version>#<lsn>`.
///
/// The version stays 0 and there is no region part: there is one region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionToken {
    /// The partition.
    pub ordinal: PartitionOrdinal,
    /// What the client has seen of it.
    pub lsn: Lsn,
}

impl SessionToken {
    /// Reads a header value: entries joined by commas, in vector or simple form, possibly from several ranges.
    pub fn parse_list(text: &str) -> Result<Vec<SessionToken>, RequestFault> {
        let bad = || RequestFault::BadSessionToken { text: text.to_owned() };
        pieces(text, b',').map(|entry| parse_entry(entry.trim()).ok_or_else(bad)).collect()
    }

    /// Appends the text form.
    pub fn push_text(self, out: &mut Vec<u8>) {
        out.extend_from_slice(itoa::Buffer::new().format(self.ordinal.0).as_bytes());
        out.extend_from_slice(b":0#");
        out.extend_from_slice(itoa::Buffer::new().format(self.lsn.0).as_bytes());
    }
}

/// `0:1#42#3=40`, `0:-1#42` and `0:42` all name LSN 42 of range 0.
fn parse_entry(entry: &str) -> Option<SessionToken> {
    let (range, token) = cut_once(entry, b':')?;
    let lsn = match cut_once(token, b'#') {
        Some((version, rest)) => {
            version.parse::<i64>().ok()?;
            let mut parts = pieces(rest, b'#');
            let lsn = parts.next()?;
            for region in parts {
                let (id, local) = cut_once(region, b'=')?;
                id.parse::<i64>().ok()?;
                local.parse::<i64>().ok()?;
            }
            lsn
        }
        None => token,
    };
    Some(SessionToken { ordinal: PartitionOrdinal(range.parse().ok()?), lsn: Lsn(lsn.parse().ok()?) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_are_read() {
        let token = |ordinal, lsn| SessionToken { ordinal: PartitionOrdinal(ordinal), lsn: Lsn(lsn) };
        assert_eq!(SessionToken::parse_list("0:1#42").unwrap(), [token(0, 42)]);
        assert_eq!(SessionToken::parse_list("0:-1#42").unwrap(), [token(0, 42)]);
        assert_eq!(SessionToken::parse_list("0:42, 1:0#7#3=6").unwrap(), [token(0, 42), token(1, 7)]);
        let mut text = Vec::new();
        token(5, 9).push_text(&mut text);
        assert_eq!(text, b"5:0#9");
    }

    #[test]
    fn malformed_tokens_are_refused() {
        for text in ["", "x", "0", "0:", "0:#", "a:0#1", "0:0#x", "0:0#1#2", "0:0#1,,", "0:0#-4"] {
            assert!(SessionToken::parse_list(text).is_err(), "{text}");
        }
    }
}
