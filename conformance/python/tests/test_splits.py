"""A container that splits while clients write, query and follow the change feed, and the server is killed twice.

No error but that of a broken connection may reach the application, and nothing may be lost or come twice.
"""

import http.client
import threading
import time

from azure.core.exceptions import ServiceRequestError, ServiceResponseError
from azure.cosmos import CosmosClient, PartitionKey

from support.control import control, partitions
from support.server import EMULATOR_KEY, Server

KEYS = [f"k{number}" for number in range(24)]
PARTITIONS = 8
WRITERS = 3
# Bounds the items of a writer; later writes replace them.
ITEMS_MAX = 300
# The number of documents from which on a partition is worth a split.
SPLIT_FROM = 40
SECONDS_MAX = 120


class Entry:
    """What the writers know of an item."""

    def __init__(self, key):
        self.key = key
        self.acknowledged = 0
        # Values whose writes met an outage: they may be absent, or written twice by a retry of the SDK.
        self.uncertain = set()


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
        number = (self.count if self.count % 3 else self.count // 3) % ITEMS_MAX
        id, key = f"{self.index}-{number}", KEYS[number % len(KEYS)]
        item = {"id": id, "pk": key, "number": number, "value": self.count, "padding": "x" * 200}
        answer, met_outage = self.call(lambda: self.container.upsert_item(item))
        entry = self.actors.journal.setdefault(id, Entry(key))
        if met_outage:
            entry.uncertain.add(self.count)
        if answer is not None:
            entry.acknowledged = self.count


class Querier(Actor):
    """Drains an ordered query with one iterator, over splits: what was acknowledged before is there, once."""

    def __call__(self):
        before = [id for id, entry in list(self.actors.journal.items()) if entry.acknowledged]
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
                assert item["id"] not in met and item["number"] >= last, f"{item['id']} came twice or after {last}"
                met.add(item["id"])
                last = item["number"]
        missing = set(before) - met
        assert not missing, f"a query lacks {missing}"
        self.actors.drained += 1


class Follower(Actor):
    """Reads a page of the change feed."""

    continuation = None

    def __call__(self):
        def page():
            options = {"continuation": self.continuation} if self.continuation else {"start_time": "Beginning"}
            feed = self.container.query_items_change_feed(max_item_count=100, **options)
            items = list(next(feed.by_page(), []))
            return items, self.container.client_connection.last_response_headers["etag"]
        answer, _ = self.call(page)
        if answer is None:
            return
        items, self.continuation = answer
        for item in items:
            self.actors.seen.setdefault(item["id"], []).append(item["value"])


def split_all(actors):
    """Splits the largest partition again and again, and kills the server twice."""
    kills = 0
    while True:
        actors.everyone_goes_on()
        found = partitions(actors.server, "d", "c")
        if len(found) >= PARTITIONS:
            return kills
        largest = max(found, key=lambda partition: partition["documents"])
        if largest["documents"] < SPLIT_FROM:
            continue
        path = f"dbs/d/colls/c/partitions/{largest['id']}/split"
        if kills == 1 and len(found) >= 6:
            # In the middle of a split; it may have happened or not.
            splitting = threading.Thread(target=split_or_fail, args=(actors.server, path))
            splitting.start()
            actors.crash()
            splitting.join()
            kills += 1
            continue
        status, body = control(actors.server, "POST", path)
        assert status == 200 and len(body["children"]) == 2, body
        if kills == 0 and len(found) >= 3:
            actors.crash()
            kills += 1


def split_or_fail(server, path):
    try:
        control(server, "POST", path)
    except (OSError, http.client.HTTPException):
        pass


def test_nobody_notices_that_a_container_splits(tmp_path):
    with Server(tmp_path / "data") as server:
        with CosmosClient(server.endpoint(), EMULATOR_KEY) as client:
            client.create_database("d").create_container("c", PartitionKey("/pk"))
        actors = Actors(server)
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
        assert all(partition["parents"] for partition in partitions(server, "d", "c"))


def check(actors, container, follower):
    """The journal, the items, the counts and the change feed agree."""
    items = {item["id"]: item for item in container.read_all_items()}
    for id, entry in actors.journal.items():
        if id not in items:
            assert not entry.acknowledged, f"{id} is lost"
            continue
        value = items[id]["value"]
        assert value == entry.acknowledged or value > entry.acknowledged and value in entry.uncertain, (id, value, vars(entry))
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
