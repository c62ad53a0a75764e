"""A container that splits while clients write, query and follow the change feed, and the server is killed twice.

No error but that of a broken connection may reach the application, and nothing may be lost or come twice.
"""

import http.client
import json
import threading
import time

from azure.core.exceptions import ServiceRequestError, ServiceResponseError
from azure.cosmos import CosmosClient, PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError

from support.server import EMULATOR_KEY, Server

KEYS = [f"k{number}" for number in range(24)]
RANGES = 8
WRITERS = 3
SECONDS_MAX = 120


def control(server, verb, path):
    """A request to the control API."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request(verb, f"/_control/{path}", headers={"Authorization": f"Bearer {EMULATOR_KEY}"})
    answer = connection.getresponse()
    body = json.loads(answer.read())
    connection.close()
    return answer.status, body


class Actors:
    """Clients that work until they are stopped, and what they have seen."""

    def __init__(self, server):
        self.server = server
        self.stop = threading.Event()
        self.down = threading.Event()  # the server is being killed and started
        self.failures = []
        self.written = {}  # id -> (key, latest acknowledged value)
        self.unknown = {}  # id -> values whose outcome is not known
        self.seen = {}  # id -> values in the order of the change feed
        self.threads = []

    def container(self):
        client = CosmosClient(self.server.endpoint(), EMULATOR_KEY, retry_total=3)
        return client.get_database_client("d").get_container_client("c")

    def start(self, work, *arguments):
        def run():
            try:
                while not self.stop.is_set():
                    work(*arguments)
            except Exception as error:  # shown by the test
                self.failures.append(repr(error))
        self.threads.append(threading.Thread(target=run, daemon=True))
        self.threads[-1].start()

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join(60)
            assert not thread.is_alive(), "a client hangs"
        assert not self.failures, self.failures

    def survives(self, call):
        """The result of a call; `None` if the server was killed meanwhile."""
        was_down = self.down.is_set()
        try:
            return call()
        except (ServiceRequestError, ServiceResponseError, ConnectionError):
            if was_down or self.down.is_set():
                return None
            raise
        except CosmosHttpResponseError as error:
            if (was_down or self.down.is_set()) and error.status_code in (408, 503):
                return None
            raise


class Writer:
    """Creates items and replaces some of them; each value is greater than the last one."""

    def __init__(self, actors, index):
        self.actors, self.index, self.count = actors, index, 0
        self.container = actors.container()

    def __call__(self):
        self.count += 1
        number = self.count if self.count % 3 else self.count // 3
        id, key = f"{self.index}-{number}", KEYS[number % len(KEYS)]
        item = {"id": id, "pk": key, "value": self.count, "padding": "x" * 200}
        if self.actors.survives(lambda: self.container.upsert_item(item)) is not None:
            self.actors.written[id] = (key, self.count)
        else:
            self.actors.unknown.setdefault(id, []).append(self.count)


class Querier:
    """Counts and lists: what was acknowledged before is there, once."""

    def __init__(self, actors):
        self.actors, self.container = actors, actors.container()

    def __call__(self):
        before = dict(self.actors.written)
        def drained():
            pages = self.container.query_items(
                "SELECT c.id, c.value FROM c ORDER BY c.value", enable_cross_partition_query=True, max_item_count=50)
            return [(item["id"], item["value"]) for item in pages]
        found = self.actors.survives(drained)
        if found is None:
            return
        values = {}
        for id, value in found:
            # An item that is replaced meanwhile moves to a greater value and may be met there again.
            assert id not in values or values[id] < value, f"{id} came twice with {value}"
            values[id] = value
        # An item whose value grows while the pages are read is met at its new place.
        missing = [id for id, (_, value) in before.items() if id not in values and self.actors.written[id][1] == value]
        assert not missing, f"a query lacks {missing[:5]}"


class Follower:
    """Follows the change feed."""

    def __init__(self, actors):
        self.actors, self.container, self.continuation = actors, actors.container(), None

    def __call__(self):
        def page():
            options = {"continuation": self.continuation} if self.continuation else {"start_time": "Beginning"}
            items = list(self.container.query_items_change_feed(max_item_count=100, **options))
            return items, self.container.client_connection.last_response_headers["etag"]
        answer = self.actors.survives(page)
        if answer is None:
            return
        items, self.continuation = answer
        for item in items:
            self.actors.seen.setdefault(item["id"], []).append(item["value"])


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
        deadline = time.monotonic() + SECONDS_MAX
        splits = kills = 0
        while True:
            assert time.monotonic() < deadline, "the splits take too long"
            assert not actors.failures, actors.failures
            status, body = control(server, "GET", "dbs/d/colls/c/partitions")
            assert status == 200, body
            partitions = body["partitions"]
            if len(partitions) >= RANGES:
                break
            largest = max(partitions, key=lambda partition: partition["documents"])
            if largest["documents"] < 40:
                time.sleep(0.05)
                continue
            status, body = control(server, "POST", f"dbs/d/colls/c/partitions/{largest['id']}/split")
            assert status == 200 and len(body["children"]) == 2, body
            splits += 1
            if splits in (3, 6):
                actors.down.set()
                server.kill()
                server.start()
                kills += 1
                time.sleep(0.5)  # clients that were cut off have found out
                actors.down.clear()
        assert (splits, kills) == (RANGES - 1, 2)
        actors.end()
        follower()  # what came after its last page
        check(actors, actors.container())
        [parents] = {len(partition["parents"]) > 0 for partition in partitions}
        assert parents


def check(actors, container):
    """The journal, the items, the counts and the change feed agree."""
    items = {item["id"]: item for item in container.read_all_items()}
    for id, (key, value) in actors.written.items():
        allowed = {value, *actors.unknown.get(id, [])}
        assert items[id]["value"] in allowed, (id, items[id]["value"], allowed)
        assert container.read_item(id, key)["value"] == items[id]["value"]
    extra = set(items) - set(actors.written) - set(actors.unknown)
    assert not extra
    counted = list(container.query_items("SELECT VALUE COUNT(1) FROM c", enable_cross_partition_query=True))
    assert counted == [len(items)]
    for id, item in items.items():
        values = actors.seen.get(id)
        assert values and values[-1] == item["value"], f"the feed lacks {id}: {values}"
        assert values == sorted(set(values)), f"the feed is out of order or repeats: {id} {values}"
