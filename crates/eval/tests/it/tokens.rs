//! Words and signs of the text of a case.

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Token {
    Word(String),
    Number(String),
    Text(String),
    Sign(&'static str),
}

/// Longest first.
const SIGNS: [&str; 33] = [
    ">>>", "??", "||", "<<", ">>", "<=", ">=", "!=", "<>", "(", ")", "[", "]", "{", "}", ",", ".", ":", "?",
    "+", "-", "*", "/", "%", "=", "<", ">", "&", "|", "^", "~", "@", ";",
];

pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, taken) = if first == '"' || first == '\'' {
            quoted(rest, first)
        } else if first.is_ascii_digit() {
            number(rest)
        } else if first.is_alphabetic() || first == '_' {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            (Token::Word(rest[..end].to_owned()), end)
        } else {
            let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
            let sign = sign.unwrap_or_else(|| panic!("no sign begins {rest:?}"));
            (Token::Sign(sign), sign.len())
        };
        tokens.push(token);
        rest = rest[taken..].trim_start();
    }
    tokens
}

fn number(text: &str) -> (Token, usize) {
    let bytes = text.as_bytes();
    let mut end = 0;
    while end < bytes.len() {
        let is_exponent_sign = matches!(bytes[end], b'+' | b'-') && matches!(bytes[end - 1], b'e' | b'E');
        if !bytes[end].is_ascii_digit() && !matches!(bytes[end], b'.' | b'e' | b'E') && !is_exponent_sign {
            break;
        }
        end += 1;
    }
    (Token::Number(text[..end].to_owned()), end)
}

/// A string with the escapes of JSON, in either kind of quotes.
fn quoted(text: &str, quote: char) -> (Token, usize) {
    let mut end = 1;
    let mut escaped = false;
    for character in text[1..].chars() {
        end += character.len_utf8();
        if !escaped && character == quote {
            break;
        }
        escaped = !escaped && character == '\\';
    }
    let inner = text[1..end - 1].replace("\\'", "'");
    let json = if quote == '"' { inner } else { inner.replace("\\\"", "\"").replace('"', "\\\"") };
    let value = value::Value::from_json(format!("\"{json}\"").as_bytes());
    match value {
        Ok(value::Value::String(text)) => (Token::Text(text), end),
        other => panic!("string {text:?}: {other:?}"),
    }
}
