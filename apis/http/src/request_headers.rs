//! The headers of a request, with a summary of their names.
//!
//! An operation looks for many headers that few clients send. Finding out that one is absent hashes its name; the
//! lengths of the names that were sent answer most of these questions at once.

use http::{HeaderMap, HeaderName, HeaderValue};

/// The headers of one request.
#[derive(Clone, Debug, Default)]
pub struct RequestHeaders {
    map: HeaderMap,
    /// One bit for each length of a name, modulo 64.
    name_lengths: u64,
    /// Bytes of names and values.
    size_bytes: usize,
}

impl From<HeaderMap> for RequestHeaders {
    fn from(map: HeaderMap) -> RequestHeaders {
        let (mut name_lengths, mut size_bytes) = (0, 0);
        for (name, value) in &map {
            let length = name.as_str().len();
            name_lengths |= length_bit(length);
            size_bytes += length + value.len();
        }
        RequestHeaders { map, name_lengths, size_bytes }
    }
}

impl RequestHeaders {
    /// The first value of a header.
    pub fn get(&self, name: &HeaderName) -> Option<&HeaderValue> {
        if self.name_lengths & length_bit(name.as_str().len()) == 0 {
            return None;
        }
        self.map.get(name)
    }

    /// All headers.
    pub fn map(&self) -> &HeaderMap {
        &self.map
    }

    /// Bytes of all names and values.
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }
}

fn length_bit(length: usize) -> u64 {
    1 << (length % 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_is_found_whatever_its_length() {
        let name = |length: usize| HeaderName::from_bytes("x".repeat(length).as_bytes()).unwrap();
        let mut map = HeaderMap::new();
        for length in [1, 63, 64, 65, 200] {
            map.insert(name(length), HeaderValue::from(length));
        }
        map.append(name(1), HeaderValue::from_static("again"));
        let headers = RequestHeaders::from(map);
        for length in 1..=256 {
            let expected = [1, 63, 64, 65, 200].contains(&length).then(|| HeaderValue::from(length));
            assert_eq!(headers.get(&name(length)), expected.as_ref(), "{length}");
        }
        assert_eq!(headers.size_bytes(), (1 + 1) + (1 + 5) + (63 + 2) + (64 + 2) + (65 + 2) + (200 + 3));
        assert_eq!(headers.map().len(), 6);
    }
}
