//! What one script may use, and how many may run.

use std::time::Duration;

/// The bounds of scripts that an operator may set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Wall-clock time of a call, its operations included.
    pub time: Duration,
    /// Memory of a call: its JavaScript heap, the operations that wait, messages and the result.
    pub memory_bytes: u64,
    /// Workers that execute scripts at the same time. Calls that have waited for [`EXTRA_AFTER`] may start
    /// [`EXTRA_TURNS`] more.
    pub busy_max: usize,
    /// Calls that wait for a worker; more are refused.
    pub waiting_max: usize,
    /// How long a call waits for a worker.
    pub wait_max: Duration,
    /// How long a worker without work is kept.
    pub idle: Duration,
}

/// The server's setting of [`Limits::time`], which texts of faults name.
pub const TIME_SETTING: &str = "script-timeout-ms";
/// The server's setting of [`Limits::memory_bytes`].
pub const MEMORY_SETTING: &str = "script-memory-bytes";

/// Default of [`Limits::time`].
pub const TIME_DEFAULT: Duration = Duration::from_secs(5);
/// Default of [`Limits::memory_bytes`].
pub const MEMORY_BYTES_DEFAULT: u64 = 64 << 20;
/// Default of [`Limits::waiting_max`].
pub const WAITING_MAX_DEFAULT: usize = 1024;
/// Default of [`Limits::wait_max`].
pub const WAIT_MAX_DEFAULT: Duration = Duration::from_secs(10);
/// Default of [`Limits::idle`].
pub const IDLE_DEFAULT: Duration = Duration::from_secs(60);

/// How long a call waits before it may run beyond [`Limits::busy_max`].
pub const EXTRA_AFTER: Duration = Duration::from_millis(100);
/// Calls that may run beyond [`Limits::busy_max`].
pub const EXTRA_TURNS: usize = 3;

/// The time after which the worker answers a batch of functions with the results so far: a call begins before it or is
/// sent again. Each call has the whole [`Limits::time`].
pub(crate) const BATCH_TIME_MAX: Duration = Duration::from_millis(30);

/// What a call of a function may have used of its time when it is called again in the same message, with all of its
/// time. After more it is sent again.
pub(crate) const REPEATED_TIME_MAX: Duration = Duration::from_millis(20);

/// How long after its budget a script that did not stop is killed.
pub const KILL_GRACE: Duration = Duration::from_millis(100);

/// Most bytes of a response body.
pub const RESPONSE_BYTES_MAX: usize = 4 << 20;
/// Most bytes of one document, one patch or one query that a script passes to its host.
pub const OPERATION_BYTES_MAX: usize = 4 << 20;
/// Most bytes of a log; later lines are left out.
pub const LOG_BYTES_MAX: usize = 64 << 10;
/// Most operations that a script may have queued; more are not accepted.
pub const PENDING_OPERATIONS_MAX: usize = 10_000;
/// The part of the memory of a call that is no heap: operations that wait, messages and the result, all of which exist
/// beside the heap.
const BESIDE_HEAP_PART: u64 = 4;
/// The part of the memory of a call that operations may take which wait. A message holds them a second time.
const PENDING_PART: u64 = 16;
/// Most operations in one message to the host.
pub const MESSAGE_OPERATIONS_MAX: usize = 256;
/// Bytes of queued operations after which a message to the host is full.
pub const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// Bytes of replies after which a message to the script is full. The operations without a reply are sent again.
pub const REPLIES_BYTES_MAX: usize = 4 << 20;
/// Most bytes of one message in either direction.
pub const FRAME_BYTES_MAX: usize = 32 << 20;
/// Most bytes of the text of a script.
pub const SOURCE_BYTES_MAX: usize = 1 << 20;

/// Most bytes of the JavaScript heap of a call with this memory.
pub(crate) fn heap_bytes_max(memory_bytes: u64) -> u64 {
    memory_bytes - memory_bytes / BESIDE_HEAP_PART
}

/// Most bytes of queued operations of a call with this memory; more are not accepted, unless it is a single one.
pub fn pending_bytes_max(memory_bytes: u64) -> usize {
    usize::try_from(memory_bytes / PENDING_PART).unwrap_or(usize::MAX)
}

impl Limits {
    /// The defaults on a machine with this many cores: one core is left to the server.
    pub fn for_cores(cores: usize) -> Limits {
        Limits {
            time: TIME_DEFAULT,
            memory_bytes: MEMORY_BYTES_DEFAULT,
            busy_max: cores.saturating_sub(1).max(1),
            waiting_max: WAITING_MAX_DEFAULT,
            wait_max: WAIT_MAX_DEFAULT,
            idle: IDLE_DEFAULT,
        }
    }
}
