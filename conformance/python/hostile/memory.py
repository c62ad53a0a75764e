"""All attacks at once on a server whose control group has little memory, and what the server says it holds."""

import contextlib
import pathlib
import statistics
import time
import urllib.request

from hostile import attacks
from hostile.attacks import CONTAINER, Attack
from support.server import Server
from support.wire import Wire

LIMIT_BYTES = 300_000_000
ATTACKED_SECONDS = 15
WRITES = 300
WRITTEN_BYTES = 400_000
# From here on what the server counts must be what its allocator has given out, within a fifth.
COUNTED_FROM_BYTES = 64 << 20
COUNTED_PERCENT_MAX = 20
ITEMS = 40_000
ITEMS_AT_A_TIME = 100


class ControlGroup:
    """A group of processes with a bound on their memory; the processes are one level below the bound."""

    def __init__(self, name, limit_bytes):
        root = pathlib.Path("/sys/fs/cgroup")
        self.is_version_1 = (root / "memory").is_dir()
        self.bound = (root / "memory" if self.is_version_1 else root) / name
        self.processes = self.bound / "server"
        self.bound.mkdir()
        if not self.is_version_1:
            for group in (root, self.bound):
                (group / "cgroup.subtree_control").write_text("+memory")
        limit = "memory.limit_in_bytes" if self.is_version_1 else "memory.max"
        (self.bound / limit).write_text(str(limit_bytes))
        self.processes.mkdir()

    def kills(self):
        """How many processes were killed because there was no memory left."""
        name = "memory.oom_control" if self.is_version_1 else "memory.events"
        groups = (self.bound, self.processes)
        lines = [line.split() for group in groups for line in (group / name).read_text().splitlines()]
        return sum(int(count) for key, count in lines if key == "oom_kill")

    def peak_bytes(self):
        peak = "memory.max_usage_in_bytes" if self.is_version_1 else "memory.peak"
        return int((self.bound / peak).read_text())

    def remove(self):
        self.processes.rmdir()
        self.bound.rmdir()


def attack_in_little_memory(test, folder, name):
    """The same attacks as on any server: nobody is killed, and the bystander's item is read."""
    group = ControlGroup(name, LIMIT_BYTES)
    try:
        with Server(pathlib.Path(folder) / "little", group=group.processes) as server:
            test.check("the limit of the group is seen", "control group limit" in server.errors(), server.errors())
            _attack(test, server)
            test.check("nobody was killed for memory", group.kills() == 0 and server.is_running())
            print(f"       peak {group.peak_bytes() >> 20} MiB with the page cache", flush=True)
            code = server.stop()
            test.check("the server with little memory stops in order", code == 0, server.errors() if code else "")
    finally:
        group.remove()


def _attack(test, server):
    port = server.port
    attacks.fill(port)
    with contextlib.ExitStack() as stack:
        for text in attacks.QUERIES.values():
            stack.enter_context(Attack(attacks.ask, port, 2, text()))
        stack.enter_context(Attack(attacks.ask, port, 4, attacks.arrays()))
        stack.enter_context(Attack(attacks.take_nothing, port, attacks.WINDOW_CONNECTIONS))
        stack.enter_context(Attack(attacks.send_half, port, attacks.HALF_BODIES))
        stack.enter_context(Attack(attacks.read_in_batches, port, 2))
        end = time.monotonic() + ATTACKED_SECONDS
        statuses = set()
        with Wire(port, timeout=60) as wire:
            while time.monotonic() < end and server.is_running():
                statuses.add(wire.item("GET", CONTAINER, ["a"], "small").status)
    test.check("small reads are answered in little memory", statuses == {200}, statuses)
    with Wire(port, timeout=60) as wire:
        written = [_write(wire, number) for number in range(WRITES)]
    test.check("large writes are taken in little memory", set(written) == {201}, set(written))


def _write(wire, number):
    body = {"id": f"w{number}", "pk": "w", "t": "x" * WRITTEN_BYTES}
    return wire.item("POST", CONTAINER, ["w"], body=body).status


def check_counts(test, folder):
    """What the server counts, share by share, is what its allocator has given out."""
    with Server(pathlib.Path(folder) / "counted") as server:
        attacks.fill(server.port)
        _load(server.port)
        _compare(test, server.port, "caches and memtables")
        with Attack(attacks.take_nothing, server.port, attacks.WINDOW_CONNECTIONS):
            _compare(test, server.port, "answers that nobody takes")
        with Attack(attacks.ask, server.port, 4, attacks.arrays()):
            _compare(test, server.port, "queries")


def _load(port):
    headers = {"x-ms-cosmos-is-batch-request": "true", "x-ms-cosmos-batch-atomic": "true", "prefer": "return=minimal"}
    with Wire(port, timeout=60) as wire:
        for first in range(0, ITEMS, ITEMS_AT_A_TIME):
            key = [f"k{first}"]
            items = [{"id": str(first + number), "pk": key[0], "n": number, "t": "x" * 1000} for number in range(100)]
            steps = [{"operationType": "Create", "resourceBody": item} for item in items]
            answer = wire.item("POST", CONTAINER, key, body=steps, headers=headers)
            assert answer.status == 200, answer


def _compare(test, port, what):
    """The middle of several looks: the two figures of one look are not of the same moment."""
    looks = []
    for _ in range(15):
        counted, allocated = _figures(port)
        if allocated >= COUNTED_FROM_BYTES:
            looks.append(100 * counted / allocated)
        time.sleep(0.1)
    percent = statistics.median(looks) if looks else 0
    is_right = abs(percent - 100) <= COUNTED_PERCENT_MAX
    test.check(f"memory is counted with {what}", is_right, f"{percent:.0f} % of what was allocated, {len(looks)} looks")


def _figures(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        lines = [line.rsplit(" ", 1) for line in answer.read().decode().splitlines() if not line.startswith("#")]
    parts = ("perihelion_memory_reserved_bytes", "perihelion_memory_at_start_bytes")
    counted = sum(int(value) for name, value in lines if name.startswith(parts))
    allocated = sum(int(value) for name, value in lines if name == "perihelion_memory_allocated_bytes")
    return counted, allocated
