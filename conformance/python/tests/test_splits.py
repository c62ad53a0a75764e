"""A container that splits while clients write, delete, query and follow both change feeds, and the server is killed twice.

No error but that of a broken connection may reach the application, and nothing may be lost or come twice.
"""

import http.client
import threading
import time

from azure.core.exceptions import ServiceRequestError, ServiceResponseError
from azure.cosmos import CosmosClient, PartitionKey
from azure.cosmos.exceptions import CosmosResourceNotFoundError

from support.control import partitions, split
from support.server import EMULATOR_KEY, Server

KEYS = [f"k{number}" for number in range(24)]
PARTITIONS = 8
WRITERS = 3
# Bounds the items of a writer; later writes replace them.
ITEMS_MAX = 300
# The number of documents from which on a partition is worth a split.
SPLIT_FROM = 40
SECONDS_MAX = 120


# Every so many calls of a writer delete one of its items, if it is there.
DELETE_EVERY = 5


class Entry:
    """What its writer knows of an item. An operation is known by the count of its writer, an upsert also writes it."""

    def __init__(self, key):
        self.key = key
        self.operations = []
        self.acknowledged = 0
        # Operations that met an outage: they may have had no effect, and an upsert two by a retry of the SDK.
        self.uncertain = set()
        self.deletes = set()
        self.deletes_begun = 0
        self.is_being_deleted = False

    def begin_delete(self, count):
        self.deletes.add(count)
        self.is_being_deleted = True
        self.deletes_begun += 1

    def add(self, count, met_outage, is_acknowledged):
        self.operations.append(count)
        if met_outage:
            self.uncertain.add(count)
        if is_acknowledged:
            self.acknowledged = count
        self.is_being_deleted = False

    def is_present(self):
        """Whether it is there for certain, as long as no delete begins."""
        is_certain = self.operations[-1:] == [self.acknowledged] and self.acknowledged not in self.deletes
        return is_certain and not self.is_being_deleted

    def may_be(self, count):
        """Whether this may be the last operation that had an effect."""
        return count == self.acknowledged or count > self.acknowledged and count in self.uncertain

    def skip(self, operations, value, about):
        """What of the operations comes after the one that a version shows: that with its value, or a delete."""
        for place, count in enumerate(operations):
            if count == value or value is None and count in self.deletes:
                # An upsert that the SDK has sent twice may come again.
                return operations[place:] if count == value and count in self.uncertain else operations[place + 1:]
            assert count in self.uncertain, f"the feed lacks {count}: {about}"
        raise AssertionError(f"the feed has {value} too often or too late: {about}")

    def is_complete_with(self, versions):
        """Whether the last certain operation is among these versions."""
        certain = [count for count in self.operations if count not in self.uncertain][-1:]
        if not certain:
            return True
        if certain[0] in self.deletes:
            deletes = [count for count in self.operations if count in self.deletes and count not in self.uncertain]
            return sum(operation == "delete" for operation, _, _ in versions) >= len(deletes)
        return any(value == certain[0] for _, value, _ in versions)

    def may_be_absent(self):
        return not self.acknowledged or any(self.may_be(count) for count in self.deletes)


class Actors:
    """Clients that work until they are stopped, and what they have seen."""

    def __init__(self, server):
        self.server = server
        self.deadline = time.monotonic() + SECONDS_MAX
        self.stopped = threading.Event()
        self.outages = 0  # counts beginnings and ends of outages: odd while the server is down
        self.round = 0  # what a client reports to have reached with each call that succeeds
        self.failures = []
        self.journal = {}  # id -> entry
        self.seen = {}  # id -> values in the order of the change feed
        self.versions = {}  # id -> (operation, value, value before) in the order of the feed of all versions
        self.drained = 0
        self.actors = []
        self.threads = []

    def container(self):
        client = CosmosClient(self.server.endpoint(), EMULATOR_KEY, retry_total=3)
        return client.get_database_client("d").get_container_client("c")

    def start(self, actor):
        def run():
            try:
                while not self.stopped.is_set():
                    actor()
            except Exception as error:  # shown by the test
                self.failures.append(repr(error))
        self.actors.append(actor)
        self.threads.append(threading.Thread(target=run, daemon=True))
        self.threads[-1].start()

    def stop(self):
        """Stops all clients at the end of what they do."""
        self.stopped.set()
        for thread in self.threads:
            thread.join(60)
            assert not thread.is_alive(), "a client hangs"
        assert not self.failures, self.failures

    def everyone_goes_on(self):
        """Waits until each client has succeeded with a call that it began after now."""
        self.round += 1
        while any(actor.reached < self.round for actor in self.actors):
            assert not self.failures, self.failures
            assert time.monotonic() < self.deadline, "a client hangs"
            time.sleep(0.005)

    def crash(self):
        """Kills the server and starts it again; the outage ends when each client has been served."""
        self.outages += 1
        self.server.kill()
        self.server.start()
        self.everyone_goes_on()
        self.outages += 1


class Actor:
    """One client."""

    def __init__(self, actors):
        self.actors, self.container, self.reached = actors, actors.container(), 0

    def call(self, call):
        """The result of a call, or `None` if the connection broke in an outage; and whether the call met one."""
        begun, before = self.actors.round, self.actors.outages
        met_outage = lambda: before % 2 == 1 or self.actors.outages != before
        try:
            result = call()
        except (ServiceRequestError, ServiceResponseError, ConnectionError):
            if not met_outage():
                raise
            return None, True
        self.reached = begun
        return result, met_outage()


class Writer(Actor):
    """Creates items and replaces some of them. The number of an item never changes, its value grows with each write."""

    def __init__(self, actors, index):
        super().__init__(actors)
        self.index, self.count = index, 0

    def __call__(self):
        self.count += 1
        deletes = self.count % DELETE_EVERY == 0
        number = (self.count // 2 if deletes else self.count if self.count % 3 else self.count // 3) % ITEMS_MAX
        id, key = f"{self.index}-{number}", KEYS[number % len(KEYS)]
        entry = self.actors.journal.setdefault(id, Entry(key))
        if deletes and entry.is_present():
            entry.begin_delete(self.count)
            answer, met_outage = self.call(lambda: self.delete(id, entry))
        else:
            item = {"id": id, "pk": key, "number": number, "value": self.count, "padding": "x" * 200}
            answer, met_outage = self.call(lambda: self.container.upsert_item(item))
        entry.add(self.count, met_outage, answer is not None)

    def delete(self, id, entry):
        """Answers `None` if the item is not there, which only a retry of the SDK may find."""
        before = self.actors.outages
        try:
            self.container.delete_item(id, entry.key)
        except CosmosResourceNotFoundError:
            if before % 2 == 0 and self.actors.outages == before:
                raise
            return None
        return True


class Querier(Actor):
    """Drains an ordered query with one iterator, over splits: what was acknowledged before is there, once."""

    def __call__(self):
        journal = self.actors.journal
        deletes = {id: entry.deletes_begun for id, entry in list(journal.items())}
        before = [id for id in deletes if journal[id].is_present()]
        is_untouched = lambda id: deletes.get(id, 0) == journal[id].deletes_begun
        pages = self.container.query_items(
            "SELECT c.id, c.number FROM c ORDER BY c.number", enable_cross_partition_query=True, max_item_count=50).by_page()
        met, last = set(), -1
        while True:
            page, met_outage = self.call(lambda: list(next(pages, [])))
            if page is None:
                return  # begins anew
            if not page:
                break
            for item in page:
                # One that was deleted meanwhile and written again is another item.
                is_first = item["id"] not in met or not is_untouched(item["id"])
                assert is_first and item["number"] >= last, f"{item['id']} came twice or after {last}"
                met.add(item["id"])
                last = item["number"]
        missing = {id for id in before if id not in met and is_untouched(id)}
        assert not missing, f"a query lacks {missing}"
        self.actors.drained += 1


class Follower(Actor):
    """Reads a page of the change feed."""

    start = {"start_time": "Beginning"}
    continuation = None

    def __call__(self):
        def page():
            options = {"continuation": self.continuation} if self.continuation else self.start
            feed = self.container.query_items_change_feed(max_item_count=100, **options)
            items = list(next(feed.by_page(), []))
            return items, self.container.client_connection.last_response_headers["etag"]
        answer, _ = self.call(page)
        if answer is None:
            return
        items, self.continuation = answer
        for item in items:
            self.see(item)

    def see(self, item):
        self.actors.seen.setdefault(item["id"], []).append(item["value"])


class VersionFollower(Follower):
    """Reads a page of all versions and deletes, from now on."""

    start = {"mode": "AllVersionsAndDeletes"}

    def see(self, row):
        current, previous = row.get("current") or {}, row.get("previous") or {}
        version = (row["metadata"]["operationType"], current.get("value"), previous.get("value"))
        self.actors.versions.setdefault((current or previous)["id"], []).append(version)


def split_all(actors):
    """Splits the largest partition again and again, and kills the server twice, once while a split is unfinished."""
    kills = 0
    while True:
        actors.everyone_goes_on()
        found = partitions(actors.server, "d", "c")
        if len(found) >= PARTITIONS:
            return kills
        largest = max(found, key=lambda partition: partition["documents"])
        if largest["documents"] < SPLIT_FROM:
            continue
        if kills == 1 and len(found) >= 4:
            kills += crash_in_split(actors, largest["id"])
            continue
        status, body = split(actors.server, "d", "c", largest["id"])
        assert status == 200 and len(body["children"]) == 2, body
        if kills == 0 and len(found) >= 3:
            actors.crash()
            kills += 1


def crash_in_split(actors, partition):
    """Asks for a split and kills the server as soon as it is seen to be at work; answers whether it was seen."""
    splitting = threading.Thread(target=split_or_fail, args=(actors.server, partition))
    splitting.start()
    is_unfinished = False
    while not is_unfinished and splitting.is_alive():
        is_unfinished = unfinished(actors.server)
    # The split itself may be too short to be seen; its children go on sharing rows for a while.
    if is_unfinished or unfinished(actors.server):
        actors.crash()
        is_unfinished = True
    splitting.join()
    return is_unfinished


def unfinished(server):
    return any(partition["state"] in ("splitting", "separating") for partition in partitions(server, "d", "c"))


def split_or_fail(server, partition):
    try:
        split(server, "d", "c", partition)
    except (OSError, http.client.HTTPException):
        pass


def test_nobody_notices_that_a_container_splits(tmp_path):
    with Server(tmp_path / "data") as server:
        with CosmosClient(server.endpoint(), EMULATOR_KEY) as client:
            policy = {"retentionDuration": 10}
            client.create_database("d").create_container("c", PartitionKey("/pk"), change_feed_policy=policy)
        actors = Actors(server)
        every = VersionFollower(actors)
        every()  # before the first write
        actors.start(every)
        for index in range(WRITERS):
            actors.start(Writer(actors, index))
        actors.start(Querier(actors))
        follower = Follower(actors)
        actors.start(follower)
        try:
            assert split_all(actors) == 2
        finally:
            actors.stopped.set()
        actors.stop()
        assert actors.drained
        check(actors, actors.container(), follower)
        check_versions(actors, every)
        assert all(partition["parents"] for partition in partitions(server, "d", "c"))


def check(actors, container, follower):
    """The journal, the items, the counts and the change feed agree."""
    items = {item["id"]: item for item in container.read_all_items()}
    for id, entry in actors.journal.items():
        if id not in items:
            assert entry.may_be_absent(), f"{id} is lost"
            continue
        value = items[id]["value"]
        assert entry.may_be(value) and value not in entry.deletes, (id, value, vars(entry))
        assert container.read_item(id, entry.key)["value"] == value
    assert not set(items) - set(actors.journal)
    counted = list(container.query_items("SELECT VALUE COUNT(1) FROM c", enable_cross_partition_query=True))
    assert counted == [len(items)]
    while any(item["value"] not in actors.seen.get(id, ())[-1:] for id, item in items.items()):
        assert time.monotonic() < actors.deadline, "the feed lacks changes"
        follower()
    for id, values in actors.seen.items():
        for last, value in zip(values, values[1:]):
            is_repeated = last == value and value in actors.journal[id].uncertain
            assert last < value or is_repeated, f"the feed is out of order or repeats: {id} {values}"


def check_versions(actors, every):
    """The feed of all versions has what the journal has, in its order; only what met an outage may be absent or twice."""
    def is_complete():
        return all(entry.is_complete_with(actors.versions.get(id, [])) for id, entry in actors.journal.items())
    while not is_complete():
        assert time.monotonic() < actors.deadline, "the feed lacks versions"
        every()
    assert not set(actors.versions) - set(actors.journal)
    assert any(entry.deletes - entry.uncertain for entry in actors.journal.values()), "nothing was deleted"
    for id, versions in actors.versions.items():
        entry, rest, last = actors.journal[id], list(actors.journal[id].operations), None
        for operation, value, before in versions:
            assert before == last and operation == ("delete" if value is None else "create" if last is None else "replace"), (id, versions)
            last = value
            rest = entry.skip(rest, value, (id, versions))
        assert entry.uncertain.issuperset(rest), f"the feed lacks {rest} of {id}: {versions}"
