//! `perihelion script`: tries scripts from the shell. `perihelion script-worker` is the process that executes them.

use crate::failure::Failure;
use clap::{Arg, ArgMatches, Command, value_parser};
use script::{Limits, ScriptFault, WorkerProgram, Workers};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The command of a worker process.
pub(super) const WORKER: &str = "script-worker";

/// The executable of this process, also if its file was replaced since it was started.
const THIS_PROGRAM: &str = if cfg!(target_os = "linux") { "/proc/self/exe" } else { "" };

pub(super) fn command() -> Command {
    let check = Command::new("check")
        .about("Check that a file is a script that can be executed")
        .after_help("Exit code: 0 if it is, 1 if not.\n\nExample:\n  perihelion script check procedure.js")
        .arg(Arg::new("file").required(true).value_parser(value_parser!(PathBuf)).help("The file"));
    Command::new("script")
        .about("Try stored procedures, triggers and functions")
        .subcommand_required(true)
        .subcommand(check)
}

/// The command of the worker process; only the server uses it.
pub(super) fn worker_command() -> Command {
    let memory = Arg::new("memory-bytes").required(true).value_parser(value_parser!(u64));
    Command::new(WORKER).hide(true).about("Execute scripts for a server").arg(memory)
}

/// Executes scripts until the server closes the pipe.
pub(super) fn work(matches: &ArgMatches) -> Result<(), Failure> {
    let memory_bytes =
        matches.get_one::<u64>("memory-bytes").copied().unwrap_or(script::MEMORY_BYTES_DEFAULT);
    match script::worker::main(memory_bytes) {
        ExitCode::SUCCESS => Ok(()),
        _ => Err(Failure::Failed("the script worker has no memory".to_owned())),
    }
}

pub(super) fn run(matches: &ArgMatches) -> Result<(), Failure> {
    match matches.subcommand() {
        Some(("check", check)) => match check.get_one::<PathBuf>("file") {
            Some(file) => check_file(file),
            None => Err(Failure::Failed("script check needs a file".to_owned())),
        },
        Some(_) | None => Err(Failure::Failed("script needs a subcommand".to_owned())),
    }
}

/// How this program starts its workers.
fn worker_program() -> Result<WorkerProgram, Failure> {
    let path = match THIS_PROGRAM {
        "" => std::env::current_exe()
            .map_err(|error| Failure::Failed(format!("cannot find this program: {error}")))?,
        path => PathBuf::from(path),
    };
    Ok(WorkerProgram { path, arguments: vec![WORKER.to_owned()] })
}

#[allow(clippy::print_stdout)] // the answer of the command
fn check_file(file: &Path) -> Result<(), Failure> {
    let source = std::fs::read_to_string(file).map_err(|error| Failure::Io {
        what: format!("cannot read \"{}\"", file.display()),
        cause: error.to_string(),
    })?;
    let workers = Workers::new(worker_program()?, Limits::for_cores(1));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Failed(format!("cannot start the runtime: {error}")))?;
    match runtime.block_on(workers.check(&source)) {
        Ok(()) => {
            println!("{}: the script can be executed", file.display());
            Ok(())
        }
        Err(ScriptFault::Syntax(fault)) => Err(Failure::Failed(format!(
            "{}:{}:{}: {}",
            file.display(),
            fault.line,
            fault.column,
            fault.message
        ))),
        Err(fault) => Err(Failure::Failed(format!("{}: {fault}", file.display()))),
    }
}
