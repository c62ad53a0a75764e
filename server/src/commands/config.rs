//! `perihelion config show`: every setting with its value and origin.

use crate::failure::Failure;
use crate::output::say;
use crate::settings::{self, DEFINITIONS, Settings, UnknownVariable};
use clap::ArgMatches;

#[allow(clippy::print_stderr)] // standard output has the settings alone
pub(super) fn show(
    matches: &ArgMatches,
    environment: impl Fn(&str) -> Option<String>,
    unknown: &[UnknownVariable],
) -> Result<(), Failure> {
    for UnknownVariable { name, nearest } in unknown {
        eprintln!("perihelion: unknown variable {name} is ignored; did you mean {nearest}?");
    }
    let raw = settings::gather(matches, environment)?;
    Settings::from_raw(&raw)?;
    let width = DEFINITIONS.iter().map(|definition| definition.name.len()).max().unwrap_or(0);
    for definition in DEFINITIONS {
        let Some((value, origin)) = raw.get(definition.name) else { continue };
        let name = definition.name;
        if matches.get_flag("origin") {
            let meaning = settings::resolved(&raw, name)?.map(|text| format!(": {text}")).unwrap_or_default();
            say!("{name:width$} = {value:?}  # {origin}{meaning}");
        } else {
            say!("{name:width$} = {value:?}");
        }
    }
    Ok(())
}
