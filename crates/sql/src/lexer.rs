//! Text to tokens.
//!
//! Does not know the grammar: a token only stores which keyword it is, if any. Text that is no token becomes
//! [`TokenKind::Invalid`] or an unclosed string. The parser reports it when it gets there, so that the first error in
//! the text is the one reported.

use crate::fault::Span;
use crate::keyword::Keyword;
use logos::Logos;

/// A token with its text and its span.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'text> {
    pub(crate) kind: TokenKind,
    /// Looked up once, because the parser checks it often.
    pub(crate) keyword: Option<Keyword>,
    pub(crate) text: &'text str,
    pub(crate) span: Span,
}

#[derive(Logos, Clone, Copy, Debug, PartialEq, Eq)]
#[logos(skip r"[ \t\r\n\x0B\x0C]+")]
#[logos(skip(r"--[^\r\n]*", allow_greedy = true))]
pub(crate) enum TokenKind {
    #[regex(r"[A-Za-z_][A-Za-z0-9_]*")]
    Word,
    #[regex(r"@[A-Za-z_][A-Za-z0-9_]*")]
    Parameter,
    #[regex(r"[0-9]+", priority = 5)]
    #[regex(r"0[xX][0-9A-Fa-f]+")]
    Integer,
    #[regex(r"[0-9]+\.[0-9]*([eE][+-]?[0-9]+)?")]
    #[regex(r"\.[0-9]+([eE][+-]?[0-9]+)?")]
    #[regex(r"[0-9]+[eE][+-]?[0-9]+")]
    Fraction,
    /// Control characters must be escaped.
    #[regex(r#""([^"\\\x00-\x1F]|\\[^\x00-\x1F])*""#)]
    #[regex(r"'([^'\\\x00-\x1F]|\\[^\x00-\x1F])*'")]
    String,
    /// Ends at the end of the line or at a control character.
    #[regex(r#""([^"\\\x00-\x1F]|\\[^\x00-\x1F])*\\?"#)]
    #[regex(r"'([^'\\\x00-\x1F]|\\[^\x00-\x1F])*\\?")]
    UnclosedString,
    #[token("(")]
    OpenRound,
    #[token(")")]
    CloseRound,
    #[token("[")]
    OpenSquare,
    #[token("]")]
    CloseSquare,
    #[token("{")]
    OpenCurly,
    #[token("}")]
    CloseCurly,
    #[token(",")]
    Comma,
    #[token(".")]
    Dot,
    #[token(":")]
    Colon,
    #[token("?")]
    Question,
    #[token("??")]
    Coalesce,
    #[token("=")]
    Equal,
    #[token("!=")]
    #[token("<>")]
    NotEqual,
    #[token("<")]
    Less,
    #[token("<=")]
    LessOrEqual,
    #[token(">")]
    Greater,
    #[token(">=")]
    GreaterOrEqual,
    #[token("<<")]
    ShiftLeft,
    #[token(">>")]
    ShiftRight,
    #[token(">>>")]
    ShiftRightUnsigned,
    #[token("+")]
    Plus,
    #[token("-")]
    Minus,
    #[token("*")]
    Star,
    #[token("/")]
    Slash,
    #[token("%")]
    Percent,
    #[token("&")]
    Ampersand,
    #[token("^")]
    Caret,
    #[token("|")]
    Bar,
    #[token("||")]
    DoubleBar,
    #[token("~")]
    Tilde,
    /// A character that starts no token.
    Invalid,
    /// The end of the text.
    End,
}

/// All tokens of a text; the last is [`TokenKind::End`].
pub(crate) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut offsets = Offsets { text, bytes: 0, units: 0 };
    for (kind, range) in TokenKind::lexer(text).spanned() {
        let kind = kind.unwrap_or(TokenKind::Invalid);
        let span = Span { start: offsets.at(range.start), end: offsets.at(range.end) };
        let text = &text[range];
        let keyword = if kind == TokenKind::Word { Keyword::find(text) } else { None };
        tokens.push(Token { kind, keyword, text, span });
    }
    let end = offsets.at(text.len());
    tokens.push(Token { kind: TokenKind::End, keyword: None, text: "", span: Span { start: end, end } });
    tokens
}

/// Converts ascending byte offsets to offsets in UTF-16 units.
struct Offsets<'text> {
    text: &'text str,
    bytes: usize,
    units: u32,
}

impl Offsets<'_> {
    fn at(&mut self, bytes: usize) -> u32 {
        let units: usize = self.text[self.bytes..bytes].chars().map(char::len_utf16).sum();
        // The length of a text is limited far below 2^32.
        self.units += u32::try_from(units).unwrap_or(u32::MAX);
        self.bytes = bytes;
        self.units
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[(TokenKind, &str)]) {
        let tokens = tokens(text);
        let found: Vec<_> = tokens.iter().map(|token| (token.kind, token.text)).collect();
        let (end, found) = found.split_last().unwrap();
        assert_eq!(found, expected);
        assert_eq!(*end, (TokenKind::End, ""));
    }

    #[test]
    fn numbers() {
        use TokenKind::{Fraction, Integer};
        check("12 0x1F 0XaB", &[(Integer, "12"), (Integer, "0x1F"), (Integer, "0XaB")]);
        check(
            "1. .5 1.5e-3 2E7",
            &[(Fraction, "1."), (Fraction, ".5"), (Fraction, "1.5e-3"), (Fraction, "2E7")],
        );
        check("1e", &[(Integer, "1"), (TokenKind::Word, "e")]);
        check("0x", &[(Integer, "0"), (TokenKind::Word, "x")]);
    }

    #[test]
    fn strings_end_where_they_should() {
        check(r#"'a"b' "c'd""#, &[(TokenKind::String, r#"'a"b'"#), (TokenKind::String, r#""c'd""#)]);
        check(r"'a\'b\\'", &[(TokenKind::String, r"'a\'b\\'")]);
        check("'a", &[(TokenKind::UnclosedString, "'a")]);
        check(r"'a\", &[(TokenKind::UnclosedString, r"'a\")]);
        check("'a\nb", &[(TokenKind::UnclosedString, "'a"), (TokenKind::Word, "b")]);
    }

    #[test]
    fn signs_are_as_long_as_they_can_be() {
        use TokenKind::{Greater, ShiftRight, ShiftRightUnsigned};
        check(">>>>> >", &[(ShiftRightUnsigned, ">>>"), (ShiftRight, ">>"), (Greater, ">")]);
        check("???", &[(TokenKind::Coalesce, "??"), (TokenKind::Question, "?")]);
        check("1--1\r2", &[(TokenKind::Integer, "1"), (TokenKind::Integer, "2")]);
        check("#", &[(TokenKind::Invalid, "#")]);
    }

    #[test]
    fn spans_count_utf16_units() {
        let tokens = tokens("'é😀' x");
        assert_eq!((tokens[0].span.start, tokens[0].span.end), (0, 5));
        assert_eq!((tokens[1].span.start, tokens[1].span.end), (6, 7));
    }
}
