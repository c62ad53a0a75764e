//! Maps faults of the evaluation to faults of a query.

use eval::EvalFault;
use model::{Fault, LimitFault, QueryFault};

/// Retry delay for a query that was stopped with the server: about the duration of a restart.
const STOPPED_RETRY_MS: u64 = 1_000;

/// Retry delay for a query that found no memory.
const BUSY_RETRY_MS: u64 = 1_000;

/// Attributes the fault to the query, the bounds, or an internal error.
pub fn query_fault(fault: EvalFault) -> Fault {
    match fault {
        EvalFault::MemoryExceeded { bytes_max } => QueryFault::MemoryExceeded { bytes_max }.into(),
        EvalFault::RowsExceeded { rows_max } => QueryFault::RowsExceeded { rows_max }.into(),
        EvalFault::TimeExceeded { milliseconds_max } => QueryFault::TimeExceeded { milliseconds_max }.into(),
        EvalFault::MemoryBusy => LimitFault::Overloaded { retry_after_ms: BUSY_RETRY_MS }.into(),
        EvalFault::Stopped => LimitFault::Stopping { retry_after_ms: STOPPED_RETRY_MS }.into(),
        fault @ (EvalFault::ScalarSubqueryRows
        | EvalFault::StepsExceeded { .. }
        | EvalFault::TooDeep { .. }
        | EvalFault::ValueTooLarge { .. }
        | EvalFault::PatternTooLarge { .. }
        | EvalFault::PatternTooSlow { .. }
        | EvalFault::CallPending
        | EvalFault::RandomWithUserFunctions
        | EvalFault::UserFunction { .. }
        | EvalFault::ScoreOutsideRank { .. }
        | EvalFault::RankWithoutStatistics
        | EvalFault::ComputedForm { .. }
        | EvalFault::ComputedUnread { .. }
        | EvalFault::TooManySources
        | EvalFault::ComputedTooDeep { .. }
        | EvalFault::TooManyLayers { .. }
        | EvalFault::ContainerNotFirst) => QueryFault::Evaluation(fault).into(),
        // The caller restarts a preempted query, so clients never see this fault.
        fault @ (EvalFault::OutsideGroup { .. } | EvalFault::Preempted) => Fault::Internal(fault.to_string()),
    }
}

/// A query that cannot be executed as it is written.
pub(crate) fn refused(fault: EvalFault) -> Fault {
    QueryFault::Evaluation(fault).into()
}
