//! Faults that stop an evaluation. A value of the wrong kind is not a fault: the result is undefined.

use thiserror::Error;

/// Why an expression or a query has no result.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EvaluationFault {
    /// A scalar subquery returned several rows.
    #[error("the cardinality of a scalar subquery result set cannot be greater than one")]
    ScalarSubqueryRows,
    /// An expression nested deeper than any checked query.
    #[error("expression nested deeper than {depth_max} levels")]
    TooDeep {
        /// Most levels.
        depth_max: usize,
    },
    /// A computed value above the size limit.
    #[error("computed value larger than {weight_max} bytes")]
    ValueTooLarge {
        /// Most bytes of a value.
        weight_max: usize,
    },
    /// The memory that this query needs is used by other queries.
    #[error("other queries use the memory that the query needs")]
    MemoryBusy,
    /// A regular expression that takes too long on a text of this length.
    #[error("regular expression too slow for a text of {bytes} bytes: simplify its repetitions")]
    PatternTooSlow {
        /// Bytes of the text.
        bytes: usize,
    },
    /// A LIKE pattern with too long a section of wildcards.
    #[error("pattern with more than {characters_max} characters between two '%'")]
    PatternTooLarge {
        /// Most characters.
        characters_max: usize,
    },
    /// Rows, groups or values above the granted memory.
    #[error("query needs more than {bytes_max} bytes of memory")]
    MemoryExceeded {
        /// Granted bytes.
        bytes_max: usize,
    },
    /// Joined sources produce more rows than granted.
    #[error("query looks at more than {rows_max} rows")]
    RowsExceeded {
        /// Granted rows.
        rows_max: u64,
    },
    /// More time than granted.
    #[error("query runs for more than {milliseconds_max} ms")]
    TimeExceeded {
        /// Granted milliseconds.
        milliseconds_max: u64,
    },
    /// More work than granted.
    #[error("expression takes more than {steps_max} steps")]
    StepsExceeded {
        /// Granted steps.
        steps_max: u64,
    },
    /// The client no longer waits for the result, or the server stops.
    #[error("query was stopped")]
    Stopped,
    /// The thread is needed for other requests; the work must be restarted on another one.
    #[error("query takes too long for the thread that began it")]
    Preempted,
    /// The result of a user-defined function is not known yet. Rows that are evaluated in advance stop so; a query fails
    /// with it if too many calls depend on each other.
    #[error("too many calls of user-defined functions depend on each other")]
    CallPending,
    /// Random numbers in a query that calls user-defined functions.
    #[error("RAND cannot be used together with user-defined functions")]
    RandomWithUserFunctions,
    /// A user-defined function failed.
    #[error("user function '{name}': {fault}")]
    UserFunction {
        /// Its name.
        name: String,
        /// Why it failed.
        fault: UserFunctionFault,
    },
    /// A score function outside ORDER BY RANK.
    #[error("function '{function}' is only valid in an ORDER BY RANK clause")]
    ScoreOutsideRank {
        /// Name of the function.
        function: &'static str,
    },
    /// ORDER BY RANK, which needs statistics of the whole container.
    #[error("ORDER BY RANK needs statistics of the container")]
    RankWithoutStatistics,
    /// A reference to a group key or aggregate where there is no group, or with an index out of range: the query was
    /// lowered incorrectly.
    #[error("reference to {what} {index} outside its group")]
    OutsideGroup {
        /// Key or aggregate.
        what: &'static str,
        /// Its index.
        index: usize,
    },
    /// A computed property whose query does not return a value for each document.
    #[error("the computed property '{name}' is not of the form SELECT VALUE … FROM c")]
    ComputedForm {
        /// The property.
        name: String,
    },
    /// A computed property whose query cannot be parsed.
    #[error("the computed property '{name}' cannot be read")]
    ComputedUnread {
        /// The property.
        name: String,
    },
    /// More sources than a row has slots.
    #[error("too many sources")]
    TooManySources,
    /// An expression that is too deep after computed properties were substituted.
    #[error("nested deeper than {depth_max} levels")]
    ComputedTooDeep {
        /// Most levels.
        depth_max: usize,
    },
    /// Too many levels of nested queries.
    #[error("more than {layers_max} queries in each other")]
    TooManyLayers {
        /// Most queries.
        layers_max: usize,
    },
    /// The container is used as a source other than the first.
    #[error("the container can only be the first source")]
    ContainerNotFirst,
}

/// Why a user-defined function has no result.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UserFunctionFault {
    /// No function has this name.
    #[error("not found")]
    NotFound,
    /// Functions are not executed here: in conditions of writes, or where the server executes no scripts.
    #[error("user-defined functions are not executed here")]
    NotExecuted,
    /// It threw, is not a function, or exceeded a limit.
    #[error("{message}")]
    Failed {
        /// What was thrown, or which limit was exceeded.
        message: String,
        /// The stack at that place, one frame per line; empty if nothing was thrown.
        stack: String,
    },
}
