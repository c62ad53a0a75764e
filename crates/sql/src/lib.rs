//! The query language of the NoSQL API: text to syntax tree to [`plan::query::Query`], and the tree back to text.
//!
//! Pure. Trees are public, so that an API can rewrite them. Does not know documents, indexes, partitions or protocols.
//! No input makes it panic or overflow the stack: every nesting is limited before a recursion.
//!
//! | file | holds |
//! |---|---|
//! | `lexer`, `keyword`, `literal` | tokens, strings and numbers |
//! | `ast` | the syntax tree, and constructors to build one by hand |
//! | `parser` | text to tree, one file per clause |
//! | `lower` | tree to plan: names, parameters, functions, the rules of grouping and ordering |
//! | `print` | tree to text that parses to the same tree |
//! | `fault` | faults with their span |
//! | `limits` | the limits |

pub mod ast;
mod fault;
mod keyword;
mod lexer;
pub mod limits;
mod literal;
mod lower;
mod parameters;
mod parser;
mod print;

pub use fault::{ArgumentRange, CountClause, FaultKind, Limit, RankBar, Span, SqlFault, SqlFaults};
pub use lower::{aggregate_kind, holds_aggregate, name_of_source, output_names};
pub use parameters::Parameters;

/// Parses the text of a query.
pub fn parse(text: &str) -> Result<ast::Query, SqlFaults> {
    parser::parse(text).map_err(|fault| SqlFaults::from(*fault))
}

/// Lowers a query to its plan: resolves names, binds parameters, checks the rules.
pub fn lower(query: &ast::Query, parameters: &Parameters) -> Result<plan::query::Query, SqlFaults> {
    lower::lower(query, parameters)
}

/// Prints a query; the text parses to the same query.
pub fn print(query: &ast::Query) -> String {
    print::print(query)
}

/// Prints an expression.
pub fn print_expression(expression: &ast::Expression) -> String {
    print::print_expression(expression)
}
