//! `perihelion dev`: the server for one machine, with the well-known key, on loopback only.

use crate::ambient::SystemAmbient;
use crate::failure::Failure;
use crate::metrics::Metrics;
use crate::screen::{self, EMULATOR_KEY};
use crate::service::Service;
use crate::settings::{self, Door, Settings};
use crate::{listener, logs, tls};
use base64::Engine as _;
use clap::ArgMatches;
use engine::{AccountKey, Engine, EngineOptions, STORE_SPACES};
use kv::{CommitMode, EmbeddedOptions, OpenFault, Store};
use rest::{RestDoor, RestOptions};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio_rustls::TlsAcceptor;

pub(super) fn run(matches: &ArgMatches, environment: impl Fn(&str) -> Option<String>) -> Result<(), Failure> {
    let settings = Settings::from_raw(&settings::gather(matches, environment)?)?;
    logs::start(&settings)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Failed(format!("cannot start the runtime: {error}")))?;
    runtime.block_on(serve(settings))
}

async fn serve(settings: Settings) -> Result<(), Failure> {
    let Door::At(address) = settings.nosql else {
        return Err(Failure::Configuration("all doors are off: nothing to serve".to_owned()));
    };
    if !address.ip().is_loopback() {
        return Err(Failure::Configuration(format!(
            "setting \"nosql\" is {address}: the well-known key may be used on loopback only; use 127.0.0.1:{}",
            address.port()
        )));
    }
    let ambient = Arc::new(SystemAmbient::new());
    let listener = listener::bind(address, "nosql").await?;
    let address = listener.local_addr().map_err(|error| Failure::Failed(error.to_string()))?;
    let store = open_store(&settings)?;
    let folder = (!settings.memory).then(|| settings.data.join("tls"));
    let tls = tls::prepare(folder.as_deref(), &*ambient)?;
    let options = EngineOptions {
        keys: vec![emulator_key()?],
        partition_throughput_max: settings.partition_max_throughput,
        durability: settings.durability,
        record_cache_bytes: usize::try_from(settings.cache_bytes - block_cache_bytes(&settings))
            .unwrap_or(usize::MAX),
    };
    let engine = Engine::open(store, options, ambient).await.map_err(|fault| Failure::Io {
        what: format!("cannot open the data in \"{}\"", settings.data.display()),
        cause: fault.to_string(),
    })?;
    let rest_options =
        RestOptions { public_endpoint: settings.public_endpoint.clone(), ..RestOptions::default() };
    let service = Arc::new(Service {
        door: RestDoor::new(Arc::clone(&engine), rest_options),
        engine: Arc::clone(&engine),
        metrics: Metrics::default(),
        authority_pem: tls.authority_pem,
        stopping: AtomicBool::new(false),
    });
    let stop = stop_signal(Arc::clone(&service))?;
    // A closed standard output is no reason to stop serving.
    let _ = screen::show(&settings, address, &mut std::io::stdout().lock());
    let acceptor = TlsAcceptor::from(tls.config);
    listener::serve(listener, service, acceptor, settings.connections_max, stop).await;
    engine
        .close()
        .await
        .map_err(|fault| Failure::Io { what: "cannot close the store".to_owned(), cause: fault.to_string() })
}

/// The store's share of the caches: point reads, which are most, find whole documents in the other three quarters.
fn block_cache_bytes(settings: &Settings) -> u64 {
    settings.cache_bytes / 4
}

fn open_store(settings: &Settings) -> Result<Store, Failure> {
    if settings.memory {
        return Ok(Store::memory(&STORE_SPACES, CommitMode::Thread));
    }
    make_private_folder(&settings.data)?;
    let mut options = EmbeddedOptions::new(settings.data.join("store"), &STORE_SPACES);
    options.cache_bytes = block_cache_bytes(settings);
    if let Some(bytes) = settings.free_space_reserve_bytes {
        options.free_space_reserve_bytes = bytes;
    }
    Store::open(options).map_err(|fault| Failure::Io {
        what: format!("cannot use the data folder \"{}\"", settings.data.display()),
        cause: match fault {
            OpenFault::Locked { .. } => {
                "another server is using it; choose another with --data DIR".to_owned()
            }
            OpenFault::NewerFormat { .. }
            | OpenFault::SpacesChanged { .. }
            | OpenFault::TooManySpaces { .. }
            | OpenFault::NotAStore { .. }
            | OpenFault::Io { .. }
            | OpenFault::Damaged { .. }
            | OpenFault::Engine { .. } => describe(&fault),
        },
    })
}

/// Makes the data folder if it is missing, for its owner only: it holds documents and a private key.
fn make_private_folder(folder: &Path) -> Result<(), Failure> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|cause| Failure::Io {
        what: format!("cannot create the data folder \"{}\"", folder.display()),
        cause: cause.to_string(),
    })
}

/// The fault with its causes, on one line.
fn describe(fault: &dyn std::error::Error) -> String {
    let mut text = fault.to_string();
    let mut cause = fault.source();
    while let Some(deeper) = cause {
        text = format!("{text}: {deeper}");
        cause = deeper.source();
    }
    text
}

fn emulator_key() -> Result<AccountKey, Failure> {
    let bytes = base64::engine::general_purpose::STANDARD.decode(EMULATOR_KEY);
    bytes.map(|bytes| AccountKey::new(&bytes)).map_err(|error| Failure::Failed(error.to_string()))
}

/// Ends at the first request to stop; the second one ends the program at once, which is safe at any time.
fn stop_signal(service: Arc<Service>) -> Result<impl Future<Output = ()>, Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let failed = |error: std::io::Error| Failure::Failed(format!("cannot listen for signals: {error}"));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    Ok(async move {
        tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
        tracing::info!("stopping; once more to stop at once");
        service.stopping.store(true, Ordering::SeqCst);
        tokio::spawn(async move {
            tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
            std::process::exit(130);
        });
    })
}
