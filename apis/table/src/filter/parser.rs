//! The parser: `or` binds weaker than `and`, `and` weaker than `not`, `not` weaker than comparisons.

use super::lexer::{Lexer, Token};
use super::{Filter, FilterFault};
use crate::edm::EdmType;
use crate::edm::texts::parse_double;
use plan::query::Comparison;
use value::Value;

/// Longest filter in bytes.
pub const FILTER_BYTES_MAX: usize = 128 * 1024;
/// Most levels of brackets and negations.
pub const FILTER_DEPTH_MAX: usize = 64;

/// Parses a filter; `None` if the text is empty, which means that there is none.
pub fn parse(text: &str) -> Result<Option<Filter>, FilterFault> {
    if text.len() > FILTER_BYTES_MAX {
        return Err(FilterFault::TooLong { bytes: text.len(), bytes_max: FILTER_BYTES_MAX });
    }
    if text.trim().is_empty() {
        return Ok(None);
    }
    let mut lexer = Lexer::new(text);
    let (token, offset) = lexer.next()?;
    let mut parser = Parser { lexer, token, offset };
    let filter = parser.alternatives(FILTER_DEPTH_MAX)?;
    match parser.token {
        Token::End => Ok(Some(filter)),
        Token::Open | Token::Close | Token::Text(_) | Token::Typed(_) | Token::Word(_) => {
            Err(parser.unexpected("\"and\", \"or\" or the end"))
        }
    }
}

/// One side of a comparison.
enum Operand<'a> {
    Literal(Value),
    Word(&'a str),
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    /// The next token and its offset.
    token: Token<'a>,
    offset: usize,
}

impl<'a> Parser<'a> {
    fn unexpected(&self, expected: &'static str) -> FilterFault {
        FilterFault::Unexpected { offset: self.offset, expected }
    }

    fn advance(&mut self) -> Result<Token<'a>, FilterFault> {
        let (next, offset) = self.lexer.next()?;
        self.offset = offset;
        Ok(std::mem::replace(&mut self.token, next))
    }

    /// Takes the word if it is next, in any case.
    fn take_word(&mut self, word: &str) -> Result<bool, FilterFault> {
        let is_next = matches!(self.token, Token::Word(found) if found.eq_ignore_ascii_case(word));
        if is_next {
            self.advance()?;
        }
        Ok(is_next)
    }

    fn alternatives(&mut self, levels_left: usize) -> Result<Filter, FilterFault> {
        let first = self.conjunction(levels_left)?;
        let mut members = vec![first];
        while self.take_word("or")? {
            members.push(self.conjunction(levels_left)?);
        }
        Ok(one_or(members, Filter::Or))
    }

    fn conjunction(&mut self, levels_left: usize) -> Result<Filter, FilterFault> {
        let first = self.condition(levels_left)?;
        let mut members = vec![first];
        while self.take_word("and")? {
            members.push(self.condition(levels_left)?);
        }
        Ok(one_or(members, Filter::And))
    }

    fn condition(&mut self, levels_left: usize) -> Result<Filter, FilterFault> {
        let too_deep = FilterFault::TooDeep { offset: self.offset, depth_max: FILTER_DEPTH_MAX };
        match &self.token {
            Token::Word(word) if word.eq_ignore_ascii_case("not") => {
                let levels_left = levels_left.checked_sub(1).ok_or(too_deep)?;
                self.advance()?;
                Ok(Filter::Not(Box::new(self.condition(levels_left)?)))
            }
            Token::Open => {
                let levels_left = levels_left.checked_sub(1).ok_or(too_deep)?;
                self.advance()?;
                let inner = self.alternatives(levels_left)?;
                if self.token != Token::Close {
                    return Err(self.unexpected("\"and\", \"or\" or \")\""));
                }
                self.advance()?;
                Ok(inner)
            }
            Token::Text(_) | Token::Typed(_) | Token::Word(_) | Token::Close | Token::End => {
                self.comparison()
            }
        }
    }

    fn comparison(&mut self) -> Result<Filter, FilterFault> {
        let start = self.offset;
        let left = self.operand()?;
        if let (Operand::Word(name), Token::Open) = (&left, &self.token) {
            return Err(FilterFault::Function { name: (*name).to_owned(), offset: start });
        }
        let Some(comparison) = self.operator()? else {
            return self.alone(left, start);
        };
        let right_start = self.offset;
        let right = self.operand()?;
        if let (Operand::Word(name), Token::Open) = (&right, &self.token) {
            return Err(FilterFault::Function { name: (*name).to_owned(), offset: right_start });
        }
        let (property, comparison, literal) = match (left, right) {
            (Operand::Word(property), Operand::Literal(literal)) => (property, comparison, literal),
            (Operand::Literal(literal), Operand::Word(property)) => (property, mirrored(comparison), literal),
            // Words like NaN are literals where a property is on the other side.
            (Operand::Word(property), Operand::Word(word)) => match parse_double(word) {
                Some(double) => (property, comparison, Value::Double(double)),
                None => return Err(FilterFault::NotPropertyAndLiteral { offset: start }),
            },
            (Operand::Literal(_), Operand::Literal(_)) => {
                return Err(FilterFault::NotPropertyAndLiteral { offset: start });
            }
        };
        Ok(Filter::Compare { property: property.to_owned(), comparison, literal })
    }

    /// What stands where a comparison could, without an operator after it.
    fn alone(&self, operand: Operand<'_>, start: usize) -> Result<Filter, FilterFault> {
        let is_end = match &self.token {
            Token::End | Token::Close => true,
            Token::Word(word) => ["and", "or"].iter().any(|operator| word.eq_ignore_ascii_case(operator)),
            Token::Open | Token::Text(_) | Token::Typed(_) => false,
        };
        match operand {
            _ if !is_end => Err(self.unexpected("a comparison operator")),
            Operand::Literal(Value::Bool(value)) => Ok(Filter::Constant(value)),
            Operand::Literal(_) => Err(FilterFault::NotPropertyAndLiteral { offset: start }),
            Operand::Word(name) => Ok(Filter::Property(name.to_owned())),
        }
    }

    fn operator(&mut self) -> Result<Option<Comparison>, FilterFault> {
        let operators = [
            ("eq", Comparison::Equal),
            ("ne", Comparison::NotEqual),
            ("gt", Comparison::Greater),
            ("ge", Comparison::GreaterOrEqual),
            ("lt", Comparison::Less),
            ("le", Comparison::LessOrEqual),
        ];
        for (word, comparison) in operators {
            if self.take_word(word)? {
                return Ok(Some(comparison));
            }
        }
        Ok(None)
    }

    fn operand(&mut self) -> Result<Operand<'a>, FilterFault> {
        let offset = self.offset;
        match self.token {
            Token::Open | Token::Close | Token::End => return Err(self.unexpected("a property or a literal")),
            Token::Text(_) | Token::Typed(_) | Token::Word(_) => {}
        }
        match self.advance()? {
            Token::Text(text) => Ok(Operand::Literal(Value::String(text.into_owned()))),
            Token::Typed(value) => Ok(Operand::Literal(value)),
            Token::Word(word) => self.word_operand(word, offset),
            Token::Open | Token::Close | Token::End => Err(self.unexpected("a property or a literal")),
        }
    }

    fn word_operand(&self, word: &'a str, offset: usize) -> Result<Operand<'a>, FilterFault> {
        if let Some(value) = [("true", true), ("false", false)]
            .iter()
            .find_map(|(name, value)| word.eq_ignore_ascii_case(name).then_some(*value))
        {
            return Ok(Operand::Literal(Value::Bool(value)));
        }
        match word.as_bytes() {
            [b'0'..=b'9' | b'+' | b'-' | b'.', ..] => number(word, offset).map(Operand::Literal),
            _ if word.chars().all(is_name_character) => Ok(Operand::Word(word)),
            _ => Err(FilterFault::Unexpected { offset, expected: "a property or a literal" }),
        }
    }
}

/// Whether names of properties that clients store may contain this character.
fn is_name_character(character: char) -> bool {
    character.is_alphanumeric() || character == '_' || character == '-' || !character.is_ascii()
}

/// Parses a number: `5`, `5L`, `5.0`, `1e3`, with a suffix for its type.
fn number(word: &str, offset: usize) -> Result<Value, FilterFault> {
    let malformed = |edm_type| FilterFault::MalformedLiteral { offset, edm_type };
    if let Some(digits) = word.strip_suffix(['L', 'l']) {
        return digits.parse().map(Value::Int64).map_err(|_| malformed(EdmType::Int64));
    }
    if word.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-')) {
        let integer: i64 = word.parse().map_err(|_| malformed(EdmType::Int64))?;
        return Ok(i32::try_from(integer).map_or(Value::Int64(integer), Value::Int32));
    }
    let without_suffix = || parse_double(word.strip_suffix(['d', 'D', 'f', 'F', 'm', 'M'])?);
    parse_double(word).or_else(without_suffix).map(Value::Double).ok_or(malformed(EdmType::Double))
}

/// The comparison with its sides exchanged.
fn mirrored(comparison: Comparison) -> Comparison {
    match comparison {
        Comparison::Equal | Comparison::NotEqual => comparison,
        Comparison::Less => Comparison::Greater,
        Comparison::LessOrEqual => Comparison::GreaterOrEqual,
        Comparison::Greater => Comparison::Less,
        Comparison::GreaterOrEqual => Comparison::LessOrEqual,
    }
}

/// The only member, or all of them under one node.
fn one_or(mut members: Vec<Filter>, node: fn(Vec<Filter>) -> Filter) -> Filter {
    match (members.pop(), members.is_empty()) {
        (Some(only), true) => only,
        (last, _) => {
            members.extend(last);
            node(members)
        }
    }
}
