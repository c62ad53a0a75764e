//! What can stop an evaluation. A value of the wrong kind never does: it yields undefined.

use thiserror::Error;

/// Why an expression or a query has no result.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EvaluationFault {
    /// A subquery that stands for one value gave several.
    #[error("the cardinality of a scalar subquery result set cannot be greater than one")]
    ScalarSubqueryRows,
    /// An expression nested deeper than any checked query.
    #[error("expression nested deeper than {depth_max} levels")]
    TooDeep {
        /// Most levels.
        depth_max: usize,
    },
    /// One computed value beyond the bound.
    #[error("computed value larger than {weight_max} bytes")]
    ValueTooLarge {
        /// Most bytes of a value.
        weight_max: usize,
    },
    /// Other queries have the memory that this one needs.
    #[error("other queries use the memory that the query needs")]
    MemoryBusy,
    /// A regular expression that takes too long on a text of this length.
    #[error("regular expression too slow for a text of {bytes} bytes: simplify its repetitions")]
    PatternTooSlow {
        /// Bytes of the text.
        bytes: usize,
    },
    /// A LIKE pattern with too long a stretch of wildcards.
    #[error("pattern with more than {places_max} characters between two '%'")]
    PatternTooLarge {
        /// Most characters.
        places_max: usize,
    },
    /// Rows, groups or values beyond the memory that was granted.
    #[error("query needs more than {bytes_max} bytes of memory")]
    MemoryExceeded {
        /// Bytes that were granted.
        bytes_max: usize,
    },
    /// Sources that multiply to more rows than were granted.
    #[error("query looks at more than {rows_max} rows")]
    RowsExceeded {
        /// Rows that were granted.
        rows_max: u64,
    },
    /// More time than was granted.
    #[error("query runs for more than {milliseconds_max} ms")]
    TimeExceeded {
        /// Milliseconds that were granted.
        milliseconds_max: u64,
    },
    /// More work than was granted.
    #[error("expression takes more than {steps_max} steps")]
    StepsExceeded {
        /// Steps that were granted.
        steps_max: u64,
    },
    /// Nobody wants the result any more, or nobody shall get it.
    #[error("query was stopped")]
    Stopped,
    /// The thread is needed by others; the work is to be begun anew on another one.
    #[error("query takes too long for the thread that began it")]
    BrokenOff,
    /// A function of the user's failed.
    #[error("user function '{name}': {fault}")]
    UserFunction {
        /// Its name.
        name: String,
        /// What it said.
        fault: UserFunctionFault,
    },
    /// A score that exists only where results are ranked.
    #[error("function '{function}' is only valid in an ORDER BY RANK clause")]
    ScoreOutsideRank {
        /// Name of the function.
        function: &'static str,
    },
    /// A ranked order, which needs statistics of the whole container.
    #[error("ORDER BY RANK needs statistics of the container")]
    RankWithoutStatistics,
    /// A key or aggregate of a group where there is no group, or not so many: the query was not lowered rightly.
    #[error("reference to {what} {index} outside its group")]
    OutsideGroup {
        /// Key or aggregate.
        what: &'static str,
        /// Which.
        index: usize,
    },
    /// A computed property whose query makes no value of each document.
    #[error("the computed property '{name}' is not of the form SELECT VALUE … FROM c")]
    ComputedForm {
        /// The property.
        name: String,
    },
    /// A computed property whose query cannot be read.
    #[error("the computed property '{name}' cannot be read")]
    ComputedUnread {
        /// The property.
        name: String,
    },
    /// More sources than rows have places for.
    #[error("too many sources")]
    TooManySources,
    /// An expression that is too deep once computed properties stand in it.
    #[error("nested deeper than {depth_max} levels")]
    ComputedTooDeep {
        /// Most levels.
        depth_max: usize,
    },
    /// More queries in each other than are carried out.
    #[error("more than {layers_max} queries in each other")]
    TooManyLayers {
        /// Most queries.
        layers_max: usize,
    },
    /// The container as a later source than the first.
    #[error("the container can only be the first source")]
    ContainerNotFirst,
}

/// Why a function of the user's gave nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UserFunctionFault {
    /// There is none of this name.
    #[error("not found")]
    NotFound,
    /// It threw, or ran for too long.
    #[error("{message}")]
    Failed {
        /// What it said.
        message: String,
    },
}
