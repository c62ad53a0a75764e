//! The configuration file of the identity provider: read at start, and again when it or its key set changes.
//!
//! `identity.sample.toml` shows all fields.

use crate::failure::Failure;
use crate::files::{self, WatchedFiles};
use engine::{Assignee, Engine, Identity, IdentityOptions, RoleAssignment, RoleTable};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Poll interval of the files.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Largest accepted clock skew: a token must expire some time.
const LEEWAY_SECONDS_MAX: u64 = 600;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct IdentityText {
    issuer: String,
    audiences: Vec<String>,
    jwks_file: PathBuf,
    algorithms: Vec<String>,
    #[serde(default = "leeway_default")]
    leeway_seconds: u64,
    #[serde(default)]
    roles: Vec<RoleText>,
    #[serde(default)]
    assignments: Vec<AssignmentText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RoleText {
    name: String,
    actions: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct AssignmentText {
    principal: Option<String>,
    group: Option<String>,
    app_role: Option<String>,
    role: String,
    scope: String,
}

fn leeway_default() -> u64 {
    60
}

/// The file and its last valid content.
pub(crate) struct IdentityFile {
    path: PathBuf,
    /// The file and the key set that it names.
    watched: WatchedFiles,
}

impl IdentityFile {
    /// Reads the file for the first time.
    pub(crate) fn open(path: &Path) -> Result<(IdentityFile, Identity), Failure> {
        let (watched, identity) = read(path);
        Ok((IdentityFile { path: path.to_owned(), watched }, identity?))
    }

    /// Reloads changed files until cancelled. An invalid file changes nothing.
    pub(crate) async fn watch(mut self, engine: &Engine) {
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            if !self.watched.changed() {
                continue;
            }
            let (watched, identity) = read(&self.path);
            self.watched = watched;
            match identity {
                Ok(identity) => {
                    engine.access().replace_identity(Some(identity));
                    tracing::info!(
                        event = "identity_reloaded",
                        "keys and roles of the identity provider were reloaded"
                    );
                }
                Err(failure) => {
                    tracing::warn!(event = "identity_rejected", %failure, "the changed identity file is invalid; the old one stays in use");
                }
            }
        }
    }
}

/// Reads the file and the key set that it names. Also returns both as watched files, in their state before the read.
fn read(path: &Path) -> (WatchedFiles, Result<Identity, Failure>) {
    let watched = WatchedFiles::new([path.to_owned()]);
    let text = match read_text(path) {
        Ok(text) => text,
        Err(failure) => return (watched, Err(failure)),
    };
    let keys_path = path.parent().unwrap_or(Path::new("")).join(&text.jwks_file);
    let watched = watched.and(keys_path.clone());
    let key_set = std::fs::read(&keys_path).map_err(|cause| files::failed("read", &keys_path, &cause));
    let identity = key_set.and_then(|key_set| {
        options(text, key_set).and_then(Identity::new).map_err(|reason| wrong(path, &reason))
    });
    (watched, identity)
}

fn read_text(path: &Path) -> Result<IdentityText, Failure> {
    let text = std::fs::read_to_string(path).map_err(|cause| files::failed("read", path, &cause))?;
    toml::from_str(&text).map_err(|error| wrong(path, &error.to_string()))
}

fn wrong(path: &Path, reason: &str) -> Failure {
    Failure::Configuration(format!("the identity file \"{}\": {reason}", path.display()))
}

fn options(text: IdentityText, key_set: Vec<u8>) -> Result<IdentityOptions, String> {
    if text.leeway_seconds > LEEWAY_SECONDS_MAX {
        return Err(format!("leeway-seconds may be {LEEWAY_SECONDS_MAX} at most"));
    }
    let mut roles = nosql::built_in_roles();
    for role in text.roles {
        roles.push(nosql::role(role.name, &role.actions)?);
    }
    let assignments = text.assignments.into_iter().map(assignment).collect::<Result<_, _>>()?;
    Ok(IdentityOptions {
        issuer: text.issuer,
        audiences: text.audiences,
        algorithms: text.algorithms,
        key_set,
        leeway_seconds: text.leeway_seconds,
        roles: RoleTable::new(roles, assignments)?,
    })
}

fn assignment(text: AssignmentText) -> Result<RoleAssignment, String> {
    let assignee = match (text.principal, text.group, text.app_role) {
        (Some(id), None, None) => Assignee::Principal(id),
        (None, Some(group), None) => Assignee::Group(group),
        (None, None, Some(role)) => Assignee::AppRole(role),
        _ => return Err("an assignment is for one of: principal, group, app-role".to_owned()),
    };
    let scope = nosql::role_scope(&text.scope).ok_or_else(|| {
        format!("\"{}\" is no scope; one is /, /dbs/NAME or /dbs/NAME/colls/NAME", text.scope)
    })?;
    Ok(RoleAssignment { assignee, role: text.role, scope })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_is_valid() {
        IdentityFile::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("identity.sample.toml")).unwrap();
    }

    #[test]
    fn mistakes_are_refused() {
        let sample = include_str!("../identity.sample.toml");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("identity.toml");
        std::fs::write(
            folder.path().join("identity.sample.keys.json"),
            include_str!("../identity.sample.keys.json"),
        )
        .unwrap();
        for (from, to) in [
            ("leeway-seconds = 60", "leeway-seconds = 601"),
            ("leeway-seconds = 60", "unknown = 1"),
            ("\"RS256\"", "\"HS256\""),
            ("\"reader\"", "\"owner\""),
            ("scope = \"/\"", "scope = \"/dbs\""),
            ("group = ", "principal = \"both\"\ngroup = "),
            ("issuer", "isuer"),
            ("identity.sample.keys.json", "missing.json"),
            ("items/create", "items/make"),
        ] {
            assert!(sample.contains(from), "{from}");
            std::fs::write(&path, sample.replace(from, to)).unwrap();
            assert!(IdentityFile::open(&path).is_err(), "{to}");
        }
        std::fs::write(&path, sample).unwrap();
        IdentityFile::open(&path).unwrap();
    }
}
