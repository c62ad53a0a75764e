//! `$filter`: lexer, parser, and lowering to a query.
