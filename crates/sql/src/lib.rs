//! The query language of the NoSQL API: text to syntax tree to [`plan::query::Query`], and the tree back to text.
//!
//! Pure. Trees are public, so that an API can rewrite them. Knows nothing of documents, indexes, partitions or the protocol a query came by. No input makes it panic or
//! overflow the stack: every nesting is bounded before anything recurses.
//!
//! | file | holds |
//! |---|---|
//! | `lexer`, `keyword`, `literal` | words, signs, strings and numbers |
//! | `ast` | the syntax tree, and constructors to build one by hand |
//! | `parser` | text to tree, one file per clause |
//! | `lower` | tree to plan: names, parameters, functions, the rules of grouping and ordering |
//! | `print` | tree to text that reads back to the same tree |
//! | `fault` | what can be wrong, with its place |
//! | `limits` | the bounds |

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

pub use fault::{ArgumentRange, CountClause, FaultKind, Limit, Place, RankBar, SqlFault, SqlFaults};
pub use lower::{aggregate_kind, holds_aggregate, name_of_source, output_names};
pub use parameters::Parameters;

/// Reads the text of a query.
pub fn parse(text: &str) -> Result<ast::Query, SqlFaults> {
    parser::parse(text).map_err(|fault| SqlFaults::from(*fault))
}

/// What a query wants: its names resolved, its parameters bound, its rules checked.
pub fn lower(query: &ast::Query, parameters: &Parameters) -> Result<plan::query::Query, SqlFaults> {
    lower::lower(query, parameters)
}

/// Text that reads back to the same query.
pub fn print(query: &ast::Query) -> String {
    print::print(query)
}

/// Text of an expression alone.
pub fn print_expression(expression: &ast::Expression) -> String {
    print::print_expression(expression)
}
