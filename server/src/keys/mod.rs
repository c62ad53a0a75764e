//! The account's keys while the server runs: found or made at the start, replaced when their file changes.

mod file;

pub(crate) use file::{KeyFile, StoredKey};

use crate::failure::Failure;
use crate::files::Stamp;
use crate::screen::EMULATOR_KEY;
use crate::secret::Secret;
use engine::{AccountKey, Engine, KeyName, KeyUse};
use std::sync::Arc;
use std::time::Duration;

/// How often the file is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How many looks lie between two notes of when keys were used.
const LOOKS_PER_NOTE: u32 = 30;

/// Where keys may come from.
#[derive(Clone, Debug)]
pub(crate) struct KeySource {
    /// The file; `None` when nothing is on disk.
    pub(crate) file: Option<KeyFile>,
    /// Whether the well-known key opens the account too.
    pub(crate) well_known: bool,
    /// Whether the server can be reached from other machines.
    pub(crate) exposed: bool,
}

impl KeySource {
    /// All keys that are valid now.
    pub(crate) fn read(&self) -> Result<Vec<AccountKey>, Failure> {
        let stored = self.file.as_ref().map(KeyFile::read).transpose()?.flatten().unwrap_or_default();
        if let Some(key) = stored.iter().find(|key| self.exposed && key.text.reveal() == EMULATOR_KEY) {
            let name = key.name.text();
            return Err(Failure::Configuration(format!(
                "the {name} key is the well-known emulator key, which may be used on loopback only; \
                 replace it: perihelion keys rotate {name} --data DIR"
            )));
        }
        let mut keys: Vec<AccountKey> = stored.iter().filter_map(StoredKey::account_key).collect();
        if self.well_known {
            keys.extend(well_known().account_key());
        }
        Ok(keys)
    }

    /// What the file is now; to be asked before it is read, so that no change falls between.
    pub(crate) fn stamp(&self) -> Option<Stamp> {
        self.file.as_ref().and_then(KeyFile::stamp)
    }

    /// Takes over keys that have changed since `seen` and notes when they were used, for ever.
    pub(crate) async fn watch(&self, engine: &Arc<Engine>, seen: Option<Stamp>) {
        let Some(file) = self.file.clone() else { return std::future::pending().await };
        let mut keeper =
            Keeper { source: self.clone(), file, engine: Arc::clone(engine), seen, noted: Vec::new() };
        for look in 1_u32.. {
            tokio::time::sleep(LOOK_EVERY).await;
            // Files are for threads that may wait.
            let looked = tokio::task::spawn_blocking(move || {
                keeper.take_over();
                if look.is_multiple_of(LOOKS_PER_NOTE) {
                    keeper.note_uses();
                }
                keeper
            });
            match looked.await {
                Ok(same) => keeper = same,
                Err(cause) => {
                    tracing::error!(event = "keys_unwatched", %cause, "changes of account keys are no longer noticed until a restart");
                    return std::future::pending().await;
                }
            }
        }
    }

    /// Writes down when keys were used, at the end.
    pub(crate) fn note_uses(&self, engine: &Arc<Engine>) {
        let Some(file) = self.file.clone() else { return };
        let engine = Arc::clone(engine);
        Keeper { source: self.clone(), file, engine, seen: None, noted: Vec::new() }.note_uses();
    }
}

/// Keeps engine and files in step.
struct Keeper {
    source: KeySource,
    file: KeyFile,
    engine: Arc<Engine>,
    /// The file as it was read last.
    seen: Option<Stamp>,
    /// The uses as they were written last.
    noted: Vec<KeyUse>,
}

impl Keeper {
    /// Takes over the keys if their file has changed. A file that cannot be used changes nothing.
    fn take_over(&mut self) {
        let stamp = self.file.stamp();
        if stamp == self.seen {
            return;
        }
        self.seen = stamp;
        match self.source.read() {
            Ok(keys) if keys.is_empty() => {
                tracing::warn!(
                    event = "keys_missing",
                    "the file of account keys is gone; the old keys stay valid until the next start"
                );
            }
            Ok(keys) => {
                let names: Vec<_> = keys.iter().map(|key| key.name().text()).collect();
                self.engine.access().replace_keys(keys);
                tracing::info!(
                    event = "keys_reloaded",
                    keys = names.join(", "),
                    "account keys were reloaded"
                );
            }
            Err(failure) => {
                tracing::warn!(event = "keys_rejected", %failure, "the changed account keys are invalid; the old ones stay valid")
            }
        }
    }

    /// Writes down when keys were used, if that is news.
    fn note_uses(&mut self) {
        let uses = self.engine.access().key_uses();
        if uses == self.noted || !self.file.path().exists() {
            return;
        }
        match self.file.write_uses(&uses) {
            Ok(()) => self.noted = uses,
            Err(failure) => {
                tracing::warn!(event = "key_uses_unsaved", %failure, "the time of use of account keys could not be saved")
            }
        }
    }
}

/// The key that every emulator has.
fn well_known() -> StoredKey {
    StoredKey { name: KeyName::Primary, text: Secret::new(EMULATOR_KEY.to_owned()), created_seconds: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ambient::SystemAmbient;

    fn source(file: &KeyFile, well_known: bool, exposed: bool) -> KeySource {
        KeySource { file: Some(file.clone()), well_known, exposed }
    }

    #[test]
    fn the_well_known_key_is_refused_where_others_can_come() {
        let folder = tempfile::tempdir().unwrap();
        let file = KeyFile::of(folder.path());
        let text = format!("[secondary]\nkey = \"{EMULATOR_KEY}\"\n");
        crate::files::write_private(file.path(), &text).unwrap();
        assert_eq!(source(&file, false, false).read().unwrap().len(), 1);
        let failure = source(&file, false, true).read().unwrap_err();
        assert!(matches!(&failure, Failure::Configuration(text) if text.contains("keys rotate secondary")));
        file.rotate(KeyName::Secondary, &SystemAmbient::new()).unwrap();
        assert_eq!(source(&file, false, true).read().unwrap().len(), 1);
    }

    #[test]
    fn in_development_the_well_known_key_is_one_more() {
        let folder = tempfile::tempdir().unwrap();
        let file = KeyFile::of(folder.path());
        assert_eq!(source(&file, true, false).read().unwrap().len(), 1);
        file.make_if_missing(&SystemAmbient::new()).unwrap();
        assert_eq!(source(&file, true, false).read().unwrap().len(), 5);
        assert_eq!(source(&file, false, true).read().unwrap().len(), 4);
    }
}
