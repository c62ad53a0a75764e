//! The Rust package: a separate workspace, so that the SDK's dependencies are not the server's.

use super::{SERVER_VARIABLE, server};
use crate::run::{self, cargo};
use std::path::{Path, PathBuf};
use std::process::Command;

const SDK: &str = "azure_data_cosmos";
/// The part of the SDK that sends requests.
const DRIVER: &str = "azure_data_cosmos_driver";
/// Where the driver says which version of the protocol it speaks. The constant is not public.
const PROTOCOL_FILE: &str = "src/driver/transport/mod.rs";
const PROTOCOL_CONSTANT: &str = "const COSMOS_API_VERSION: &str = \"";

/// The SDK's suite in Rust.
pub(crate) fn rust_sdk_suite(root: &Path) -> Result<Command, String> {
    let folder = root.join("conformance/rust");
    run::plain(cargo(&folder, &["fmt", "--check"]))?;
    let mut test = cargo(&folder, &["test", "--locked", "--quiet"]);
    // Its settings expect the servers' certificates in its default target folder.
    test.env_remove("CARGO_TARGET_DIR").env(SERVER_VARIABLE, server(root)?);
    Ok(test)
}

/// The line that names the client, from the lock file and the sources that cargo has downloaded.
pub(crate) fn rust_sdk_client(root: &Path) -> Result<String, String> {
    let path = root.join("conformance/rust/Cargo.lock");
    let lock =
        std::fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let version = locked(&lock, SDK)?;
    let protocol = protocol(&sources()?, &format!("{DRIVER}-{}", locked(&lock, DRIVER)?))?;
    let fields = serde_json::json!({
        "client": SDK, "version": version, "language": "Rust", "protocol": protocol,
    });
    Ok(format!("client {fields}"))
}

/// The version of a package in a lock file.
fn locked(lock: &str, package: &str) -> Result<String, String> {
    let lock: toml::Table = lock.parse().map_err(|error| format!("the lock file is invalid: {error}"))?;
    let packages = lock.get("package").and_then(toml::Value::as_array).into_iter().flatten();
    let mut named = packages.filter(|entry| entry.get("name").and_then(toml::Value::as_str) == Some(package));
    let version = named.next().and_then(|entry| entry.get("version")).and_then(toml::Value::as_str);
    version.map(str::to_owned).ok_or_else(|| format!("the lock file does not name {package}"))
}

/// Cargo's folder with the sources of packages, one folder per registry.
fn sources() -> Result<PathBuf, String> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")));
    Ok(home.ok_or("neither CARGO_HOME nor HOME is set")?.join("registry/src"))
}

/// The version of the protocol in the sources of the driver, whichever registry they are from.
fn protocol(sources: &Path, driver: &str) -> Result<String, String> {
    let registries =
        std::fs::read_dir(sources).map_err(|error| format!("cannot list {}: {error}", sources.display()))?;
    for registry in registries.flatten() {
        let Ok(text) = std::fs::read_to_string(registry.path().join(driver).join(PROTOCOL_FILE)) else {
            continue;
        };
        let value = text.split_once(PROTOCOL_CONSTANT).and_then(|(_, rest)| rest.split_once('"'));
        if let Some((protocol, _)) = value {
            return Ok(protocol.to_owned());
        }
    }
    Err(format!("{driver} does not say its protocol in {PROTOCOL_FILE}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_and_protocol_are_found() {
        let lock = "[[package]]\nname = \"azure_data_cosmos\"\nversion = \"1.0.0\"\n";
        assert_eq!(locked(lock, SDK), Ok("1.0.0".to_owned()));
        assert!(locked(lock, DRIVER).unwrap_err().contains(DRIVER));
        let sources = tempfile::tempdir().unwrap();
        let file = sources.path().join("registry-1/driver-1.0.0").join(PROTOCOL_FILE);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, format!("pub(crate) {PROTOCOL_CONSTANT}2020-07-15\";\n")).unwrap();
        assert_eq!(protocol(sources.path(), "driver-1.0.0"), Ok("2020-07-15".to_owned()));
        assert!(protocol(sources.path(), "driver-2.0.0").unwrap_err().contains("driver-2.0.0"));
    }
}
