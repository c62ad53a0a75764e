//! The documents of the suite: 1,024 bytes of JSON, 1,000 logical partitions, 20 categories.

/// Logical partitions.
pub(crate) const PARTITIONS: usize = 1000;
/// Numbers that share a lot: five documents of each logical partition, whatever the size of the container.
pub(crate) const LOT: usize = 5 * PARTITIONS;
/// Bytes of JSON text of each document.
pub(crate) const DOCUMENT_BYTES: usize = 1024;

pub(crate) fn partition_key(number: usize) -> String {
    format!("p{}", number % PARTITIONS)
}

pub(crate) fn id(number: usize) -> String {
    format!("d{number}")
}

/// Twenty properties of several types, padded to the fixed size.
pub(crate) fn json(number: usize) -> String {
    let mut text = format!(
        r#"{{"id":"{}","pk":"{}","category":"c{}","price":{}.5,"count":{number},"lot":{},"active":{},"user":{{"name":"user {}","age":{},"mail":"u{number}@example.org"}},"tags":["t{}","t{}","t{}"],"created":"2024-01-{:02}T10:00:00Z","score":{},"city":"city {}","rank":{}"#,
        id(number),
        partition_key(number),
        number % 20,
        number % 1000,
        number / LOT,
        number.is_multiple_of(2),
        number % 5000,
        number % 90,
        number % 7,
        number % 11,
        number % 13,
        number % 28 + 1,
        number as f64 / 7.0,
        number % 300,
        number % 10,
    );
    for field in 0..6 {
        text.push_str(&format!(r#","field{field}":"{:040x}""#, number.wrapping_mul(2_654_435_761 + field)));
    }
    let left = DOCUMENT_BYTES.saturating_sub(text.len() + r#","text":""}"#.len());
    text.push_str(r#","text":""#);
    text.extend((0..left).map(|position| if position % 7 == 6 { ' ' } else { 'x' }));
    text.push_str("\"}");
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn documents_have_their_size() {
        for number in [0, 1, 999_999] {
            assert_eq!(super::json(number).len(), super::DOCUMENT_BYTES);
        }
    }
}
