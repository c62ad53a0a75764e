"""Throughput that is enforced: 429 with a delay, on the partition that is used up only; SDKs wait and are served."""

import json

import pytest
from azure.cosmos import CosmosClient, PartitionKey, ThroughputProperties

from conftest import KINDS, connected
from support.server import EMULATOR_KEY, Server
from support.wire import Wire

# Small partitions, so that few requests use them up.
FLAGS = ["--memory", "--throughput", "enforce", "--partition-max-throughput", "400",
         "--partition-create-throughput", "400"]


@pytest.fixture(scope="module")
def enforcing(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("data"), *FLAGS) as server:
        yield server


@pytest.fixture
def database(enforcing, request):
    with CosmosClient(enforcing.endpoint(), EMULATOR_KEY) as client:
        yield client.create_database(request.node.name[:60])


def documents_path(database, container):
    return f"/dbs/{database.id}/colls/{container.id}/docs"


def exhaust(wire, path, key, most=400):
    """Creates small items of a key until one is refused; answers how many were created, and the refusal."""
    for number in range(most):
        headers = {"x-ms-documentdb-partitionkey": json.dumps([key])}
        answer = wire.send("POST", path, {"id": f"x{number}", "pk": key}, headers)
        if answer.status != 201:
            return number, answer
    raise AssertionError("nothing was refused")


def two_keys(container):
    """Two keys of different ranges."""
    low, *_, high = list(container.read_feed_ranges())
    def key_in(wanted):
        keys = (f"k{number}" for number in range(1000))
        return next(key for key in keys if container.is_feed_range_subset(wanted, container.feed_range_from_partition_key(key)))
    return key_in(low), key_in(high)


def test_a_second_is_served_and_the_refusal_has_a_delay(enforcing, database):
    container = database.create_container("c", PartitionKey("/pk"), offer_throughput=400)
    with Wire(enforcing.port) as wire:
        created, refusal = exhaust(wire, documents_path(database, container), "a")
    # A second of 400 RU at 5.14 each, and what is refilled meanwhile.
    assert created >= 70
    assert (refusal.status, refusal.substatus) == (429, 3200)
    assert 0 < int(refusal.headers["x-ms-retry-after-ms"]) < 5000
    assert refusal.headers["x-ms-request-charge"] == "0.00"
    assert "Request rate is large" in refusal.json["message"]


def test_a_hot_partition_leaves_the_others_alone(enforcing, database):
    container = database.create_container("c", PartitionKey("/pk"), offer_throughput=800)
    hot, cold = two_keys(container)
    path = documents_path(database, container)
    with Wire(enforcing.port) as wire:
        exhaust(wire, path, hot)
        read = wire.send("GET", f"{path}/x0", headers={"x-ms-documentdb-partitionkey": json.dumps([hot])})
        assert (read.status, read.substatus) == (429, 3200)
        headers = {"x-ms-documentdb-partitionkey": json.dumps([cold])}
        assert wire.send("POST", path, {"id": "1", "pk": cold}, headers).status == 201
    assert [item["id"] for item in container.query_items("SELECT * FROM c", partition_key=cold)] == ["1"]


@pytest.mark.parametrize("kind", [KINDS[0], KINDS[3]], ids="-".join)
def test_the_client_waits_and_is_served(enforcing, database, event_loop_thread, kind):
    container = database.create_container("c", PartitionKey("/pk"), offer_throughput=400)
    with Wire(enforcing.port) as wire:
        created, _ = exhaust(wire, documents_path(database, container), "a")
    with connected(kind, enforcing, event_loop_thread) as client:
        patient = client.get_database_client(database.id).get_container_client("c")
        for number in range(120):
            patient.create_item({"id": f"y{number}", "pk": "a"})
        assert patient.read_item("y119", "a")["pk"] == "a"
        counted = list(patient.query_items("SELECT VALUE COUNT(1) FROM c", partition_key="a"))
    assert counted == [created + 120]


def test_containers_share_the_throughput_of_their_database(enforcing):
    with CosmosClient(enforcing.endpoint(), EMULATOR_KEY) as client:
        database = client.create_database("shared", offer_throughput=400)
        one = database.create_container("one", PartitionKey("/pk"))
        two = database.create_container("two", PartitionKey("/pk"))
        with Wire(enforcing.port) as wire:
            exhaust(wire, documents_path(database, one), "a")
            answer = wire.send("POST", documents_path(database, two), {"id": "1", "pk": "a"},
                               {"x-ms-documentdb-partitionkey": '["a"]'})
        assert answer.status == 429


def test_low_priority_is_refused_first(enforcing, database):
    container = database.create_container("c", PartitionKey("/pk"), offer_throughput=400)
    path = documents_path(database, container)
    low = {"x-ms-documentdb-partitionkey": '["a"]', "x-ms-cosmos-priority-level": "Low"}
    with Wire(enforcing.port) as wire:
        for number in range(400):
            answer = wire.send("POST", path, {"id": f"low{number}", "pk": "a"}, low)
            if answer.status == 429:
                break
        assert answer.status == 429
        high = {**low, "x-ms-cosmos-priority-level": "High"}
        assert wire.send("POST", path, {"id": "high", "pk": "a"}, high).status == 201
        wrong = {**low, "x-ms-cosmos-priority-level": "Medium"}
        assert wire.send("POST", path, {"id": "wrong", "pk": "a"}, wrong).status == 400


def test_the_increment_of_autoscale_is_kept(database):
    throughput = ThroughputProperties(auto_scale_max_throughput=7000, auto_scale_increment_percent=3)
    container = database.create_container("c", PartitionKey("/pk"), offer_throughput=throughput)
    read = container.get_throughput()
    assert (read.auto_scale_max_throughput, read.auto_scale_increment_percent) == (7000, 3)
    changed = ThroughputProperties(auto_scale_max_throughput=5000, auto_scale_increment_percent=20)
    container.replace_throughput(changed)
    assert container.get_throughput().auto_scale_increment_percent == 20
