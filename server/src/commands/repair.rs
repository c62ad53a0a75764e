//! `perihelion repair`: truncates unreadable journals of a store that no server uses.

use super::start::open_failure;
use crate::failure::Failure;
use crate::output::say;
use crate::settings::{self, Settings};
use crate::store_marker::{self, STORE_FOLDER};
use clap::{ArgMatches, Command};
use kv::{JournalCut, Repair};

pub(super) fn command() -> Command {
    settings::with_arguments_of(
        Command::new("repair")
            .about("Truncate a damaged journal, so that the store can be opened without the commits after the damage")
            .after_help(
                "A server refuses a store whose journal is damaged before acknowledged commits, or was truncated. This \
                 command cuts the journal at the first unreadable commit: that commit and all later ones are lost.\n\
                 Prints what was cut. The cut bytes are saved in a folder next to the store. An intact store is not \
                 changed; a missing or damaged file SYNCED, which says how far the journals were synced, is made anew. Other missing or damaged files are not repaired.\n\
                 Check the data afterwards with `perihelion verify`.\n\n\
                 Example:\n  perihelion repair --data ./perihelion-data",
            ),
        settings::OF_DATA,
    )
}

pub(super) fn run(matches: &ArgMatches, environment: impl Fn(&str) -> Option<String>) -> Result<(), Failure> {
    let settings = Settings::from_raw(&settings::gather(matches, environment)?)?;
    if settings.memory {
        return Err(Failure::Configuration("setting \"memory\": there is nothing to repair".to_owned()));
    }
    store_marker::check_store(&settings.data, "repair")?;
    let repair = kv::repair(&settings.data.join(STORE_FOLDER));
    show(&repair.map_err(|fault| open_failure(&settings, &fault))?);
    Ok(())
}

fn show(repair: &Repair) {
    let Repair { cuts, readable_commits, is_torn, shortened_from, is_synced_lost } = repair;
    if *is_synced_lost {
        say!(
            "the file SYNCED was missing or damaged and was rebuilt: whether the journals were truncated before is \
             unknown"
        );
    }
    if cuts.is_empty() && !is_synced_lost {
        say!("the journals are intact, nothing was changed; check the other files with `perihelion verify`");
    }
    if cuts.is_empty() {
        return;
    }
    for JournalCut { path, position, cut_bytes, saved } in cuts {
        say!("{}: cut at byte {position}, {cut_bytes} bytes", path.display());
        say!("  saved in {}", saved.display());
    }
    say!("lost: at least one unreadable commit, and {readable_commits} readable commits after it");
    if let Some(synced_bytes) = shortened_from {
        say!("the journal was synced up to byte {synced_bytes} and truncated afterwards");
    }
    if *is_torn {
        say!("a power failure interrupted a write; a server truncates this by itself");
    } else {
        say!("some of them were acknowledged as durable; check the rest with `perihelion verify`");
    }
}
