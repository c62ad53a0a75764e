"""`python -m histories --rounds N --seed S`: clients race on few items, wave after wave; then every answer is judged.

They send single writes and reads, writes with triggers, batches and stored procedures, while partitions are split. The
judge is the simulator's: it looks for an order of the operations of each wave that respects real time and explains
every answer, refusals included, and what is found afterwards.
"""

import argparse
import itertools
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time

import urllib3
from azure.cosmos import CosmosClient, PartitionKey, documents

from histories.clients import (
    CONTAINER, DATABASE, GUARD, POST_TRIGGER, PRE_TRIGGER, PROCEDURE, RawClient, SdkClient, batch_steps)
from support import steps as scripts
from support.control import SPLIT_STATUS, partitions, split
from support.server import EMULATOR_KEY, ROOT, Server
from support.wire import Wire

CLIENTS = [(RawClient, "http"), (RawClient, "http"), (RawClient, "https"),
           (SdkClient, "http"), (SdkClient, "http"), (SdkClient, "https")]
WAVES = 5
OPERATIONS = 4
IDS = ["a", "b", GUARD]
# Bytes of documents at which a partition splits by itself, and of an item.
SPLIT_BYTES = 15_000
FILL_BYTES = 1_500
# How often a wave meets a split that was asked for, and how long after its beginning.
SPLIT_CHANCE = 0.2
SPLIT_SECONDS = (0.0, 0.02)
KINDS = ["create", "replace", "patch", "delete", "read"]
# How often a step is one that may succeed, as far as its client knows.
FITTING_CHANCE = 0.8
# How an operation is sent, and how often.
WAYS = {"single": 45, "batch": 20, "procedure": 20, "triggered": 15}

# How many operations of each way must be done, and how many refused, per round.
COUNT_MIN = 2


def judge_program():
    return os.environ.get("PERIHELION_SIM") or str(ROOT / "target/debug/perihelion-sim")


class Recorder:
    """One file for all clients; marks are unique in it."""

    def __init__(self, path):
        self.file = open(path, "w", encoding="utf-8")
        self.lock = threading.Lock()
        self.marks = itertools.count(1)

    def write(self, line):
        with self.lock:
            self.file.write(json.dumps(line) + "\n")

    def close(self):
        self.file.close()


class Drawing:
    """Draws the steps of one operation, most of them such that they fit what the client knows."""

    def __init__(self, chance, recorder, key, etags):
        self.chance, self.recorder, self.key = chance, recorder, key
        self.etags = dict(etags)

    def step(self, kinds=KINDS, ids=IDS):
        id = self.chance.choice(ids)
        if self.chance.random() < FITTING_CHANCE:
            kinds = [kind for kind in kinds if (kind == "create") == (id not in self.etags)] or kinds
        kind, mark = self.chance.choice(kinds), next(self.recorder.marks)
        step = {"kind": kind, "id": id}
        if kind in ("create", "replace"):
            step["body"] = {"id": id, "pk": self.key, "w": mark, "n": mark, "fill": "x" * FILL_BYTES}
        if kind == "patch":
            step |= {"w": mark, "increment": self.chance.randint(1, 9)}
        if kind in ("replace", "patch", "delete") and self.etags.get(id) and self.chance.random() < 0.5:
            step["if_match"] = self.etags[id]
        if kind == "delete":
            self.etags.pop(id, None)
        elif kind != "read":
            self.etags[id] = None  # it is there, with an ETag that nobody knows yet
        return step


def draw_operation(chance, recorder, key, etags):
    """The steps of an operation, and how it is sent."""
    drawing = Drawing(chance, recorder, key, etags)
    [way] = chance.choices(list(WAYS), WAYS.values())
    if way == "single":
        return {"by": way, "main": 0, "steps": [drawing.step([*KINDS, "read", "replace"])]}
    if way == "triggered":
        return draw_triggered(chance, drawing)
    steps = [drawing.step() for _ in range(chance.randint(2, 3))]
    if way == "batch":
        # One document once: what a step sees of an earlier one of its own batch is another test's matter.
        steps = list({step["id"]: step for step in steps}.values())
    return {"by": way, "main": 0, "steps": steps}


def draw_triggered(chance, drawing):
    """A write, and what triggers do before it, after it, or both."""
    which = chance.choice(["before", "after", "both"])
    main = drawing.step(["create", "replace"], [id for id in IDS if id != GUARD])
    before = after = []
    if which != "after":
        before = [{"kind": "read", "id": GUARD}]
        main["body"]["guard"] = GUARD
    if which != "before":
        after = [drawing.step() for _ in range(chance.randint(1, 2))]
        main["body"]["after"] = batch_steps(after)
    return {"by": "triggered", "main": len(before), "steps": [*before, main, *after]}


def remember(etags, steps, told):
    for step, seen in zip(steps, told.get("done", [])):
        if seen["kind"] == "deleted":
            etags.pop(step["id"], None)
        elif seen.get("item"):
            etags[step["id"]] = seen["item"]["_etag"]


def work(client, chance, recorder, etags, key, wave):
    for _ in range(OPERATIONS):
        operation = draw_operation(chance, recorder, key, etags)
        perform(client, recorder, key, wave, operation, etags)


def perform(client, recorder, key, wave, operation, etags):
    """Sends an operation and records it with its answer."""
    invoked = time.monotonic_ns()
    told = client.send(key, operation)
    answered = time.monotonic_ns()
    remember(etags, operation["steps"], told)
    recorder.write({"wave": wave, "key": key, "invoked": invoked, "answered": answered, **operation, **told})


class Splitter:
    """Asks for splits of the partition that a wave is about, while the wave runs."""

    def __init__(self, server):
        self.server = server
        self.wire = Wire(server.port)
        self.count = 0  # done before the last client of the wave had finished
        self.failures = []

    def begin(self, key, seconds):
        """Asks after so many seconds; answers the thread, whose split counts if `end` is called after it began."""
        headers = {"x-ms-documentdb-partitionkey": json.dumps([key])}
        answer = self.wire.send("GET", f"/dbs/{DATABASE}/colls/{CONTAINER}/docs", headers=headers)
        partition = answer.headers["x-ms-session-token"].split(":")[0]
        self.begun = float("inf")
        self.thread = threading.Thread(target=self._ask, args=(partition, seconds))
        self.thread.start()

    def end(self):
        """To be called when the clients of the wave have finished."""
        ended = time.monotonic()
        self.thread.join()
        self.count += self.is_split and self.begun < ended

    def _ask(self, partition, seconds):
        self.is_split = False
        time.sleep(seconds)
        self.begun = time.monotonic()
        status, body = split(self.server, DATABASE, CONTAINER, partition)
        self.is_split = status == 200
        if status not in SPLIT_STATUS:
            self.failures.append(f"the split of partition {partition} is answered with {status}: {body}")


def prepare(server):
    """The container with its scripts."""
    with CosmosClient(server.endpoint(), EMULATOR_KEY) as setup:
        made = setup.create_database(DATABASE).create_container(CONTAINER, PartitionKey("/pk")).scripts
        made.create_stored_procedure({"id": PROCEDURE, "body": scripts.PROCEDURE})
        trigger = {"serverScript": None, "triggerOperation": documents.TriggerOperation.All}
        before = {"id": PRE_TRIGGER, "body": scripts.PRE_TRIGGER, "triggerType": documents.TriggerType.Pre}
        after = {"id": POST_TRIGGER, "body": scripts.POST_TRIGGER, "triggerType": documents.TriggerType.Post}
        for definition in (before, after):
            made.create_trigger(trigger | definition)


def found(wire, key):
    """The items of a logical partition."""
    headers = {"x-ms-documentdb-partitionkey": json.dumps([key])}
    return list(wire.feed(f"/dbs/{DATABASE}/colls/{CONTAINER}/docs", headers=headers))


def play(server, clients, recorder, rounds, seed):
    """All rounds; answers the failures, and how many splits happened while clients raced."""
    wire = Wire(server.port)
    splitter = Splitter(server)
    failures = splitter.failures

    def guarded(*arguments):
        try:
            work(*arguments)
        except Exception as error:  # a bug of the driver must not pass for silence
            failures.append(repr(error))

    for round in range(rounds):
        key = f"round-{round:05}"
        known = [{} for _ in clients]
        for wave in range(WAVES):
            threads = []
            for index, client in enumerate(clients):
                chance = random.Random(f"{seed}/{round}/{wave}/{index}")
                arguments = (client, chance, recorder, known[index], key, wave)
                threads.append(threading.Thread(target=guarded, args=arguments))
            chance = random.Random(f"{seed}/{round}/{wave}")
            splits = chance.random() < SPLIT_CHANCE
            if splits:
                splitter.begin(key, chance.uniform(*SPLIT_SECONDS))
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            if splits:
                splitter.end()
            items = found(wire, key)
            recorder.write({"wave": wave, "key": key, "found": items})
            # Later operations may build on what everybody can see.
            for etags in known:
                etags.update({item["id"]: item["_etag"] for item in items})
    splitter.wire.close()
    wire.close()
    return failures, splitter.count


def settle_times(path):
    """Corrects the `_ts` in what transactions of scripts show.

    It may be a guess there: the time of a version is that of its commit, after the script has seen the version.
    """
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    shown = lambda line: line.get("found") or [seen["item"] for seen in line.get("done", []) if seen.get("item")]
    is_script = lambda line: line.get("by") in ("procedure", "triggered")
    times = {}
    for line in sorted(lines, key=lambda line: not is_script(line)):
        for item in shown(line):
            guess = times.get(item["_etag"], 0) if is_script(line) else 0
            times[item["_etag"]] = max(item["_ts"], guess)
    for line in filter(is_script, lines):
        for item in shown(line):
            item["_ts"] = times[item["_etag"]]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def judge(path):
    """Settles and judges a recorded file; answers whether an order explains it, and what the judge says."""
    settle_times(path)
    judged = subprocess.run([judge_program(), "--judge", str(path)], capture_output=True, text=True)
    return judged.returncode == 0, judged.stdout.strip() or judged.stderr.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path, help="where the recorded file stays")
    arguments = parser.parse_args()
    urllib3.disable_warnings()  # the certificate of a server that lives for seconds is not checked here
    with tempfile.TemporaryDirectory() as folder:
        flags = ["--partition-max-bytes", str(SPLIT_BYTES)]
        with Server(pathlib.Path(folder) / "data", *flags) as server:
            prepare(server)
            path = arguments.keep or pathlib.Path(folder) / "history.jsonl"
            recorder = Recorder(path)
            clients = [kind(server.port, scheme) for kind, scheme in CLIENTS]
            failures, splits = play(server, clients, recorder, arguments.rounds, arguments.seed)
            for client in clients:
                client.close()
            recorder.close()
            ranges = len(partitions(server, DATABASE, CONTAINER))
        is_explained, said = judge(path)
        print(said)
        counts = summary(path)
        print(", ".join(f"{count} {name}" for name, count in sorted(counts.items())))
        print(f"{ranges - 1} splits, {splits} of them asked for and done while clients raced")
        failures += thin(counts, arguments.rounds, splits)
        for complaint in failures:
            print(complaint)
        failed = (not is_explained) + len(failures)
        print(f"{arguments.rounds * WAVES if not failed else 0} passed, {failed} failed")
        return 1 if failed else 0


def thin(counts, rounds, splits):
    """What a history lacks that has not tested what it should."""
    names = [f"{way} {outcome}" for way in WAYS for outcome in ("done", "refused")]
    few = [name for name in names if counts.get(name, 0) < COUNT_MIN * rounds]
    lacking = [f"{counts.get(name, 0)} operations \"{name}\" are too few" for name in few]
    if splits == 0:
        lacking.append("no partition was split while clients raced")
    return lacking


def summary(path):
    """How often each way to send an operation had which outcome."""
    counts = {}
    with open(path, encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            for outcome in ("done", "refused", "unknown"):
                if outcome in line:
                    name = f"{line['by']} {outcome}"
                    counts[name] = counts.get(name, 0) + 1
    return counts


if __name__ == "__main__":
    sys.exit(main())
