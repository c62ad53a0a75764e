//! The file of account keys in the data folder, and the file with the time each was last used.
//!
//! The server and the `keys` commands share them: a command replaces the key file and the server reloads it. Only the
//! server writes the other file.

use crate::failure::Failure;
use crate::files::{self, Stamp};
use crate::secret::Secret;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use engine::{AccountKey, KeyName, KeyUse};
use model::Ambient;
use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Length of a generated key.
const KEY_BYTES: usize = 64;
/// Shortest accepted key: the output length of the MAC's hash.
const KEY_BYTES_MIN: usize = 32;

/// A key as stored in the file.
#[derive(Clone, Debug)]
pub(crate) struct StoredKey {
    pub(crate) name: KeyName,
    pub(crate) text: Secret,
    /// Creation time in seconds since 1970; 0 if unknown.
    pub(crate) created_seconds: u64,
}

impl StoredKey {
    /// A new random key.
    fn random(name: KeyName, ambient: &dyn Ambient) -> StoredKey {
        let mut bytes = [0; KEY_BYTES];
        ambient.fill_random(&mut bytes);
        let text = Secret::new(BASE64_STANDARD.encode(bytes));
        StoredKey { name, text, created_seconds: ambient.now_seconds() }
    }

    /// The key in the engine's form; `None` if the text is invalid.
    pub(crate) fn account_key(&self) -> Option<AccountKey> {
        let bytes = BASE64_STANDARD.decode(self.text.reveal()).ok()?;
        (bytes.len() >= KEY_BYTES_MIN).then(|| AccountKey::named(self.name, &bytes))
    }
}

/// Paths of the key files of a data folder.
#[derive(Clone, Debug)]
pub(crate) struct KeyFile {
    path: PathBuf,
}

impl KeyFile {
    pub(crate) fn of(data: &Path) -> KeyFile {
        KeyFile { path: data.join("account-keys.toml") }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn uses_path(&self) -> PathBuf {
        self.path.with_file_name("account-keys-used.toml")
    }

    /// The keys, in the order of [`KeyName::ALL`]; `None` if there is no file yet.
    pub(crate) fn read(&self) -> Result<Option<Vec<StoredKey>>, Failure> {
        let Some(text) = files::read_private(&self.path)? else { return Ok(None) };
        let wrong = |reason: &str| {
            Failure::Configuration(format!("the key file \"{}\" is invalid: {reason}", self.path.display()))
        };
        // The parser's own message would quote the line, and with it the key.
        let table: Table = toml::from_str(&text).map_err(|_| wrong("it is not TOML"))?;
        parse(&table).map(Some).map_err(|reason| wrong(&reason))
    }

    /// Creates all keys if there are none; returns whether it did.
    pub(crate) fn make_if_missing(&self, ambient: &dyn Ambient) -> Result<bool, Failure> {
        let _lock = self.lock()?;
        if self.read()?.is_some() {
            return Ok(false);
        }
        self.write(&KeyName::ALL.map(|name| StoredKey::random(name, ambient)))?;
        Ok(true)
    }

    /// Replaces one key by a new one; the other three are kept.
    pub(crate) fn rotate(&self, name: KeyName, ambient: &dyn Ambient) -> Result<(), Failure> {
        let _lock = self.lock()?;
        let Some(mut keys) = self.read()? else { return Err(self.missing()) };
        keys.retain(|key| key.name != name);
        keys.push(StoredKey::random(name, ambient));
        keys.sort_by_key(|key| key.name);
        self.write(&keys)
    }

    /// The failure of a command that needs keys when there are none.
    pub(crate) fn missing(&self) -> Failure {
        Failure::Io {
            what: format!("there are no account keys in \"{}\"", self.path.display()),
            cause: "`perihelion serve` creates them at its first start (check --data); `perihelion dev` takes the well-known key, which it prints".to_owned(),
        }
    }

    /// Identifies the content of the file, to detect changes.
    pub(crate) fn stamp(&self) -> Option<Stamp> {
        Stamp::of(&self.path)
    }

    /// Serialises commands that change the file. The lock is released when the file is closed.
    fn lock(&self) -> Result<File, Failure> {
        if !self.path.parent().is_some_and(Path::exists) {
            return Err(self.missing());
        }
        let path = self.path.with_extension("lock");
        let open = File::options().create(true).truncate(false).write(true).open(&path);
        let locked = open.and_then(|file| file.lock().map(|()| file));
        locked.map_err(|cause| files::failed("lock", &path, &cause))
    }

    fn write(&self, keys: &[StoredKey]) -> Result<(), Failure> {
        let mut text = String::from("# The account's keys. Change one with `perihelion keys rotate NAME`.\n");
        for key in keys {
            let (name, secret, created) = (key.name.text(), key.text.reveal(), key.created_seconds);
            let _ = write!(text, "\n[{name}]\nkey = \"{secret}\"\ncreated-seconds = {created}\n");
        }
        files::write_private(&self.path, &text)
    }

    /// The recorded time of last use of each key. Informational only, so damage is not an error.
    pub(crate) fn read_uses(&self) -> Vec<KeyUse> {
        let text = files::read_private(&self.uses_path()).ok().flatten().unwrap_or_default();
        let table: Table = toml::from_str(&text).unwrap_or_default();
        table.iter().filter_map(|(name, entry)| use_of(name, entry)).collect()
    }

    pub(crate) fn write_uses(&self, uses: &[KeyUse]) -> Result<(), Failure> {
        let mut text = String::from("# When each key was last used. Written by the server.\n");
        for used in uses {
            let Some(seconds) = used.last_used_seconds else { continue };
            let (name, fingerprint) = (used.name.text(), u32::from_be_bytes(used.fingerprint));
            let _ = write!(text, "\n[{name}]\nfingerprint = {fingerprint}\nlast-used-seconds = {seconds}\n");
        }
        files::write_private(&self.uses_path(), &text)
    }
}

fn parse(table: &Table) -> Result<Vec<StoredKey>, String> {
    let mut keys = Vec::new();
    for (name, entry) in table {
        let known = KeyName::parse(name).ok_or_else(|| format!("\"{name}\" is no key of an account"))?;
        let text = entry.get("key").and_then(Value::as_str);
        let text = text.ok_or_else(|| format!("[{name}] has no string \"key\""))?;
        let created = entry.get("created-seconds").and_then(Value::as_integer).unwrap_or(0);
        let text = Secret::new(text.to_owned());
        let key = StoredKey { name: known, text, created_seconds: u64::try_from(created).unwrap_or(0) };
        if key.account_key().is_none() {
            return Err(format!("the key of [{name}] must be the base64 of at least {KEY_BYTES_MIN} bytes"));
        }
        keys.push(key);
    }
    if keys.is_empty() {
        return Err("it has no key".to_owned());
    }
    keys.sort_by_key(|key| key.name);
    Ok(keys)
}

fn use_of(name: &str, entry: &Value) -> Option<KeyUse> {
    let number = |field| entry.get(field).and_then(Value::as_integer);
    Some(KeyUse {
        name: KeyName::parse(name)?,
        fingerprint: u32::try_from(number("fingerprint")?).ok()?.to_be_bytes(),
        last_used_seconds: Some(u64::try_from(number("last-used-seconds")?).ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ambient::SystemAmbient;

    fn fingerprints(file: &KeyFile) -> Vec<[u8; 4]> {
        let keys = file.read().unwrap().unwrap();
        assert_eq!(keys.iter().map(|key| key.name).collect::<Vec<_>>(), KeyName::ALL);
        keys.iter().map(|key| key.account_key().unwrap().fingerprint()).collect()
    }

    #[test]
    fn keys_are_made_once_and_changed_one_by_one() {
        let folder = tempfile::tempdir().unwrap();
        let (file, ambient) = (KeyFile::of(folder.path()), SystemAmbient::new());
        assert!(file.rotate(KeyName::Primary, &ambient).is_err());
        assert!(file.make_if_missing(&ambient).unwrap());
        assert!(!file.make_if_missing(&ambient).unwrap());
        let mut known = fingerprints(&file);
        for (index, name) in KeyName::ALL.into_iter().enumerate() {
            file.rotate(name, &ambient).unwrap();
            let now = fingerprints(&file);
            for other in 0..known.len() {
                assert_eq!(now[other] == known[other], other != index, "{name:?}");
            }
            known = now;
        }
    }

    #[test]
    fn a_bad_file_is_refused_without_quoting_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = KeyFile::of(folder.path());
        for text in [
            "",
            "[primary]\nkey = \"c2VjcmV0\"",
            "[primary]\nkey = 7",
            "[primary]\nkey = \"hidden text\"",
            "[primary]\nkey = hidden text",
            "[other]\nkey = \"hidden text\"",
        ] {
            files::write_private(file.path(), text).unwrap();
            let failure = file.read().unwrap_err();
            assert!(matches!(failure, Failure::Configuration(_)), "{text}");
            assert!(!failure.to_string().contains("hidden"), "{failure}");
        }
    }

    #[test]
    fn uses_are_kept_by_fingerprint() {
        let folder = tempfile::tempdir().unwrap();
        let file = KeyFile::of(folder.path());
        assert_eq!(file.read_uses(), []);
        let known = |name, last_used_seconds| KeyUse { name, fingerprint: [255, 0, 1, 2], last_used_seconds };
        file.write_uses(&[known(KeyName::Primary, Some(5)), known(KeyName::Secondary, None)]).unwrap();
        assert_eq!(file.read_uses(), [known(KeyName::Primary, Some(5))]);
    }
}
