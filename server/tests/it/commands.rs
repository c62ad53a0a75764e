//! Exit codes and texts of the command line.

use crate::process::run;

#[test]
fn help_names_every_command_and_bad_usage_is_told_apart() {
    let help = run(&["--help"]);
    assert!(help.status.success());
    let help = String::from_utf8(help.stdout).unwrap();
    for command in ["dev", "serve", "keys", "verify", "repair", "config"] {
        assert!(help.contains(&format!("\n  {command} ")), "{command} in {help}");
    }
    assert_eq!(run(&["--no-such-flag"]).status.code(), Some(2));
    assert_eq!(run(&["dev", "--idle-timeout-ms", "0"]).status.code(), Some(78));
    assert_eq!(run(&["dev", "--plain-http", "sometimes"]).status.code(), Some(78));
    assert_eq!(run(&["dev", "--compatibility", "lenient"]).status.code(), Some(78));
    assert_eq!(run(&["dev", "--nosql", "off"]).status.code(), Some(78));
}
