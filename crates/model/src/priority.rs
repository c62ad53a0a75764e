//! The priority of a request when throughput is scarce.

/// Which requests are refused first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Priority {
    /// Refused only if nothing is left of the budget.
    #[default]
    High,
    /// Refused as long as the budget is less than half full.
    Low,
}
