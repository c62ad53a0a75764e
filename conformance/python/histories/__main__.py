"""`python -m histories --rounds N --seed S`: clients race on few items, wave after wave; then every answer is judged.

The judge is the simulator's: it looks for an order of the operations of each wave that respects real time and explains
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
from azure.cosmos import CosmosClient, PartitionKey

from histories.clients import CONTAINER, DATABASE, RawClient, SdkClient
from support.server import EMULATOR_KEY, ROOT, Server
from support.wire import Wire

CLIENTS = [(RawClient, "http"), (RawClient, "http"), (RawClient, "https"),
           (SdkClient, "http"), (SdkClient, "http"), (SdkClient, "https")]
WAVES = 5
OPERATIONS = 4
IDS = ["a", "b", "c"]


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


def draw_step(chance, recorder, key, etags, in_batch):
    id = chance.choice(IDS)
    mark = next(recorder.marks)
    kinds = ["create", "replace", "patch", "delete", "read"] + ([] if in_batch else ["read", "replace"])
    kind = chance.choice(kinds)
    step = {"kind": kind, "id": id}
    if kind in ("create", "replace"):
        step["body"] = {"id": id, "pk": key, "w": mark, "n": mark}
    if kind == "patch":
        step |= {"w": mark, "increment": chance.randint(1, 9)}
    if kind in ("replace", "patch", "delete") and id in etags and chance.random() < 0.5:
        step["if_match"] = etags[id]
    return step


def draw_steps(chance, recorder, key, etags):
    if chance.random() < 0.25:
        steps = [draw_step(chance, recorder, key, etags, True) for _ in range(chance.randint(2, 3))]
        # One document once: what a step sees of an earlier one of its own batch is another test's matter.
        return list({step["id"]: step for step in steps}.values())
    return [draw_step(chance, recorder, key, etags, False)]


def remember(etags, steps, told):
    for step, seen in zip(steps, told.get("done", [])):
        if seen["kind"] == "deleted":
            etags.pop(step["id"], None)
        elif seen.get("item"):
            etags[step["id"]] = seen["item"]["_etag"]


def work(client, chance, recorder, etags, key, wave):
    for _ in range(OPERATIONS):
        steps = draw_steps(chance, recorder, key, etags)
        invoked = time.monotonic_ns()
        told = client.send(key, steps)
        answered = time.monotonic_ns()
        remember(etags, steps, told)
        recorder.write({"wave": wave, "key": key, "invoked": invoked, "answered": answered, "steps": steps, **told})


def play(server, clients, recorder, rounds, seed):
    wire = Wire(server.port)
    failures = []

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
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            headers = {"x-ms-documentdb-partitionkey": json.dumps([key])}
            found = list(wire.feed(f"/dbs/{DATABASE}/colls/{CONTAINER}/docs", headers=headers))
            recorder.write({"wave": wave, "key": key, "found": found})
            # Later operations may build on what everybody can see.
            for etags in known:
                etags.update({item["id"]: item["_etag"] for item in found})
    wire.close()
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path, help="where the recorded file stays")
    arguments = parser.parse_args()
    urllib3.disable_warnings()  # the certificate of a server that lives for seconds is not checked here
    with tempfile.TemporaryDirectory() as folder, Server(pathlib.Path(folder) / "data") as server:
        with CosmosClient(server.endpoint(), EMULATOR_KEY) as setup:
            setup.create_database(DATABASE).create_container(CONTAINER, PartitionKey("/pk"))
        path = arguments.keep or pathlib.Path(folder) / "history.jsonl"
        recorder = Recorder(path)
        clients = [kind(server.port, scheme) for kind, scheme in CLIENTS]
        failures = play(server, clients, recorder, arguments.rounds, arguments.seed)
        for client in clients:
            client.close()
        recorder.close()
        judged = subprocess.run([judge_program(), "--judge", str(path)], capture_output=True, text=True)
        print(judged.stdout.strip() or judged.stderr.strip())
        counts = summary(path)
        print(", ".join(f"{count} {name}" for name, count in sorted(counts.items())))
        # A history in which nothing was refused or nothing done has not tested what it should.
        thin = [name for name in ("done", "refused", "batches") if counts.get(name, 0) < arguments.rounds]
        failed = bool(judged.returncode) + len(failures) + len(thin)
        for complaint in failures + [f"too few operations of the kind \"{name}\"" for name in thin]:
            print(complaint)
        print(f"{arguments.rounds * WAVES if not failed else 0} passed, {failed} failed")
        return 1 if failed else 0


def summary(path):
    counts = {}
    with open(path, encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            names = [name for name in ("done", "refused", "unknown") if name in line]
            names += ["batches"] if len(line.get("steps", [])) > 1 else []
            for name in names:
                counts[name] = counts.get(name, 0) + 1
    return counts


if __name__ == "__main__":
    sys.exit(main())
