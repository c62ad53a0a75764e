"""What was answered is still there after a restart, in order or not, and clients go on where they were."""

import pytest
from azure.cosmos import CosmosClient, PartitionKey

from conftest import KINDS, connected
from support.expect import plain
from support.server import EMULATOR_KEY, Server
from support.wire import Wire


def fill(client):
    database = client.create_database("db")
    container = database.create_container(
        "c", PartitionKey("/pk"), default_ttl=-1, unique_key_policy={"uniqueKeys": [{"paths": ["/u"]}]},
        offer_throughput=12000)
    for number in range(40):
        container.create_item({"id": str(number), "pk": f"k{number % 5}", "u": number, "v": number})
    container.replace_item("1", {"id": "1", "pk": "k1", "u": 1, "v": "replaced"})
    container.patch_item("2", "k2", [{"op": "set", "path": "/v", "value": "patched"}])
    container.delete_item("3", "k3")
    container.execute_item_batch([("create", ({"id": "b1", "pk": "k0", "u": "b1"},)), ("delete", ("0",))], "k0")
    return container


def everything(container):
    return [dict(item) for item in container.read_all_items()]


@pytest.fixture(params=KINDS, ids=["-".join(kind) for kind in KINDS])
def pair(request, own_server, event_loop_thread):
    """A server of its own and a client of each kind that lives through the restart."""
    with connected(request.param, own_server, event_loop_thread) as client:
        yield own_server, client


def test_everything_is_there_after_a_restart(pair):
    server, client = pair
    container = fill(client)
    before, definition = everything(container), dict(container.read())
    server.restart()
    assert everything(container) == before and len(before) == 39
    assert dict(container.read()) == definition


def test_everything_is_there_after_a_kill(pair):
    server, client = pair
    container = fill(client)
    before = everything(container)
    server.kill()
    server.start()
    assert everything(container) == before
    assert container.read_item("1", "k1")["v"] == "replaced"
    assert container.read_item("2", "k2")["v"] == "patched"


def test_a_continuation_of_a_query_is_valid_across_restarts(pair):
    server, client = pair
    container = fill(client)
    query = "SELECT VALUE c.u FROM c WHERE IS_NUMBER(c.u) ORDER BY c.u DESC"
    ask = lambda token: container.query_items(query, partition_key="k1", max_item_count=2).by_page(token)
    seen, token = [], None
    while True:
        pages = ask(token)
        seen += list(next(pages))
        token = pages.continuation_token
        if not token:
            break
        server.kill() if len(seen) % 4 else server.stop()
        server.start()
    assert seen == list(range(36, 0, -5))


def test_a_continuation_is_valid_across_restarts(pair):
    server, client = pair
    container = fill(client)
    whole = [item["id"] for item in container.read_all_items()]
    seen, token = [], None
    for again in (server.restart, lambda: (server.kill(), server.start()), lambda: None):
        pages = container.read_all_items(max_item_count=7).by_page(token)
        seen += [item["id"] for item in next(pages)]
        token = pages.continuation_token
        again()
    for page in container.read_all_items(max_item_count=7).by_page(token):
        seen += [item["id"] for item in page]
    assert seen == whole


def test_etags_rids_and_sessions_go_on_after_a_kill(own_server):
    with Wire(own_server.port) as wire:
        wire.send("POST", "/dbs", {"id": "db"})
        wire.send("POST", "/dbs/db/colls", {"id": "c", "partitionKey": {"paths": ["/pk"], "version": 2}})
        etags, rids, lsns, stamps = [], [], [], []
        for round in range(3):
            for number in range(5):
                answer = wire.item("POST", "/dbs/db/colls/c", ["a"], body={"id": f"{round}-{number}", "pk": "a"})
                assert answer.status == 201
                etags.append(answer.headers["etag"])
                rids.append(answer.json["_rid"])
                stamps.append(answer.json["_ts"])
                lsns.append(int(answer.headers["x-ms-session-token"].split("#")[1]))
            session = answer.headers["x-ms-session-token"]
            own_server.kill()
            own_server.start()
            wire.close()
            read = wire.item("GET", "/dbs/db/colls/c", ["a"], f"{round}-4", headers={"x-ms-session-token": session})
            assert read.status == 200
        assert len(set(etags)) == 15 and len(set(rids)) == 15
        assert lsns == sorted(set(lsns)) and stamps == sorted(stamps)


def test_unique_keys_and_conditions_hold_after_a_restart(own_server):
    client = CosmosClient(own_server.endpoint(), EMULATOR_KEY)
    container = fill(client)
    etag = container.read_item("1", "k1")["_etag"]
    own_server.restart()
    from azure.core import MatchConditions
    from support.expect import status_of
    assert status_of(container.create_item, {"id": "new", "pk": "k1", "u": 1}) == (409, 0)
    assert container.create_item({"id": "3", "pk": "k3", "u": 3})["id"] == "3"
    item = container.replace_item(
        "1", {"id": "1", "pk": "k1", "u": 1, "v": 9}, etag=etag, match_condition=MatchConditions.IfNotModified)
    assert plain(item)["v"] == 9


def test_dropped_things_stay_dropped(own_server):
    client = CosmosClient(own_server.endpoint(), EMULATOR_KEY)
    fill(client)
    database = client.get_database_client("db")
    database.create_container("gone", PartitionKey("/pk")).create_item({"id": "1", "pk": "a"})
    database.delete_container("gone")
    client.create_database("gone")
    client.delete_database("gone")
    own_server.kill()
    own_server.start()
    assert [found["id"] for found in client.list_databases()] == ["db"]
    assert [found["id"] for found in database.list_containers()] == ["c"]


def test_the_certificate_stays_the_same(own_server):
    with Wire(own_server.port) as wire:
        before = wire.send("GET", "/_explorer/emulator.pem", sign=False).body
        own_server.restart()
        wire.close()
        assert wire.send("GET", "/_explorer/emulator.pem", sign=False).body == before


def test_memory_keeps_nothing(tmp_path):
    with Server(tmp_path / "data", "--memory") as server:
        with Wire(server.port) as wire:
            assert wire.send("POST", "/dbs", {"id": "db"}).status == 201
            server.restart()
            wire.close()
            assert wire.send("GET", "/dbs/db").status == 404
    assert not (tmp_path / "data").exists()
