//! Scripts that try to run for ever, to take all memory, or to leave their process.
//!
//! Each ends within its budget, by its own limits or by a kill, and the next call works.

use crate::fixture::{CALLER, Documents, body, call, limits, program};
use script::{CallFault, Clock, Function, FunctionBatch, Limits, ScriptFault, Turn, WorkerProgram, Workers};
use serde_json::json;
use std::time::Duration;

/// A short budget, since most of these scripts use all of it.
fn hostile_workers() -> Workers {
    Workers::new(program(), Limits { time: Duration::from_millis(300), busy_max: 1, ..limits() })
}

/// Far more than the budget and the kill take, even on a busy machine.
const WATCHDOG: Duration = Duration::from_secs(60);

async fn run(workers: &Workers, source: &str) -> Result<(), ScriptFault> {
    let call = call(source, &json!([]));
    match tokio::time::timeout(WATCHDOG, workers.run(CALLER, &call, &mut Documents::default())).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(CallFault::Script(fault))) => Err(fault),
        Ok(Err(CallFault::Host(fault))) => panic!("{source}: {fault}"),
        Ok(Err(CallFault::Again)) => panic!("{source}: again"),
        Err(_) => panic!("{source}: still running"),
    }
}

/// The next call of the pool works.
async fn still_works(workers: &Workers, after: &str) {
    let call = call("function (n) { getContext().getResponse().setBody(n + 1); }", &json!([41]));
    // A worker has the lowest priority, so on a busy machine a short budget needs several attempts.
    for _ in 0..200 {
        match workers.run(CALLER, &call, &mut Documents::default()).await {
            Ok(finished) => {
                assert_eq!(body(&finished), json!(42), "after {after}");
                return;
            }
            Err(CallFault::Script(ScriptFault::TimeExceeded { .. })) => {}
            Err(fault) => panic!("after {after}: {fault:?}"),
        }
    }
    panic!("after {after}: no call ends in time");
}

#[tokio::test]
async fn endless_scripts_are_stopped() {
    let workers = hostile_workers();
    for source in [
        "function () { while (true) {} }",
        "function () { while (true) { try { while (true) {} } catch (e) {} } }",
        "function () { try { while (true) {} } finally { while (true) {} } }",
        "function () { [1, 2, 3].sort(function () { while (true) {} }); }",
        "function () { /^(a+)+$/.test('a'.repeat(40) + 'b'); }",
        "function () { Array.prototype.indexOf.call({ length: Number.MAX_SAFE_INTEGER }, 1); }",
        "function () { var a = []; a.length = 1e9; a.join(); }",
        "function () { Array.prototype.reverse.call({ length: 2 ** 53 - 1 }); }",
        "async function () { while (true) await null; }",
        "function () { var next = function () { __.readDocuments(__.getSelfLink(), next); }; next(); while (true) {} }",
        "function () { throw { get message() { while (true) {} } }; }",
        "function () { __.response.setBody({ toJSON() { while (true) {} } }); }",
        "function () { __.createDocument(__.getSelfLink(), new Proxy({}, { ownKeys() { while (true) {} } })); }",
        "function () { new Proxy({}, { get() { while (true) {} } }).x; }",
        "function () { class A { static { while (true) {} } } }",
        "function () { for (const x of (function* () { while (true) yield 1; })()) {} }",
        "function () { eval('while (true) {}'); }",
        "function () { new Function('while (true) {}')(); }",
        "function () { 'x'.repeat(1 << 10).replace(/x/g, function () { while (true) {} }); }",
        "(function () { while (true) {} })()",
    ] {
        let ended = run(&workers, source).await;
        let budget = Duration::from_millis(300);
        assert_eq!(ended, Err(ScriptFault::TimeExceeded { budget }), "{source}");
        still_works(&workers, source).await;
    }
}

#[tokio::test]
async fn scripts_that_reach_the_limit_of_time_or_memory_are_stopped() {
    // Which limit they reach first depends on the speed of the machine.
    let workers = hostile_workers();
    for source in [
        // The engine collects all matches before it calls the function.
        "function () { 'x'.repeat(1 << 20).replace(/x/g, function () { while (true) {} }); }",
        // Each promise waits for the next one.
        "function () { function f() { return Promise.resolve().then(f); } f(); }",
    ] {
        let ended = run(&workers, source).await;
        let is_stopped =
            matches!(ended, Err(ScriptFault::TimeExceeded { .. } | ScriptFault::MemoryExceeded { .. }));
        assert!(is_stopped, "{source}: {ended:?}");
        still_works(&workers, source).await;
    }
}

#[tokio::test]
async fn memory_is_bounded() {
    // More time than the scripts need to use their memory.
    let workers = Workers::new(program(), Limits { busy_max: 1, ..limits() });
    for source in [
        "function () { var a = []; while (true) a.push(new Array(1000).fill(1)); }",
        "function () { var s = 'x'; while (true) s += s; }",
        "function () { var a = []; while (true) a.push({}); }",
        "function () { var m = new Map(), i = 0; while (true) m.set(i++, 'v' + i); }",
        "function () { new Uint8Array(1 << 30); }",
        "function () { var a = []; while (true) a.push(new Uint8Array(1 << 20).fill(1)); }",
        "async function () { var a = []; while (true) { a.push(new Array(1000).fill(await 1)); } }",
        "function () { var o = {}; while (true) o = { o, p: new Array(100).fill(0) }; }",
        "function () { var i = 0; while (true) globalThis['g' + i++] = new Array(100).fill(0); }",
        "function () { 'x'.repeat(60 << 20).split('').map(c => c + c); }",
        "function () { JSON.stringify(new Array(1 << 24).fill('xxxxxxxx')); }",
    ] {
        let ended = run(&workers, source).await;
        let is_refused = matches!(ended, Err(ScriptFault::MemoryExceeded { .. } | ScriptFault::Thrown(_)));
        assert!(is_refused, "{source}: {ended:?}");
        still_works(&workers, source).await;
    }
    for source in [
        "function () { var s = 'x'; try { while (true) s += s; } catch (e) {} }",
        "function () { try { var a = []; while (true) a.push(new Array(1000).fill(1)); } catch (e) { a = null; } }",
    ] {
        assert_eq!(run(&workers, source).await, Ok(()), "{source}");
    }
}

#[tokio::test]
async fn used_up_memory_is_told_from_errors_of_scripts() {
    let workers = Workers::new(program(), Limits { busy_max: 1, ..limits() });
    for source in [
        "function () { var a = []; while (true) a.push(new Array(1000).fill(1)); }",
        "function () { var a = []; while (true) a.push({}); }",
        "function () { var m = new Map(), i = 0; while (true) m.set(i++, 'v' + i); }",
        "function () { globalThis.InternalError = null; var a = []; while (true) a.push({}); }",
    ] {
        let ended = run(&workers, source).await;
        assert!(matches!(ended, Err(ScriptFault::MemoryExceeded { .. })), "{source}: {ended:?}");
    }
    for (source, text) in [
        ("function () { throw new Error('out of memory'); }", "Error: out of memory"),
        ("function () { throw null; }", "null"),
        ("function () { for (var i = 0; i < 2e7; i++) {} throw null; }", "null"),
        ("function () { for (var i = 0; i < 2e6; i++) ({ i: [i] }); throw null; }", "null"),
        // In a worker that has had nearly all of the memory before.
        ("function () { new Uint8Array(44 << 20).fill(1); throw 'almost'; }", "almost"),
        ("function () { for (var i = 0; i < 2e7; i++) {} throw null; }", "null"),
        ("function () { throw undefined; }", "undefined"),
        ("async function () { throw null; }", "null"),
        ("function () { getContext().abort(null); }", "null"),
    ] {
        let ended = run(&workers, source).await;
        assert!(
            matches!(&ended, Err(ScriptFault::Thrown(thrown)) if thrown.text == text),
            "{source}: {ended:?}"
        );
    }
}

/// Another call may have filled nearly all of its memory, at once, in the same worker.
#[tokio::test]
async fn a_call_is_not_judged_by_the_memory_of_the_one_before() {
    let workers = Workers::new(program(), Limits { busy_max: 1, ..limits() });
    let null = "function () { for (var i = 0; i < 2e7; i++) {} throw null; }";
    for _ in 0..3 {
        run(&workers, "function () { new Uint8Array(46000000).fill(1); }").await.unwrap();
        match run(&workers, null).await {
            Err(ScriptFault::Thrown(thrown)) => assert_eq!(thrown.text, "null"),
            other => panic!("{other:?}"),
        }
    }
}

/// The most memory that the worker with this argument has had resident, in KiB.
#[cfg(target_os = "linux")]
fn peak_resident_kib(argument: &str) -> u64 {
    let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|process| process.path());
    let is_worker = |path: &std::path::PathBuf| {
        let line = std::fs::read(path.join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|part| part == argument.as_bytes())
    };
    let worker = processes.into_iter().find(is_worker).unwrap();
    let status = std::fs::read_to_string(worker.join("status")).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn a_worker_stays_within_its_memory() {
    let argument = format!("measured-by-{}", std::process::id());
    let program = WorkerProgram { arguments: vec![argument.clone()], ..program() };
    let workers = Workers::new(program, Limits { busy_max: 1, ..limits() });
    run(&workers, "function () {}").await.unwrap();
    let before = peak_resident_kib(&argument);
    assert!(before < 15 << 10, "a warm worker has {before} KiB");
    for source in [
        "function () { var a = []; try { while (true) a.push(new Array(1000).fill(1)); } catch (e) { a = null; } }",
        "function () { var a = []; try { while (true) a.push('x'.repeat(1000) + a.length); } catch (e) { a = null; } }",
        "function () { var a = []; try { while (true) a.push(new Uint8Array(1 << 16).fill(1)); } catch (e) { a = null; } }",
        // Operations that wait beside a full heap, and those of a single message.
        "function () {
            var text = 'x'.repeat(100000), count = 0, a = [];
            while (__.createDocument(__.getSelfLink(), { id: 'n' + count, text })) count++;
            if (count === 0) throw 'none is accepted';
            try { while (true) a.push(new Array(1000).fill(1)); } catch (e) { a = null; }
        }",
        // A result beside a heap that is full but for what writing it takes.
        "function () {
            globalThis.kept = [];
            try { while (true) kept.push(new Uint8Array(1 << 16).fill(1)); } catch (e) { kept.length -= 320; }
            __.response.setBody('x'.repeat((4 << 20) - 2));
        }",
    ] {
        assert_eq!(run(&workers, source).await, Ok(()), "{source}");
        let grown = peak_resident_kib(&argument) - before;
        let most = script::MEMORY_BYTES_DEFAULT / 1024 * 11 / 10;
        assert!(grown <= most, "{source}: {grown} KiB");
    }
}

/// Texts that close the brackets around them, so that what follows would be executed when they are compiled.
#[tokio::test]
async fn compiling_executes_nothing() {
    let workers = Workers::new(program(), Limits { busy_max: 1, ..limits() });
    for source in [
        "function () {} )}); (function () { WORK })(); (function () { return (function () {}",
        "function () {} )}), (function () { WORK })(), (function () { return (function () {}",
        "function () {} )}}} (function () { WORK })(); {{{ (function () {}",
        "function () {} )}}} (function () { WORK })(); {let x;{function y(){ return (function () {}",
        "function () {} )} (function () { WORK })(); function $script() { return (function () {}",
        "function () {} )} class A { static { WORK } } function y() { return (function () {}",
        "function a() {} }}} (function () { WORK })(); {{{ (function () {})",
        "function a() {} }} WORK {{ function b() {}",
        "function a() {} } WORK function b() {",
    ] {
        let thrown = source.replace("WORK", "throw new Error('executed');");
        for ended in [workers.check(CALLER, &thrown).await, run(&workers, &thrown).await] {
            assert!(!format!("{ended:?}").contains("executed"), "{thrown}: {ended:?}");
        }
        // A worker that executes this between two calls has no time for the second one.
        let endless = source.replace("WORK", "while (true) {}");
        let _ = run(&workers, &endless).await;
        assert_eq!(run(&workers, "function () {}").await, Ok(()), "{endless}");
    }
}

#[tokio::test]
async fn the_wrapper_of_a_script_is_no_global() {
    let workers = hostile_workers();
    let source = "function () { if (Object.keys(globalThis).includes('$script')) throw 'global'; }";
    assert_eq!(run(&workers, source).await, Ok(()));
}

#[tokio::test]
async fn deep_recursion_is_refused() {
    let workers = Workers::new(program(), Limits { busy_max: 1, ..limits() });
    for source in [
        "function f() { f(); }",
        "function () { var o = {}; for (var i = 0; i < 1e5; i++) o = { o }; __.response.setBody(o); }",
        "function () { JSON.parse('['.repeat(1e6)); }",
        "function () { var f = () => f(); f(); }",
        "function () { var p = {}; for (var i = 0; i < 1e5; i++) p = new Proxy(p, {}); p.x; }",
        "function () { eval('('.repeat(1e5) + ')'.repeat(1e5)); }",
        "function () { new RegExp('('.repeat(1e5) + ')'.repeat(1e5)); }",
        "function () { var a = []; a[0] = a; a.toString(); a.flat(Infinity); }",
        "function () { 9n ** (9n ** 9n); }",
        "function () { 'x'.padEnd(2 ** 30); }",
        "function () { throw new Proxy(function f() { f(); }, { get(t) { return t(); } }); }",
    ] {
        let ended = run(&workers, source).await;
        assert!(ended.is_err(), "{source}: {ended:?}");
        still_works(&workers, source).await;
    }
}

#[tokio::test]
async fn there_is_nothing_of_the_machine() {
    let workers = Workers::new(program(), Limits { busy_max: 1, ..limits() });
    for name in [
        "require",
        "process",
        "fetch",
        "std",
        "os",
        "Deno",
        "Bun",
        "XMLHttpRequest",
        "WebSocket",
        "Worker",
        "setTimeout",
        "setInterval",
        "importScripts",
        "load",
        "loadScript",
        "print",
        "scriptArgs",
        "Buffer",
        "module",
        "exports",
        "bjson",
        "performance",
        "navigator",
        "SharedArrayBuffer",
        "Atomics",
        "WebAssembly",
        "gc",
    ] {
        let source = format!("function () {{ if (typeof {name} !== 'undefined') throw '{name}'; }}");
        assert_eq!(run(&workers, &source).await, Ok(()), "{name}");
    }
    for source in [
        "async function () { await import('perihelion-prelude'); }",
        "async function () { await import('/etc/passwd'); }",
        "async function () { await import('std'); }",
        "function () { eval(\"import x from 'os'\"); }",
        "function () { new Date(0).toLocaleString(); new Date(2020, 1).getHours(); require('fs'); }",
    ] {
        let ended = run(&workers, source).await;
        assert!(matches!(ended, Err(ScriptFault::Thrown(_))), "{source}: {ended:?}");
    }
}

/// Attempts at a call that was not carried out.
const ATTEMPTS_MAX: usize = 5;

/// Hostile work in every place where the API, the engine or the worker calls the script.
#[tokio::test]
async fn hostile_work_ends_wherever_it_is_called_from() {
    let workers = hostile_workers();
    let works = [
        ("while (true) {}", true),
        ("Array.prototype.reverse.call({ length: 2 ** 53 - 1 })", true),
        ("(function deeper() { deeper(); })()", false),
        ("(function () { var a = []; while (true) a.push(new Array(1000).fill(1)); })()", false),
    ];
    let places = [
        "function () { __.readDocuments(__.getSelfLink(), function () { WORK }); }",
        "function () { __.readDocument(__.getAltLink() + '/docs/none', function () { WORK }); }",
        "function () { __.createDocument(__.getSelfLink(), { get id() { WORK } }); }",
        "function () { __.createDocument(__.getSelfLink(), { id: 'a', toJSON() { WORK } }); }",
        "function () { __.createDocument(__.getSelfLink(), {}, { get indexAction() { WORK } }); }",
        "function () { __.createDocument(__.getSelfLink(), { id: 'a' }); __.filter(function () { WORK }); }",
        "function () { __.createDocument(__.getSelfLink(), { id: 'a' }); __.sortBy(function () { WORK }); }",
        "function () { __.response.setBody(new Proxy([1], { get() { WORK } })); }",
        "function () { console.log('%s', { toString() { WORK }, toJSON() { WORK } }); }",
        "function () { throw { get number() { WORK } }; }",
        "function () { getContext().abort({ get stack() { WORK } }); }",
        "async function () { await null; WORK }",
        "async function () { await { then() { WORK } }; }",
        "function () { Promise.reject(new Proxy({}, { get() { WORK } })); }",
        "function () { Object.defineProperty(Object.prototype, 'role', { get() { WORK } }); new Error({ toString() { WORK } }); }",
        "function () { new Date({ valueOf() { WORK } }); }",
        "function () { Object.getPrototypeOf(TypeError).prepareStackTrace = function () { WORK }; null.x; }",
        "function () { `${{ [Symbol.toPrimitive]() { WORK } }}`; }",
    ];
    for place in places {
        for (work, is_endless) in works {
            let source = place.replace("WORK", &format!("{work};"));
            let mut ended = run(&workers, &source).await;
            for _ in 0..ATTEMPTS_MAX {
                // A busy machine may use up the time in which operations are accepted before the script begins; then
                // its callback is not called.
                if ended.is_err() {
                    break;
                }
                ended = run(&workers, &source).await;
            }
            assert!(ended.is_err(), "{source}: {ended:?}");
            let in_time = matches!(ended, Err(ScriptFault::TimeExceeded { .. }));
            assert!(in_time || !is_endless, "{source}: {ended:?}");
            still_works(&workers, &source).await;
        }
    }
}

#[tokio::test]
async fn hostile_functions_are_stopped() {
    let workers = hostile_workers();
    for source in [
        "function () { while (true) {} }",
        "function () { return { toJSON() { while (true) {} } }; }",
        "function () { return new Proxy([], { get() { while (true) {} } }); }",
        "function () { return Array.prototype.reverse.call({ length: 2 ** 53 - 1 }); }",
        "(function () { while (true) {} })()",
    ] {
        let function = Function { name: "f".to_owned(), source: source.into() };
        let mut batch = FunctionBatch::new(vec![function], Clock::Fixed { at_ms: 0 }, 0);
        batch.push(0, std::iter::empty());
        let ended =
            tokio::time::timeout(WATCHDOG, workers.evaluate(&batch, Turn::Own(CALLER))).await.unwrap();
        let ended = ended.into_result();
        assert!(matches!(ended, Err(ScriptFault::TimeExceeded { .. })), "{source}: {ended:?}");
        still_works(&workers, source).await;
    }
}

#[tokio::test]
async fn logs_are_bounded() {
    let workers = Workers::new(program(), Limits { busy_max: 1, ..limits() });
    let source = "function () { for (var i = 0; i < 1000; i++) console.log('ä'.repeat(10000)); }";
    let finished = workers.run(CALLER, &call(source, &json!([])), &mut Documents::default()).await.unwrap();
    assert!(finished.log.len() <= script::LOG_BYTES_MAX);
    assert!(finished.log.len() > script::LOG_BYTES_MAX - 10);
}

/// Every function that can be reached from the globals, with lengths and array-likes beyond all measure.
///
/// The list is made by the engine itself, so that it has what the next version of it adds. The scripts that the
/// engine does not stop are killed; there are a few.
#[tokio::test]
async fn every_built_in_ends_on_huge_arguments() {
    let workers =
        Workers::new(program(), Limits { time: Duration::from_millis(150), busy_max: 1, ..limits() });
    let list = "function () {
        var names = [];
        for (const name of Object.getOwnPropertyNames(globalThis)) {
            const object = globalThis[name];
            if (typeof object !== 'function' && (typeof object !== 'object' || object === null)) continue;
            for (const [path, holder] of [[name, object], [name + '.prototype', object.prototype]]) {
                if (holder === null || holder === undefined) continue;
                for (const key of Object.getOwnPropertyNames(holder)) {
                    const property = Object.getOwnPropertyDescriptor(holder, key);
                    if (typeof property.value === 'function') names.push(path + '[' + JSON.stringify(key) + ']');
                }
            }
        }
        getContext().getResponse().setBody(names);
    }";
    let patient = Workers::new(program(), Limits { busy_max: 1, ..limits() });
    let finished = patient.run(CALLER, &call(list, &json!([])), &mut Documents::default()).await.unwrap();
    let names: Vec<String> = serde_json::from_value(body(&finished)).unwrap();
    assert!(names.len() > 400, "{} functions", names.len());
    let mut stopped = Vec::new();
    for name in &names {
        if run(&workers, &huge_calls(name)).await.is_err() {
            stopped.push(name.as_str());
            still_works(&workers, name).await;
        }
    }
    assert!(stopped.contains(&"Array.prototype[\"reverse\"]"), "{stopped:?}");
    assert!(stopped.len() < names.len() / 4, "{stopped:?}");
}

/// A script that calls a function with huge arguments in many ways. It goes on after those that the engine refuses.
fn huge_calls(name: &str) -> String {
    format!(
        "function () {{
            var named = {{ toString() {{ return 'named'; }} }};
            var huge = {{ __proto__: named, length: 2 ** 53 - 1 }}, sparse = [];
            sparse.length = 2 ** 32 - 1;
            sparse.toString = named.toString;
            const values = [huge, sparse, 2 ** 31, 2 ** 53, -1, 'x'.repeat(1 << 12), {{ length: -1 }}, Infinity];
            const called = {name};
            for (const self of values) for (const value of values) {{
                try {{ called.call(self, value, value, value); }} catch (e) {{}}
                try {{ called(self, value, self); }} catch (e) {{}}
            }}
        }}"
    )
}
