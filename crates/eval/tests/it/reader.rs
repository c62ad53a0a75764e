//! Turns the text of a case into an expression or a query: enough of SQL to write cases in, and no more.

use plan::query::{
    Aggregate, AggregateKind, BinaryOperator as Op, Expression, Function, Grouping, LikePattern, Order,
    PathStep, Projection, Query, Ranking, SlotId, SortKey, Source, SubqueryKind, UnaryOperator,
};
use value::Value;

use crate::tokens::{Token, tokens};

/// Reads an expression over the document `c`.
pub(crate) fn expression(text: &str) -> Expression {
    let mut reader = Reader::new(text, vec!["c".to_owned()]);
    let expression = reader.expression();
    assert!(reader.at_end(), "{:?} is left of {text:?}", &reader.tokens[reader.at..]);
    expression
}

/// Reads a query over the container.
pub(crate) fn query(text: &str) -> Query {
    let mut reader = Reader::new(text, Vec::new());
    let query = reader.query();
    assert!(reader.at_end(), "{:?} is left of {text:?}", &reader.tokens[reader.at..]);
    query
}

struct Reader {
    tokens: Vec<Token>,
    at: usize,
    /// Names of the slots in scope.
    names: Vec<String>,
    /// Aggregates of the query that is read.
    aggregates: Vec<Aggregate>,
}

const OPERATORS: [(&str, Op, u8); 18] = [
    ("*", Op::Multiply, 10),
    ("/", Op::Divide, 10),
    ("%", Op::Modulo, 10),
    ("+", Op::Add, 9),
    ("-", Op::Subtract, 9),
    ("<<", Op::ShiftLeft, 8),
    (">>", Op::ShiftRight, 8),
    (">>>", Op::ShiftRightUnsigned, 8),
    ("<", Op::Less, 7),
    ("<=", Op::LessOrEqual, 7),
    (">", Op::Greater, 7),
    (">=", Op::GreaterOrEqual, 7),
    ("=", Op::Equal, 6),
    ("!=", Op::NotEqual, 6),
    ("<>", Op::NotEqual, 6),
    ("&", Op::BitAnd, 5),
    ("^", Op::BitXor, 4),
    ("|", Op::BitOr, 3),
];

impl Reader {
    fn new(text: &str, names: Vec<String>) -> Reader {
        Reader { tokens: tokens(text), at: 0, names, aggregates: Vec::new() }
    }

    fn at_end(&self) -> bool {
        self.at == self.tokens.len()
    }

    fn next(&mut self) -> Token {
        self.at += 1;
        self.tokens.get(self.at - 1).cloned().expect("more text")
    }

    fn is_sign(&self, sign: &str) -> bool {
        matches!(self.tokens.get(self.at), Some(Token::Sign(found)) if *found == sign)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.tokens.get(self.at), Some(Token::Word(found)) if found.eq_ignore_ascii_case(word))
    }

    fn take_sign(&mut self, sign: &str) -> bool {
        let found = self.is_sign(sign);
        self.at += usize::from(found);
        found
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str) {
        assert!(self.take_sign(sign), "expected {sign} at {:?}", &self.tokens[self.at..]);
    }

    fn word(&mut self) -> String {
        match self.next() {
            Token::Word(word) => word,
            other => panic!("expected a word, found {other:?}"),
        }
    }

    fn expression(&mut self) -> Expression {
        let first = self.coalesce();
        if !self.take_sign("?") {
            return first;
        }
        let then = self.expression();
        self.expect(":");
        let otherwise = self.expression();
        Expression::Conditional(Box::new([first, then, otherwise]))
    }

    fn coalesce(&mut self) -> Expression {
        let first = self.or();
        if self.take_sign("??") {
            Expression::Coalesce(Box::new(first), Box::new(self.coalesce()))
        } else {
            first
        }
    }

    fn or(&mut self) -> Expression {
        let mut terms = vec![self.and()];
        while self.take_word("OR") {
            terms.push(self.and());
        }
        if terms.len() == 1 { terms.remove(0) } else { Expression::Or(terms) }
    }

    fn and(&mut self) -> Expression {
        let mut terms = vec![self.not()];
        while self.take_word("AND") {
            terms.push(self.not());
        }
        if terms.len() == 1 { terms.remove(0) } else { Expression::And(terms) }
    }

    fn not(&mut self) -> Expression {
        if self.take_word("NOT") {
            return Expression::Unary(UnaryOperator::Not, Box::new(self.not()));
        }
        self.predicate()
    }

    fn predicate(&mut self) -> Expression {
        let left = self.concatenation();
        let is_negated = self.take_word("NOT");
        let predicate = if self.take_word("IN") {
            self.expect("(");
            Expression::In(Box::new(left), self.list(")"))
        } else if self.take_word("LIKE") {
            let pattern = Box::new(self.concatenation());
            let escape = self.take_word("ESCAPE").then(|| match self.next() {
                Token::Text(text) => text.chars().next().expect("an escape character"),
                other => panic!("expected an escape character, found {other:?}"),
            });
            Expression::Like(Box::new(left), LikePattern { pattern, escape })
        } else if self.take_word("BETWEEN") {
            let low = self.concatenation();
            assert!(self.take_word("AND"), "expected AND");
            Expression::Between(Box::new([left, low, self.concatenation()]))
        } else {
            left
        };
        if is_negated { Expression::Unary(UnaryOperator::Not, Box::new(predicate)) } else { predicate }
    }

    fn concatenation(&mut self) -> Expression {
        let mut parts = vec![self.binary(0)];
        while self.take_sign("||") {
            parts.push(self.binary(0));
        }
        if parts.len() == 1 { parts.remove(0) } else { Expression::Concatenation(parts) }
    }

    fn binary(&mut self, loosest: u8) -> Expression {
        let mut left = self.unary();
        while let Some((sign, operator, strength)) =
            OPERATORS.iter().find(|(sign, _, strength)| *strength > loosest && self.is_sign(sign))
        {
            self.expect(sign);
            left = Expression::Binary(*operator, Box::new(left), Box::new(self.binary(*strength)));
        }
        left
    }

    fn unary(&mut self) -> Expression {
        for (sign, operator) in
            [("-", UnaryOperator::Minus), ("+", UnaryOperator::Plus), ("~", UnaryOperator::BitNot)]
        {
            if self.take_sign(sign) {
                if sign == "-"
                    && let Some(Token::Number(number)) = self.tokens.get(self.at)
                {
                    let constant = Expression::Constant(json(&format!("-{number}")));
                    self.at += 1;
                    return constant;
                }
                return Expression::Unary(operator, Box::new(self.unary()));
            }
        }
        self.postfix()
    }

    fn postfix(&mut self) -> Expression {
        let mut base = self.primary();
        loop {
            if self.take_sign(".") {
                base = Expression::Member(Box::new(base), self.word());
            } else if self.take_sign("[") {
                let index = self.expression();
                self.expect("]");
                base = match index {
                    Expression::Constant(Value::String(name)) => Expression::Member(Box::new(base), name),
                    index => Expression::Index(Box::new(base), Box::new(index)),
                };
            } else {
                return base;
            }
        }
    }

    fn list(&mut self, end: &str) -> Vec<Expression> {
        let mut list = Vec::new();
        while !self.take_sign(end) {
            list.push(self.expression());
            assert!(self.take_sign(",") || self.is_sign(end), "expected , or {end}");
        }
        list
    }

    fn primary(&mut self) -> Expression {
        match self.next() {
            Token::Number(number) => Expression::Constant(json(&number)),
            Token::Text(text) => Expression::Constant(Value::String(text)),
            Token::Sign("[") => Expression::Array(self.list("]")),
            Token::Sign("{") => self.object(),
            Token::Sign("(") if self.is_word("SELECT") => self.subquery(SubqueryKind::Scalar),
            Token::Sign("(") => {
                let inner = self.expression();
                self.expect(")");
                inner
            }
            Token::Word(word) if self.is_sign("(") => self.call(&word),
            Token::Word(word) => match word.as_str() {
                "true" => Expression::Constant(Value::Bool(true)),
                "false" => Expression::Constant(Value::Bool(false)),
                "null" => Expression::Constant(Value::Null),
                "undefined" => Expression::Undefined,
                "udf" => {
                    self.expect(".");
                    let name = self.word();
                    self.expect("(");
                    Expression::UserCall(name, self.list(")"))
                }
                _ => Expression::Slot(self.slot(&word).unwrap_or_else(|| panic!("unknown name {word}"))),
            },
            other @ Token::Sign(_) => panic!("unexpected {other:?}"),
        }
    }

    fn slot(&self, name: &str) -> Option<SlotId> {
        let place = self.names.iter().rposition(|known| known == name)?;
        Some(SlotId(u16::try_from(place).unwrap()))
    }

    fn object(&mut self) -> Expression {
        let mut members = Vec::new();
        while !self.take_sign("}") {
            let name = match self.next() {
                Token::Text(text) | Token::Word(text) => text,
                other => panic!("expected a name, found {other:?}"),
            };
            self.expect(":");
            members.push((name, self.expression()));
            assert!(self.take_sign(",") || self.is_sign("}"), "expected , or }}");
        }
        Expression::Object(members)
    }

    fn call(&mut self, name: &str) -> Expression {
        self.expect("(");
        let subquery = match name.to_ascii_uppercase().as_str() {
            "EXISTS" => Some(SubqueryKind::Exists),
            "ARRAY" => Some(SubqueryKind::Array),
            "ALL" => Some(SubqueryKind::All),
            "FIRST" => Some(SubqueryKind::First),
            "LAST" => Some(SubqueryKind::Last),
            _ => None,
        };
        if let Some(kind) = subquery {
            return self.subquery(kind);
        }
        let aggregate = match name.to_ascii_uppercase().as_str() {
            "COUNT" => Some(AggregateKind::Count),
            "COUNTIF" => Some(AggregateKind::CountIf),
            "SUM" => Some(AggregateKind::Sum),
            "AVG" => Some(AggregateKind::Avg),
            "MIN" => Some(AggregateKind::Min),
            "MAX" => Some(AggregateKind::Max),
            _ => None,
        };
        let mut arguments = self.list(")");
        if let Some(kind) = aggregate {
            self.aggregates.push(Aggregate { kind, argument: arguments.remove(0) });
            return Expression::Aggregate(self.aggregates.len() - 1);
        }
        let function = Function::find(name).unwrap_or_else(|| panic!("unknown function {name}"));
        let signature = function.signature();
        assert!(
            arguments.len() >= signature.arguments_min
                && signature.arguments_max.is_none_or(|most| arguments.len() <= most),
            "{name} with {} arguments",
            arguments.len()
        );
        Expression::Call(function, arguments)
    }

    fn subquery(&mut self, kind: SubqueryKind) -> Expression {
        let query = self.query();
        self.expect(")");
        Expression::Subquery(kind, Box::new(query))
    }

    fn query(&mut self) -> Query {
        let outer_names = self.names.len();
        let outer_aggregates = std::mem::take(&mut self.aggregates);
        assert!(self.take_word("SELECT"), "expected SELECT at {:?}", &self.tokens[self.at..]);
        let distinct = self.take_word("DISTINCT");
        let top = self.take_word("TOP").then(|| self.count());
        // What is selected speaks of sources that stand behind it.
        let select = self.at;
        self.skip_to_from();
        let sources = if self.take_word("FROM") { self.sources() } else { Vec::new() };
        let behind_sources = self.at;
        self.at = select;
        let projection = self.projection();
        self.at = self.at.max(behind_sources);
        let filter = self.take_word("WHERE").then(|| self.expression());
        let (grouping, projection) = self.grouping(projection);
        let order = self.order();
        let offset = if self.take_word("OFFSET") { self.count() } else { 0 };
        let limit = if self.take_word("LIMIT") { Some(self.count()) } else { top };
        self.names.truncate(outer_names);
        self.aggregates = outer_aggregates;
        Query { sources, filter, grouping, order, projection, distinct, offset, limit }
    }

    fn count(&mut self) -> u64 {
        match self.next() {
            Token::Number(number) => number.parse().unwrap(),
            other => panic!("expected a count, found {other:?}"),
        }
    }

    fn skip_to_from(&mut self) {
        let mut depth = 0i32;
        while !self.at_end() && !(depth == 0 && (self.is_word("FROM") || self.is_sign(")"))) {
            match self.next() {
                Token::Sign("(" | "[" | "{") => depth += 1,
                Token::Sign(")" | "]" | "}") => depth -= 1,
                _ => {}
            }
        }
    }

    fn sources(&mut self) -> Vec<Source> {
        let mut sources = vec![self.source()];
        while self.take_word("JOIN") {
            sources.push(self.source());
        }
        sources
    }

    fn source(&mut self) -> Source {
        let is_elements = matches!(self.tokens.get(self.at + 1), Some(Token::Word(word)) if word.eq_ignore_ascii_case("IN"));
        let mut name = None;
        if is_elements {
            name = Some(self.word());
            self.at += 1;
        }
        let (source, default_name) = if self.take_sign("(") {
            let query = Box::new(self.query());
            self.expect(")");
            (if is_elements { Source::RowElements(query) } else { Source::Rows(query) }, None)
        } else {
            self.path_source(is_elements)
        };
        if !is_elements {
            let is_named = self.take_word("AS")
                || matches!(self.tokens.get(self.at), Some(Token::Word(word))
                    if !["JOIN", "WHERE", "GROUP", "ORDER", "OFFSET", "LIMIT"].contains(&word.to_uppercase().as_str()));
            name = if is_named { Some(self.word()) } else { default_name };
        }
        self.names.push(name.expect("a name for the source"));
        source
    }

    fn path_source(&mut self, is_elements: bool) -> (Source, Option<String>) {
        let head = self.word();
        let mut steps = Vec::new();
        loop {
            if self.take_sign(".") {
                steps.push(PathStep::Name(self.word()));
            } else if self.take_sign("[") {
                steps.push(match self.next() {
                    Token::Text(name) => PathStep::Name(name),
                    Token::Number(number) => PathStep::Position(number.parse().unwrap()),
                    other => panic!("expected a step, found {other:?}"),
                });
                self.expect("]");
            } else {
                break;
            }
        }
        let name = steps.iter().rev().find_map(|step| match step {
            PathStep::Name(name) => Some(name.clone()),
            PathStep::Position(_) => None,
        });
        let name = Some(name.unwrap_or_else(|| head.clone()));
        let Some(slot) = self.slot(&head) else {
            let source = if is_elements {
                Source::ContainerElements { path: steps }
            } else {
                Source::Container { path: steps }
            };
            return (source, name);
        };
        let value = steps.into_iter().fold(Expression::Slot(slot), |base, step| match step {
            PathStep::Name(name) => Expression::Member(Box::new(base), name),
            PathStep::Position(position) => Expression::Index(
                Box::new(base),
                Box::new(Expression::Constant(Value::Int64(i64::try_from(position).unwrap()))),
            ),
        });
        (if is_elements { Source::Elements(value) } else { Source::Value(value) }, name)
    }

    fn projection(&mut self) -> Projection {
        if self.take_sign("*") {
            return Projection::Row(SlotId(u16::try_from(self.names.len() - 1).unwrap()));
        }
        if self.take_word("VALUE") {
            return Projection::Value(self.expression());
        }
        let mut members = Vec::new();
        let mut unnamed = 0;
        loop {
            let item = self.expression();
            let name = if self.take_word("AS") {
                self.word()
            } else {
                match &item {
                    Expression::Member(_, name) => name.clone(),
                    Expression::Slot(slot) => self.names[usize::from(slot.0)].clone(),
                    _ => {
                        unnamed += 1;
                        format!("${unnamed}")
                    }
                }
            };
            members.push((name, item));
            if !self.take_sign(",") {
                return Projection::Object(members);
            }
        }
    }

    fn grouping(&mut self, projection: Projection) -> (Option<Grouping>, Projection) {
        let mut keys = Vec::new();
        let is_grouped = self.take_word("GROUP");
        if is_grouped {
            assert!(self.take_word("BY"), "expected BY");
            keys.push(self.expression());
            while self.take_sign(",") {
                keys.push(self.expression());
            }
        }
        let aggregates = std::mem::take(&mut self.aggregates);
        if !is_grouped && aggregates.is_empty() {
            return (None, projection);
        }
        let projection = match projection {
            Projection::Value(value) => Projection::Value(with_keys(value, &keys)),
            Projection::Object(members) => Projection::Object(
                members.into_iter().map(|(name, member)| (name, with_keys(member, &keys))).collect(),
            ),
            row @ Projection::Row(_) => row,
        };
        (Some(Grouping { keys, aggregates }), projection)
    }

    fn order(&mut self) -> Order {
        if !self.take_word("ORDER") {
            return Order::None;
        }
        assert!(self.take_word("BY"), "expected BY");
        if self.take_word("RANK") {
            return Order::Rank(Ranking { scores: vec![self.expression()], weights: Vec::new() });
        }
        let mut keys = Vec::new();
        loop {
            let expression = self.expression();
            let descending = self.take_word("DESC");
            self.take_word("ASC");
            keys.push(SortKey { expression, path: None, descending });
            if !self.take_sign(",") {
                return Order::Keys(keys);
            }
        }
    }
}

/// The expression with the keys of the group in place of what they were computed from.
fn with_keys(expression: Expression, keys: &[Expression]) -> Expression {
    if let Some(place) = keys.iter().position(|key| *key == expression) {
        return Expression::GroupKey(place);
    }
    match expression {
        Expression::Object(members) => Expression::Object(
            members.into_iter().map(|(name, member)| (name, with_keys(member, keys))).collect(),
        ),
        other => other,
    }
}

fn json(text: &str) -> Value {
    Value::from_json(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}
