//! Session tokens as text, in the vector form `<range>:<version>#<lsn>`.
//!
//! The version is always 0 and there is no region part, because there is one region.

use super::json;
use super::pieces::{cut_once, pieces};
use crate::faults::WireFault;
use model::{Lsn, PartitionOrdinal, SessionToken};

/// Parses a header value: entries separated by commas, in vector or simple form, possibly of several ranges. Empty
/// entries, which clients leave when they join lists, are skipped.
pub(crate) fn parse_list(text: &str) -> Result<Vec<SessionToken>, WireFault> {
    let bad = || WireFault::SessionToken { text: text.to_owned() };
    let entries = pieces(text, b',').map(str::trim).filter(|entry| !entry.is_empty());
    entries.map(|entry| parse_entry(entry).ok_or_else(bad)).collect()
}

/// Appends tokens separated by commas.
pub(crate) fn push_list(tokens: &[SessionToken], out: &mut Vec<u8>) {
    for (index, token) in tokens.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        push(*token, out);
    }
}

/// Appends one token.
pub(crate) fn push(token: SessionToken, out: &mut Vec<u8>) {
    json::push_integer(token.ordinal.0, out);
    out.extend_from_slice(b":0#");
    json::push_integer(token.lsn.0, out);
}

/// Our tokens without their version, as clients before the vector form know them.
pub(crate) fn simplified(tokens: &str) -> String {
    tokens.replace(":0#", ":")
}

/// `0:1#42#3=40`, `0:-1#42` and `0:42` all mean LSN 42 of range 0.
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
        assert_eq!(parse_list("0:1#42").unwrap(), [token(0, 42)]);
        assert_eq!(parse_list("0:-1#42").unwrap(), [token(0, 42)]);
        assert_eq!(parse_list(",0:0#5,,1:0#7, ").unwrap(), [token(0, 5), token(1, 7)]);
        assert_eq!(parse_list("0:42, 1:0#7#3=6").unwrap(), [token(0, 42), token(1, 7)]);
        let mut text = Vec::new();
        push_list(&[token(5, 9), token(6, 1)], &mut text);
        assert_eq!(text, b"5:0#9,6:0#1");
    }

    #[test]
    fn malformed_tokens_are_refused() {
        for text in ["x", "0", "0:", "0:#", "a:0#1", "0:0#x", "0:0#1#2", "0:0#1,x,", "0:0#-4"] {
            assert!(parse_list(text).is_err(), "{text}");
        }
    }
}
