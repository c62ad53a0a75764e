"""Scripts that do not stop, take memory or look for a way out, and a bystander beside them.

All are stored procedures; some are also triggers, and functions of queries.
"""

import pathlib
import threading
import time

from hostile import attacks, beside, sandbox
from hostile.attacks import CONTAINER
from support.server import Server
from support.wire import Wire
from support.workers import script_workers, status

BUDGET_MS = 400
# How long after its budget a script has to be stopped, as the client sees it.
STOP_MS = 150
# What a call may have, its heap, operations that wait and its result together, and how much more its process may take;
# what the process takes by itself does not count.
MEMORY_BYTES = 64 << 20
MEMORY_MARGIN = 1.1
# What the server may take to kill a script that cannot be interrupted, a function of a query later than others.
FUNCTION_STOP_MS = 200
ATTEMPTS = 3
SAMPLE_SECONDS = 0.002

STOPPED, REFUSED, ENDED = 408, (400, 403, 413), 200

# By name: the text, and the statuses that are right. A script that is only refused must be refused in time as well.
SCRIPTS = {
    "endless loop": ("while (true) {}", (STOPPED,)),
    "loop inside catch": ("while (true) { try { while (true) {} } catch (e) {} }", (STOPPED,)),
    "loop inside finally": ("try { while (true) {} } finally { while (true) {} }", (STOPPED,)),
    "endless comparator": ("[1, 2, 3].sort(function () { while (true) {} });", (STOPPED,)),
    "catastrophic pattern": ("/^(a+)+$/.test('a'.repeat(40) + 'b');", (STOPPED,)),
    "huge indexOf": ("Array.prototype.indexOf.call({ length: Number.MAX_SAFE_INTEGER }, 1);", (STOPPED,)),
    "join of a sparse array": ("var a = []; a.length = 1e9; a.join();", (STOPPED, *REFUSED)),
    "reverse of an array-like": ("Array.prototype.reverse.call({ length: 2 ** 53 - 1 });", (STOPPED,)),
    "endless promises": ("function f() { return Promise.resolve().then(f); } f();", (STOPPED, *REFUSED)),
    "getter in an error": ("throw { get message() { while (true) {} } };", (STOPPED,)),
    "proxy in a document": (
        "__.createDocument(__.getSelfLink(), new Proxy({}, { ownKeys() { while (true) {} } }));", (STOPPED,)),
    "memory bomb": ("var a = []; while (true) a.push(new Array(1000).fill(1));", REFUSED),
    "waiting operations and a full heap": (
        "var t = 'x'.repeat(1e5), i = 0, a = []; while (__.createDocument(__.getSelfLink(), { id: 'w' + i++, pk: 'a', t }));"
        "while (true) a.push(new Array(1000).fill(1));", REFUSED),
    "small objects": ("var a = []; while (true) a.push({});", (STOPPED, *REFUSED)),
    "doubled string": ("var s = 'x'; while (true) s += s;", REFUSED),
    "giant typed array": ("new Uint8Array(2 ** 32);", REFUSED),
    "giant number": ("var n = 2n; while (true) n = n * n;", (STOPPED, *REFUSED)),
    "deep recursion": ("function f() { return f() + 1; } f();", REFUSED),
    "deep result": ("var v = []; for (var i = 0; i < 1e5; i++) v = [v]; getContext().getResponse().setBody(v);", REFUSED),
    "large result": ("getContext().getResponse().setBody('x'.repeat(5 << 20));", REFUSED),
    "cyclic result": ("var v = {}; v.v = v; getContext().getResponse().setBody(v);", REFUSED),
    "giant log": ("for (var i = 0; i < 1e5; i++) console.log('x'.repeat(1000));", (STOPPED, ENDED)),
    "polluted prototypes": (
        "Object.prototype.id = 'x'; Array.prototype.push = null; JSON.stringify = null; getContext().getResponse().setBody(1);",
        (ENDED,)),
    "a way out": (
        "var found = ['require', 'process', 'fetch', 'std', 'os', 'Deno', 'SharedArrayBuffer', 'Atomics', 'performance']"
        ".filter(function (name) { return typeof globalThis[name] !== 'undefined'; });"
        "if (found.length > 0) while (true) {} import('os').then(function () { while (true) {} }, function () {});", (ENDED,)),
}

# Those that are also a trigger and a function of a query.
ALSO_ELSEWHERE = [
    "endless loop", "loop inside catch", "loop inside finally", "catastrophic pattern", "huge indexOf",
    "endless promises", "getter in an error", "memory bomb", "doubled string", "deep recursion"]

# Every built-in function of these, on something that claims to be very long.
GENERATED = """function (owner, name) {
    var object = { 'Array.prototype': Array.prototype, 'String.prototype': String.prototype,
        'Uint8Array.prototype': Uint8Array.prototype.__proto__, Object: Object, Array: Array, Reflect: Reflect,
        JSON: JSON, Math: Math }[owner];
    if (name === undefined) {
        var names = Object.getOwnPropertyNames(object).filter(function (name) {
            var found = Object.getOwnPropertyDescriptor(object, name);
            return typeof found.value === 'function' && name !== 'constructor';
        });
        return getContext().getResponse().setBody(names);
    }
    var long = { length: 2 ** 53 - 1 }, sparse = [], same = function (a) { return a; };
    sparse.length = 2 ** 32 - 1;
    [[long], [sparse], [long, same], [sparse, same], [sparse, long], ['x'.repeat(1 << 20), 'x'.repeat(1 << 20)],
        [long, 0, 2 ** 53 - 1, same], [1 << 30, 1 << 30]].forEach(function (values) {
        try { object[name].apply(values[0], values.slice(1)); } catch (e) {}
        try { object[name].apply(object, values); } catch (e) {}
    });
}"""
OWNERS = ["Array.prototype", "String.prototype", "Uint8Array.prototype", "Object", "Array", "Reflect", "JSON", "Math"]


class Peak(threading.Thread):
    """The most memory that any process of scripts has had, sampled from outside."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server = server
        self.peak = 0
        self.over = threading.Event()

    def run(self):
        while not self.over.wait(SAMPLE_SECONDS):
            self.peak = max([self.peak, *resident(self.server, "VmHWM")])


def resident(server, field):
    """A line of the status of all processes of scripts, in bytes."""
    sizes = []
    for worker in script_workers(server):
        try:
            sizes.append(int(status(worker)[field].split()[0]) << 10)
        except (OSError, KeyError):
            pass  # it has ended
    return sizes


def attack(test, folder):
    """All scripts, one after the other and then beside a bystander."""
    with Server(pathlib.Path(folder) / "scripts", "--script-timeout-ms", str(BUDGET_MS)) as server:
        attacks.fill(server.port)
        with Wire(server.port, timeout=60) as wire:
            _define(wire, "fine", "function (n) { getContext().getResponse().setBody(n + 1); }")
            _define(wire, "generated", GENERATED)
            _is_fine(wire)
            warm = max(resident(server.process.pid, "VmRSS"), default=0)
            peak = Peak(server.process.pid)
            peak.start()
            for name, (text, statuses) in SCRIPTS.items():
                _define(wire, "hostile", f"function () {{ {text} }}")
                _check(test, wire, name, lambda: _execute(wire, "hostile", []), statuses)
            _check_elsewhere(test, wire)
            _check_generated(test, wire)
            sandbox.check_workers(test, server)
            peak.over.set()
            peak.join()
            taken = peak.peak - warm
            test.check("scripts take no more memory than they may", taken <= MEMORY_BYTES * MEMORY_MARGIN,
                       f"{taken / (1 << 20):.1f} MiB, besides {warm / (1 << 20):.1f} MiB of a process")
            items = list(wire.feed(f"{CONTAINER}/docs"))
            test.check("hostile scripts leave nothing", len(items) == len(attacks.items()), len(items))
            _define_endless(wire)
        beside.check_bystander(test, server)
        sandbox.check_busy(test, server)
        test.check("the server lives", server.is_running())
        code = server.stop()
        test.check("the server stops in order after hostile scripts", code == 0, server.errors() if code else "")


def _define(wire, name, text, kind="sprocs", **others):
    body = {"id": name, "body": text, **others}
    answer = wire.send("POST", f"{CONTAINER}/{kind}", body, {"x-ms-documentdb-is-upsert": "true"})
    assert answer.status in (200, 201), answer.body


def _define_everywhere(wire, text):
    """A hostile script as a procedure, as a trigger before and after a create, and as a function."""
    _define(wire, "hostile", text)
    _define(wire, "hostile", text, "udfs")
    for time_ in ("Pre", "Post"):
        _define(wire, f"hostile{time_}", text, "triggers", triggerType=time_, triggerOperation="Create")


def _define_endless(wire):
    _define_everywhere(wire, f"function () {{ {SCRIPTS['endless loop'][0]} }}")


def _execute(wire, name, parameters):
    headers = {"x-ms-documentdb-partitionkey": '["a"]', "x-ms-documentdb-script-enable-logging": "true"}
    return wire.send("POST", f"{CONTAINER}/sprocs/{name}", parameters, headers)


def _is_fine(wire):
    answer = _execute(wire, "fine", [41])
    return answer.status == 200 and answer.json == 42


def _timed(execute):
    begun = time.monotonic()
    status = execute().status
    return status, (time.monotonic() - begun) * 1000


def _check_elsewhere(test, wire):
    """Some of the scripts as triggers and as functions; those answer 400 for whatever their script does."""
    triggered = lambda name: wire.item("POST", CONTAINER, ["a"], None, {"id": "triggered", "pk": "a"}, name)
    headers = {"content-type": "application/query+json", "x-ms-documentdb-isquery": "True",
               "x-ms-documentdb-partitionkey": '["a"]'}
    query = lambda: wire.send("POST", f"{CONTAINER}/docs", {"query": attacks.ENDLESS_QUERY}, headers)
    for name in ALSO_ELSEWHERE:
        text, statuses = SCRIPTS[name]
        _define_everywhere(wire, f"function () {{ {text} }}")
        for time_ in ("pre", "post"):
            include = {f"x-ms-documentdb-{time_}-trigger-include": f"hostile{time_.capitalize()}"}
            _check(test, wire, f"{name}, in a {time_}-trigger", lambda: triggered(include), statuses)
        # Promises of a function are not waited for.
        right = (ENDED,) if name == "endless promises" else (400,)
        _check(test, wire, f"{name}, in a query", query, right, FUNCTION_STOP_MS)


def _check(test, wire, name, execute, statuses, stop_ms=STOP_MS):
    """Stopped in time, with the right status, and the next call works."""
    for _ in range(ATTEMPTS):
        status, milliseconds = _timed(execute)
        is_right = status in statuses and milliseconds <= BUDGET_MS + stop_ms and _is_fine(wire)
        if is_right:
            break
    test.check(f"the script is stopped: {name}", is_right, f"{status} after {milliseconds:.0f} ms")


def _check_generated(test, wire):
    statuses = (STOPPED, *REFUSED, ENDED)
    slow = []
    count = 0
    for owner in OWNERS:
        names = _execute(wire, "generated", [owner]).json
        for name in names:
            count += 1
            for _ in range(ATTEMPTS):
                status, milliseconds = _timed(lambda: _execute(wire, "generated", [owner, name]))
                is_right = status in statuses and milliseconds <= BUDGET_MS + STOP_MS
                if is_right:
                    break
            if not is_right:
                slow.append(f"{owner}.{name}: {status} after {milliseconds:.0f} ms")
    test.check("generated scripts are stopped", count > 100 and not slow, f"{count} built-ins {' '.join(slow)}")
    test.check("the next script works after generated ones", _is_fine(wire))
