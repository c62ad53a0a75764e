"""Fills a small disk with items, frees it, and compares, without a restart and with one."""

import hashlib
import random
import os
import time

import requests
from azure.cosmos import CosmosClient
from azure.cosmos.exceptions import CosmosHttpResponseError

from support.server import EMULATOR_KEY, Server
from support.wire import Wire

MIB = 1024 * 1024
VOLUME_BYTES = 800 * MIB
# What writes leave free. More than half of the disk, so that a file of others can take so much that the store stays below
# it, whatever its own work in the background gives back, and still leave room for that work.
RESERVE_BYTES = 450 * MIB
# What the store may take before the first refusal: journal, memtables yet to be written, and their merge.
CAPACITY_BYTES = 120 * MIB
ITEM_BYTES = 96 * 1024
CONTAINER = "/dbs/db/colls/c"
PATIENCE_SECONDS = 30


class Test:
    """One story on one disk, told in checks."""

    def __init__(self, volume, reserve_bytes=RESERVE_BYTES):
        self.volume = volume
        self.server = Server(volume.mount / "data", "--free-space-reserve-bytes", str(reserve_bytes))
        self.ballast = volume.mount / "ballast"
        self.chance = random.Random(11)
        self.stored = {}  # id -> digest of its text
        self.count = 0
        self.passed = self.failed = 0

    def check(self, name, is_right, detail=""):
        print(f"{'ok' if is_right else 'FAILED':6} {name}{f': {detail}' if detail and not is_right else ''}", flush=True)
        self.passed, self.failed = self.passed + bool(is_right), self.failed + (not is_right)

    def run(self):
        self.add_ballast()
        with self.server:
            self.make_container()
            self.fill()
            self.hold()
            self.refusals()
            self.what_goes_on()
            self.compare("everything acknowledged is there on the full disk")
            self.ballast.unlink()
            self.resume("writing resumes by itself when the disk has room again")
            self.compare("everything acknowledged is there afterwards")
            self.check("the server lives and stops in order", self.server.stop() == 0, self.server.errors())
            self.server.start()
            self.wire.close()
            self.compare("everything acknowledged is there after a restart")
            self.full_again()

    def full_again(self):
        """A crash on a full disk, and a start on one."""
        self.add_ballast()
        self.fill()
        self.hold()
        self.server.kill()
        try:
            self.server.start()
        except (RuntimeError, TimeoutError) as error:
            self.check("a server starts on a full disk", False, error)
            return
        self.check("a server starts on a full disk", True)
        self.wire.close()
        self.compare("everything acknowledged is there after a crash on a full disk")
        self.what_goes_on()
        self.ballast.unlink()
        self.resume("writing resumes after that as well")
        self.compare("everything acknowledged is there at the end")

    def make_container(self):
        self.wire = Wire(self.server.port)
        self.wire.send("POST", "/dbs", {"id": "db"})
        answer = self.wire.send("POST", "/dbs/db/colls", {"id": "c", "partitionKey": {"paths": ["/pk"], "version": 2}})
        self.check("a container is made", answer.status == 201, answer.body)

    def add_ballast(self):
        """A file of others on the same disk that leaves some room above the reserve."""
        self.set_ballast(self.volume.free_bytes() - RESERVE_BYTES - CAPACITY_BYTES)

    def hold(self):
        """Grows that file until all the rest of the disk is less than the reserve: then the disk stays full, whatever
        the store gives back."""
        self.set_ballast(self.volume.total_bytes() - RESERVE_BYTES + 8 * MIB)
        self.check("the file of others leaves less than the reserve",
                   self.volume.total_bytes() - self.ballast.stat().st_size < RESERVE_BYTES)

    def set_ballast(self, size_bytes):
        with open(self.ballast, "ab") as file:
            os.posix_fallocate(file.fileno(), 0, max(1, size_bytes))

    def create(self):
        """Writes one item; answers what came back."""
        id = f"item-{self.count}"
        self.count += 1
        text = self.chance.randbytes(ITEM_BYTES // 2).hex()
        answer = self.wire.item("POST", CONTAINER, ["a"], body={"id": id, "pk": "a", "t": text})
        if answer.status == 201:
            self.stored[id] = hashlib.sha256(text.encode()).digest()
        return id, answer

    def fill(self):
        """Writes until the first refusal, which must come before the disk is full."""
        for _ in range(VOLUME_BYTES // ITEM_BYTES * 2):
            id, answer = self.create()
            if answer.status != 201:
                break
        message = answer.json.get("message", "") if answer.body else ""
        self.check("a write is refused with 507 in the end", answer.status == 507, f"{answer.status} {message}")
        self.check("the refusal says why", "disk is nearly full" in message, message)
        self.check("the disk is not full to the last byte", self.volume.free_bytes() > MIB, self.volume.free_bytes())
        self.check("items were written before", len(self.stored) > 50, len(self.stored))
        self.refused = id

    def refusals(self):
        """What clients and operators see of it."""
        answer = self.wire.item("GET", CONTAINER, ["a"], self.refused)
        self.check("a refused item is absent", answer.status == 404, answer.status)
        old = next(iter(self.stored))
        answer = self.wire.item("PUT", CONTAINER, ["a"], old, {"id": old, "pk": "a", "t": "x" * ITEM_BYTES})
        self.check("a replace is refused too", answer.status == 507, answer.status)
        steps = [{"operationType": "Create", "resourceBody": {"id": f"b{number}", "pk": "a"}} for number in range(3)]
        answer = self.wire.batch(CONTAINER, ["a"], steps)
        self.check("a batch is refused too", answer.status in (207, 507), answer.status)
        container = CosmosClient(self.server.endpoint(), EMULATOR_KEY).get_database_client("db").get_container_client("c")
        try:
            container.create_item({"id": "sdk", "pk": "a", "t": "x" * ITEM_BYTES})
            self.check("the SDK sees the refusal", False, "the item was created")
        except CosmosHttpResponseError as error:
            right = error.status_code == 507 and "disk is nearly full" in str(error)
            self.check("the SDK sees the refusal", right, error)
        answer = requests.get(f"{self.server.endpoint()}health/live")
        self.check("the server says that it lives", answer.status_code == 200, answer.status_code)
        answer = requests.get(f"{self.server.endpoint()}health/ready")
        self.check("the server says that it is not ready for everything", answer.status_code == 503, answer.text)
        self.check("the log says it", "nearly full" in self.server.errors(), self.server.errors())

    def what_goes_on(self):
        """Reads and deletes."""
        id = next(iter(self.stored))
        answer = self.wire.item("GET", CONTAINER, ["a"], id)
        self.check("reads go on", answer.status == 200 and self.is_same(answer.json), answer.status)
        for id in list(self.stored)[-20:]:
            answer = self.wire.item("DELETE", CONTAINER, ["a"], id)
            if answer.status != 204:
                break
            del self.stored[id]
        self.check("deletes go on", answer.status == 204, answer.body)
        answer = self.wire.item("GET", CONTAINER, ["a"], id)
        self.check("a deleted item is absent", answer.status == 404, answer.status)

    def resume(self, name):
        """Waits for the first write that is taken; the time is only a bound."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        status = 0
        while status != 201 and time.monotonic() < deadline:
            _, answer = self.create()
            status = answer.status
            time.sleep(0.05)
        self.check(name, status == 201, answer.body)
        for _ in range(20):
            _, answer = self.create()
        self.check("and goes on", answer.status == 201, answer.body)
        answer = requests.get(f"{self.server.endpoint()}health/ready")
        self.check("the server says that it is ready", answer.status_code == 200, answer.text)

    def is_same(self, item):
        return self.stored.get(item["id"]) == hashlib.sha256(item["t"].encode()).digest()

    def compare(self, name):
        found = list(self.wire.feed(f"{CONTAINER}/docs"))
        missing = set(self.stored) - {item["id"] for item in found}
        wrong = [item["id"] for item in found if not self.is_same(item)]
        self.check(name, not missing and not wrong, f"missing {sorted(missing)[:5]}, wrong or unasked {wrong[:5]}")
