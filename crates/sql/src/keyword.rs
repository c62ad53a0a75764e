//! Keywords, case-insensitive.
//!
//! A [`Keyword`] cannot be the name of a source or an alias, but any word may follow a dot or be the name of a member
//! in an object, because nothing else is possible there. ALL, FIRST, LAST, RANK, ESCAPE and UDF are keywords only in
//! their context and can be used as names elsewhere.

macro_rules! keywords {
    ($($variant:ident = $word:literal,)*) => {
        /// A reserved word.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Keyword {
            $($variant,)*
        }

        impl Keyword {
            /// The keyword of this word, case-insensitive.
            pub(crate) fn find(word: &str) -> Option<Keyword> {
                $(if word.eq_ignore_ascii_case($word) {
                    return Some(Keyword::$variant);
                })*
                None
            }
        }
    };
}

keywords! {
    And = "AND",
    Array = "ARRAY",
    As = "AS",
    Asc = "ASC",
    Between = "BETWEEN",
    By = "BY",
    Desc = "DESC",
    Distinct = "DISTINCT",
    Exists = "EXISTS",
    False = "FALSE",
    From = "FROM",
    Group = "GROUP",
    In = "IN",
    Join = "JOIN",
    Left = "LEFT",
    Like = "LIKE",
    Limit = "LIMIT",
    Not = "NOT",
    Null = "NULL",
    Offset = "OFFSET",
    Or = "OR",
    Order = "ORDER",
    Right = "RIGHT",
    Select = "SELECT",
    Top = "TOP",
    True = "TRUE",
    Undefined = "UNDEFINED",
    Value = "VALUE",
    Where = "WHERE",
}
