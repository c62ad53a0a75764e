"""What the processes of scripts have given up, as the kernel tells it, and how many of them are busy."""

import os
import pathlib
import threading
import time

from hostile import attacks
from hostile.attacks import ENDLESS_QUERY, Attack
from support import server as program
from support.workers import script_workers, stat, status

# Memory of a call, and how much more address space a worker may have besides what it has when it starts.
MEMORY_BYTES = 64 << 20
ADDRESS_SPACE_MARGIN = 160 << 20
NICE = 19
FILTERED = "2"
# What a worker has open: its pipes, nothing, and the files of its own peak of memory.
FILES = {"0": "pipe:", "1": "pipe:", "2": "/dev/null", "3": "/proc/self/status", "4": "/proc/self/clear_refs"}
# Limits that are zero.
NOTHING = ("Max core file size", "Max file size", "Max open files", "Max processes")
ENVIRONMENT = "TZ=UTC0\0"

# Scripts that may be busy at the same time: those for which there are cores, and those that have waited long, of one
# caller and of all.
USUAL = max(1, (os.cpu_count() or 1) - 1)
EXTRA_OF_ONE = 2
EXTRA = 3
CLIENTS = 6
COUNTED_SECONDS = 3
SAMPLE_SECONDS = 0.005
NICE_FIELD = 16


def check_workers(test, server):
    """Every process of scripts of a server is confined."""
    workers = script_workers(server.process.pid)
    complaints = [f"{worker}: {complaint}" for worker in workers for complaint in faults(worker)]
    test.check("a process with rights is told from them", len(faults(server.process.pid)) > 5)
    test.check("workers are confined", workers and not complaints, "; ".join(complaints) or f"{len(workers)} workers")


def faults(worker):
    """What a process may that it should not."""
    folder = pathlib.Path(f"/proc/{worker}")
    fields = status(worker)
    found = []

    def expect(name, value, expected):
        if value != expected:
            found.append(f"{name} is {value!r}, not {expected!r}")

    expect("the command", b"script-worker" in (folder / "cmdline").read_bytes().split(b"\0"), True)
    expect("the filter of system calls", fields["Seccomp"], FILTERED)
    expect("NoNewPrivs", fields["NoNewPrivs"], "1")
    expect("the number of threads", fields["Threads"], "1")
    expect("the priority", int(stat(worker)[NICE_FIELD]), NICE)
    expect("the environment", (folder / "environ").read_text(), ENVIRONMENT)
    expect("the folder", os.readlink(folder / "cwd"), "/")
    files = {each.name: os.readlink(each).replace(f"/proc/{worker}/", "/proc/self/") for each in (folder / "fd").iterdir()}
    expect("what is open", {name: "pipe:" if file.startswith("pipe:") else file for name, file in files.items()}, FILES)
    limits = limits_of(folder)
    for name in NOTHING:
        expect(name, limits[name], ("0", "0"))
    soft, hard = limits["Max address space"]
    least, most = MEMORY_BYTES + ADDRESS_SPACE_MARGIN, (int(fields["VmPeak"].split()[0]) << 10) + MEMORY_BYTES + ADDRESS_SPACE_MARGIN
    is_limited = soft == hard and hard.isdigit() and least < int(hard) <= most
    expect(f"that the address space ({soft}, {hard}) is limited to {most}", is_limited, True)
    return found


def limits_of(folder):
    """Soft and hard limits of a process, by name."""
    limits = {}
    for line in (folder / "limits").read_text().splitlines()[1:]:
        name, values = line[:26].strip(), line[26:].split()
        limits[name] = (values[0], values[1])
    return limits


class Busy(threading.Thread):
    """The most processes of scripts that were busy at the same time."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server = server
        self.most = self.alive = 0
        self.over = threading.Event()

    def run(self):
        before = set()
        while not self.over.wait(SAMPLE_SECONDS):
            workers = script_workers(self.server)
            running = {worker for worker in workers if _is_running(worker)}
            # Those that ran in both samples: one alone may see a process that begins and one that has just ended.
            self.most = max(self.most, len(running & before))
            self.alive = max(self.alive, len(workers))
            before = running

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()


def _is_running(worker):
    try:
        return stat(worker)[0] == "R"
    except OSError:
        return False  # it has ended


def check_busy(test, server):
    """While scripts do not stop, no more of them are busy than may be: of one caller, and of two."""
    key = program.run("keys", "show", "primary-readonly", "--data", server.data).stdout.strip()
    procedures = lambda: Attack(attacks.execute, server.port, CLIENTS, "hostile")
    functions = lambda: Attack(attacks.ask, server.port, CLIENTS, ENDLESS_QUERY, key)
    with procedures():
        count(test, server, "of one caller", USUAL + EXTRA_OF_ONE)
        with functions():
            count(test, server, "of two callers", USUAL + EXTRA)


def count(test, server, whose, most):
    with Busy(server.process.pid) as busy:
        time.sleep(COUNTED_SECONDS)
    test.check(f"at most {most} workers are busy with endless scripts {whose}", 0 < busy.most <= most, f"{busy.most} of {busy.alive}")
