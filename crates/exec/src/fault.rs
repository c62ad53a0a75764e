//! What stops an evaluation, as the fault of a query.

use eval::EvalFault;
use model::{Fault, QueryFault};

/// Says whose fault it is: the query's, the bounds', or ours.
pub fn query_fault(fault: EvalFault) -> Fault {
    match fault {
        EvalFault::MemoryExceeded { bytes_max } => QueryFault::MemoryExceeded { bytes_max }.into(),
        EvalFault::RowsExceeded { rows_max } => QueryFault::RowsExceeded { rows_max }.into(),
        EvalFault::TimeExceeded { milliseconds_max } => QueryFault::TimeExceeded { milliseconds_max }.into(),
        fault @ (EvalFault::ScalarSubqueryRows
        | EvalFault::TooDeep { .. }
        | EvalFault::ValueTooLarge { .. }
        | EvalFault::PatternTooLarge { .. }
        | EvalFault::UserFunction { .. }
        | EvalFault::ScoreOutsideRank { .. }
        | EvalFault::RankWithoutStatistics) => QueryFault::Evaluation { reason: fault.to_string() }.into(),
        fault @ EvalFault::OutsideGroup { .. } => Fault::Internal(fault.to_string()),
    }
}

/// A query that cannot be carried out as it stands.
pub(crate) fn refused(reason: impl Into<String>) -> Fault {
    QueryFault::Evaluation { reason: reason.into() }.into()
}
