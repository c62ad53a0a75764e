//! The worker process: receives calls on its input, executes them in JavaScript runtimes, answers on its output.
//!
//! It has one thread, which gives up its rights before it reads the first call.
//!
//! | module | contains |
//! |---|---|
//! | `confine` | limits and the filter of system calls |
//! | `pipe` | messages in and out |
//! | `realm` | a JavaScript runtime with the prelude, ready for one call |
//! | `natives` | the functions that the prelude gets from the worker |
//! | `compile`, `outline` | the text of a script to its function |
//! | `procedure`, `functions` | the two kinds of calls |
//! | `outcome` | how they end |
//! | `peak` | whether a call may have used its memory up |
//! | `state` | what native functions share: time, randomness, log, queued operations |
//! | `spares`, `sealing` | runtimes that are made before they are needed; which scripts may share one |
//! | `isolation` | tests that shared runtimes carry nothing from call to call |

mod compile;
#[cfg(target_os = "linux")]
mod confine;
mod functions;
#[cfg(test)]
mod isolation;
mod natives;
mod outcome;
mod outline;
mod peak;
mod pipe;
mod procedure;
mod realm;
mod sealing;
mod spares;
mod state;

use crate::Call;
use crate::limits::heap_bytes_max;
use crate::wire::from_worker::{self, BatchEnd, Failure};
use crate::wire::to_worker::{self, Allowance, ToWorker};
#[cfg(target_os = "linux")]
use confine::ProcessorLimit;
use functions::Evaluated;
use pipe::{Closed, Pipe};
use realm::{Kind, Prelude, Realm};
use spares::Spares;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The part of the time of a call, in percent, after which it is not repeated in the worker: what is left would be too
/// little for a call that takes nearly all of it.
const REPEATED_PERCENT_MAX: u32 = 5;

/// How a call ended in the worker, other than normally.
#[derive(Debug)]
enum Over {
    /// The server gets this answer.
    Failed(Failure),
    /// The server is to make the call again, for a runtime of its own.
    Again,
    /// The server has stopped the call and expects no answer.
    Stopped,
    /// The server is gone.
    Closed,
}

impl From<Closed> for Over {
    fn from(_: Closed) -> Over {
        Over::Closed
    }
}

impl From<Failure> for Over {
    fn from(failure: Failure) -> Over {
        Over::Failed(failure)
    }
}

/// Runs a worker until the server closes its pipe. `memory_bytes` is the largest heap that a call will ask for.
pub fn main(memory_bytes: u64) -> ExitCode {
    match serve(memory_bytes) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// A runtime could not be made, which happens only without memory.
#[derive(Debug)]
struct NoRuntime;

/// Gives up the rights of this process, as [`main`] does first; returns what could not be set up. For programs that
/// test what is left.
pub fn confine(memory_bytes: u64) -> Vec<String> {
    #[cfg(target_os = "linux")]
    return confine::confine(memory_bytes);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = memory_bytes;
        vec!["workers are confined on Linux only".to_owned()]
    }
}

/// Nothing bounds the processor time where workers are not confined.
#[cfg(not(target_os = "linux"))]
#[derive(Debug, Default)]
struct ProcessorLimit;

#[cfg(not(target_os = "linux"))]
impl ProcessorLimit {
    fn renew(&mut self, _budget: Duration) {}
}

fn serve(memory_bytes: u64) -> Result<(), NoRuntime> {
    let missing = confine(memory_bytes);
    let mut spares = Spares::new(Prelude::compile()?)?;
    let (mut pipe, mut processor) = (Pipe::default(), ProcessorLimit::default());
    if pipe.send(|out| from_worker::put_ready(out, &missing)).is_err() {
        return Ok(());
    }
    while let Ok(message) = pipe.receive() {
        let Ok(message) = to_worker::read(message) else { return Ok(()) };
        let begun = Instant::now();
        if call(&mut pipe, &mut spares, &mut processor, message)?.is_err() {
            return Ok(());
        }
        peak::forget(heap_bytes_max(memory_bytes), begun.elapsed());
        spares.replenish()?;
    }
    Ok(())
}

/// Executes one call and answers it.
fn call(
    pipe: &mut Pipe,
    spares: &mut Spares,
    processor: &mut ProcessorLimit,
    message: ToWorker,
) -> Result<Result<(), Closed>, NoRuntime> {
    let answer = match message {
        ToWorker::Run { allowance, call } => {
            processor.renew(allowance.time);
            run(pipe, spares, allowance, &call)?
        }
        ToWorker::Evaluate { allowance, batch } => {
            processor.renew(allowance.time);
            let (evaluated, sealed) = match spares.take_sealed(&batch)? {
                None => (functions::evaluate_alone(spares.prelude(), allowance, &batch), None),
                Some(realm) => {
                    (functions::evaluate(&realm, spares.prelude(), allowance, &batch), Some(realm))
                }
            };
            let Evaluated { count, results, end } = evaluated;
            let sent = pipe.send(|out| from_worker::put_evaluated(out, count, &results, &end));
            if let Some(realm) = sealed.filter(|_| !matches!(end, BatchEnd::Failed(_))) {
                spares.keep_sealed(batch.functions, realm);
            }
            Ok(sent)
        }
        ToWorker::Check { allowance, source } => {
            processor.renew(allowance.time);
            let realm = spares.take(Kind::Documents)?;
            match functions::check(&realm, allowance, &source) {
                Ok(()) => Ok(pipe.send(from_worker::put_checked)),
                Err(failure) => Err(failure.into()),
            }
        }
        // Out of turn: the server has lost track of the call.
        ToWorker::Replies(_) | ToWorker::Stop => Err(Over::Closed),
    };
    Ok(match answer {
        Ok(sent) => sent,
        Err(Over::Failed(failure)) => pipe.send(|out| from_worker::put_failed(out, &failure, "")),
        Err(Over::Again) => pipe.send(from_worker::put_again),
        Err(Over::Stopped) => Ok(()),
        Err(Over::Closed) => Err(Closed),
    })
}

/// Executes a procedure or trigger and answers it if it has ended by itself.
fn run(
    pipe: &mut Pipe,
    spares: &mut Spares,
    allowance: Allowance,
    call: &Call,
) -> Result<Result<Result<(), Closed>, Over>, NoRuntime> {
    let mut realm = spares.take_script(call)?;
    let mut ran = procedure::run(&realm, allowance, call, pipe);
    if realm.is_sealed && may_be_of_sealing(&realm, &ran) {
        let state = &realm.state;
        if state.has_operated.get() || !leaves_time(allowance.time, state.time_left()) {
            spares.needs_own(call);
            return Ok(Err(Over::Again));
        }
        let has_noticed = state.has_noticed.get();
        let allowance = Allowance { time: state.time_left(), ..allowance };
        let call = Call { clock: state.clock_now(), ..call.clone() };
        let sealed = ran;
        realm = spares.take(Kind::Documents)?;
        ran = procedure::run(&realm, allowance, &call, pipe);
        if has_noticed || is_of_sealing(&sealed, &ran) {
            spares.needs_own(&call);
        }
    }
    let (leaves_runtime, has_finished) = (leaves_runtime(&ran), ran.is_ok());
    // Sent before the runtime is torn down, for which nobody has to wait.
    let sent = match ran {
        Ok(finished) => Ok(pipe.send(|out| from_worker::put_finished(out, &finished))),
        Err(Over::Failed(failure)) => {
            let log = realm.state.take_log();
            Ok(pipe.send(|out| from_worker::put_failed(out, &failure, &log)))
        }
        Err(over) => Err(over),
    };
    if leaves_runtime {
        spares.keep_script(call, realm, has_finished);
    }
    Ok(sent)
}

/// Whether a call in a sealed runtime may have ended in another way than it would have in a runtime of its own.
fn may_be_of_sealing<T>(realm: &Realm, ran: &Result<T, Over>) -> bool {
    match ran {
        Ok(_) => realm.state.is_suspect(),
        // The calls before may have left garbage.
        Err(Over::Failed(Failure::MemoryExceeded)) => true,
        Err(Over::Failed(Failure::TimeExceeded)) => false,
        Err(Over::Failed(Failure::Thrown(_) | Failure::Syntax(_) | Failure::Result(_))) => {
            realm.state.is_suspect()
        }
        Err(Over::Again | Over::Stopped | Over::Closed) => false,
    }
}

/// Whether a call that is repeated here has about as much time as the first one had. Otherwise the server repeats it.
fn leaves_time(time: Duration, left: Duration) -> bool {
    left * 100 >= time * (100 - REPEATED_PERCENT_MAX)
}

/// Whether the way in which a call has ended in a sealed runtime was due to that, since it has ended in another way in a
/// runtime of its own, or had to.
fn is_of_sealing<T>(sealed: &Result<T, Over>, own: &Result<T, Over>) -> bool {
    match (sealed, own) {
        // The server has ended it, so how it would have ended is not known.
        (_, Err(Over::Again | Over::Stopped | Over::Closed)) => false,
        (_, Ok(_) | Err(Over::Failed(Failure::TimeExceeded | Failure::MemoryExceeded))) => true,
        (Err(Over::Failed(sealed)), Err(Over::Failed(own))) => sealed != own,
        (Ok(_) | Err(Over::Again | Over::Stopped | Over::Closed), Err(Over::Failed(_))) => true,
    }
}

/// Whether a sealed runtime can serve more calls after one that has ended like this.
fn leaves_runtime<T>(ran: &Result<T, Over>) -> bool {
    match ran {
        // A throw is how scripts refuse.
        Ok(_) | Err(Over::Failed(Failure::Thrown(_) | Failure::Result(_)) | Over::Stopped) => true,
        Err(Over::Failed(Failure::Syntax(_) | Failure::TimeExceeded | Failure::MemoryExceeded))
        | Err(Over::Again | Over::Closed) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Thrown;

    #[test]
    fn a_call_is_repeated_with_nearly_all_of_its_time() {
        let time = Duration::from_secs(100);
        for (left, is_repeated) in [(100, true), (95, true), (94, false), (0, false)] {
            assert_eq!(leaves_time(time, Duration::from_secs(left)), is_repeated, "{left}");
        }
    }

    #[test]
    fn a_call_that_ends_otherwise_when_repeated_needs_its_own_runtime() {
        let thrown = |text: &str| {
            Err(Over::Failed(Failure::Thrown(Thrown { text: text.to_owned(), ..Thrown::default() })))
        };
        for (own, is_of_sealing) in [
            (Ok(()), true),
            (thrown("a"), false),
            (thrown("b"), true),
            (Err(Over::Failed(Failure::TimeExceeded)), true),
            (Err(Over::Failed(Failure::MemoryExceeded)), true),
            (Err(Over::Stopped), false),
        ] {
            assert_eq!(super::is_of_sealing(&thrown("a"), &own), is_of_sealing, "{own:?}");
        }
        for (ran, is_kept) in [
            (Ok(()), true),
            (thrown("a"), true),
            (Err(Over::Stopped), true),
            (Err(Over::Failed(Failure::TimeExceeded)), false),
            (Err(Over::Failed(Failure::MemoryExceeded)), false),
        ] {
            assert_eq!(leaves_runtime(&ran), is_kept, "{ran:?}");
        }
        let full = || Err::<(), _>(Over::Failed(Failure::MemoryExceeded));
        assert!(is_of_sealing(&full(), &full()));
    }
}
