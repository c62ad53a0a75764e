//! Why a script did not end normally. In every case its transaction is to be rolled back.

use crate::limits::{MEMORY_SETTING, TIME_SETTING};
use std::time::Duration;
use thiserror::Error;

/// Why a call failed: by the script and its limits, or by the host of its operations.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CallFault<F> {
    /// The script, its limits or its worker.
    #[error(transparent)]
    Script(#[from] ScriptFault),
    /// The host ended the script.
    #[error("the operations of the script could not be executed")]
    Host(F),
    /// The script needs a runtime of its own, which was noticed after the host had executed operations or after a part
    /// of its time. It is to be called again with [`Call::needs_own_runtime`](crate::Call::needs_own_runtime).
    #[error("the script is to be run again")]
    Again,
}

/// Why a script did not end normally.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ScriptFault {
    /// The text is not a function.
    #[error(transparent)]
    Syntax(#[from] SyntaxFault),
    /// The script threw and did not catch, or called `abort`.
    #[error(transparent)]
    Thrown(#[from] Thrown),
    /// The script ran longer than its budget. The worker may have been killed.
    #[error("script exceeded its time of {budget:?}, which the setting {TIME_SETTING} of the server bounds")]
    TimeExceeded {
        /// The budget.
        budget: Duration,
    },
    /// The script needed more memory than allowed.
    #[error(
        "script exceeded its memory of {bytes_max} bytes, which the setting {MEMORY_SETTING} of the server bounds"
    )]
    MemoryExceeded {
        /// The limit.
        bytes_max: u64,
    },
    /// The response, the result of a function or the document of a trigger cannot be written as JSON.
    #[error("result of the script: {0}")]
    Result(ResultFault),
    /// The worker ended in the middle of the call.
    #[error("script worker ended: {cause}")]
    Crashed {
        /// Exit status or signal.
        cause: String,
    },
    /// Too many scripts wait, or this one waited too long for its turn. It was not started.
    #[error("too many scripts are running")]
    Busy,
    /// No worker process can be started.
    #[error("script worker cannot be started: {cause}")]
    Unavailable {
        /// The error of the operating system.
        cause: String,
    },
    /// The input of the call is larger than a message to a worker may be.
    #[error("input of the script has {bytes} bytes")]
    InputTooLarge {
        /// Its size.
        bytes: usize,
    },
}

/// Where a text is not a function.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message} at line {line}, column {column}")]
pub struct SyntaxFault {
    /// What is wrong.
    pub message: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
}

/// An error that a script has thrown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Error)]
#[error("{text}")]
pub struct Thrown {
    /// The name of the user-defined function that threw; `None` for procedures and triggers.
    pub function: Option<String>,
    /// The error as text: its name and message.
    pub text: String,
    /// The message alone.
    pub message: String,
    /// The number of an error made with one, such as by a refused operation.
    pub number: Option<i32>,
    /// Stack trace, one frame per line; empty if something other than an error was thrown.
    pub stack: String,
}

/// Why a result cannot be written as JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ResultFault {
    /// It has more levels than a document may have.
    #[error("more than {depth_max} levels")]
    TooDeep {
        /// The limit.
        depth_max: usize,
    },
    /// It is too large.
    #[error("more than {bytes_max} bytes")]
    TooLarge {
        /// The limit.
        bytes_max: usize,
    },
}
