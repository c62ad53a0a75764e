//! `perihelion keys`: lists and changes the account keys, with or without a running server.
//!
//! A running server reloads the changed file within seconds; no restart is needed.

use crate::ambient::SystemAmbient;
use crate::failure::Failure;
use crate::files;
use crate::keys::{KeyFile, StoredKey};
use crate::output::say;
use crate::settings::{self, Settings};
use clap::{Arg, ArgMatches, Command};
use engine::KeyName;
use model::Ambient as _;

/// The commands without the settings.
pub(super) fn command() -> Command {
    let name = || {
        let names = KeyName::ALL.map(KeyName::text);
        Arg::new("name").required(true).value_parser(names).help("Which of the account's four keys")
    };
    let create = Command::new("create").about(
        "Create the four keys before the first start of `perihelion serve`, which otherwise creates them",
    );
    let list = Command::new("list")
        .about("Show each key's fingerprint, age and last use, but not the key")
        .after_help("Example:\n  perihelion keys list --data ./perihelion-data");
    let show = Command::new("show")
        .about("Print one key")
        .after_help("Example:\n  perihelion keys show primary")
        .arg(name());
    let rotate = Command::new("rotate")
        .about("Replace one key by a new one; a running server reloads it and refuses the old one")
        .after_help("Example:\n  perihelion keys rotate secondary")
        .arg(name());
    Command::new("keys").about("List and change the account keys").subcommand_required(true).subcommands(
        [create, list, show, rotate].map(|command| settings::with_arguments_of(command, settings::OF_DATA)),
    )
}

pub(super) fn run(matches: &ArgMatches, environment: impl Fn(&str) -> Option<String>) -> Result<(), Failure> {
    let Some((command, matches)) = matches.subcommand() else {
        return Err(Failure::Failed("keys needs a subcommand".to_owned()));
    };
    let settings = Settings::from_raw(&settings::gather(matches, environment)?)?;
    let (file, ambient) = (KeyFile::of(&settings.data), SystemAmbient::new());
    let chosen = || matches.get_one::<String>("name").and_then(|name| KeyName::parse(name));
    match (command, chosen) {
        ("create", _) => {
            files::make_private_folder(&settings.data)?;
            let made = file.make_if_missing(&ambient)?;
            say!("{} {}", if made { "made" } else { "nothing to do: keys are in" }, file.path().display());
        }
        ("list", _) => list(&file, ambient.now_seconds())?,
        ("show", chosen) => say!("{}", find(&file, chosen())?.text.reveal()),
        (_, chosen) => {
            let name = chosen().ok_or_else(|| file.missing())?;
            file.rotate(name, &ambient)?;
            let key = find(&file, Some(name))?;
            say!("{} has a new key with the fingerprint {}", name.text(), fingerprint(&key));
            say!(
                "print it with: perihelion keys show {} --data \"{}\"",
                name.text(),
                settings.data.display()
            );
        }
    }
    Ok(())
}

fn find(file: &KeyFile, name: Option<KeyName>) -> Result<StoredKey, Failure> {
    let keys = file.read()?.ok_or_else(|| file.missing())?;
    let found = keys.into_iter().find(|key| Some(key.name) == name);
    let path = file.path().display();
    found.ok_or_else(|| {
        Failure::Configuration(format!("\"{path}\" has no such key; create it with keys rotate"))
    })
}

fn list(file: &KeyFile, now_seconds: u64) -> Result<(), Failure> {
    let keys = file.read()?.ok_or_else(|| file.missing())?;
    let uses = file.read_uses();
    say!("{:<19} {:<12} {:<12} LAST USED", "NAME", "FINGERPRINT", "MADE");
    for key in keys {
        let account_key = key.account_key().map(|account_key| account_key.fingerprint());
        let known =
            uses.iter().find(|known| known.name == key.name && Some(known.fingerprint) == account_key);
        let used = known.and_then(|known| known.last_used_seconds);
        let made = Some(key.created_seconds).filter(|seconds| *seconds > 0);
        say!(
            "{:<19} {:<12} {:<12} {}",
            key.name.text(),
            fingerprint(&key),
            made.map_or_else(|| "unknown".to_owned(), |seconds| age(now_seconds, seconds)),
            used.map_or_else(|| "never".to_owned(), |seconds| age(now_seconds, seconds))
        );
    }
    Ok(())
}

fn fingerprint(key: &StoredKey) -> String {
    key.account_key().map_or_else(String::new, |key| format!("{:08x}", u32::from_be_bytes(key.fingerprint())))
}

/// Age in the largest unit that is not zero.
fn age(now_seconds: u64, then_seconds: u64) -> String {
    let seconds = now_seconds.saturating_sub(then_seconds);
    for (unit, length) in [("d", 86_400), ("h", 3_600), ("min", 60)] {
        if seconds >= length {
            return format!("{} {unit} ago", seconds / length);
        }
    }
    "just now".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_the_unit_that_people_would_choose() {
        let ages = [0, 59, 60, 3_599, 3_600, 86_399, 86_400, 864_000]
            .map(|seconds| age(1_000_000, 1_000_000 - seconds));
        let expected =
            ["just now", "just now", "1 min ago", "59 min ago", "1 h ago", "23 h ago", "1 d ago", "10 d ago"];
        assert_eq!(ages, expected);
        assert_eq!(age(1, 2), "just now");
    }
}
