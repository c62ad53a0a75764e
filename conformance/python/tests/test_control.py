"""The control API: what it says when it refuses."""

import pytest
from azure.cosmos import CosmosClient, PartitionKey

from support.control import control, partitions
from support.server import EMULATOR_KEY, Server


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("data"), "--memory") as server:
        with CosmosClient(server.endpoint(), EMULATOR_KEY) as client:
            container = client.create_database("d").create_container("c", PartitionKey("/pk"))
            for key in ("a", "b", "c", "d"):
                container.create_item({"id": "1", "pk": key})
        yield server


@pytest.mark.parametrize("path", ["dbs/d/colls/nothing/partitions", "dbs/nothing/colls/c/partitions"])
def test_a_missing_container_is_named(server, path):
    status, body = control(server, "GET", path)
    database, container = path.split("/")[1::2][:2]
    assert (status, body["code"]) == (404, "NotFound")
    assert f'"{container}"' in body["message"] and f'"{database}"' in body["message"]


def test_a_partition_that_was_split_is_answered_with_those_that_replaced_it(server):
    path = "dbs/d/colls/c/partitions"
    status, body = control(server, "POST", f"{path}/0/split")
    assert status == 200, body
    children = ", ".join(sorted(body["children"], key=int))
    for operation in ("split", "throttle?milliseconds=1"):
        status, body = control(server, "POST", f"{path}/0/{operation}")
        assert status == 404
        assert body["message"] == f"the partition 0 was split; its documents are in {children}"
    assert [partition["parents"] for partition in partitions(server, "d", "c")] == [["0"], ["0"]]


def test_a_partition_that_never_existed_is_missing(server):
    status, body = control(server, "POST", "dbs/d/colls/c/partitions/77/split")
    assert (status, body["message"]) == (404, 'the partition key range "77" does not exist')
