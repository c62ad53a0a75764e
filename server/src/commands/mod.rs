//! The commands of the program.

mod config;
mod keys;
mod local_server;
mod partitions;
mod repair;
mod script;
mod script_names;
mod start;
mod verify;

use crate::failure::Failure;
use crate::files;
use crate::mode::Mode;
use crate::settings::{self, UnknownVariable};
use clap::Command;
use std::ffi::OsString;

/// Runs the command given by `arguments`; the default is `dev`.
pub(crate) fn run(
    arguments: impl Iterator<Item = OsString>,
    environment: impl Fn(&str) -> Option<String>,
    unknown: &[UnknownVariable],
) -> Result<(), Failure> {
    let matches = command().try_get_matches_from(arguments)?;
    files::make_new_files_private();
    match matches.subcommand() {
        Some(("config", config)) => match config.subcommand() {
            Some((_, show)) => config::show(show, environment, unknown),
            None => Err(Failure::Failed("config needs a subcommand".to_owned())),
        },
        Some(("keys", keys)) => keys::run(keys, environment),
        Some(("partitions", partitions)) => partitions::run(partitions, environment),
        Some(("script", script)) => script::run(script, environment),
        Some(("verify", verify)) => verify::run(verify, environment),
        Some(("repair", repair)) => repair::run(repair, environment),
        Some((script::WORKER, worker)) => script::work(worker),
        Some(("serve", serve)) => start::run(Mode::Serve, serve, environment, unknown),
        Some((_, dev)) => start::run(Mode::Dev, dev, environment, unknown),
        None => start::run(Mode::Dev, &matches, environment, unknown),
    }
}

fn command() -> Command {
    let dev = Command::new("dev")
        .about("Serve on this machine with the well-known emulator key (the default)")
        .after_help("Examples:\n  perihelion dev\n  perihelion dev --memory --nosql 127.0.0.1:0");
    let serve = Command::new("serve")
        .about("Serve with its own keys, also to other machines")
        .after_help("Examples:\n  perihelion serve --data /var/lib/perihelion --nosql 0.0.0.0:8081\n  perihelion serve --tls-certificate fullchain.pem --tls-key key.pem --nosql 0.0.0.0:443");
    let show = Command::new("show")
        .about("Print every setting, and with --origin its source")
        .after_help("Example:\n  perihelion config show --origin")
        .arg(
            clap::Arg::new("origin")
                .long("origin")
                .action(clap::ArgAction::SetTrue)
                .help("Print the origin of each value"),
        );
    let config = Command::new("config")
        .about("Show the settings")
        .subcommand_required(true)
        .subcommand(settings::with_arguments(show));
    let perihelion = Command::new("perihelion")
        .version(env!("CARGO_PKG_VERSION"))
        .about("A self-hosted database that speaks the protocols of Azure Cosmos DB")
        .after_help("Examples:\n  perihelion\n  perihelion --data ./my-data --nosql 127.0.0.1:9000");
    // Options before a subcommand would belong to no command and be ignored.
    settings::with_arguments(perihelion).args_conflicts_with_subcommands(true).subcommands([
        settings::with_arguments(dev),
        settings::with_arguments(serve),
        keys::command(),
        partitions::command(),
        verify::command(),
        repair::command(),
        script::command(),
        script::worker_command(),
        config,
    ])
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_consistent() {
        super::command().debug_assert();
    }

    #[test]
    fn options_stand_behind_their_command() {
        let parse = |words: &[&str]| super::command().try_get_matches_from(words.iter().copied());
        for words in [
            &["perihelion", "--data", "other", "keys", "rotate", "primary"][..],
            &["perihelion", "--data", "other", "repair"],
            &["perihelion", "--nosql", "127.0.0.1:0", "serve"],
            &["perihelion", "--config", "other.toml", "config", "show"],
        ] {
            let refused = parse(words).unwrap_err();
            assert_eq!(refused.kind(), clap::error::ErrorKind::ArgumentConflict, "{words:?}");
        }
        assert!(parse(&["perihelion", "--data", "other"]).is_ok());
        assert!(parse(&["perihelion", "repair", "--data", "other"]).is_ok());
    }
}
