//! Codes and texts of faults in queries, as in the service.
//!
//! Code and text observed at the service: `SC1001` near a token, `SC2001`, `SC2005` (the suggestion is ours), `SC2040`,
//! `SC2050`, `SC2102` and `2206`. Of `SC2041`, `SC2060` to `SC2062`, `SC2101`, `SC2202` to `SC2204`, `SC2213`,
//! `SC2221`, `SC2223` to `SC2225`, `SC2228`, `SC2229`, `SC2240`, `SC2990` and `SC3005` the code and its meaning are
//! known; the texts are unverified, and so is the range of `SC2213`. All other codes are unverified too.

use sql::limits::{COUNT_MAX, TEXT_BYTES_MAX};
use sql::{CountClause, FaultKind, Limit, RankBar};

/// The service's code of a fault, or ours if none is known.
pub(crate) fn code(kind: &FaultKind) -> &'static str {
    match kind {
        FaultKind::Syntax { .. } | FaultKind::UnexpectedEnd => "SC1001",
        FaultKind::InvalidString { .. } => "SC1010",
        FaultKind::InvalidNumber { .. } => "SC1012",
        FaultKind::UnknownIdentifier { .. } => "SC2001",
        FaultKind::MissingParameter { .. } => "SC2003",
        FaultKind::UnknownFunction { .. } => "SC2005",
        FaultKind::DuplicateAlias { .. } => "SC2011",
        FaultKind::StarWithoutFrom => "SC2039",
        FaultKind::StarWithManyInputs => "SC2040",
        FaultKind::StarWithGroupBy => "SC2041",
        FaultKind::ArgumentCount { .. } => "SC2050",
        FaultKind::BadCount { clause: CountClause::Top, .. } => "SC2060",
        FaultKind::BadCount { clause: CountClause::Limit, .. } => "SC2061",
        FaultKind::BadCount { clause: CountClause::Offset, .. } => "SC2062",
        FaultKind::NestedAggregate | FaultKind::MisplacedAggregate { .. } => "SC2101",
        FaultKind::Ungrouped { .. } => "SC2102",
        FaultKind::SubqueryInGroupBy => "SC2103",
        FaultKind::OrderByWithGroupBy => "SC2104",
        FaultKind::OrderByInSubquery => "SC2202",
        FaultKind::TopInSubquery => "SC2203",
        FaultKind::OffsetLimitInSubquery => "SC2204",
        FaultKind::OrderByCorrelated => "SC2205",
        FaultKind::OrderByExpression => "2206",
        FaultKind::SearchListSize => "SC2213",
        FaultKind::RankExpression => "SC2221",
        FaultKind::RankDirection => "SC2222",
        FaultKind::RankWith { with } => match with {
            RankBar::ElementSource => "SC2223",
            RankBar::Join => "SC2224",
            RankBar::SubquerySource => "SC2225",
            RankBar::Grouping => "SC2226",
            RankBar::Distinct => "SC2227",
            RankBar::Subquery => "SC2228",
        },
        FaultKind::RankWeights { .. } => "SC2229",
        FaultKind::MisplacedScore { .. } => "SC2240",
        FaultKind::MemberIndexer => "SC2990",
        FaultKind::TextTooLong { .. } => "SC3001",
        FaultKind::Limit { limit } => match limit {
            Limit::Joins => "SC3002",
            Limit::Chain => "SC3003",
            Limit::InValues => "SC3004",
            Limit::UserCalls => "SC3005",
            Limit::Depth => "SC3006",
            Limit::Subqueries => "SC3007",
            Limit::GroupKeys => "SC3008",
            Limit::Aggregates => "SC3009",
        },
    }
}

/// The service's text of a fault, or ours if none is known.
pub(crate) fn sentence(kind: &FaultKind) -> String {
    match kind {
        FaultKind::Syntax { near } => format!("Syntax error, incorrect syntax near '{near}'."),
        FaultKind::UnexpectedEnd => "Syntax error, unexpected end-of-file.".to_owned(),
        FaultKind::InvalidString { token } => {
            format!("Syntax error, invalid string literal token '{token}'.")
        }
        FaultKind::InvalidNumber { token } => format!("Syntax error, invalid numeric value token '{token}'."),
        FaultKind::UnknownIdentifier { name } => format!("Identifier '{name}' could not be resolved."),
        FaultKind::MissingParameter { name } => {
            format!("The query parameter '{name}' is used but no value was supplied for it.")
        }
        FaultKind::UnknownFunction { name, suggestion } => {
            let suggestion = suggestion.map(|name| format!(" Did you mean '{name}'?")).unwrap_or_default();
            format!("'{name}' is not a recognized built-in function name.{suggestion}")
        }
        FaultKind::DuplicateAlias { name } => {
            format!("The input alias '{name}' is specified more than once in the FROM clause.")
        }
        FaultKind::StarWithoutFrom => "'SELECT *' is not valid if FROM clause is omitted.".to_owned(),
        FaultKind::StarWithManyInputs => "'SELECT *' is only valid with a single input set.".to_owned(),
        FaultKind::StarWithGroupBy => "'SELECT *' is not valid with a GROUP BY clause.".to_owned(),
        FaultKind::ArgumentCount { name, range } => {
            format!("The {name} function requires {range} argument(s).")
        }
        FaultKind::BadCount { clause, given } => {
            format!("The {clause} count '{given}' is not an integer between 0 and {COUNT_MAX}.")
        }
        FaultKind::NestedAggregate => {
            "Cannot perform an aggregate function on an expression containing an aggregate or a \
                 subquery."
                .to_owned()
        }
        FaultKind::MisplacedAggregate { clause } => {
            format!("Aggregate functions are not allowed in the {clause} clause.")
        }
        FaultKind::Ungrouped { reference } => format!(
            "Property reference '{reference}' is invalid in the select list because it is not \
                 contained in either an aggregate function or the GROUP BY clause."
        ),
        FaultKind::SubqueryInGroupBy => "Subqueries are not allowed in the GROUP BY clause.".to_owned(),
        FaultKind::OrderByWithGroupBy => {
            "'ORDER BY' is not supported with a GROUP BY clause, except by its keys.".to_owned()
        }
        FaultKind::OrderByInSubquery => "'ORDER BY' is not supported in subqueries.".to_owned(),
        FaultKind::TopInSubquery => "'TOP' is not supported in subqueries.".to_owned(),
        FaultKind::OffsetLimitInSubquery => "'OFFSET LIMIT' is not supported in subqueries.".to_owned(),
        FaultKind::OrderByCorrelated => "Order-by over correlated collections is not supported.".to_owned(),
        FaultKind::OrderByExpression => {
            "Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document \
                 path."
                .to_owned()
        }
        FaultKind::SearchListSize => {
            "The 'searchListSizeMultiplier' option of the VectorDistance function must be an integer \
                 between 1 and 100."
                .to_owned()
        }
        FaultKind::RankExpression => {
            "The ORDER BY RANK clause must be a FullTextScore or an RRF function call.".to_owned()
        }
        FaultKind::RankDirection => {
            "Specifying a sort order (ASC or DESC) in the ORDER BY RANK clause is not allowed.".to_owned()
        }
        FaultKind::RankWith { with } => format!("The ORDER BY RANK clause is not supported {with}."),
        FaultKind::RankWeights { scores } => format!(
            "The weights of the RRF function must be an array with one number for each of its \
                 {scores} score(s)."
        ),
        FaultKind::MisplacedScore { name } => {
            format!("The {name} function is only allowed in the ORDER BY RANK clause.")
        }
        FaultKind::MemberIndexer => "The 'member indexer' is not supported in this context.".to_owned(),
        FaultKind::TextTooLong { given } => {
            format!("The query text of {given} bytes exceeds the limit of {TEXT_BYTES_MAX} bytes.")
        }
        FaultKind::Limit { limit } => {
            format!("The query exceeds the maximum {limit}. The allowed limit is {}.", limit.most())
        }
    }
}

#[cfg(test)]
mod tests {
    //! Runs the text files of `tests-data/query-faults`: a query and the faults that a client receives.
    //!
    //! A case is a few lines that begin with `@name = JSON` for parameters, the query, a line `=>`, and a line for each
    //! fault: code, span and text.

    use super::*;
    use crate::text_cases::TextCases;
    use sql::{Parameters, SqlFaults};
    use value::Value;

    /// Fewer would mean that files are not found.
    const CASES_MIN: usize = 100;

    #[test]
    fn every_fault_has_the_expected_code_span_and_sentence() {
        let mut cases = TextCases::of("query-faults");
        for block in cases.files().into_iter().flatten() {
            let (input, _) = block.text.split_once("\n=>\n").unwrap();
            let found = lines(&faults_of(input));
            cases.check(&block, &format!("{input}\n=>\n{found}"));
        }
        cases.finish(CASES_MIN);
    }

    fn faults_of(input: &str) -> SqlFaults {
        let (parameters, query): (Vec<&str>, Vec<&str>) =
            input.lines().partition(|line| line.starts_with('@'));
        let parameters: Parameters = parameters
            .iter()
            .map(|line| {
                let (name, json) = line.split_once(" = ").unwrap();
                (name.to_owned(), Value::from_json(json.as_bytes()).unwrap())
            })
            .collect();
        let lowered = sql::parse(&query.join("\n")).and_then(|tree| sql::lower(&tree, &parameters));
        lowered.unwrap_err()
    }

    fn lines(faults: &SqlFaults) -> String {
        let line = |fault: &sql::SqlFault| {
            let sql::SqlFault { kind, span } = fault;
            format!("{} {}..{} {}", code(kind), span.start, span.end, sentence(kind))
        };
        faults.0.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}
