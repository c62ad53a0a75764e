//! Fault injection points inside the product.

/// The injection functions. Without them a simulation is otherwise the same.
#[derive(Clone, Copy, Debug)]
pub struct Hooks {
    /// Makes a writer panic when it evaluates the transaction after N others.
    pub panic_after: fn(u64),
    /// Makes the opening of partitions take N turns longer.
    pub stall_openings: fn(u64),
    /// Makes the transaction after N others write a row that the store refuses.
    pub spoil_after: fn(u64),
}

impl Hooks {
    /// The functions of a product built with planted faults.
    #[cfg(feature = "planted-faults")]
    pub const PLANTED: Hooks = Hooks {
        panic_after: partition::planted::panic_after,
        stall_openings: partition::planted::stall_openings,
        spoil_after: partition::planted::spoil_after,
    };

    /// Removes all injected faults.
    pub(crate) fn reset(self) {
        (self.panic_after)(u64::MAX);
        (self.stall_openings)(0);
        (self.spoil_after)(u64::MAX);
    }
}
