"""One client of the load: a process that writes until the server is gone, and keeps a journal of it.

It owns its items, so it knows what each write leads to; the items in `shared` belong to all clients and are replaced
under their ETag.
"""

import logging
import random

import urllib3

from kill.clients import RawClient, Refused, SdkClient, Unknown
from kill.journal import Journal
from kill.tables import TABLE, TableSdkClient

# Container -> definition. Two ranges, one range, unique keys, and one for items that all clients write.
CONTAINERS = {
    "wide": {"partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}},
    "plain": {"partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}},
    "unique": {
        "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
        "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]},
    },
    "shared": {"partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}},
}
THROUGHPUT = {"wide": "12000"}
PARTITIONS = [f"p{number}" for number in range(6)]
SHARED_KEYS = [("shared", partition, f"s{number}") for partition in PARTITIONS[:2] for number in range(3)]
OWN_ITEMS_MAX = 60
BATCH_STEPS = 5
FILL_MAX = 3000


def work(index, kind, ports, seed, path, pipe, over):
    """The client's process: waits for rounds, runs each until the server is gone, answers what it did."""
    urllib3.disable_warnings()
    logging.disable()
    journal = Journal(path)
    # One client for all rounds, as in a program that lives through crashes of its database.
    nosql, table = ports
    if kind == "table":
        client = TableSdkClient(table, over.is_set)
    else:
        client = RawClient(nosql) if kind == "raw" else SdkClient(nosql, kind, over.is_set)
    kind_of_worker = TableWorker if kind == "table" else Worker
    pipe.send("ready")
    while (order := pipe.recv()) is not None:
        number, own, shared = order
        worker = kind_of_worker(index, number, random.Random(f"{seed}/{number}/{index}"), client, journal, own, shared)
        pipe.send(worker.run(over))
    client.close()


class Worker:
    """One client in one round."""

    WRONG_ETAG = '"00000000-0000-0000-0000-00000000dead"'
    OWN = ("wide", "plain")
    DELETED = ("wide", "plain", "unique")

    def __init__(self, index, number, chance, client, journal, own, shared):
        self.name = f"w{index}-{number}"
        self.chance = chance
        self.client = client
        self.journal = journal
        self.own = own  # key -> (body, etag)
        self.shared = shared  # key -> etag
        self.count = 0
        self.procedures = 0

    def run(self, over):
        """Writes until the first unknown outcome, which is the server's end; answers how many procedures were done."""
        while not over.is_set():
            changes, operation = self.chance.choices(*self.kinds())[0]()
            if operation is None:
                continue
            try:
                self.send(changes, operation)
            except Unknown:
                break
        return self.procedures

    def kinds(self):
        """What it does, and how often."""
        return ([self.create, self.upsert, self.replace, self.patch, self.delete, self.batch, self.bad_batch, self.procedure, self.bad_procedure, self.clash, self.share],
                [20, 10, 12, 10, 8, 10, 3, 10, 3, 8, 15])

    def send(self, changes, operation):
        op = operation["op"]
        is_shared = operation["container"] == "shared"
        self.journal.intent(op, changes, is_shared, operation.get("if_match"))
        try:
            receipt = self.client.send(operation)
        except Refused as refused:
            self.journal.refused(op, refused.status)
            if is_shared:
                self.shared.pop(tuple(changes[0][0]), None)
            return
        except Unknown as unknown:
            self.journal.unknown(op, str(unknown))
            raise
        self.journal.done(op, receipt.status, receipt.range, receipt.lsn, receipt.etags, receipt.ts)
        self.procedures += operation["kind"] == "procedure"
        for key, body in changes:
            key = tuple(key)
            if is_shared:
                self.shared[key] = receipt.etags[key[2]]
            elif body is None:
                self.own.pop(key, None)
            else:
                self.own[key] = (body, receipt.etags[key[2]])

    # What to write.

    def next(self):
        self.count += 1
        return f"{self.name}-{self.count}"

    def body(self, op, key, **others):
        """A body that only this operation has, of a size that varies."""
        fill = (op + ".") * (self.chance.randrange(FILL_MAX) // (len(op) + 1))
        return {"id": key[2], "pk": key[1], "op": op, "n": self.count, "fill": fill, **others}

    def place(self):
        return self.chance.choice(self.OWN), self.chance.choice(PARTITIONS)

    def pick(self, containers=None):
        """An item of our own, if there is one."""
        keys = [key for key in self.own if key[0] in (containers or self.OWN)]
        return self.chance.choice(keys) if keys else None

    def single(self, kind, op, key, body, **others):
        operation = {"kind": kind, "op": op, "container": key[0], "pk": key[1], "id": key[2], "body": body, **others}
        return [[list(key), body]], operation

    def create(self):
        if len(self.own) >= OWN_ITEMS_MAX:
            return self.delete()
        op = self.next()
        key = (*self.place(), op)
        return self.single("create", op, key, self.body(op, key))

    def upsert(self):
        op = self.next()
        key = self.pick() if self.chance.random() < 0.7 or len(self.own) >= OWN_ITEMS_MAX else None
        key = key or (*self.place(), op)
        return self.single("upsert", op, key, self.body(op, key))

    def replace(self):
        """Under the item's ETag, and now and then under a wrong one, which must be refused."""
        op, key = self.next(), self.pick()
        if key is None:
            return None, None
        etag = self.own[key][1] if self.chance.random() < 0.9 else self.WRONG_ETAG
        return self.single("replace", op, key, self.body(op, key), if_match=etag)

    def patch(self):
        op, key = self.next(), self.pick()
        if key is None:
            return None, None
        body = {**self.own[key][0], "op": op, "n": self.own[key][0]["n"] + 3}
        patch = [{"op": "set", "path": "/op", "value": op}, {"op": "incr", "path": "/n", "value": 3}]
        return self.single("patch", op, key, body, patch=patch)

    def delete(self):
        op, key = self.next(), self.pick(self.DELETED)
        if key is None:
            return None, None
        return self.single("delete", op, key, None)

    def clash(self):
        """A create whose unique key others want as well."""
        if len(self.own) >= OWN_ITEMS_MAX:
            return self.delete()
        op = self.next()
        key = ("unique", self.chance.choice(PARTITIONS[:3]), op)
        return self.single("create", op, key, self.body(op, key, u=self.chance.randrange(60)))

    def share(self):
        """A replace of an item that all clients replace, under the last ETag we know."""
        op, key = self.next(), self.chance.choice(SHARED_KEYS)
        if key not in self.shared:
            return self.unguarded(op, key)
        return self.single("replace", op, key, self.body(op, key), if_match=self.shared[key])

    def unguarded(self, op, key):
        """Our ETag was old: an upsert without one tells the new one."""
        return self.single("upsert", op, key, self.body(op, key))

    def batch(self):
        """Five steps in one partition: a replace and a delete of ours if there are any, creates for the rest."""
        op, (container, pk) = self.next(), self.place()
        mine = [key for key in self.own if key[:2] == (container, pk)]
        self.chance.shuffle(mine)
        changes, steps = [], []
        if mine:
            key = mine.pop()
            changes.append([list(key), self.body(op, key)])
            steps.append({"operationType": "Replace", "id": key[2], "resourceBody": changes[-1][1]})
        while mine and len(steps) < BATCH_STEPS and (len(self.own) >= OWN_ITEMS_MAX or len(steps) < 2):
            key = mine.pop()
            changes.append([list(key), None])
            steps.append({"operationType": "Delete", "id": key[2]})
        while len(steps) < BATCH_STEPS:
            key = (container, pk, f"{op}-{len(steps)}")
            changes.append([list(key), self.body(op, key)])
            steps.append({"operationType": self.chance.choice(["Create", "Upsert"]), "resourceBody": changes[-1][1]})
        return changes, {"kind": "batch", "op": op, "container": container, "pk": pk, "steps": steps}

    def bad_batch(self):
        """The same with a last step that cannot be done: none of it may be seen."""
        changes, operation = self.batch()
        operation["steps"] = operation["steps"][:-1] + [{"operationType": "Delete", "id": "nobody"}]
        return changes[:-1], operation

    def procedure(self):
        """The steps of a batch in a stored procedure, one after the other."""
        changes, operation = self.batch()
        return changes, {**operation, "kind": "procedure", "fails": False}

    def bad_procedure(self):
        """The same with an error after the last step: none of it may be seen."""
        changes, operation = self.procedure()
        return changes, {**operation, "fails": True}


class TableWorker(Worker):
    """One client of the Table API: entities instead of items, and entity group transactions as batches."""

    OWN = DELETED = (TABLE,)
    WRONG_ETAG = "W/\"datetime'2020-01-01T00%3A00%3A00.0000000Z'\""

    def kinds(self):
        return ([self.create, self.upsert, self.replace, self.patch, self.delete, self.batch, self.bad_batch],
                [20, 10, 12, 10, 8, 25, 6])
