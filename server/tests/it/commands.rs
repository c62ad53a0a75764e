//! Exit codes and texts of the command line.

use crate::process::{Server, program, run, text};
use rustix::process::Signal;
use std::process::Stdio;

#[test]
fn help_names_every_command_and_bad_usage_is_told_apart() {
    let help = run(&["--help"]);
    assert!(help.status.success());
    let help = String::from_utf8(help.stdout).unwrap();
    for command in ["dev", "serve", "keys", "verify", "repair", "script", "config"] {
        assert!(help.contains(&format!("\n  {command} ")), "{command} in {help}");
    }
    assert_eq!(run(&["--no-such-flag"]).status.code(), Some(2));
    assert_eq!(run(&["dev", "--idle-timeout-ms", "0"]).status.code(), Some(78));
    assert_eq!(run(&["dev", "--plain-http", "sometimes"]).status.code(), Some(78));
    assert_eq!(run(&["dev", "--compatibility", "lenient"]).status.code(), Some(78));
    assert_eq!(run(&["dev", "--nosql", "off"]).status.code(), Some(78));
}

#[test]
fn scripts_are_checked_by_a_worker_process() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("script.js");
    let path = file.to_str().unwrap();
    std::fs::write(&file, "function (a) {\n  return a + 1;\n}").unwrap();
    let checked = run(&["script", "check", path]);
    assert!(checked.status.success(), "{checked:?}");
    let text =
        "function (a) {\n  var s = 'require';\n  process.exit(setTimeouts + s);\n  return new Map(__.x);\n}";
    std::fs::write(&file, text).unwrap();
    let checked = run(&["script", "check", path]);
    let text = String::from_utf8(checked.stdout).unwrap();
    let warnings: Vec<&str> = text.lines().filter(|line| line.contains("warning")).collect();
    assert_eq!(warnings.len(), 2, "{text}");
    assert!(warnings[0].contains(":3:") && warnings[0].contains("\"process\""), "{text}");
    assert!(warnings[1].contains("\"setTimeouts\""), "{text}");
    std::fs::write(&file, "function (a) {\n  return a +;\n}").unwrap();
    let checked = run(&["script", "check", path]);
    assert_eq!(checked.status.code(), Some(1));
    let text = String::from_utf8(checked.stderr).unwrap();
    assert!(text.contains(&format!("{path}:2:")), "{text}");
    for (text, line) in [
        ("", "1:1: the script is empty, a function is expected"),
        ("// not yet\n", "1:1: the script is empty, a function is expected"),
        ("\n  42\n", "2:3: the script is a number, not a function"),
        ("class A {}\n", "1:1: the script is a class, not a function"),
        ("var f = function () {};\n", "1:1: the script declares no function"),
        (
            "function () {}\n\nfunction () {}\n",
            "3:1: function without a name; in a script of several functions each needs one",
        ),
        ("function () {\n  if (", "2:7: unexpected end of the script, or unbalanced brackets"),
        ("// for Node.js\nmodule.exports = function () {};\n", "2:1: ReferenceError: module is not defined"),
    ] {
        std::fs::write(&file, text).unwrap();
        let checked = run(&["script", "check", path]);
        assert_eq!(checked.status.code(), Some(1), "{text}");
        let shown = String::from_utf8(checked.stderr).unwrap();
        assert!(shown.contains(&format!("{path}:{line}\n")), "{text}: {shown}");
    }
    assert_eq!(run(&["script", "check", "/no/such/file"]).status.code(), Some(74));
    let help = String::from_utf8(run(&["--help"]).stdout).unwrap();
    assert!(!help.contains("\n  script-worker "), "{help}");
}

/// Commands on data do not list the settings of a server, which have no effect on them.
#[test]
fn commands_take_the_settings_that_they_use() {
    for command in
        [&["verify"][..], &["repair"], &["keys", "list"], &["partitions", "list"], &["script", "run"]]
    {
        let help = String::from_utf8(run(&[command, &["--help"]].concat()).stdout).unwrap();
        assert!(help.contains("--data <DIR>"), "{command:?}: {help}");
        let asks_server = ["partitions", "script"].contains(&command[0]);
        assert_eq!(help.contains("--nosql <ADDR>"), asks_server, "{command:?}: {help}");
        assert!(!help.contains("--partition-max-bytes"), "{command:?}: {help}");
    }
    let refused = run(&["verify", "--partition-max-bytes", "1"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    // From the environment and the file they come all the same.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("settings.toml");
    std::fs::write(&file, "memory = true\n").unwrap();
    let refused = run(&["verify", "--config", text(&file)]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("nothing to verify"), "{refused:?}");
}

/// As behind `| head`, which does not read everything.
#[test]
fn output_that_nobody_reads_is_no_failure() {
    let mut child =
        program().args(["config", "show"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let ended = child.wait_with_output().unwrap();
    assert!(ended.status.success() && ended.stderr.is_empty(), "{ended:?}");
}

#[test]
fn an_unknown_variable_is_reported_with_the_nearest_name() {
    let typo = |arguments: &[&str]| {
        let mut command = program();
        command.args(arguments).env("PERIHELION_TRHOUGHPUT", "enforce");
        command.output().unwrap()
    };
    let shown = typo(&["config", "show"]);
    // This start ends behind the warning: the address must be on loopback.
    let started = typo(&["dev", "--memory", "--nosql", "0.0.0.0:0"]);
    assert_eq!((shown.status.code(), started.status.code()), (Some(0), Some(78)));
    for output in [shown, started] {
        let warning = String::from_utf8(output.stderr).unwrap();
        assert!(warning.contains("PERIHELION_TRHOUGHPUT"), "{warning}");
        assert!(warning.contains("PERIHELION_THROUGHPUT"), "{warning}");
    }
}

/// `--data "$UNSET"` must not put a store into the working directory.
#[test]
fn an_empty_folder_is_refused() {
    let refused = run(&["dev", "--data", "", "--nosql", "127.0.0.1:0"]);
    assert_eq!(refused.status.code(), Some(78), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("must not be empty"), "{refused:?}");
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    let refused = run(&["keys", "rotate", "primary", "--data", text(&missing)]);
    assert_eq!(refused.status.code(), Some(74), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("no account keys"), "{refused:?}");
}

#[test]
fn a_closed_terminal_stops_the_server_as_a_signal_does() {
    for signal in [Signal::HUP, Signal::INT] {
        let printed = Server::dev(&[]).stop_by(signal);
        assert!(printed.contains("stopping"), "{printed}");
        // A client that does not trust the certificate yet cannot get it by https.
        assert!(printed.contains("certificate  http://"), "{printed}");
    }
}
