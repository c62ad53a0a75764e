//! `perihelion script`: tries a stored procedure on a running server, and checks the text of a script.
//! `perihelion script-worker` is the process that executes scripts.

use super::local_server::{self, LocalAnswer, LocalRequest};
use super::script_names;
use crate::ambient::SystemAmbient;
use crate::failure::Failure;
use crate::output::say;
use crate::settings::{self, Settings};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use clap::{Arg, ArgMatches, Command, value_parser};
use engine::AccountKey;
use model::Ambient;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use script::{CallerId, Clock, Limits, Links, NoDocuments, Quota, Role, ScriptFault, WorkerProgram, Workers};
use serde_json::{Value as Json, json};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The command of a worker process.
pub(super) const WORKER: &str = "script-worker";

/// `script check` uses workers of its own, so nobody else waits for them.
const CALLER: CallerId = CallerId(0);

/// The executable of this process, also if its file was replaced since it was started.
const THIS_PROGRAM: &str = if cfg!(target_os = "linux") { "/proc/self/exe" } else { "" };

/// A procedure that returns the names of its globals.
const GLOBALS: &str =
    "function () { getContext().getResponse().setBody(Object.getOwnPropertyNames(globalThis)); }";

/// The commands without the settings.
pub(super) fn command() -> Command {
    let file =
        || Arg::new("file").required(true).value_name("FILE").help("The text of the script: one function");
    let option = |name: &'static str, help: &'static str| Arg::new(name).long(name).help(help);
    let run = Command::new("run")
        .about("Execute a stored procedure from a file on the running server, in one transaction")
        .after_help(
            "Example:\n  perihelion script run import.js --database db --container people --partition-key '\"Ulm\"' \
             --parameters '[[{\"id\":\"2\",\"city\":\"Ulm\"}]]'\n\nThe server is that of --nosql, its key that of --data.",
        )
        .arg(file())
        .arg(option("database", "The database").required(true))
        .arg(option("container", "The container").required(true))
        .arg(
            option("partition-key", "The partition key as JSON: a value, or an array with a value for each path")
                .value_name("JSON")
                .value_parser(partition_key)
                .required(true),
        )
        .arg(
            option("parameters", "The parameters as a JSON array")
                .value_name("JSON")
                .value_parser(parameters)
                .default_value("[]"),
        );
    let check = Command::new("check")
        .about("Check that a file is a script, and name what it uses that scripts do not have")
        .after_help(
            "Exit code: 0 if it is a script, 1 if not.\n\nExample:\n  perihelion script check import.js",
        )
        .arg(file());
    Command::new("script")
        .about("Try a stored procedure on the running server, or check the text of a script")
        .subcommand_required(true)
        .subcommands([settings::with_arguments_of(run, settings::OF_SERVER), check])
}

pub(super) fn run(matches: &ArgMatches, environment: impl Fn(&str) -> Option<String>) -> Result<(), Failure> {
    match matches.subcommand() {
        Some(("run", run)) => execute(run, environment),
        Some((_, check)) => self::check(check),
        None => Err(Failure::Failed("script needs a subcommand".to_owned())),
    }
}

fn text_of<'a>(matches: &'a ArgMatches, name: &str) -> &'a str {
    matches.get_one::<String>(name).map_or("", String::as_str)
}

fn read_script(matches: &ArgMatches) -> Result<String, Failure> {
    let path = text_of(matches, "file");
    std::fs::read_to_string(Path::new(path))
        .map_err(|error| Failure::Io { what: format!("cannot read \"{path}\""), cause: error.to_string() })
}

/// Stores the procedure under a name of its own, executes it, and deletes it again.
fn execute(matches: &ArgMatches, environment: impl Fn(&str) -> Option<String>) -> Result<(), Failure> {
    let settings = Settings::from_raw(&settings::gather(matches, environment)?)?;
    let source = read_script(matches)?;
    let json = |name: &str| matches.get_one::<Json>(name).cloned().unwrap_or_default();
    let (key, parameters) = (json("partition-key"), json("parameters"));
    let mut random = [0; 8];
    SystemAmbient::new().fill_random(&mut random);
    let id = format!("perihelion-script-run-{:016x}", u64::from_le_bytes(random));
    let feed = format!("dbs/{}/colls/{}/sprocs", text_of(matches, "database"), text_of(matches, "container"));
    let server = Arc::new(SignedServer::of(settings)?);
    let runtime = runtime()?;
    // Before the procedure is stored, so that an interrupt always finds this command able to delete it.
    let ends = {
        let _runtime = runtime.enter();
        let watched =
            |kind| signal(kind).map_err(|error| Failure::Failed(format!("cannot watch signals: {error}")));
        [watched(SignalKind::interrupt())?, watched(SignalKind::terminate())?]
    };
    let stored = server.send("POST", &feed, Vec::new(), &json!({ "id": id, "body": source }))?;
    match stored.status {
        201 => {}
        404 => {
            let (database, container) = (text_of(matches, "database"), text_of(matches, "container"));
            let text = format!("there is no container \"{container}\" in a database \"{database}\"");
            return Err(Failure::Failed(text));
        }
        401 => return Err(stored.refusal()),
        _ => return Err(refused(&stored)),
    }
    let one = format!("{feed}/{id}");
    let headers = vec![
        ("x-ms-documentdb-partitionkey", key.to_string()),
        ("x-ms-documentdb-script-enable-logging", "true".to_owned()),
    ];
    let begun = Instant::now();
    let sent = {
        let (server, one) = (Arc::clone(&server), one.clone());
        move || server.send("POST", &one, headers, &parameters)
    };
    let answer = runtime.block_on(unless_interrupted(ends, sent));
    let took = begun.elapsed();
    let deleted = server.send("DELETE", &one, Vec::new(), &Json::Null);
    let answer = answer?;
    show(&answer, took.as_secs_f64() * 1000.0);
    match (answer.status, deleted?.status) {
        (200, 204) => Ok(()),
        (200, _) => Err(Failure::Failed(format!("the procedure \"{id}\" could not be deleted again"))),
        _ => Err(refused(&answer)),
    }
}

fn partition_key(text: &str) -> Result<Json, String> {
    let key: Json = serde_json::from_str(text)
        .map_err(|error| format!("it is not JSON: {error}; a text has quotation marks: '\"{text}\"'"))?;
    Ok(if key.is_array() { key } else { json!([key]) })
}

fn parameters(text: &str) -> Result<Json, String> {
    let parameters: Json = serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))?;
    if parameters.is_array() { Ok(parameters) } else { Err("it is not a JSON array".to_owned()) }
}

/// A refused script, with status and substatus.
fn refused(answer: &LocalAnswer) -> Failure {
    let substatus = answer.header("x-ms-substatus").map(|substatus| format!("/{substatus}"));
    let substatus = substatus.filter(|text| text != "/0").unwrap_or_default();
    Failure::Failed(format!("status {}{substatus}: {}", answer.status, readable(&answer.message())))
}

/// The text of a refusal without what wraps it for SDKs, with its line breaks.
fn readable(message: &str) -> String {
    let text = message.split("\r\nActivityId").next().unwrap_or(message);
    let text = text.strip_prefix("Message: ").unwrap_or(text);
    let errors = serde_json::from_str::<Json>(text).ok().and_then(|wrapped| {
        let errors = wrapped["Errors"].as_array()?;
        Some(errors.iter().filter_map(Json::as_str).collect::<Vec<_>>().join("\n"))
    });
    errors
        .as_deref()
        .unwrap_or(text)
        .replace("\r\n", "\n")
        .replace("\\r\\n", "\n")
        .trim_end()
        .replace('\n', "\n  ")
}

/// The answer to a request, unless the user interrupts the command before it arrives. The server goes on with the
/// request: its procedure takes its time at most.
async fn unless_interrupted(
    [mut interrupt, mut terminate]: [Signal; 2],
    send: impl FnOnce() -> Result<LocalAnswer, Failure> + Send + 'static,
) -> Result<LocalAnswer, Failure> {
    let (answered, answer) = tokio::sync::oneshot::channel();
    // Not a task of the runtime, which would wait for it. Nobody may wait for the answer any more.
    std::thread::spawn(move || drop(answered.send(send())));
    tokio::select! {
        answer = answer => answer.unwrap_or_else(|_| Err(Failure::Failed("the request was not sent".to_owned()))),
        _ = interrupt.recv() => Err(interrupted()),
        _ = terminate.recv() => Err(interrupted()),
    }
}

fn interrupted() -> Failure {
    Failure::Failed("interrupted: the procedure may still end and change documents".to_owned())
}

fn runtime() -> Result<Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::Failed(format!("cannot start the runtime: {error}")))
}

fn show(answer: &LocalAnswer, milliseconds: f64) {
    let log = answer.header("x-ms-documentdb-script-log-results").unwrap_or_default();
    let log = percent_decode_str(log).decode_utf8_lossy();
    if !log.is_empty() {
        say!("log:\n{}\n", log.trim_end());
    }
    if answer.status == 200 {
        let body = String::from_utf8_lossy(&answer.body);
        say!("result: {}", if body.is_empty() { "nothing" } else { &body });
    }
    let charge = answer.header("x-ms-request-charge").unwrap_or("unknown");
    say!("charge: {charge} RU, time: {milliseconds:.1} ms");
}

/// The server on this machine, and the key that signs requests to it.
struct SignedServer {
    settings: Settings,
    key: AccountKey,
}

impl SignedServer {
    fn of(settings: Settings) -> Result<SignedServer, Failure> {
        let key = local_server::key(&settings)?;
        let bytes = BASE64_STANDARD.decode(key.trim());
        let bytes = bytes.map_err(|_| Failure::Failed("the key of the server is not base64".to_owned()))?;
        Ok(SignedServer { settings, key: AccountKey::new(&bytes) })
    }

    /// Sends a request; the path is by names and not encoded.
    fn send(
        &self,
        verb: &str,
        path: &str,
        mut headers: Vec<(&str, String)>,
        body: &Json,
    ) -> Result<LocalAnswer, Failure> {
        headers.extend(nosql::signed_headers(&self.key, verb, path, SystemAmbient::new().now_seconds()));
        let segments = path.split('/').map(|name| utf8_percent_encode(name, NON_ALPHANUMERIC).to_string());
        let path = format!("/{}", segments.collect::<Vec<_>>().join("/"));
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = LocalRequest { verb, path: &path, headers, body: body.as_bytes() };
        local_server::send(&self.settings, &request)
    }
}

/// The command of the worker process; only the server uses it.
pub(super) fn worker_command() -> Command {
    let memory = Arg::new("memory-bytes").required(true).value_parser(value_parser!(u64));
    Command::new(WORKER).hide(true).about("Execute scripts for a server").arg(memory)
}

/// Executes scripts until the server closes the pipe.
pub(super) fn work(matches: &ArgMatches) -> Result<(), Failure> {
    let memory_bytes =
        matches.get_one::<u64>("memory-bytes").copied().unwrap_or(script::MEMORY_BYTES_DEFAULT);
    match script::worker::main(memory_bytes) {
        ExitCode::SUCCESS => Ok(()),
        _ => Err(Failure::Failed("the script worker has no memory".to_owned())),
    }
}

/// How this program starts its workers.
pub(super) fn worker_program() -> Result<WorkerProgram, Failure> {
    let path = match THIS_PROGRAM {
        "" => std::env::current_exe()
            .map_err(|error| Failure::Failed(format!("cannot find this program: {error}")))?,
        path => PathBuf::from(path),
    };
    Ok(WorkerProgram { path, arguments: vec![WORKER.to_owned()] })
}

/// Checks a script as the server does when it is stored, in a worker process of this program.
fn check(matches: &ArgMatches) -> Result<(), Failure> {
    let (source, file) = (read_script(matches)?, text_of(matches, "file"));
    let workers = Workers::new(worker_program()?, Limits::for_cores(1));
    let runtime = runtime()?;
    // The future may start processes, which needs the runtime.
    let (checked, globals) =
        runtime.block_on(async { (workers.check(CALLER, &source).await, globals(&workers).await) });
    checked.map_err(|fault| refused_text(file, &fault))?;
    let globals = globals.map_err(|cause| Failure::Failed(format!("the globals of scripts: {cause}")))?;
    for (line, name) in script_names::unknown(&source, &globals) {
        say!("{file}:{line}: warning: scripts have no \"{name}\"");
    }
    say!("{file}: the script can be executed");
    Ok(())
}

/// Why a file is no script, after the place in it.
fn refused_text(file: &str, fault: &ScriptFault) -> Failure {
    Failure::Failed(match fault {
        ScriptFault::Syntax(syntax) => {
            format!("{file}:{}:{}: {}", syntax.line, syntax.column, syntax.message)
        }
        ScriptFault::Thrown(thrown) => match first_place(&thrown.stack) {
            Some(place) => format!("{file}:{place}: {}", thrown.text),
            None => format!("{file}: {}", thrown.text),
        },
        ScriptFault::TimeExceeded { .. }
        | ScriptFault::MemoryExceeded { .. }
        | ScriptFault::Result(_)
        | ScriptFault::Crashed { .. }
        | ScriptFault::Busy
        | ScriptFault::Unavailable { .. }
        | ScriptFault::InputTooLarge { .. } => format!("{file}: {fault}"),
    })
}

/// `line:column` of the first frame of a stack trace.
fn first_place(stack: &str) -> Option<String> {
    let mut parts = stack.lines().next()?.trim_end_matches(')').rsplitn(3, ':');
    let (column, line) = (parts.next()?.parse::<u32>().ok()?, parts.next()?.parse::<u32>().ok()?);
    Some(format!("{line}:{column}"))
}

/// The names that every script has, as a worker process says.
async fn globals(workers: &Workers) -> Result<HashSet<String>, String> {
    let call = script::Call {
        name: "globals".to_owned(),
        source: GLOBALS.into(),
        role: Role::Procedure { parameters: Bytes::new() },
        links: Links::default(),
        clock: Clock::Fixed { at_ms: 0 },
        seed: 0,
        logs: false,
        quota: Quota::default(),
        needs_own_runtime: true,
    };
    let finished = workers.run(CALLER, &call, &mut NoDocuments).await.map_err(|fault| fault.to_string())?;
    serde_json::from_slice(&finished.body.unwrap_or_default()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_shown_without_their_wrapping() {
        let wrapped =
            "Message: {\"Errors\":[\"it threw: x\\r\\nStack trace: f (run.js:2)\"]}\r\nActivityId: 1, R";
        assert_eq!(readable(wrapped), "it threw: x\n  Stack trace: f (run.js:2)");
        assert_eq!(readable("plain"), "plain");
    }

    #[test]
    fn the_place_of_an_error_is_its_first_frame() {
        assert_eq!(first_place("    at f (script:3:17)\n    at script:9:1").as_deref(), Some("3:17"));
        assert_eq!(first_place("    at script:9:1").as_deref(), Some("9:1"));
        assert_eq!(first_place(""), None);
        assert_eq!(first_place("mine"), None);
    }

    #[test]
    fn keys_and_parameters_are_json() {
        assert_eq!(partition_key("\"a\"").unwrap(), json!(["a"]));
        assert_eq!(partition_key("[1, null]").unwrap(), json!([1, null]));
        assert!(partition_key("a").unwrap_err().contains("'\"a\"'"));
        assert_eq!(parameters("[1]").unwrap(), json!([1]));
        assert!(parameters("{}").is_err() && parameters("[[}").is_err());
    }
}
