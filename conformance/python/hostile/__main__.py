"""`python -m hostile`: clients and scripts that ask for too much, and a bystander whom they must not hold up."""

import contextlib
import os
import pathlib
import resource
import sys
import tempfile
import time

from hostile import attacks, memory, scripts
from hostile.attacks import Attack
from hostile.bystander import Bystander
from support.server import Server

CORES = os.cpu_count() or 1
CLIENTS = 4 * CORES
# How much longer the bystander may wait than on a server that has nothing else to do; the best of three counts.
SLOWDOWN_MAX = 10
ATTEMPTS = 3
MEASURED_SECONDS = 2
CALIBRATED_SECONDS = 4
# What an attack by queries must take to be one.
BUSY_CORES_MIN = 0.3
# What a server does by itself: flushes, timers.
IDLE_CORES_MAX = 0.2
IDLE_SECONDS_MAX = 10
STOP_SECONDS_MAX = 10
# What a busy machine may add to that.
STOP_SECONDS_MARGIN = 2
HANDLES_WANTED = 8192


class Test:
    """One server, attacked in one way after the other, then in all ways at once."""

    def __init__(self, folder):
        self.server = Server(pathlib.Path(folder) / "data")
        self.idle = (0.0, 0.0)
        self.passed = self.failed = 0

    def check(self, name, is_right, detail=""):
        print(f"{'ok' if is_right else 'FAILED':6} {name}{f': {detail}' if detail else ''}", flush=True)
        self.passed, self.failed = self.passed + bool(is_right), self.failed + (not is_right)

    def run(self):
        with self.server:
            self.fill()
            self.calibrate()
            for name, attack in self.attacks():
                self.beside(name, attack)
            self.stop_under_all()

    def fill(self):
        answers = attacks.fill(self.server.port)
        self.check("the items are made", set(answers) == {201}, answers)

    def calibrate(self):
        bystander = Bystander(self.server.port)
        measured = [bystander.measure(CALIBRATED_SECONDS / ATTEMPTS) for _ in range(ATTEMPTS)]
        bystander.close()
        self.idle = tuple(max(column) for column in zip(*measured))
        print(f"       idle p99 {_shown(self.idle)}", flush=True)

    def attacks(self):
        port = self.server.port
        for name, text in attacks.QUERIES.items():
            yield name, lambda text=text: Attack(attacks.ask, port, CLIENTS, text())
        yield "streams that take nothing", lambda: Attack(attacks.take_nothing, port, attacks.WINDOW_CONNECTIONS)
        yield "half-sent bodies", lambda: Attack(attacks.send_half, port, attacks.HALF_BODIES)
        yield "batches of large reads", lambda: Attack(attacks.read_in_batches, port, CORES)

    def beside(self, name, attack):
        """The bystander's waits beside an attack, and the server's rest after it."""
        bystander = Bystander(self.server.port)
        with attack():
            begun, before = time.monotonic(), self.used_seconds()
            measured = []
            while len(measured) < ATTEMPTS and not self.is_good(_best(measured)):
                measured.append(bystander.measure(MEASURED_SECONDS))
            cores = (self.used_seconds() - before) / (time.monotonic() - begun)
        if name in attacks.QUERIES:
            self.check(f"the server is busy with {name}", cores >= BUSY_CORES_MIN, f"{cores:.1f} cores")
        best = _best(measured)
        self.check(f"the bystander is served beside {name}", self.is_good(best), f"p99 {_shown(best)}")
        bystander.close()
        seconds = self.seconds_to_rest()
        detail = "not at all" if seconds is None else f"after {seconds:.1f} s"
        self.check(f"the server rests after {name}", seconds is not None, detail)

    def is_good(self, waits):
        return all(wait <= SLOWDOWN_MAX * idle for wait, idle in zip(waits, self.idle))

    def seconds_to_rest(self):
        """How long the server goes on computing for clients that are gone."""
        begun = time.monotonic()
        before = self.used_seconds()
        while time.monotonic() < begun + IDLE_SECONDS_MAX:
            since = time.monotonic()
            time.sleep(0.25)
            now = self.used_seconds()
            if (now - before) / (time.monotonic() - since) <= IDLE_CORES_MAX:
                return since - begun
            before = now
        return None

    def used_seconds(self):
        """Processor time of the server so far."""
        fields = pathlib.Path(f"/proc/{self.server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop_under_all(self):
        """All attacks at once, and a request to stop."""
        with contextlib.ExitStack() as stack:
            for _, attack in self.attacks():
                stack.enter_context(attack())
            begun = time.monotonic()
            code = self.server.stop()
            seconds = time.monotonic() - begun
        self.check("the server stops in order under all of it", code == 0, self.server.errors() if code else "")
        is_in_time = seconds <= STOP_SECONDS_MAX + STOP_SECONDS_MARGIN
        self.check("the server stops in time under all of it", is_in_time, f"{seconds:.1f} s")


def _best(measured):
    return min(measured, key=max, default=(float("inf"), float("inf")))


def _shown(waits):
    return f"read {waits[0]:.1f} ms, health {waits[1]:.1f} ms"


def main():
    begun = time.monotonic()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(HANDLES_WANTED, most), most))
    with tempfile.TemporaryDirectory(prefix="perihelion-hostile-") as folder:
        test = Test(folder)
        try:
            test.run()
            scripts.attack(test, folder)
            memory.check_counts(test, folder)
            memory.attack_in_little_memory(test, folder, f"perihelion-hostile-{os.getpid()}")
        except Exception as error:
            test.check("the story goes to its end", False, f"{error!r}\n{test.server.errors()}")
        finally:
            if test.server.is_running():
                test.server.kill()
    print(f"in {time.monotonic() - begun:.0f} s")
    print(f"{test.passed} passed, {test.failed} failed")
    return 1 if test.failed else 0


if __name__ == "__main__":
    sys.exit(main())
