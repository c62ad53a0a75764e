//! Turns a panic of the engine into an error, without printing its message and backtrace.
//!

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use crate::fault::Cause;

thread_local! {
    /// Whether a panic of this thread is caught and reported here.
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

static HOOK: Once = Once::new();

/// Runs `call`; a panic in it is returned as an error.
pub(super) fn catch<T>(call: impl FnOnce() -> Result<T, Cause>) -> Result<T, Cause> {
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !IS_CAUGHT.get() {
                before(panic);
            }
        }));
    });
    IS_CAUGHT.set(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(call));
    IS_CAUGHT.set(false);
    outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Err(Cause::new(format_args!("its files are damaged, it gave up with: {text}")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_failure_with_its_message() {
        let count = std::hint::black_box(7);
        let failed = catch::<()>(|| {
            assert_eq!(count, 8, "level count should be 8");
            Ok(())
        });
        assert!(failed.unwrap_err().to_string().contains("level count should be 8"));
        assert_eq!(catch(|| Ok(3)), Ok(3));
    }
}
