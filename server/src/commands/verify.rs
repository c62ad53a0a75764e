//! `perihelion verify`: checks the consistency of a data folder that no server uses.
//!
//! Works on a temporary copy: opening a store changes files, and a check must not.

use super::start::open_failure;
use crate::ambient::SystemAmbient;
use crate::failure::Failure;
use crate::output::say;
use crate::settings::{self, Settings};
use crate::store_marker::{self, STORE_FOLDER};
use clap::{ArgMatches, Command};
use engine::{STORE_SPACES, Verification, VerifiedContainer};
use kv::{EmbeddedOptions, Store, StoreCopy};
use std::sync::Arc;

/// Most findings printed per container; the rest is counted.
const FINDINGS_SHOWN_MAX: usize = 20;

pub(super) fn command() -> Command {
    settings::with_arguments_of(
        Command::new("verify")
            .about("Check the consistency of the data folder; no server may be using it")
            .after_help(
                "Compares every file with its checksum. Derives every row again from the documents and compares it: \
                 numbers, unique keys, expiry, log, counts, index.\nThe store is not changed: a temporary copy next to \
                 it, with hard links to the tables, is checked and removed.\nExit code: 0 if the data are consistent, \
                 1 if not, 74 if files are missing or damaged.\n\n\
                 Example:\n  perihelion verify --data ./perihelion-data",
            ),
        settings::OF_DATA,
    )
}

pub(super) fn run(matches: &ArgMatches, environment: impl Fn(&str) -> Option<String>) -> Result<(), Failure> {
    let settings = Settings::from_raw(&settings::gather(matches, environment)?)?;
    if settings.memory {
        return Err(Failure::Configuration("setting \"memory\": there is nothing to verify".to_owned()));
    }
    store_marker::check_store(&settings.data, "verify")?;
    let fault = |fault| open_failure(&settings, &fault);
    let copy = StoreCopy::of(&settings.data.join(STORE_FOLDER)).map_err(fault)?;
    let mut options = EmbeddedOptions::new(copy.path(), &STORE_SPACES);
    options.free_space_reserve_bytes = 0;
    options.accepts_torn = true;
    let store = Store::open(options).map_err(fault)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Failed(format!("cannot start the runtime: {error}")))?;
    let verification = runtime.block_on(async {
        let verification =
            engine::verify(&store, nosql::read_computed_property, Arc::new(SystemAmbient::new())).await;
        // Only the copy was changed, so a failure to close it does not matter.
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
        false => Err(Failure::Failed("the data are inconsistent, see above".to_owned())),
    }
}

fn show_container(container: &VerifiedContainer) {
    let VerifiedContainer { database, name, documents, findings, index_findings, unindexed } = container;
    let count = findings.len() + index_findings.len();
    match count {
        0 => say!("{database}/{name}: {documents} documents, sound"),
        count => say!("{database}/{name}: {documents} documents, {count} findings"),
    }
    let rows = findings.iter().map(ToString::to_string);
    let texts = rows.chain(index_findings.iter().map(ToString::to_string));
    texts.take(FINDINGS_SHOWN_MAX).for_each(|finding| say!("  {finding}"));
    if count > FINDINGS_SHOWN_MAX {
        say!("  … and {} more", count - FINDINGS_SHOWN_MAX);
    }
    if *unindexed > 0 {
        say!("  the index of {unindexed} partitions is incomplete; a server continues to build it");
    }
}

fn show(verification: &Verification) {
    for container in &verification.containers {
        show_container(container);
    }
    for number in &verification.strays {
        say!("container {} does not exist but has rows", number.0);
    }
    if verification.is_sound() {
        say!("{} containers, sound", verification.containers.len());
    }
}
