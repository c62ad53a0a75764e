//! Tokens of a filter: brackets, texts and words. What a word means depends on its place, so the parser decides.

use super::FilterFault;
use crate::edm::texts::parse_hex;
use crate::edm::{EdmType, parse_date_time, parse_guid};
use std::borrow::Cow;
use value::Value;

/// A token of a filter.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'a> {
    Open,
    Close,
    /// `'text'`, without quotes.
    Text(Cow<'a, str>),
    /// A literal with the name of its type before the text: `guid'…'`.
    Typed(Value),
    /// A name, an operator, a number or another literal without quotes.
    Word(&'a str),
    End,
}

/// Reads tokens one after the other.
pub(super) struct Lexer<'a> {
    text: &'a str,
    position: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Lexer<'a> {
        Lexer { text, position: 0 }
    }

    /// The next token and its offset.
    pub(super) fn next(&mut self) -> Result<(Token<'a>, usize), FilterFault> {
        let rest = self.rest().trim_start();
        self.position = self.text.len() - rest.len();
        let start = self.position;
        let token = match rest.as_bytes().first() {
            None => Token::End,
            Some(b'(') => self.sign(Token::Open),
            Some(b')') => self.sign(Token::Close),
            Some(b'\'') => Token::Text(self.text()?),
            Some(_) => self.word()?,
        };
        Ok((token, start))
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.position..).unwrap_or_default()
    }

    fn sign(&mut self, token: Token<'a>) -> Token<'a> {
        self.position += 1;
        token
    }

    fn word(&mut self) -> Result<Token<'a>, FilterFault> {
        let start = self.position;
        let rest = self.rest();
        let end = |character: char| character.is_whitespace() || "()'".contains(character);
        let word = &rest[..rest.find(end).unwrap_or(rest.len())];
        self.position += word.len();
        if !self.rest().starts_with('\'') {
            return Ok(Token::Word(word));
        }
        let (edm_type, parse): (EdmType, fn(&str) -> Option<Value>) = match word {
            "datetime" => (EdmType::DateTime, |text| parse_date_time(text).map(Value::Ticks)),
            "guid" => (EdmType::Guid, |text| parse_guid(text).map(Value::Guid)),
            "X" | "x" | "binary" => (EdmType::Binary, |text| {
                parse_hex(text.as_bytes()).map(|bytes| Value::Binary { subtype: 0, bytes })
            }),
            _ => return Err(FilterFault::Unexpected { offset: self.position, expected: "a space" }),
        };
        let text = self.text()?;
        let value = parse(&text).ok_or(FilterFault::MalformedLiteral { offset: start, edm_type })?;
        Ok(Token::Typed(value))
    }

    /// Reads a text in quotes; two quotes inside are one.
    fn text(&mut self) -> Result<Cow<'a, str>, FilterFault> {
        let start = self.position;
        self.position += 1;
        let mut text = Cow::Borrowed("");
        loop {
            let rest = self.rest();
            let end = rest.find('\'').ok_or(FilterFault::UnterminatedText { offset: start })?;
            if text.is_empty() {
                text = Cow::Borrowed(&rest[..end]);
            } else {
                text.to_mut().push_str(&rest[..end]);
            }
            self.position += end + 1;
            if !self.rest().starts_with('\'') {
                return Ok(text);
            }
            text.to_mut().push('\'');
            self.position += 1;
        }
    }
}
