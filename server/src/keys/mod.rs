//! The account keys at run time: read or created at start, reloaded when their file changes.

mod file;

pub(crate) use file::{KeyFile, StoredKey};

use crate::failure::Failure;
use crate::files::Stamp;
use crate::screen::EMULATOR_KEY;
use crate::secret::Secret;
use engine::{AccountKey, Engine, KeyName, KeyUse};
use std::sync::Arc;
use std::time::Duration;

/// Poll interval of the file.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How far the written time of use of a key may be behind. A first use is written at once.
const USE_LAG_SECONDS: u64 = 30;

/// Sources of the account keys.
#[derive(Clone, Debug)]
pub(crate) struct KeySource {
    /// The key file; `None` for a server in memory.
    pub(crate) file: Option<KeyFile>,
    /// Whether the well-known emulator key is valid too.
    pub(crate) well_known: bool,
    /// Whether the server can be reached from other machines.
    pub(crate) exposed: bool,
}

impl KeySource {
    /// Whether everybody on this machine gets access to data that have keys of their own.
    pub(crate) fn opens_keyed_data(&self) -> bool {
        self.well_known && self.file.as_ref().is_some_and(|file| file.path().exists())
    }

    /// All valid keys.
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

    /// Identifies the content of the file; call it before reading, so that no change is missed.
    pub(crate) fn stamp(&self) -> Option<Stamp> {
        self.file.as_ref().and_then(KeyFile::stamp)
    }

    /// Reloads keys that have changed since `seen` and records when they were used, until cancelled.
    pub(crate) async fn watch(&self, engine: &Arc<Engine>, seen: Option<Stamp>) {
        let Some(file) = self.file.clone() else { return std::future::pending().await };
        let mut reloader = KeyReloader {
            source: self.clone(),
            file,
            engine: Arc::clone(engine),
            seen,
            recorded: Vec::new(),
        };
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            // File access blocks, so it runs on a blocking thread.
            let looked = tokio::task::spawn_blocking(move || {
                reloader.reload();
                if is_behind(&reloader.recorded, &reloader.engine.access().key_uses()) {
                    reloader.record_uses();
                }
                reloader
            });
            match looked.await {
                Ok(same) => reloader = same,
                Err(cause) => {
                    tracing::error!(event = "keys_unwatched", %cause, "changes of account keys are no longer noticed until a restart");
                    return std::future::pending().await;
                }
            }
        }
    }

    /// Records when keys were used, at shutdown.
    pub(crate) fn record_uses(&self, engine: &Arc<Engine>) {
        let Some(file) = self.file.clone() else { return };
        let engine = Arc::clone(engine);
        KeyReloader { source: self.clone(), file, engine, seen: None, recorded: Vec::new() }.record_uses();
    }
}

/// Synchronises the engine's keys with the files.
struct KeyReloader {
    source: KeySource,
    file: KeyFile,
    engine: Arc<Engine>,
    /// The file as last read.
    seen: Option<Stamp>,
    /// The times of use as last written.
    recorded: Vec<KeyUse>,
}

impl KeyReloader {
    /// Reloads the keys if their file has changed. An invalid file changes nothing.
    fn reload(&mut self) {
        let stamp = self.file.stamp();
        if stamp == self.seen {
            return;
        }
        self.seen = stamp;
        match self.source.read() {
            Ok(keys) if keys.is_empty() => {
                tracing::warn!(
                    event = "keys_missing",
                    "the file of account keys is missing; the old keys stay valid until the next start"
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

    /// Records when keys were used, if that has changed.
    fn record_uses(&mut self) {
        let uses = self.engine.access().key_uses();
        if uses == self.recorded || !self.file.path().exists() {
            return;
        }
        match self.file.write_uses(&uses) {
            Ok(()) => self.recorded = uses,
            Err(failure) => {
                tracing::warn!(event = "key_uses_unsaved", %failure, "the time of use of account keys could not be saved")
            }
        }
    }
}

/// The account of every storage emulator.
pub(crate) const STORAGE_EMULATOR_ACCOUNT: &str = "devstoreaccount1";

/// The key of every storage emulator. It is public, so it is only accepted on loopback.
pub(crate) const STORAGE_EMULATOR_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// The key of the account of every storage emulator.
pub(crate) fn storage_emulator_key() -> Option<AccountKey> {
    let text = Secret::new(STORAGE_EMULATOR_KEY.to_owned());
    StoredKey { name: KeyName::Primary, text, created_seconds: 0 }.account_key()
}

/// The key of every emulator.
fn well_known() -> StoredKey {
    StoredKey { name: KeyName::Primary, text: Secret::new(EMULATOR_KEY.to_owned()), created_seconds: 0 }
}

/// Whether the recorded times of use lack the first use of a key, or are too far behind.
fn is_behind(recorded: &[KeyUse], uses: &[KeyUse]) -> bool {
    uses.iter().any(|used| {
        let same = |other: &&KeyUse| other.fingerprint == used.fingerprint;
        let known = recorded.iter().find(same).and_then(|recorded| recorded.last_used_seconds);
        match (known, used.last_used_seconds) {
            (None, last) => last.is_some(),
            (Some(known), last) => last.is_some_and(|last| last >= known + USE_LAG_SECONDS),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ambient::SystemAmbient;

    /// A key in use was listed as never used for half a minute.
    #[test]
    fn a_first_use_is_recorded_at_once_and_later_ones_with_a_delay() {
        let used = |fingerprint: u8, last_used_seconds| KeyUse {
            name: KeyName::Primary,
            fingerprint: [fingerprint, 0, 0, 0],
            last_used_seconds,
        };
        assert!(!is_behind(&[], &[used(1, None)]));
        assert!(is_behind(&[], &[used(1, Some(100))]));
        assert!(is_behind(&[used(2, Some(100))], &[used(1, Some(100))]));
        assert!(is_behind(&[used(1, None)], &[used(1, Some(100))]));
        assert!(!is_behind(&[used(1, Some(100))], &[used(1, Some(129))]));
        assert!(is_behind(&[used(1, Some(100))], &[used(1, Some(130))]));
    }

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
