//! The queries of the suite, for this server and for PostgreSQL.

use crate::documents;

/// A query of the suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// Five documents of one logical partition, by equality.
    Lot,
    /// The only document with a value, in any partition.
    Mail,
    /// The first twenty of a category by score.
    Top,
    /// The same with a composite index.
    TopComposite,
    /// The number of documents.
    Count,
    /// The number of documents per category.
    Groups,
    /// The mean price per category, which no index contains.
    Means,
    /// A filter that no index can answer.
    Scan,
    /// A filter by a user-defined function of a number.
    Function,
    /// The same by a function of the whole document.
    FunctionOfDocument,
}

impl Question {
    /// The question with this name on the command line.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "lot" => Question::Lot,
            "mail" => Question::Mail,
            "top" => Question::Top,
            "composite" => Question::TopComposite,
            "count" => Question::Count,
            "groups" => Question::Groups,
            "means" => Question::Means,
            "scan" => Question::Scan,
            "function" => Question::Function,
            "document-function" => Question::FunctionOfDocument,
            _ => return None,
        })
    }

    /// The partition key it is limited to, and the body of the request.
    pub(crate) fn body(self, number: usize) -> (Option<String>, String) {
        let category = number % 20;
        match self {
            Question::Lot => {
                let lot = number / documents::LOT;
                let body = format!(
                    r#"{{"query":"SELECT * FROM c WHERE c.lot = @lot","parameters":[{{"name":"@lot","value":{lot}}}]}}"#
                );
                (Some(documents::partition_key(number)), body)
            }
            Question::Mail => (
                None,
                format!(
                    r#"{{"query":"SELECT * FROM c WHERE c.user.mail = @mail","parameters":[{{"name":"@mail","value":"u{number}@example.org"}}]}}"#
                ),
            ),
            Question::Top => (
                None,
                format!(
                    r#"{{"query":"SELECT TOP 20 * FROM c WHERE c.category = @category ORDER BY c.score DESC","parameters":[{{"name":"@category","value":"c{category}"}}]}}"#
                ),
            ),
            Question::TopComposite => (
                None,
                format!(
                    r#"{{"query":"SELECT TOP 20 * FROM c WHERE c.category = @category ORDER BY c.category ASC, c.score DESC","parameters":[{{"name":"@category","value":"c{category}"}}]}}"#
                ),
            ),
            Question::Count => (None, r#"{"query":"SELECT VALUE COUNT(1) FROM c"}"#.to_owned()),
            Question::Groups => (
                None,
                r#"{"query":"SELECT c.category, COUNT(1) AS n FROM c GROUP BY c.category"}"#.to_owned(),
            ),
            Question::Means => (
                None,
                r#"{"query":"SELECT c.category, AVG(c.price) AS mean FROM c GROUP BY c.category"}"#
                    .to_owned(),
            ),
            Question::Scan => {
                (None, r#"{"query":"SELECT VALUE COUNT(1) FROM c WHERE LENGTH(c.text) = 1"}"#.to_owned())
            }
            Question::Function => {
                (None, r#"{"query":"SELECT VALUE COUNT(1) FROM c WHERE udf.isLarge(c.score)"}"#.to_owned())
            }
            Question::FunctionOfDocument => {
                (None, r#"{"query":"SELECT VALUE COUNT(1) FROM c WHERE udf.isLargeDocument(c)"}"#.to_owned())
            }
        }
    }

    /// The statement for PostgreSQL.
    pub(crate) fn statement(self) -> &'static str {
        match self {
            Question::Lot => "SELECT doc::text FROM docs WHERE pk = $1 AND doc @> $2::text::jsonb",
            Question::Mail => "SELECT doc::text FROM docs WHERE doc @> $1::text::jsonb",
            Question::Top => {
                "SELECT doc::text FROM docs WHERE doc @> $1::text::jsonb ORDER BY (doc->>'score')::float8 DESC LIMIT 20"
            }
            Question::TopComposite => {
                "SELECT doc::text FROM docs WHERE doc->>'category' = $1 ORDER BY (doc->>'score')::float8 DESC LIMIT 20"
            }
            Question::Count => "SELECT count(*)::text FROM docs",
            Question::Groups => "SELECT doc->>'category', count(*) FROM docs GROUP BY 1",
            Question::Means => "SELECT doc->>'category', avg((doc->>'price')::float8) FROM docs GROUP BY 1",
            Question::Scan => "SELECT count(*)::text FROM docs WHERE length(doc->>'text') = 1",
            // Not asked.
            Question::Function | Question::FunctionOfDocument => {
                "SELECT count(*)::text FROM docs WHERE (doc->>'score')::float8 > 5000"
            }
        }
    }

    /// The parameters of that statement.
    pub(crate) fn parameters(self, number: usize) -> Vec<String> {
        let category = number % 20;
        match self {
            Question::Lot => {
                let lot = number / documents::LOT;
                vec![documents::partition_key(number), format!(r#"{{"lot":{lot}}}"#)]
            }
            Question::Mail => vec![format!(r#"{{"user":{{"mail":"u{number}@example.org"}}}}"#)],
            Question::Top => vec![format!(r#"{{"category":"c{category}"}}"#)],
            Question::TopComposite => vec![format!("c{category}")],
            Question::Count
            | Question::Groups
            | Question::Means
            | Question::Scan
            | Question::Function
            | Question::FunctionOfDocument => Vec::new(),
        }
    }
}
