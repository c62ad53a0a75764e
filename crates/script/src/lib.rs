//! Server-side JavaScript: stored procedures, triggers and user-defined functions, in worker processes.
//!
//! Knows nothing of containers, transactions, HTTP or query text. The caller passes in a script with its input and a
//! [`Host`] that executes document operations; it gets back a result or a [`ScriptFault`], after which it rolls back.
//!
//! Scripts are hostile. The JavaScript engine stops most of them by its own limits, but some of its native loops run
//! for minutes without a check. So it runs in child processes without rights (`worker`), which the pool (`pool`) kills
//! when they do not stop. Nothing of a script outlives its call: a call has a JavaScript runtime of its own, or a
//! sealed one, in which it can change nothing that a later call of the same script sees.
//!
//! | module | contains |
//! |---|---|
//! | `call`, `functions` | what callers ask for: a procedure or trigger; a batch of calls of functions |
//! | `operation`, `host` | document operations of scripts and who executes them |
//! | `fault`, `limits` | how calls fail; the bounds |
//! | `pool`, `metrics` | [`Workers`]: starts, lends and kills worker processes |
//! | `wire` | the messages between both sides |
//! | [`worker`] | the worker process: sandbox, JavaScript runtime, job loop |
//! | `prelude/*.js` | the API that scripts see, in JavaScript |

mod call;
mod fault;
mod functions;
mod host;
mod limits;
mod metrics;
mod operation;
mod pool;
mod wire;
pub mod worker;

pub use call::{Call, Clock, Finished, Links, Quota, Role, TriggerOperation};
pub use fault::{CallFault, ResultFault, ScriptFault, SyntaxFault, Thrown};
pub use functions::{CallerId, Evaluated, Function, FunctionBatch, Turn};
pub use host::{DocumentsUsed, Host, NoDocuments};
pub use limits::{
    EXTRA_AFTER, EXTRA_TURNS, FRAME_BYTES_MAX, IDLE_DEFAULT, KILL_GRACE, LOG_BYTES_MAX, Limits,
    MEMORY_BYTES_DEFAULT, MEMORY_SETTING, MESSAGE_BYTES_MAX, MESSAGE_OPERATIONS_MAX, OPERATION_BYTES_MAX,
    PENDING_OPERATIONS_MAX, REPLIES_BYTES_MAX, RESPONSE_BYTES_MAX, SOURCE_BYTES_MAX, TIME_DEFAULT,
    TIME_SETTING, WAIT_MAX_DEFAULT, WAITING_MAX_DEFAULT, pending_bytes_max,
};
pub use operation::{
    ContainerSize, DocumentLink, IndexAction, Operation, Outcome, PageOptions, Refusal, Replies, Reply,
};
pub use pool::{ScriptTurn, WorkerProgram, Workers};
