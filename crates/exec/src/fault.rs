//! What stops an evaluation, as the fault of a query.

use eval::EvalFault;
use model::{Fault, LimitFault, QueryFault};

/// When a client may ask again whose query was stopped with the server: a restart takes about as long.
const STOPPED_RETRY_MS: u64 = 1_000;

/// When a client may ask again whose query found no memory.
const BUSY_RETRY_MS: u64 = 1_000;

/// Says whose fault it is: the query's, the bounds', or ours.
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
        | EvalFault::UserFunction { .. }
        | EvalFault::ScoreOutsideRank { .. }
        | EvalFault::RankWithoutStatistics
        | EvalFault::ComputedForm { .. }
        | EvalFault::ComputedUnread { .. }
        | EvalFault::TooManySources
        | EvalFault::ComputedTooDeep { .. }
        | EvalFault::TooManyLayers { .. }
        | EvalFault::ContainerNotFirst) => QueryFault::Evaluation(fault).into(),
        // Whoever breaks a query off begins it anew, so the second one is never told.
        fault @ (EvalFault::OutsideGroup { .. } | EvalFault::Preempted) => Fault::Internal(fault.to_string()),
    }
}

/// A query that cannot be carried out as it stands.
pub(crate) fn refused(fault: EvalFault) -> Fault {
    QueryFault::Evaluation(fault).into()
}
