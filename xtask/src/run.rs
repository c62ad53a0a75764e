//! Runs programs, shows their output and optionally returns it.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{ChildStderr, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

/// Pause between two looks at a program that has closed its outputs but not ended.
const POLL_PAUSE: Duration = Duration::from_millis(20);

/// A program to run in the repository.
pub(crate) fn command(program: impl AsRef<std::ffi::OsStr>, folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder).args(arguments);
    command
}

/// The cargo that runs this program.
pub(crate) fn cargo(folder: &Path, arguments: &[&str]) -> Command {
    command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()), folder, arguments)
}

/// Runs to the end; a nonzero exit code is an error.
pub(crate) fn plain(mut command: Command) -> Result<(), String> {
    let name = describe(&command);
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{name}` ended with {status}")),
        Err(error) => Err(format!("cannot run `{name}`: {error}")),
    }
}

/// Runs to the end and forwards its output; returns the output and whether it succeeded.
pub(crate) fn tee(mut command: Command) -> Result<(String, bool), String> {
    let name = describe(&command);
    let failed = |error: std::io::Error| format!("cannot run `{name}`: {error}");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(failed)?;
    let text = forward((child.stdout.take(), child.stderr.take()));
    let status = child.wait().map_err(failed)?;
    Ok((text, status.success()))
}

/// Forwards both outputs of a program until it closes them; returns their text.
fn forward((output, errors): (Option<ChildStdout>, Option<ChildStderr>)) -> String {
    let errors = errors.map(|pipe| std::thread::spawn(move || pass_on(pipe, std::io::stderr())));
    let mut text = output.map(|pipe| pass_on(pipe, std::io::stdout())).unwrap_or_default();
    if let Some(Ok(errors)) = errors.map(std::thread::JoinHandle::join) {
        text.push_str(&errors);
    }
    text
}

/// As [`tee`], but kills the program when the time is up.
pub(crate) fn tee_within(mut command: Command, limit: Duration) -> Result<(String, bool), String> {
    let name = describe(&command);
    let failed = |error: std::io::Error| format!("cannot run `{name}`: {error}");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(failed)?;
    let pipes = (child.stdout.take(), child.stderr.take());
    let child = Arc::new(Mutex::new(child));
    let (ended, end) = mpsc::channel::<()>();
    let watched = Arc::clone(&child);
    let watch = std::thread::spawn(move || {
        // An error other than the timeout means that the program has ended.
        let is_late = matches!(end.recv_timeout(limit), Err(mpsc::RecvTimeoutError::Timeout));
        is_late && watched.lock().is_ok_and(|mut child| child.kill().is_ok())
    });
    let text = forward(pipes);
    // Without holding the lock while it waits: a program may run on after it closed its outputs.
    let status = loop {
        let mut child = child.lock().map_err(|error| format!("cannot wait for `{name}`: {error}"))?;
        if let Some(status) = child.try_wait().map_err(failed)? {
            break status;
        }
        drop(child);
        std::thread::sleep(POLL_PAUSE);
    };
    drop(ended);
    if watch.join().unwrap_or(false) {
        return Err(format!("`{name}` took longer than {} s", limit.as_secs()));
    }
    Ok((text, status.success()))
}

/// Whether a program exists and succeeds with these arguments.
pub(crate) fn works(program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    let quiet = command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// Copies line by line, so that lines of two streams do not mix.
fn pass_on(from: impl Read, mut to: impl Write) -> String {
    let mut from = BufReader::new(from);
    let mut text = String::new();
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
        // A closed output is no reason to stop the program.
        let _ = to.write_all(&line).and_then(|()| to.flush());
        text.push_str(&String::from_utf8_lossy(&line));
        line.clear();
    }
    text
}

fn describe(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_both_streams_and_the_exit_are_kept() {
        let shell = command("sh", Path::new("/"), &["-c", "echo one; echo two >&2; exit 3"]);
        let (text, is_good) = tee(shell).unwrap();
        assert!(text.contains("one\n") && text.contains("two\n") && !is_good);
        assert!(tee(command("no-such-program", Path::new("/"), &[])).is_err());
        assert!(plain(command("false", Path::new("/"), &[])).unwrap_err().contains("false"));
        assert!(works("true", &[]) && !works("no-such-program", &[]));
    }

    #[test]
    fn a_program_without_an_end_is_killed() {
        let endless = command("tail", Path::new("/"), &["-f", "/dev/null"]);
        let silent = command("sh", Path::new("/"), &["-c", "exec >/dev/null 2>&1; exec tail -f /dev/null"]);
        for program in [endless, silent] {
            assert!(tee_within(program, Duration::from_millis(1)).unwrap_err().contains("took longer"));
        }
        let short = command("sh", Path::new("/"), &["-c", "echo one; exit 3"]);
        assert_eq!(tee_within(short, Duration::from_secs(600)), Ok(("one\n".to_owned(), false)));
    }
}
