"""`python -m kill --rounds N --seed S`: load, kill -9, restart on the same folder, compare; round after round.

With `--splits` partitions are so small that they split under the load, and each round asks for a split as well and often
kills the server right behind the request.
"""

import argparse
import http.client
import multiprocessing
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import threading
import time

from kill.clients import DATABASE, PROCEDURE
from kill.journal import read
from kill.judge import Judge, plain
from kill.load import CONTAINERS, THROUGHPUT, work
from kill.tables import TABLE, read_table, service
from support import server as program
from support import steps
from support.control import SPLIT_STATUS, partitions, split
from support.server import Server
from support.wire import Wire
from support.workers import script_workers

# By hand is what makes the load; the SDK over both transports is what users have, and that of tables.
CLIENTS = ["raw", "raw", "raw", "http", "https", "table", "table"]
LOAD_SECONDS = (0.05, 1.2)
# How often the data are verified after a kill: not always, for verifying replays the journal as a start does.
VERIFY_CHANCE = 0.5
VERIFY_SECONDS_MAX = 120
# How often a restart is killed as well, and how soon.
SECOND_KILL_CHANCE = 0.25
SECOND_KILL_SECONDS = (0.0, 0.15)
CLIENT_SECONDS_MAX = 120
# How long a process that executes procedures lives until it is killed.
WORKER_KILL_SECONDS = (0.01, 0.4)
# Bytes of documents at which a partition splits, with `--splits`.
SPLIT_BYTES = 30_000
# How often the kill is aimed at a split that was asked for, and how long after the request it comes.
AIMED_CHANCE = 0.6
AIMED_SECONDS = (0.0, 0.04)
# Rounds are added while something has not happened that should be tested, up to this many times their number.
ROUNDS_FACTOR = 3


class Driver:
    """The server, its clients and the judge, for any number of rounds."""

    def __init__(self, folder, seed, clients=CLIENTS, splits=False):
        self.folder = pathlib.Path(folder)
        self.chance = random.Random(seed)
        self.splits = splits
        flags = ["--partition-max-bytes", str(SPLIT_BYTES)] if splits else []
        self.server = Server(self.folder / "data", *flags, table=True)
        self.judge = Judge()
        self.over = multiprocessing.Event()
        self.tokens = {}  # (container, range) -> LSN
        self.start_seconds = []
        self.done = self.refused = self.unknown = 0
        self.procedures = 0
        self.killed_workers = 0
        self.server.start()
        self._make_containers()
        self.first_ranges = self.ranges()
        self.workers = []
        for index, kind in enumerate(clients):
            path = self.folder / f"journal-{index}"
            path.touch()
            ours, theirs = multiprocessing.Pipe()
            arguments = (index, kind, (self.server.port, self.server.table_port), seed, path, theirs, self.over)
            process = multiprocessing.Process(target=work, args=arguments, daemon=True)
            process.start()
            self.workers.append({"process": process, "pipe": ours, "path": path, "offset": 0})
        for worker in self.workers:
            assert worker["pipe"].recv() == "ready"

    def round(self, number, before_restart=lambda: None):
        """Load, kill, restart, compare; answers the violations."""
        self.over.clear()
        for index, worker in enumerate(self.workers):
            worker["pipe"].send((number, self._owned_by(index), self._shared()))
        end = time.monotonic() + self.chance.uniform(*LOAD_SECONDS)
        asking = self._begin_split(end) if self.splits else None
        self._kill_script_workers(end)
        # Set first: an answer that comes behind it may be the echo of a request that the SDK sent twice.
        self.over.set()
        self.server.kill()
        violations = self._wait_for_clients()
        if asking:
            asking.join()
            violations += self.split_violations
        before_restart()
        violations += self._verify()
        self._restart()
        journals = self._journals()
        observed = self._read_everything()
        violations += self.judge.judge(journals, observed)
        violations += self._check_sessions()
        return violations

    def _kill_script_workers(self, end):
        """Until then, kills processes that execute procedures: the server runs the procedure again or refuses it."""
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, self.chance.uniform(*WORKER_KILL_SECONDS)))
            for process in script_workers(self.server.process.pid):
                try:
                    os.kill(process, signal.SIGKILL)
                    self.killed_workers += 1
                except ProcessLookupError:
                    pass  # it has ended by itself

    def _begin_split(self, end):
        """Asks for the split of some partition during the load, often so late that the kill meets it."""
        late = self.chance.uniform(*AIMED_SECONDS) if self.chance.random() < AIMED_CHANCE else self.chance.uniform(*LOAD_SECONDS)
        container, place = self.chance.choice(list(CONTAINERS)), self.chance.random()
        self.split_violations = []
        thread = threading.Thread(target=self._ask_for_split, args=(end - late, container, place))
        thread.start()
        return thread

    def _ask_for_split(self, moment, container, place):
        try:
            found = partitions(self.server, DATABASE, container)
            partition = found[int(place * len(found))]["id"]
            time.sleep(max(0.0, moment - time.monotonic()))
            status, body = split(self.server, DATABASE, container, partition)
            if status not in SPLIT_STATUS:
                self.split_violations.append(f"split: partition {partition} of {container} is answered with {status}: {body}")
        except (OSError, http.client.HTTPException):
            pass  # the server was killed meanwhile

    def close(self):
        for worker in self.workers:
            if worker["process"].is_alive():
                worker["pipe"].send(None)
            worker["process"].join(5)
            worker["process"].kill()
        if self.server.is_running():
            self.server.kill()
        self.server.log.close()

    def _make_containers(self):
        with Wire(self.server.port) as wire:
            assert wire.send("POST", "/dbs", {"id": DATABASE}).status == 201
            for name, definition in CONTAINERS.items():
                headers = {"x-ms-offer-throughput": THROUGHPUT[name]} if name in THROUGHPUT else {}
                answer = wire.send("POST", f"/dbs/{DATABASE}/colls", {"id": name, **definition}, headers)
                assert answer.status == 201, answer.body
                script = {"id": PROCEDURE, "body": steps.PROCEDURE}
                answer = wire.send("POST", f"/dbs/{DATABASE}/colls/{name}/sprocs", script)
                assert answer.status == 201, answer.body
        with service(self.server.table_port) as client:
            client.create_table(TABLE)

    def _owned_by(self, index):
        mine = f"w{index}-"
        items = self.judge.state.items()
        return {key: (plain(item), item["_etag"]) for key, item in items if key[2].startswith(mine)}

    def _shared(self):
        return {key: item["_etag"] for key, item in self.judge.state.items() if key[0] == "shared"}

    def _wait_for_clients(self):
        violations = []
        for index, worker in enumerate(self.workers):
            if not worker["pipe"].poll(CLIENT_SECONDS_MAX):
                violations.append(f"client {index} hangs")
                continue
            self.procedures += worker["pipe"].recv()
        return violations

    def _verify(self):
        """Now and then the rows are compared with each other before the server sees them again."""
        if self.chance.random() >= VERIFY_CHANCE:
            return []
        result = program.run("verify", "--data", self.server.data, timeout=VERIFY_SECONDS_MAX)
        return [] if result.returncode == 0 else [f"verify: {result.stdout[-4000:]}{result.stderr}"]

    def _restart(self):
        """Starts again; now and then the start is killed as well, which must not harm either."""
        while self.chance.random() < SECOND_KILL_CHANCE:
            self.server.start_and_kill(self.chance.uniform(*SECOND_KILL_SECONDS))
        self.start_seconds.append(self.server.start())

    def _journals(self):
        journals = []
        for worker in self.workers:
            operations, worker["offset"] = read(worker["path"], worker["offset"])
            journals.append(operations)
        for operation in (operation for journal in journals for operation in journal):
            setattr(self, operation.outcome, getattr(self, operation.outcome) + 1)
            if operation.lsn:
                place = (operation.changes[0][0][0], operation.range)
                self.tokens[place] = max(self.tokens.get(place, 0), operation.lsn)
        return journals

    def _read_everything(self):
        observed = read_table(self.server.table_port)
        with Wire(self.server.port) as wire:
            for container in CONTAINERS:
                for item in wire.feed(f"/dbs/{DATABASE}/colls/{container}/docs"):
                    key = (container, item["pk"], item["id"])
                    if key in observed:
                        raise RuntimeError(f"{key} is in the feed twice")
                    observed[key] = item
        return observed

    def killed_in_calls(self):
        """How many processes were killed while they executed a procedure, as the server has noticed."""
        return self.server.logged("script_worker_lost")

    def split_count(self):
        """How many partitions were split since the containers were made."""
        return self.ranges() - self.first_ranges

    def thin(self):
        """What did not happen in any of the rounds, but should have."""
        found = []
        if self.procedures == 0:
            found.append("no stored procedure was acknowledged")
        if self.killed_in_calls() == 0:
            found.append("no process was killed while it executed a procedure")
        if self.splits and self.split_count() == 0:
            found.append("no partition was split")
        return found

    def ranges(self):
        """The number of ranges of all containers."""
        with Wire(self.server.port) as wire:
            paths = [f"/dbs/{DATABASE}/colls/{container}/pkranges" for container in CONTAINERS]
            paths.append(f"/dbs/TablesDB/colls/{TABLE}/pkranges")
            return sum(len(wire.send("GET", path).json["PartitionKeyRanges"]) for path in paths)

    def _check_sessions(self):
        """A client that was told an LSN may ask for it after the crash."""
        violations = []
        with Wire(self.server.port) as wire:
            for (container, range_id), lsn in self.tokens.items():
                headers = {"x-ms-documentdb-partitionkeyrangeid": range_id, "x-ms-session-token": f"{range_id}:0#{lsn}",
                           "x-ms-max-item-count": "1"}
                answer = wire.send("GET", f"/dbs/{DATABASE}/colls/{container}/docs", headers=headers)
                if answer.status != 200:
                    violations.append(f"session: LSN {lsn} of {container}/{range_id} is answered with {answer.status}")
        return violations


def main():
    parser = argparse.ArgumentParser(prog="cargo xtask kill")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--splits", action="store_true", help="with partitions that split under the load")
    parser.add_argument("--keep", action="store_true", help="keep the folder, also after success")
    arguments = parser.parse_args()
    seed = arguments.seed if arguments.seed is not None else random.SystemRandom().randrange(2**32)
    folder = tempfile.mkdtemp(prefix="kill-")
    print(f"kill -9 under load: {arguments.rounds} rounds, seed {seed}, folder {folder}", flush=True)
    begun = time.monotonic()
    driver = Driver(folder, seed, splits=arguments.splits)
    passed = failed = 0
    for number in range(1, arguments.rounds * ROUNDS_FACTOR + 1):
        if number > arguments.rounds and not driver.thin():
            break
        try:
            violations = driver.round(number)
        except Exception as error:
            violations = [f"the round broke off: {error!r}\n{driver.server.errors()}"]
        for violation in violations:
            print(f"round {number}: {violation}", flush=True)
        passed, failed = passed + (not violations), failed + bool(violations)
        if violations:
            # What is wrong now stays wrong: later rounds would only say it again.
            break
        if number % 10 == 0:
            print(f"round {number}: {len(driver.judge.state)} items, {driver.done} acknowledged, {driver.refused} refused, "
                  f"{driver.unknown} unknown, start {driver.start_seconds[-1]:.2f} s", flush=True)
    killed_in_calls = driver.killed_in_calls()
    if not failed:
        thin = driver.thin()
        for complaint in thin:
            print(f"{complaint}, so that was not tested")
        failed += bool(thin)
        print(f"{driver.split_count()} splits")
    driver.close()
    starts = sorted(driver.start_seconds) or [0.0]
    print(f"{driver.done} writes acknowledged, {driver.refused} refused, {driver.unknown} unknown, "
          f"{driver.procedures} procedures; {driver.killed_workers} script workers killed, {killed_in_calls} in calls; in {time.monotonic() - begun:.0f} s; ready after {starts[len(starts) // 2]:.2f} s (median), {starts[-1]:.2f} s (most)")
    if failed:
        print(f"journals and data are kept in {folder}; repeat with --seed {seed}")
    elif not arguments.keep:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or passed < arguments.rounds else 0


if __name__ == "__main__":
    sys.exit(main())
