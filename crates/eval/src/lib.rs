//! Expressions, aggregates and whole queries over documents, as the service computes them.
//!
//! Pure and synchronous: time and randomness come from [`Context`], documents from the caller. Knows nothing of SQL
//! text, indexes, partitions or storage. Nothing here panics on any input: depth, size and number of rows are bounded
//! by named constants and by the budget of the context.
//!
//! | file | holds |
//! |---|---|
//! | `expression` | [`evaluate`], one arm per form of an expression |
//! | `operators`, `number`, `like` | logic, comparison, arithmetic, LIKE |
//! | `functions` | the built-in functions, one file per family |
//! | `text_analysis` | words of a text, for the full-text functions and their index |
//! | `user_calls` | calls of user-defined functions, many at once |
//! | `aggregate` | accumulators that can be merged |
//! | `query` | a whole query over documents in memory |
//! | `computed`, `row`, `context`, `budget`, `meter` | inputs and outputs |

mod aggregate;
mod budget;
mod computed;
mod context;
mod expression;
mod functions;
mod like;
mod meter;
mod number;
mod operators;
mod patterns;
mod query;
mod row;
mod text_analysis;
mod user_calls;

pub use aggregate::Accumulator;
pub use budget::{Budget, Holding, QueryMemory, VALUE_WEIGHT_MAX, allocated, weigh, weigh_inside};
pub use computed::Computed;
pub use context::{Context, Deadline};
pub use expression::{EXPRESSION_DEPTH_MAX, evaluate};
pub use functions::{Cap, Outline, UnitVector, angle_between, angle_of_metres};
pub use like::{LikeRest, like_prefix};
pub use meter::{Meter, Steps};
pub use model::{EvaluationFault as EvalFault, UserFunctionFault};
pub use patterns::Patterns;
pub use query::{
    DocumentRow, Groups, KeptGroups, KeyHash, MatchedRow, for_each_match, for_each_row, hash_of, run,
};
pub use row::{GroupRow, Row};
pub use text_analysis::{ANALYSIS_VERSION, Language, Terms, analyse};
pub use user_calls::{UserCall, UserCallResult, UserCalls};
