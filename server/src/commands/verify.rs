//! `perihelion verify`: the data folder checked against itself, while no server uses it.

use super::start::open_store;
use crate::ambient::SystemAmbient;
use crate::failure::Failure;
use crate::settings::{self, Settings};
use clap::{ArgMatches, Command};
use engine::{Verification, VerifiedContainer};
use std::sync::Arc;

/// Findings of a container that are printed; the rest is counted.
const FINDINGS_SHOWN_MAX: usize = 20;

pub(super) fn command() -> Command {
    settings::with_arguments(
        Command::new("verify")
            .about("Check the data folder against itself, while no server uses it")
            .after_help(
                "Every row is derived again from the documents and compared: numbers, unique keys, expiry, log, \
                 counts, index.\nEnds with 0 if nothing contradicts anything, with 1 otherwise.\n\n\
                 Example:\n  perihelion verify --data ./perihelion-data",
            ),
    )
}

pub(super) fn run(matches: &ArgMatches, environment: impl Fn(&str) -> Option<String>) -> Result<(), Failure> {
    let settings = Settings::from_raw(&settings::gather(matches, environment)?)?;
    if settings.memory {
        return Err(Failure::Configuration("setting \"memory\": there is nothing to verify".to_owned()));
    }
    if !settings.data.join("store").is_dir() {
        return Err(Failure::Io {
            what: format!("cannot verify \"{}\"", settings.data.display()),
            cause: "there is no store in it; name the right folder with --data DIR".to_owned(),
        });
    }
    let store = open_store(&settings)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Failed(format!("cannot start the runtime: {error}")))?;
    let verification = runtime.block_on(async {
        let verification =
            engine::verify(&store, rest::read_computed_property, Arc::new(SystemAmbient::new())).await;
        // Nothing was changed; what closing would say of the disk is no answer to what was asked.
        let _ = store.close().await;
        verification
    });
    let verification = verification.map_err(|fault| Failure::Io {
        what: format!("cannot read the data in \"{}\"", settings.data.display()),
        cause: fault.to_string(),
    })?;
    show(&verification);
    match verification.is_sound() {
        true => Ok(()),
        false => Err(Failure::Failed("the data contradict themselves, as told above".to_owned())),
    }
}

#[allow(clippy::print_stdout)] // what the command is for
fn show_container(container: &VerifiedContainer) {
    let VerifiedContainer { database, name, documents, findings, index_findings, unindexed } = container;
    let count = findings.len() + index_findings.len();
    match count {
        0 => println!("{database}/{name}: {documents} documents, sound"),
        count => println!("{database}/{name}: {documents} documents, {count} findings"),
    }
    let rows = findings.iter().map(ToString::to_string);
    let texts = rows.chain(index_findings.iter().map(ToString::to_string));
    texts.take(FINDINGS_SHOWN_MAX).for_each(|finding| println!("  {finding}"));
    if count > FINDINGS_SHOWN_MAX {
        println!("  … and {} more", count - FINDINGS_SHOWN_MAX);
    }
    if *unindexed > 0 {
        println!("  the index of {unindexed} partitions is not finished; a server goes on with it");
    }
}

#[allow(clippy::print_stdout)] // what the command is for
fn show(verification: &Verification) {
    for container in &verification.containers {
        show_container(container);
    }
    for number in &verification.strays {
        println!("rows of container {} belong to nothing", number.0);
    }
    if verification.is_sound() {
        println!("{} containers, sound", verification.containers.len());
    }
}
