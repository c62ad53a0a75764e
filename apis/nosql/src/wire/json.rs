//! JSON text written directly into a buffer, for answers with a fixed form.

/// Appends `text` as a JSON string with its quotes.
pub(crate) fn push_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut start = 0;
    for (index, byte) in bytes.iter().enumerate() {
        let Some(escape) = escape(*byte) else { continue };
        out.extend_from_slice(&bytes[start..index]);
        start = index + 1;
        match escape {
            Escape::Short(letter) => out.extend_from_slice(&[b'\\', letter]),
            Escape::Code => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
        }
    }
    out.extend_from_slice(&bytes[start..]);
    out.push(b'"');
}

/// Appends an integer.
pub(crate) fn push_integer(number: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends a number of hundredths with two decimals.
pub(crate) fn push_hundredths(hundredths: u64, out: &mut Vec<u8>) {
    push_integer(hundredths / 100, out);
    out.push(b'.');
    if hundredths % 100 < 10 {
        out.push(b'0');
    }
    push_integer(hundredths % 100, out);
}

/// Appends a number of thousandths with three decimals.
pub(crate) fn push_thousandths(thousandths: u64, out: &mut Vec<u8>) {
    push_integer(thousandths / 1000, out);
    let [hundreds, tens, ones] = [100, 10, 1].map(|unit| thousandths / unit % 10);
    let digit = |value: u64| b'0' + value.to_le_bytes()[0];
    out.extend_from_slice(&[b'.', digit(hundreds), digit(tens), digit(ones)]);
}

enum Escape {
    Short(u8),
    Code,
}

fn escape(byte: u8) -> Option<Escape> {
    match byte {
        b'"' | b'\\' => Some(Escape::Short(byte)),
        b'\n' => Some(Escape::Short(b'n')),
        b'\r' => Some(Escape::Short(b'r')),
        b'\t' => Some(Escape::Short(b't')),
        0..0x20 => Some(Escape::Code),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hundredths_are_written_as_charges_are() {
        for hundredths in [0, 5, 99, 100, 529, 1_010, 123_456] {
            let mut text = Vec::new();
            push_hundredths(hundredths, &mut text);
            assert_eq!(text, model::Charge::from_hundredths(hundredths).to_string().into_bytes());
        }
    }

    #[test]
    fn thousandths_have_three_decimals() {
        for (thousandths, expected) in [(0, "0.000"), (7, "0.007"), (412, "0.412"), (30_050, "30.050")] {
            let mut text = Vec::new();
            push_thousandths(thousandths, &mut text);
            assert_eq!(text, expected.as_bytes());
        }
    }

    #[test]
    fn what_json_cannot_hold_is_escaped() {
        let text = "a\"b\\c\r\n\t\u{1}\u{1F}é😀";
        let mut out = Vec::new();
        push_string(text, &mut out);
        assert_eq!(out, "\"a\\\"b\\\\c\\r\\n\\t\\u0001\\u001fé😀\"".as_bytes());
        assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
    }
}
