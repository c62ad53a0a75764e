"""Stored procedures that do not stop, take memory or look for a way out, and a bystander beside them."""

import pathlib
import threading
import time

from hostile import attacks
from hostile.attacks import CONTAINER, Attack
from hostile.bystander import Bystander
from support.server import Server
from support.wire import Wire

BUDGET_MS = 400
# How long after its budget a script has to be stopped, as the client sees it.
STOP_MS = 150
# What a call may have, its heap, operations that wait and its result together, and how much more its process may take;
# what the process takes by itself does not count.
MEMORY_BYTES = 64 << 20
MEMORY_MARGIN = 1.1
# How much longer the bystander may wait than without scripts; the best of three counts.
SLOWDOWN_MAX = 2
# A wait of one time slice of the kernel is no slowdown: without scripts the waits are shorter than that.
SLICE_MS = 4
ATTEMPTS = 3
MEASURED_SECONDS = 3
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
            self.peak = max([self.peak, *resident(self.server, "VmHWM:")])


def resident(server, field):
    """A line of the status of all processes of scripts, in bytes."""
    sizes = []
    for task in pathlib.Path(f"/proc/{server}/task").glob("*/children"):
        try:
            for child in task.read_text().split():
                status = pathlib.Path(f"/proc/{child}/status").read_text()
                sizes += [int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith(field)]
        except (OSError, IndexError):
            pass  # a thread or process that has ended
    return sizes


def attack(test, folder):
    """All scripts, one after the other and then beside a bystander."""
    with Server(pathlib.Path(folder) / "scripts", "--script-timeout-ms", str(BUDGET_MS)) as server:
        attacks.fill(server.port)
        with Wire(server.port, timeout=60) as wire:
            _define(wire, "fine", "function (n) { getContext().getResponse().setBody(n + 1); }")
            _define(wire, "generated", GENERATED)
            _is_fine(wire)
            warm = max(resident(server.process.pid, "VmRSS:"), default=0)
            peak = Peak(server.process.pid)
            peak.start()
            for name, (text, statuses) in SCRIPTS.items():
                _define(wire, "hostile", f"function () {{ {text} }}")
                _check(test, wire, name, lambda: _execute(wire, "hostile", []), statuses)
            _check_generated(test, wire)
            peak.over.set()
            peak.join()
            taken = peak.peak - warm
            test.check("scripts take no more memory than they may", taken <= MEMORY_BYTES * MEMORY_MARGIN,
                       f"{taken / (1 << 20):.1f} MiB, besides {warm / (1 << 20):.1f} MiB of a process")
            items = list(wire.feed(f"{CONTAINER}/docs"))
            test.check("hostile scripts leave nothing", len(items) == len(attacks.items()), len(items))
        _beside(test, server)
        test.check("the server lives", server.is_running())
        code = server.stop()
        test.check("the server stops in order after hostile scripts", code == 0, server.errors() if code else "")


def _define(wire, name, text):
    answer = wire.send("POST", f"{CONTAINER}/sprocs", {"id": name, "body": text}, {"x-ms-documentdb-is-upsert": "true"})
    assert answer.status in (200, 201), answer.body


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


def _check(test, wire, name, execute, statuses):
    """Stopped in time, with the right status, and the next call works."""
    for _ in range(ATTEMPTS):
        status, milliseconds = _timed(execute)
        is_right = status in statuses and milliseconds <= BUDGET_MS + STOP_MS and _is_fine(wire)
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


def _beside(test, server):
    """Reads and health checks beside endless scripts, over the same without."""
    bystander = Bystander(server.port)
    idle = [bystander.measure(MEASURED_SECONDS) for _ in range(ATTEMPTS)]
    calibrated = tuple(max(column) for column in zip(*idle))
    with Wire(server.port) as wire:
        _define(wire, "hostile", f"function () {{ {SCRIPTS['endless loop'][0]} }}")
    with Attack(attacks.execute, server.port, 4, "hostile"):
        measured = []
        while len(measured) < ATTEMPTS and not _is_good(measured, calibrated):
            measured.append(bystander.measure(MEASURED_SECONDS))
    best = min(measured, key=max)
    detail = f"p99 read {best[0]:.1f} of {calibrated[0]:.1f} ms, health {best[1]:.1f} of {calibrated[1]:.1f} ms"
    test.check("the bystander is served beside endless scripts", _is_good(measured, calibrated), detail)
    bystander.close()


def _is_good(measured, calibrated):
    bounds = [max(SLOWDOWN_MAX * idle, SLICE_MS) for idle in calibrated]
    return any(all(wait <= bound for wait, bound in zip(waits, bounds)) for waits in measured)
