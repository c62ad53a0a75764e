//! `perihelion repair`: truncates unreadable journals of a store that no server uses, and prepares a store that has lost
//! its last writes, also a restored copy, for further use.

use super::start::open_failure;
use crate::failure::Failure;
use crate::output::say;
use crate::settings::{self, Settings};
use crate::store_marker::{self, STORE_FOLDER};
use clap::{Arg, ArgAction, ArgMatches, Command};
use engine::STORE_SPACES;
use kv::{EmbeddedOptions, JournalCut, Repair, Store};

const RESTORED: &str = "restored";

pub(super) fn command() -> Command {
    settings::with_arguments_of(
        Command::new("repair")
            .about("Truncate a damaged journal, so that the store can be opened, or prepare a restored copy for use")
            .after_help(
                "A server refuses a store whose journal is damaged before acknowledged commits, or was truncated. This \
                 command cuts the journal at the first unreadable commit: that commit and all later ones are lost. If \
                 all rows of that commit and of those before it are already in tables, only this part of the journal \
                 is removed and nothing is lost. If tables have rows of commits that a cut would lose, nothing is \
                 changed: restore a backup.\n\
                 Prints what was cut. The cut bytes are saved in a folder next to the store. An intact store is not \
                 changed; a missing or damaged file SYNCED, which says how far the journals were synced, is made anew. Other missing or damaged files are not repaired.\n\
                 Check the data afterwards with `perihelion verify`.\n\n\
                 Use --restored once after an older copy of the folder was put back, before the server is started. \
                 Clients may remember session tokens, ETags, resource ids and positions in the change feed that were \
                 assigned after the copy was made. The store then continues far after its end, so that none of these \
                 is assigned again, and readers of the change feed miss nothing that is written from now on. After a \
                 cut this is done without the flag.\n\n\
                 Example:\n  perihelion repair --data ./perihelion-data",
            )
            .arg(
                Arg::new(RESTORED)
                    .long(RESTORED)
                    .action(ArgAction::SetTrue)
                    .help("The folder is an older copy: assign no number again that clients may remember"),
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
    let repair = repair.map_err(|fault| open_failure(&settings, &fault))?;
    let is_restored = matches.get_flag(RESTORED);
    show(&repair, is_restored);
    if is_restored || !repair.cuts.is_empty() {
        skip_ahead(&settings)?;
        say!(
            "LSNs, ETags and resource ids continue far after the last ones: none that a client may remember is \
             assigned again"
        );
    }
    Ok(())
}

/// Lets the store continue far after its last write.
fn skip_ahead(settings: &Settings) -> Result<(), Failure> {
    let failed = |cause: String| Failure::Io {
        what: format!("cannot change the data in \"{}\"", settings.data.display()),
        cause,
    };
    let options = EmbeddedOptions::new(settings.data.join(STORE_FOLDER), &STORE_SPACES);
    let store = Store::open(options).map_err(|fault| open_failure(settings, &fault))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Failed(format!("cannot start the runtime: {error}")))?;
    runtime.block_on(async {
        let skipped = engine::skip_ahead(&store).await.map_err(|fault| failed(fault.to_string()));
        skipped.and(store.close().await.map_err(|fault| failed(fault.to_string())))
    })
}

fn show(repair: &Repair, is_restored: bool) {
    let Repair { cuts, unneeded, readable_commits, is_torn, shortened_from, is_synced_lost } = repair;
    if *is_synced_lost {
        say!(
            "the file SYNCED was missing or damaged and was rebuilt: whether the journals were truncated before is \
             unknown"
        );
    }
    for JournalCut { path, cut_bytes, saved, .. } in unneeded {
        say!("{}: the first {cut_bytes} bytes were damaged and removed", path.display());
        say!("  saved in {}", saved.display());
        say!("  lost there: nothing, all commits in them were already in tables");
    }
    if cuts.is_empty() && unneeded.is_empty() && !is_synced_lost && !is_restored {
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
