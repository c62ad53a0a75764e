//! The documents of the suite: 1,024 bytes of JSON with 14 indexed paths, 1,000 logical partitions, 20 categories.

pub(crate) const PARTITIONS: usize = 1000;
/// Document numbers per lot: five documents of each logical partition, whatever the size of the container.
pub(crate) const LOT: usize = 5 * PARTITIONS;
/// Bytes of JSON text of each document.
pub(crate) const DOCUMENT_BYTES: usize = 1024;

/// Words of the text property. It differs between documents, so that compression does not favour a store.
const WORDS: [&str; 16] = [
    "orbit", "planet", "comet", "dust", "mass", "period", "axis", "light", "epoch", "transit", "node",
    "field", "apsis", "flux", "tide", "ring",
];

pub(crate) fn partition_key(number: usize) -> String {
    format!("p{}", number % PARTITIONS)
}

pub(crate) fn id(number: usize) -> String {
    format!("d{number}")
}

/// Twelve properties of several types, one of them an object and one an array, padded to the fixed size.
pub(crate) fn json(number: usize) -> String {
    let mut text = String::with_capacity(DOCUMENT_BYTES + 16);
    text.push_str(&format!(
        r#"{{"id":"{}","pk":"{}","category":"c{}","price":{}.5,"lot":{},"active":{},"user":{{"name":"user {}","age":{},"mail":"u{number}@example.org"}},"tags":["t{}","t{}","t{}"],"created":"2024-01-{:02}T10:00:00Z","score":{},"city":"city {}","text":""#,
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
    ));
    let end = DOCUMENT_BYTES - "\"}".len();
    let mut random = number as u64;
    while text.len() < end {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        for byte in &random.to_be_bytes()[..6] {
            text.push_str(WORDS[usize::from(*byte) % WORDS.len()]);
            text.push(' ');
        }
    }
    text.truncate(end);
    text.push_str("\"}");
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn documents_have_their_size() {
        for number in [0, 1, 999_999, 90_000_000_000] {
            assert_eq!(super::json(number).len(), super::DOCUMENT_BYTES);
        }
    }
}
