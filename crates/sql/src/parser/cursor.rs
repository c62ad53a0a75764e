//! Peeking at tokens, consuming them, and the fault for an unexpected one.

use super::{Parsed, Parser, fault};
use crate::fault::{FaultKind, Span, SqlFault};
use crate::keyword::Keyword;
use crate::lexer::{Token, TokenKind};

impl<'text> Parser<'text> {
    pub(super) fn peek(&self) -> Token<'text> {
        self.tokens[self.next]
    }

    /// The token after the next one.
    pub(super) fn peek_second(&self) -> Token<'text> {
        self.tokens[(self.next + 1).min(self.tokens.len() - 1)]
    }

    /// Span of the last consumed token.
    pub(super) fn last_span(&self) -> Span {
        self.tokens[self.next.saturating_sub(1)].span
    }

    /// Consumes the next token; stays at the end token.
    pub(super) fn take(&mut self) -> Token<'text> {
        let token = self.peek();
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        token
    }

    /// Consumes the next token if it is of this kind.
    pub(super) fn eat(&mut self, kind: TokenKind) -> bool {
        let found = self.peek().kind == kind;
        if found {
            self.take();
        }
        found
    }

    /// Consumes the next token, which must be of this kind.
    pub(super) fn expect(&mut self, kind: TokenKind) -> Parsed<Token<'text>> {
        if self.peek().kind == kind { Ok(self.take()) } else { Err(self.unexpected()) }
    }

    /// Whether the next token is this keyword.
    pub(super) fn sees(&self, keyword: Keyword) -> bool {
        self.keyword() == Some(keyword)
    }

    /// The keyword of the next token.
    pub(super) fn keyword(&self) -> Option<Keyword> {
        self.peek().keyword
    }

    /// Consumes the next token if it is this keyword.
    pub(super) fn eat_keyword(&mut self, keyword: Keyword) -> bool {
        let found = self.sees(keyword);
        if found {
            self.take();
        }
        found
    }

    /// Consumes the next token, which must be this keyword.
    pub(super) fn expect_keyword(&mut self, keyword: Keyword) -> Parsed<()> {
        if self.eat_keyword(keyword) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// Whether the next token is this unreserved word.
    pub(super) fn sees_word(&self, word: &str) -> bool {
        let token = self.peek();
        token.kind == TokenKind::Word && token.text.eq_ignore_ascii_case(word)
    }

    /// Whether the next token can be the name of a source or an alias.
    pub(super) fn sees_name(&self) -> bool {
        self.peek().kind == TokenKind::Word && self.keyword().is_none()
    }

    /// Consumes the name of a source or an alias.
    pub(super) fn expect_name(&mut self) -> Parsed<Token<'text>> {
        if self.sees_name() { Ok(self.take()) } else { Err(self.unexpected()) }
    }

    /// The text must end here.
    pub(super) fn expect_end(&mut self) -> Parsed<()> {
        if self.peek().kind == TokenKind::End { Ok(()) } else { Err(self.unexpected()) }
    }

    /// The fault for the next token, which is not allowed here.
    pub(super) fn unexpected(&self) -> Box<SqlFault> {
        let Token { kind, text, span, .. } = self.peek();
        let kind = match kind {
            TokenKind::End => FaultKind::UnexpectedEnd,
            TokenKind::UnclosedString => FaultKind::InvalidString { token: shortened(text) },
            _ => FaultKind::Syntax { near: shortened(text) },
        };
        fault(kind, span)
    }
}

/// Maximum length of a token in a message.
const TOKEN_CHARS_MAX: usize = 100;

/// The beginning of a token, which may be half a megabyte long.
pub(super) fn shortened(text: &str) -> String {
    text.chars().take(TOKEN_CHARS_MAX).collect()
}
