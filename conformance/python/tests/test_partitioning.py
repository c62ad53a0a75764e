"""The walk-throughs of the articles about partitioning: what is stored where, which partitions a query reaches.

The data and the answers are shared with the suites of the other languages. Partitions are counted by the metrics of the
server. This SDK has no degree of parallelism, and it does not tell whether a change of throughput is pending when it
reads the throughput; the answer to the change itself tells it.
"""

import json
import threading
import time

import pytest
from azure.cosmos import CosmosClient, PartitionKey
from azure.cosmos.exceptions import CosmosBatchOperationError, CosmosHttpResponseError

from support.blocking import Blocking
from support.control import partitions, requests_by_partition
from support.server import EMULATOR_KEY, ROOT, Server
from support.wire import Wire
from tests.conftest import unique

WALK = json.loads((ROOT / "conformance/partitioning.json").read_text())
TELEMETRY = WALK["telemetry"]
SECONDS_MAX = 20


class reached:
    """The partitions of a container that have had requests in a block."""

    def __init__(self, server, database, container):
        self.place = server, database.id, container.id

    def __enter__(self):
        self.before = requests_by_partition(*self.place)
        self.partitions = []
        return self.partitions

    def __exit__(self, *_):
        after = requests_by_partition(*self.place)
        self.partitions.extend(id for id, count in after.items() if count > self.before.get(id, 0))


def rows(container, query, **options):
    # Only the sync client wants to be told; the asyncio client does not know the option.
    across = {} if isinstance(container, Blocking) or "partition_key" in options else {"enable_cross_partition_query": True}
    return list(container.query_items(query, **across, **options))


def eventually(ask, is_done):
    """The answer, once it is as expected; the bound is only for a server that never gets there."""
    deadline = time.monotonic() + SECONDS_MAX
    while not is_done(answer := ask()):
        assert time.monotonic() < deadline, answer
        time.sleep(0.02)
    return answer


@pytest.fixture(scope="module")
def telemetry(database):
    container = database.create_container(
        unique("c"), PartitionKey(TELEMETRY["partitionKey"]), offer_throughput=TELEMETRY["throughput"])
    for reading in TELEMETRY["readings"]:
        container.create_item(reading)
    yield container
    database.delete_container(container.id)


def test_throughput_decides_the_number_of_partitions(server, database, telemetry):
    assert len(list(telemetry.read_feed_ranges())) == TELEMETRY["partitions"]
    found = partitions(server, database.id, telemetry.id)
    assert len(found) == TELEMETRY["partitions"]
    assert all(partition["documents"] for partition in found)
    assert sum(partition["documents"] for partition in found) == len(TELEMETRY["readings"])


def test_a_reading_is_found_by_its_device(server, database, telemetry):
    reading = TELEMETRY["reading"]
    id, device = reading["id"], reading["deviceId"]
    with reached(server, database, telemetry) as one:
        telemetry.create_item(reading)
        assert telemetry.read_item(id, device)["metricValue"] == reading["metricValue"]
        telemetry.replace_item(id, {**reading, "metricValue": 104})
        assert telemetry.read_item(id, device)["metricValue"] == 104
        telemetry.delete_item(id, device)
    assert len(one) == 1
    with pytest.raises(CosmosHttpResponseError):
        telemetry.read_item(id, device)


@pytest.mark.parametrize("walk", TELEMETRY["queries"], ids=lambda walk: walk["text"])
def test_a_filter_on_the_key_reaches_one_partition(server, database, telemetry, walk):
    for size in (3, 100):
        with reached(server, database, telemetry) as found:
            answer = rows(telemetry, walk["text"], max_item_count=size)
        expected = walk["expected"]
        assert answer == expected if walk["isOrdered"] else sorted(answer) == sorted(expected)
        assert len(found) == walk["reaches"]


def test_raised_throughput_splits_each_partition_twice(server, database, make_container):
    walk, pending = WALK["raise"], []
    for _ in range(walk["containers"]):
        container = make_container(TELEMETRY["partitionKey"], offer_throughput=walk["from"])
        for reading in TELEMETRY["readings"]:
            container.create_item(reading)
        assert len(partitions(server, database.id, container.id)) == 1
        replaced = container.replace_throughput(
            walk["to"], response_hook=lambda headers, _: pending.append(headers["x-ms-offer-replace-pending"]))
        assert replaced.offer_throughput == walk["to"]
        found = eventually(lambda: partitions(server, database.id, container.id), lambda found: len(found) >= walk["partitions"])
        assert len(found) == walk["partitions"]
        assert all(len(partition["parents"]) == walk["generations"] for partition in found)
        assert container.get_throughput().offer_throughput == walk["to"]
        assert sorted(rows(container, "SELECT VALUE c.id FROM c")) == sorted(reading["id"] for reading in TELEMETRY["readings"])
        # Clients learn about new ranges by themselves.
        assert len(list(container.read_feed_ranges(force_refresh=True))) == walk["partitions"]
    # One of several, since a fast server may be ready before it answers.
    assert "true" in pending


def test_a_synthetic_key_spreads_a_device_over_days(server, database, make_container):
    walk = WALK["synthetic"]
    container = make_container(walk["partitionKey"], offer_throughput=walk["throughput"])
    for device in walk["devices"]:
        for date in walk["dates"]:
            container.create_item({"id": "1", "deviceId": device, "date": date, "partitionKey": f"{device}-{date}"})
    device, date = walk["devices"][0], walk["dates"][0]
    with reached(server, database, container) as one:
        assert container.read_item("1", f"{device}-{date}")["date"] == date
        assert rows(container, f"SELECT VALUE c.date FROM c WHERE c.partitionKey = '{device}-{date}'") == [date]
    assert len(one) == 1
    with reached(server, database, container) as all_days:
        assert rows(container, f"SELECT VALUE c.date FROM c WHERE c.deviceId = '{device}' ORDER BY c.date") == walk["dates"]
    assert len(all_days) == 4


def test_tenants_share_a_container(server, database, make_container):
    walk = WALK["tenants"]
    container = make_container(walk["partitionKey"], offer_throughput=walk["throughput"])
    for tenant in walk["names"]:
        steps = [("create", ({"id": id, "tenantId": tenant, "owner": tenant},)) for id in ("profile", "settings")]
        container.execute_item_batch(steps, tenant)
    first, second, *_ = walk["names"]
    with reached(server, database, container) as one:
        assert rows(container, f"SELECT VALUE c.owner FROM c WHERE c.tenantId = '{first}'") == [first, first]
        assert len(rows(container, "SELECT * FROM c", partition_key=first)) == 2
    assert len(one) == 1
    with pytest.raises(CosmosBatchOperationError):
        container.execute_item_batch([("delete", ("profile",)), ("create", ({"id": "settings", "tenantId": first},))], first)
    assert container.read_item("profile", first)["owner"] == first
    container.delete_item("profile", first)
    assert container.read_item("profile", second)["owner"] == second
    with reached(server, database, container) as every:
        assert rows(container, "SELECT VALUE COUNT(1) FROM c") == [2 * len(walk["names"]) - 1]
    assert len(every) == 4


def test_a_large_tenant_has_a_container_of_its_own(server, database, make_container):
    small, large = make_container("/id", offer_throughput=400), make_container("/id", offer_throughput=20000)
    counts = [len(partitions(server, database.id, container.id)) for container in (small, large)]
    assert counts == [1, 4]
    for container in (small, large):
        container.create_item({"id": "1", "container": container.id})
    with reached(server, database, large) as elsewhere:
        assert rows(small, "SELECT VALUE c.container FROM c") == [small.id]
        small.replace_throughput(500)
    assert elsewhere == []
    assert (small.get_throughput().offer_throughput, large.get_throughput().offer_throughput) == (500, 20000)


def test_prefixes_of_hierarchical_keys_reach_one_partition(server, database, make_container):
    walk = WALK["hierarchical"]
    container = make_container(PartitionKey(walk["partitionKeys"], kind="MultiHash"), offer_throughput=walk["throughput"])
    for tenant in walk["tenants"]:
        for user in walk["users"]:
            for session in walk["sessions"]:
                container.create_item({"id": f"{user}{session}", "tenantId": tenant, "userId": user, "sessionId": session})
    tenant, user, session = walk["tenants"][0], walk["users"][0], walk["sessions"][0]
    with reached(server, database, container) as one:
        assert container.read_item(f"{user}{session}", [tenant, user, session])["tenantId"] == tenant
        everything = "SELECT VALUE c.id FROM c"
        assert sorted(rows(container, everything, partition_key=[tenant])) == ["u1s1", "u1s2", "u2s1", "u2s2"]
        assert sorted(rows(container, everything, partition_key=[tenant, user])) == ["u1s1", "u1s2"]
        assert rows(container, everything, partition_key=[tenant, user, session]) == ["u1s1"]
    assert len(one) == 1
    with reached(server, database, container) as every:
        assert len(rows(container, f"SELECT * FROM c WHERE c.userId = '{user}'")) == 2 * len(walk["tenants"])
    assert len(every) == 4


def test_containers_share_the_throughput_of_a_database(server, client):
    walk = WALK["shared"]
    database = client.create_database(unique("db"), offer_throughput=walk["throughput"])
    try:
        for name in ("one", "two"):
            database.create_container(name, PartitionKey("/pk"))
            assert len(partitions(server, database.id, name)) == 1
        database.create_container("own", PartitionKey("/pk"), offer_throughput=walk["throughput"])
        assert len(partitions(server, database.id, "own")) == 4
        assert database.get_throughput().offer_throughput == walk["throughput"]
        # It has none of its own: the client finds no offer, makes a 404 of it, and stumbles over that by itself.
        with pytest.raises((CosmosHttpResponseError, AttributeError)):
            database.get_container_client("one").get_throughput()
    finally:
        client.delete_database(database.id)


@pytest.fixture(scope="module")
def enforcing(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("data"), *WALK["hot"]["flags"]) as server:
        yield server


def create(wire, database, container, key, item):
    """Creates an item by a client that does not retry."""
    headers = {"x-ms-documentdb-partitionkey": json.dumps([key])}
    return wire.send("POST", f"/dbs/{database.id}/colls/{container.id}/docs", item, headers)


def throttled(server, database, container):
    return {partition["id"]: partition["throttledRequests"] for partition in partitions(server, database.id, container.id)}


class patient:
    """Creates items in the background by a client that retries as it does by default."""

    def __init__(self, server, database, container, key, count):
        def run():
            with CosmosClient(server.endpoint(), EMULATOR_KEY) as client:
                own = client.get_database_client(database.id).get_container_client(container.id)
                self.created = [own.create_item({"id": f"patient{number}", "deviceId": key})["id"] for number in range(count)]
        self.created, self.count = [], count
        self.thread = threading.Thread(target=run)

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.thread.join(60)
        assert len(self.created) == self.count


def test_a_hot_partition_throttles_itself_only(enforcing):
    walk = WALK["hot"]
    devices = sorted({reading["deviceId"] for reading in TELEMETRY["readings"]})
    with CosmosClient(enforcing.endpoint(), EMULATOR_KEY) as client, Wire(enforcing.port) as wire:
        database = client.create_database("hot")
        container = database.create_container("c", PartitionKey("/deviceId"), offer_throughput=walk["throughput"])
        home = {}
        for device in devices:
            with reached(enforcing, database, container) as found:
                assert create(wire, database, container, device, {"id": "1", "deviceId": device}).status == 201
            [home[device]] = found
        assert len(set(home.values())) == walk["partitions"]
        hot = devices[0]
        large = {"id": "large", "deviceId": hot, "values": list(range(walk["values"]))}
        assert create(wire, database, container, hot, large).status == 201
        refusal = create(wire, database, container, hot, {"id": "2", "deviceId": hot})
        assert (refusal.status, refusal.substatus) == (429, 3200)
        assert int(refusal.headers["x-ms-retry-after-ms"]) > 0
        before = throttled(enforcing, database, container)
        with patient(enforcing, database, container, hot, 3):
            for device in devices:
                if home[device] != home[hot]:
                    assert create(wire, database, container, device, {"id": "2", "deviceId": device}).status == 201
        after = throttled(enforcing, database, container)
        assert {id for id, count in after.items() if count} == {home[hot]}
        assert after[home[hot]] > before[home[hot]]  # the patient client was refused, too


def test_containers_share_an_enforced_throughput(enforcing):
    walk = WALK["hot"]
    with CosmosClient(enforcing.endpoint(), EMULATOR_KEY) as client, Wire(enforcing.port) as wire:
        database = client.create_database("shared", offer_throughput=walk["throughput"])
        one, two = (database.create_container(name, PartitionKey("/deviceId")) for name in ("one", "two"))
        own = database.create_container("own", PartitionKey("/deviceId"), offer_throughput=400)
        large = {"id": "large", "deviceId": "a", "values": list(range(walk["sharedValues"]))}
        assert create(wire, database, one, "a", large).status == 201
        refusal = create(wire, database, two, "b", {"id": "1", "deviceId": "b"})
        assert (refusal.status, refusal.substatus) == (429, 3200)
        with patient(enforcing, database, two, "b", 1):
            assert create(wire, database, own, "b", {"id": "1", "deviceId": "b"}).status == 201
