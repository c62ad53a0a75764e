//! What a simulation does to the product from within, where the product is built to let it.

/// What to call. Courses are the same without it, but for what it does.
#[derive(Clone, Copy, Debug)]
pub struct Hooks {
    /// Lets a writer panic when it evaluates the transaction behind so many others.
    pub panic_after: fn(u64),
    /// Lets openings of partitions take so many turns longer.
    pub stall_openings: fn(u64),
    /// Lets the transaction behind so many others write a row that the store refuses.
    pub spoil_after: fn(u64),
}

impl Hooks {
    /// Those of a product with planted faults.
    #[cfg(feature = "planted-faults")]
    pub const PLANTED: Hooks = Hooks {
        panic_after: partition::planted::panic_after,
        stall_openings: partition::planted::stall_openings,
        spoil_after: partition::planted::spoil_after,
    };

    /// Nothing panics, takes longer or is refused any more.
    pub(crate) fn calm(self) {
        (self.panic_after)(u64::MAX);
        (self.stall_openings)(0);
        (self.spoil_after)(u64::MAX);
    }
}
