//! Syntax tree to text that parses to the same tree.
//!
//! Everything with operators is put in brackets, strings in double quotes, and each clause of the outermost query on
//! its own line. Letter case, spacing and comments of the original are lost.

use crate::ast::{
    Collection, Count, CountValue, Expression, ExpressionKind, NumberLiteral, OrderBy, Query, SelectList,
    Source, Step,
};
use crate::keyword::Keyword;
use crate::literal::{write_number, write_string};
use plan::query::{SubqueryKind, UnaryOperator};

/// Text of a query.
pub(crate) fn print(query: &Query) -> String {
    let mut printer = Printer { out: String::new() };
    printer.query(query, "\n");
    printer.out
}

/// Text of an expression.
pub(crate) fn print_expression(expression: &Expression) -> String {
    let mut printer = Printer { out: String::new() };
    printer.expression(expression);
    printer.out
}

struct Printer {
    out: String,
}

impl Printer {
    fn put(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn list<T>(&mut self, separator: &str, items: &[T], mut each: impl FnMut(&mut Self, &T)) {
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.put(separator);
            }
            each(self, item);
        }
    }

    fn expressions(&mut self, separator: &str, items: &[Expression]) {
        self.list(separator, items, |printer, item| printer.expression(item));
    }

    fn query(&mut self, query: &Query, separator: &str) {
        self.select(query);
        if let Some(from) = &query.from {
            self.put(separator);
            self.put("FROM ");
            self.list(" JOIN ", &from.sources, |printer, source| printer.source(source));
        }
        if let Some(filter) = &query.filter {
            self.put(separator);
            self.put("WHERE ");
            self.expression(filter);
        }
        if !query.group_by.is_empty() {
            self.put(separator);
            self.put("GROUP BY ");
            self.expressions(", ", &query.group_by);
        }
        if let Some(order_by) = &query.order_by {
            self.put(separator);
            self.order_by(order_by);
        }
        if let Some(offset_limit) = &query.offset_limit {
            self.put(separator);
            self.put("OFFSET ");
            self.count(&offset_limit.offset);
            self.put(" LIMIT ");
            self.count(&offset_limit.limit);
        }
    }

    fn select(&mut self, query: &Query) {
        self.put("SELECT ");
        if query.select.distinct {
            self.put("DISTINCT ");
        }
        if let Some(top) = &query.select.top {
            self.put("TOP ");
            self.count(top);
            self.put(" ");
        }
        match &query.select.list {
            SelectList::Star(_) => self.put("*"),
            SelectList::Value(value) => {
                self.put("VALUE ");
                self.expression(value);
            }
            SelectList::Items(items) => self.list(", ", items, |printer, item| {
                printer.expression(&item.expression);
                if let Some(alias) = &item.alias {
                    printer.put(" AS ");
                    printer.alias(alias);
                }
            }),
        }
    }

    /// An alias that is not a name was written in quotes.
    fn alias(&mut self, alias: &str) {
        if is_plain(alias) { self.put(alias) } else { write_string(alias, &mut self.out) }
    }

    fn count(&mut self, count: &Count) {
        match &count.value {
            // A count is printed as an integer, even if it is too large to be exact.
            CountValue::Number(NumberLiteral::Double(double)) => self.put(&format!("{double:.0}")),
            CountValue::Number(number @ (NumberLiteral::Integer(_) | NumberLiteral::Unsigned(_))) => {
                write_number(*number, &mut self.out)
            }
            CountValue::Parameter(name) => self.put(name),
        }
    }

    fn source(&mut self, source: &Source) {
        match &source.alias {
            Some(alias) if source.elements => {
                self.put(alias);
                self.put(" IN ");
                self.collection(&source.collection);
            }
            Some(alias) => {
                self.collection(&source.collection);
                self.put(" AS ");
                self.put(alias);
            }
            None => self.collection(&source.collection),
        }
    }

    fn collection(&mut self, collection: &Collection) {
        match collection {
            Collection::Path { root, steps, .. } => {
                self.put(root);
                for step in steps {
                    match step {
                        Step::Name(name) => self.member(name),
                        Step::Position(position) => self.put(&format!("[{position}]")),
                    }
                }
            }
            Collection::Subquery(query) => self.in_brackets(|printer| printer.query(query, " ")),
        }
    }

    fn order_by(&mut self, order_by: &OrderBy) {
        self.put("ORDER BY ");
        match order_by {
            OrderBy::Rank(scores) => {
                self.put("RANK ");
                self.expressions(", ", scores);
            }
            OrderBy::Keys(keys) => self.list(", ", keys, |printer, key| {
                printer.expression(&key.expression);
                if key.descending {
                    printer.put(" DESC");
                }
            }),
        }
    }

    fn in_brackets(&mut self, inside: impl FnOnce(&mut Self)) {
        self.put("(");
        inside(self);
        self.put(")");
    }

    /// `.name`, or in square brackets if the name is not a plain word.
    fn member(&mut self, name: &str) {
        if is_plain(name) {
            self.put(".");
            self.put(name);
        } else {
            self.put("[");
            write_string(name, &mut self.out);
            self.put("]");
        }
    }

    /// Writes the base of a member access or the operand of a sign, in brackets where necessary: a number would absorb
    /// the dot, and two minus signs are a comment.
    fn base(&mut self, base: &Expression) {
        let is_signed = matches!(&base.kind, ExpressionKind::Unary(_, operand) if is_number(operand));
        if is_number(base) || is_signed {
            self.in_brackets(|printer| printer.expression(base));
        } else {
            self.expression(base);
        }
    }

    fn expression(&mut self, expression: &Expression) {
        if has_operators(&expression.kind) {
            self.in_brackets(|printer| printer.bare(&expression.kind));
        } else {
            self.bare(&expression.kind);
        }
    }

    /// Writes an expression without the brackets that it may need.
    fn bare(&mut self, kind: &ExpressionKind) {
        match kind {
            ExpressionKind::Undefined => self.put("undefined"),
            ExpressionKind::Null => self.put("null"),
            ExpressionKind::Boolean(boolean) => self.put(if *boolean { "true" } else { "false" }),
            ExpressionKind::Number(number) => write_number(*number, &mut self.out),
            ExpressionKind::String(string) => write_string(string, &mut self.out),
            ExpressionKind::Parameter(name) | ExpressionKind::Name(name) => self.put(name),
            ExpressionKind::Member(base, name) => {
                self.base(base);
                self.member(name);
            }
            ExpressionKind::Index(base, index) => {
                self.base(base);
                self.put("[");
                self.expression(index);
                self.put("]");
            }
            ExpressionKind::Array(elements) => {
                self.put("[");
                self.expressions(", ", elements);
                self.put("]");
            }
            ExpressionKind::Object(members) => self.object(members),
            ExpressionKind::Call(name, arguments) => self.call("", name, arguments),
            ExpressionKind::UserCall(name, arguments) => self.call("udf.", name, arguments),
            ExpressionKind::Subquery(kind, query) => {
                self.put(subquery_word(*kind));
                self.in_brackets(|printer| printer.query(query, " "));
            }
            ExpressionKind::Placeholder(name) => self.put(&format!("{{{name}}}")),
            ExpressionKind::Unary(operator, operand) => self.unary(*operator, operand),
            ExpressionKind::Binary(operator, left, right) => self.infix(left, operator.sign(), right),
            ExpressionKind::And(members) => self.expressions(" AND ", members),
            ExpressionKind::Or(members) => self.expressions(" OR ", members),
            ExpressionKind::Concatenation(members) => self.expressions(" || ", members),
            ExpressionKind::Coalesce(first, second) => self.infix(first, "??", second),
            ExpressionKind::Conditional(parts) => {
                let [condition, then, otherwise] = parts.as_ref();
                self.infix(condition, "?", then);
                self.put(" : ");
                self.expression(otherwise);
            }
            ExpressionKind::In { operand, list, negated } => {
                self.predicate(operand, *negated, "IN ");
                self.in_brackets(|printer| printer.expressions(", ", list));
            }
            ExpressionKind::Between { operands, negated } => {
                let [operand, low, high] = operands.as_ref();
                self.predicate(operand, *negated, "BETWEEN ");
                self.infix(low, "AND", high);
            }
            ExpressionKind::Like { operand, pattern, escape, negated } => {
                self.predicate(operand, *negated, "LIKE ");
                self.expression(pattern);
                if let Some(escape) = escape {
                    self.put(" ESCAPE ");
                    write_string(escape.encode_utf8(&mut [0; 4]), &mut self.out);
                }
            }
        }
    }

    fn unary(&mut self, operator: UnaryOperator, operand: &Expression) {
        self.put(operator.sign());
        if operator == UnaryOperator::Not {
            self.put(" ");
        }
        if is_number(operand) { self.expression(operand) } else { self.base(operand) }
    }

    fn infix(&mut self, left: &Expression, sign: &str, right: &Expression) {
        self.expression(left);
        self.put(" ");
        self.put(sign);
        self.put(" ");
        self.expression(right);
    }

    fn predicate(&mut self, operand: &Expression, negated: bool, word: &str) {
        self.expression(operand);
        self.put(if negated { " NOT " } else { " " });
        self.put(word);
    }

    fn object(&mut self, members: &[(String, Expression)]) {
        self.put("{");
        self.list(", ", members, |printer, (name, member)| {
            write_string(name, &mut printer.out);
            printer.put(": ");
            printer.expression(member);
        });
        self.put("}");
    }

    fn call(&mut self, prefix: &str, name: &str, arguments: &[Expression]) {
        self.put(prefix);
        self.put(name);
        self.in_brackets(|printer| {
            printer.list(", ", arguments, |printer, argument| {
                // Between commas a placeholder needs no brackets, whatever replaces it.
                if matches!(argument.kind, ExpressionKind::Placeholder(_)) {
                    printer.bare(&argument.kind);
                } else {
                    printer.expression(argument);
                }
            });
        });
    }
}

/// Whether a name can follow a dot, also for parsers that reserve keywords there.
fn is_plain(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        && Keyword::find(name).is_none()
}

/// Whether an expression needs brackets inside another. A signed number does not.
fn has_operators(kind: &ExpressionKind) -> bool {
    match kind {
        ExpressionKind::Unary(UnaryOperator::Minus, operand) => !is_number(operand),
        ExpressionKind::Unary(UnaryOperator::Not | UnaryOperator::Plus | UnaryOperator::BitNot, _)
        | ExpressionKind::Binary(..)
        | ExpressionKind::And(_)
        | ExpressionKind::Or(_)
        | ExpressionKind::Concatenation(_)
        | ExpressionKind::In { .. }
        | ExpressionKind::Between { .. }
        | ExpressionKind::Like { .. }
        | ExpressionKind::Coalesce(..)
        | ExpressionKind::Conditional(_)
        | ExpressionKind::Placeholder(_) => true,
        ExpressionKind::Undefined
        | ExpressionKind::Null
        | ExpressionKind::Boolean(_)
        | ExpressionKind::Number(_)
        | ExpressionKind::String(_)
        | ExpressionKind::Parameter(_)
        | ExpressionKind::Name(_)
        | ExpressionKind::Member(..)
        | ExpressionKind::Index(..)
        | ExpressionKind::Array(_)
        | ExpressionKind::Object(_)
        | ExpressionKind::Call(..)
        | ExpressionKind::UserCall(..)
        | ExpressionKind::Subquery(..) => false,
    }
}

fn is_number(expression: &Expression) -> bool {
    matches!(expression.kind, ExpressionKind::Number(_))
}

fn subquery_word(kind: SubqueryKind) -> &'static str {
    match kind {
        SubqueryKind::Scalar => "",
        SubqueryKind::Exists => "EXISTS",
        SubqueryKind::Array => "ARRAY",
        SubqueryKind::First => "FIRST",
        SubqueryKind::Last => "LAST",
        SubqueryKind::All => "ALL",
    }
}
