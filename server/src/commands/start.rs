//! `perihelion dev` and `perihelion serve`: start, serving and shutdown.

use super::script;
use crate::ambient::SystemAmbient;
use crate::backoff::Backoff;
use crate::failure::Failure;
use crate::identity::IdentityFile;
use crate::keys::{KeyFile, KeySource, STORAGE_EMULATOR_ACCOUNT, storage_emulator_key};
use crate::listener::{self, Api, Bound};
use crate::metrics::Metrics;
use crate::mode::Mode;
use crate::screen::Screen;
use crate::service::Service;
use crate::settings::{self, AuthFailures, Endpoint, MemoryShares, PlainHttp, Settings, UnknownVariable};
use crate::store_marker::STORE_FOLDER;
use crate::tls::{CertificateSource, Tls};
use crate::{files, handles, logs, store_marker};
use clap::ArgMatches;
use engine::{
    AdmissionBounds, Engine, EngineOptions, IndexOptions, PartitionBounds, QueryBounds, RequestMemoryOptions,
    STORE_SPACES, STORED_BYTES_PER_UNIT, ScriptOptions,
};
use kv::{CommitMode, EmbeddedOptions, OpenFault, Store};
use nosql::{NosqlApi, NosqlOptions};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use table::{AccountKeys, AccountStyle, TableAccount, TableApi, TableOptions};
use tokio::runtime::Handle;

pub(super) fn run(
    mode: Mode,
    matches: &ArgMatches,
    environment: impl Fn(&str) -> Option<String>,
    unknown: &[UnknownVariable],
) -> Result<(), Failure> {
    let mut settings = Settings::from_raw(&settings::gather(matches, environment)?)?;
    logs::start(&settings)?;
    for UnknownVariable { name, nearest } in unknown {
        tracing::warn!(
            event = "unknown_variable",
            name,
            nearest,
            "no setting has the name of this environment variable, so it is ignored"
        );
    }
    settings.connections_max = handles::raise_limit(settings.connections_max);
    let failed = |error: std::io::Error| Failure::Failed(format!("cannot start the runtime: {error}"));
    let runtime = runtime().map_err(failed)?;
    let queries = query_runtime(settings.query_threads).map_err(failed)?;
    let served = runtime.block_on(serve(mode, settings, queries.handle().clone()));
    // Queries still running have no client left, and all acknowledged writes are durable.
    queries.shutdown_background();
    served
}

/// Nice value of the query threads.
const QUERY_NICENESS: i32 = 10;

/// Separate threads for long queries, so that connections, timers and commits never wait for them.
fn query_runtime(threads: usize) -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_name("query")
        .on_thread_start(|| {
            // Applies to the calling thread only. If it is not permitted, query threads keep the normal priority.
            let _ = rustix::process::setpriority_process(None, QUERY_NICENESS);
        })
        .enable_all()
        .build()
}

/// Workers on all cores; on a single core the main thread only, which avoids switches between threads.
fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    let mut builder = match std::thread::available_parallelism() {
        Ok(cores) if cores.get() == 1 => tokio::runtime::Builder::new_current_thread(),
        Ok(_) | Err(_) => tokio::runtime::Builder::new_multi_thread(),
    };
    builder.enable_all().build()
}

fn log_shares(settings: &Settings) {
    let MemoryShares { caches, index_blocks, memtables, index_segments, queries, answers, bodies } =
        settings.shares;
    tracing::info!(
        event = "memory_shares",
        total = %settings.memory_total,
        caches,
        index_blocks,
        memtables,
        index_segments,
        queries,
        answers,
        bodies,
        "memory is divided into shares"
    );
}

async fn serve(mode: Mode, settings: Settings, queries: Handle) -> Result<(), Failure> {
    let address = nosql_address(mode, &settings)?;
    log_shares(&settings);
    for setting in &settings.without_effect {
        tracing::warn!(event = "setting_without_effect", setting, "this version ignores the setting");
    }
    let ambient = Arc::new(SystemAmbient::new());
    let bound = Bound::at(mode, Api::Nosql, address).await?;
    let table_bound = bind_table(mode, &settings, address).await?;
    let is_exposed = |bound: &Bound| !bound.main.ip().is_loopback();
    let store = open_store(&settings)?;
    let keys = KeySource {
        file: (!settings.memory).then(|| KeyFile::of(&settings.data)),
        well_known: mode.takes_well_known_key(),
        exposed: is_exposed(&bound) || table_bound.as_ref().is_some_and(is_exposed),
    };
    let made_keys = match (mode, &keys.file) {
        (Mode::Serve, Some(file)) => file.make_if_missing(&*ambient)?,
        (Mode::Serve, None) | (Mode::Dev, _) => false,
    };
    if keys.opens_keyed_data() {
        tracing::warn!(
            event = "keyed_data_opened",
            "the data have keys of their own, made by `perihelion serve`; with `dev` every program on this machine can read and change them"
        );
    }
    let tls = Arc::new(Tls::prepare(certificate_source(&settings, address), &*ambient)?);
    let seen_keys = keys.stamp();
    let identity = settings.identity.as_deref().map(IdentityFile::open).transpose()?;
    let options = EngineOptions {
        keys: keys.read()?,
        partition_throughput_max: settings.partition_max_throughput,
        partition_throughput_new: settings.partition_create_throughput,
        throughput: settings.throughput,
        stored_bytes_per_unit: STORED_BYTES_PER_UNIT,
        partition_bytes_max: settings.partition_max_bytes,
        logical_partition_bytes_max: settings.logical_partition_max_bytes,
        durability: settings.durability,
        record_cache_bytes: size(settings.shares.caches - block_cache_bytes(&settings)),
        index: index_options(&settings),
        query_memory_bytes: size(settings.shares.queries),
        request_memory: RequestMemoryOptions {
            bodies_bytes: size(settings.shares.bodies),
            answers_bytes: size(settings.shares.answers),
        },
        partitions: PartitionBounds::default(),
        computed_reader: nosql::read_computed_property,
        document_link: nosql::document_link,
        query_bounds: query_bounds(&settings),
        query_threads: Some(queries),
        admission: AdmissionBounds::of_threads(settings.query_threads),
        scripts: script_options(&settings)?,
    };
    let engine = Engine::open(store, options, Arc::clone(&ambient) as Arc<_>).await;
    let engine = engine.map_err(|fault| Failure::Io {
        what: format!("cannot open the data in \"{}\"", settings.data.display()),
        cause: fault.to_string(),
    })?;
    if let Some(file) = &keys.file {
        engine.access().remember_key_uses(&file.read_uses());
    }
    let (identity_file, identity) = identity.unzip();
    engine.access().replace_identity(identity);
    let service = Arc::new(service(mode, &settings, &engine, Arc::clone(&tls)));
    let stop = stop_signal(Arc::clone(&service))?;
    let table = table_bound.as_ref();
    let screen = Screen { mode, settings: &settings, bound: &bound, table, keys: &keys, made_keys };
    // A closed standard output is no reason to stop.
    let _ = screen.show(&mut std::io::stdout().lock());
    tracing::info!(event = "started", version = env!("CARGO_PKG_VERSION"), nosql = %bound.main, "requests are served");
    tokio::select! {
        () = listener::serve(std::iter::once(bound).chain(table_bound).collect(), service, settings.connections_max, stop) => {}
        () = keys.watch(&engine, seen_keys) => {}
        () = tls.watch(&*ambient) => {}
        () = watch_identity(identity_file, &engine) => {}
    }
    keys.record_uses(&engine);
    engine
        .close()
        .await
        .map_err(|fault| Failure::Io { what: "cannot close the store".to_owned(), cause: fault.to_string() })
}

/// Scripts are executed by this program itself, as a worker process.
fn script_options(settings: &Settings) -> Result<Option<ScriptOptions>, Failure> {
    let Some(limits) = settings.scripts else { return Ok(None) };
    Ok(Some(ScriptOptions { program: script::worker_program()?, limits }))
}

async fn watch_identity(file: Option<IdentityFile>, engine: &Engine) {
    match file {
        Some(file) => file.watch(engine).await,
        None => std::future::pending().await,
    }
}

/// The address to listen on, if the mode permits it.
fn nosql_address(mode: Mode, settings: &Settings) -> Result<SocketAddr, Failure> {
    let Endpoint::At(address) = settings.nosql else {
        return Err(Failure::Configuration(
            "setting \"nosql\" is off, but its port has health, metrics and the control API: give an address"
                .to_owned(),
        ));
    };
    match mode {
        Mode::Dev if !address.ip().is_loopback() => Err(Failure::Configuration(format!(
            "setting \"nosql\" is {address}: the well-known key of `dev` may be used on loopback only; \
             use 127.0.0.1:{}, or `perihelion serve`",
            address.port()
        ))),
        Mode::Serve if settings.memory => Err(Failure::Configuration(
            "setting \"memory\" is for `perihelion dev`: a server in memory loses its data and its keys"
                .to_owned(),
        )),
        Mode::Dev | Mode::Serve => Ok(address),
    }
}

fn service(mode: Mode, settings: &Settings, engine: &Arc<Engine>, tls: Arc<Tls>) -> Service {
    let nosql_options = NosqlOptions {
        public_endpoint: settings.public_endpoint.clone(),
        body_timeout: settings.timeouts.body,
        compatibility: settings.compatibility,
        cors: settings.cors.clone(),
        region: settings.region.clone(),
        consistency: settings.consistency,
        takes_key_tokens: mode.takes_well_known_key(),
    };
    let failures_max = match settings.auth_failures {
        AuthFailures::ByMode => mode.auth_failures_max(),
        AuthFailures::Off => None,
        AuthFailures::Max(max) => Some(max),
    };
    Service {
        nosql: NosqlApi::new(Arc::clone(engine), nosql_options),
        table: TableApi::new(Arc::clone(engine), table_options(mode, settings)),
        engine: Arc::clone(engine),
        metrics: Metrics::new(engine),
        tls,
        plain_from_everywhere: settings.plain_http == PlainHttp::Always,
        timeouts: settings.timeouts,
        backoff: failures_max.map(Backoff::new),
        stopping: AtomicBool::new(false),
    }
}

/// Binds the address of the Table API. If it is the default and used by another program, the API is off. If the NoSQL
/// API asks for a free port and the address is the default, a free port is bound: then several servers may run side by
/// side.
async fn bind_table(mode: Mode, settings: &Settings, nosql: SocketAddr) -> Result<Option<Bound>, Failure> {
    let Endpoint::At(mut address) = settings.table else { return Ok(None) };
    if mode == Mode::Dev && !address.ip().is_loopback() {
        return Err(Failure::Configuration(format!(
            "setting \"table\" is {address}: the well-known keys of `dev` may be used on loopback only; \
             use 127.0.0.1:{}, or `perihelion serve`",
            address.port()
        )));
    }
    if !settings.is_table_given && nosql.port() == 0 {
        address.set_port(0);
    }
    match Bound::at(mode, Api::Table, address).await {
        Ok(bound) => Ok(Some(bound)),
        Err(_) if !settings.is_table_given => {
            tracing::warn!(event = "table_port_taken", %address, "another program uses the port of the Table API, which is off; choose another with --table ADDR");
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}

fn table_options(mode: Mode, settings: &Settings) -> TableOptions {
    let accounts = table_accounts(mode, &settings.table_account);
    TableOptions {
        accounts,
        public_endpoint: None,
        read_quorum: settings.consistency.read_quorum(),
        body_timeout: settings.timeouts.body,
        takes_key_tokens: mode.takes_well_known_key(),
    }
}

/// In development the account of the storage emulators is there too, with its published key. An account of the store
/// with the same name would hide it.
fn table_accounts(mode: Mode, name: &str) -> Vec<TableAccount> {
    let emulator = storage_emulator_key().filter(|_| mode.takes_well_known_key()).map(|key| TableAccount {
        name: STORAGE_EMULATOR_ACCOUNT.to_owned(),
        style: AccountStyle::Storage,
        keys: AccountKeys::Own(key),
    });
    let is_hidden = emulator.as_ref().is_some_and(|emulator| emulator.name == name);
    let of_store =
        TableAccount { name: name.to_owned(), style: AccountStyle::Cosmos, keys: AccountKeys::Store };
    Some(of_store).filter(|_| !is_hidden).into_iter().chain(emulator).collect()
}

fn certificate_source(settings: &Settings, address: SocketAddr) -> CertificateSource {
    if let Some(files) = &settings.certificate {
        return CertificateSource::Files(files.clone());
    }
    let mut names = Vec::new();
    if !address.ip().is_unspecified() {
        names.push(address.ip().to_string());
    }
    let endpoint = settings.public_endpoint.as_ref().and_then(|url| url.parse::<http::Uri>().ok());
    names.extend(endpoint.and_then(|url| url.host().map(|host| host.trim_matches(['[', ']']).to_owned())));
    CertificateSource::Authority { folder: (!settings.memory).then(|| settings.data.join("tls")), names }
}

/// The store's share of the caches. Point reads are most frequent and find whole documents in the other three quarters.
fn block_cache_bytes(settings: &Settings) -> u64 {
    settings.shares.caches / 4
}

/// One query never gets all of the memory for queries.
fn query_bounds(settings: &Settings) -> QueryBounds {
    let defaults = QueryBounds::default();
    let memory_bytes = defaults.memory_bytes.min(size(settings.shares.queries) / 2);
    QueryBounds { time_ms: settings.query_timeout_ms, memory_bytes, ..defaults }
}

/// Index sizes that fit its share of the memory.
fn index_options(settings: &Settings) -> IndexOptions {
    let defaults = IndexOptions::default();
    let memory_bytes_max = size(settings.shares.index_segments);
    IndexOptions {
        memory_bytes_max,
        // One partition alone must flush before it has used the memory that all partitions share.
        flush_bytes: defaults.flush_bytes.min(memory_bytes_max / 4),
        cache_bytes: size(settings.shares.index_blocks),
        ..defaults
    }
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

pub(super) fn open_store(settings: &Settings) -> Result<Store, Failure> {
    if settings.memory {
        return Ok(Store::memory(&STORE_SPACES, CommitMode::Thread));
    }
    files::make_private_folder(&settings.data)?;
    store_marker::check(&settings.data)?;
    // The data folder itself may have permissions chosen by the user; the folder with documents is always private.
    let store = settings.data.join(STORE_FOLDER);
    files::make_folder_private(&store)?;
    let mut options = EmbeddedOptions::new(store, &STORE_SPACES);
    options.cache_bytes = block_cache_bytes(settings);
    options.memtable_bytes = settings.shares.memtables;
    options.open_tables_max = handles::open_tables_max(settings.connections_max);
    if let Some(bytes) = settings.free_space_reserve_bytes {
        options.free_space_reserve_bytes = bytes;
    }
    let store = Store::open(options).map_err(|fault| open_failure(settings, &fault))?;
    store_marker::make(&settings.data)?;
    Ok(store)
}

/// Why the store of a data folder cannot be used, and what to do about it.
pub(super) fn open_failure(settings: &Settings, fault: &OpenFault) -> Failure {
    let data = settings.data.display();
    let hint = match fault {
        OpenFault::Locked { .. } => {
            "another server is using it; stop it, or choose another folder with --data DIR".to_owned()
        }
        OpenFault::Damaged { .. } | OpenFault::Shortened { .. } => format!(
            "{}; restore it from a backup, or continue without the commits after the damage: \
             perihelion repair --data \"{data}\"",
            describe(fault)
        ),
        OpenFault::CutTears { .. } => format!(
            "{}; a cut would leave documents, indexes and counts that do not fit together; nothing was changed, restore \
             the data folder from a backup",
            describe(fault)
        ),
        OpenFault::Torn { .. } => format!(
            "{}; restore the data folder from a backup; this shows what does not fit together: perihelion verify --data \
             \"{data}\"",
            describe(fault)
        ),
        _ if lacks_only_synced(fault) => format!(
            "{}; restore it from a backup, or have it made anew: perihelion repair --data \"{data}\"",
            describe(fault)
        ),
        OpenFault::Missing { .. } | OpenFault::DamagedFile { .. } => {
            format!("{}; nothing was changed, restore the files from a backup", describe(fault))
        }
        OpenFault::NewerFormat { .. }
        | OpenFault::OlderFormat { .. }
        | OpenFault::SpacesChanged { .. }
        | OpenFault::TooManySpaces { .. }
        | OpenFault::NotAStore { .. }
        | OpenFault::NoSpace { .. }
        | OpenFault::Engine { .. }
        | OpenFault::Io { .. } => describe(fault),
    };
    Failure::Io { what: format!("cannot use the data folder \"{data}\""), cause: hint }
}

/// Whether the one file is missing or damaged that `repair` makes anew.
fn lacks_only_synced(fault: &OpenFault) -> bool {
    let is_damaged = matches!(fault, OpenFault::DamagedFile { path, .. } if path.ends_with("SYNCED"));
    let is_missing = matches!(fault, OpenFault::Missing { missing, .. } if missing.iter().all(|path| path.as_os_str() == "SYNCED"));
    is_damaged || is_missing
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

/// Completes at the first request to stop; the second one ends the process at once, which is safe at any time.
fn stop_signal(service: Arc<Service>) -> Result<impl Future<Output = ()>, Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let failed = |error: std::io::Error| Failure::Failed(format!("cannot listen for signals: {error}"));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    // The terminal was closed.
    let mut hangup = signal(SignalKind::hangup()).map_err(failed)?;
    Ok(async move {
        tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {}, _ = hangup.recv() => {} }
        tracing::info!(event = "stopping", "stopping; a second signal stops at once");
        service.stopping.store(true, Ordering::SeqCst);
        service.engine.stop_queries();
        tokio::spawn(async move {
            tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
            std::process::exit(130);
        });
    })
}

#[test]
fn the_account_of_the_emulators_is_never_hidden_in_development() {
    let names = |mode, name: &str| {
        table_accounts(mode, name)
            .into_iter()
            .map(|account| (account.name, account.style))
            .collect::<Vec<_>>()
    };
    let emulator = (STORAGE_EMULATOR_ACCOUNT.to_owned(), AccountStyle::Storage);
    let own = ("own".to_owned(), AccountStyle::Cosmos);
    assert_eq!(names(Mode::Dev, "own"), [own.clone(), emulator.clone()]);
    assert_eq!(names(Mode::Dev, STORAGE_EMULATOR_ACCOUNT), [emulator]);
    assert_eq!(names(Mode::Serve, "own"), [own]);
    let served = (STORAGE_EMULATOR_ACCOUNT.to_owned(), AccountStyle::Cosmos);
    assert_eq!(names(Mode::Serve, STORAGE_EMULATOR_ACCOUNT), [served]);
}
