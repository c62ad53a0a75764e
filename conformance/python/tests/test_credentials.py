"""The SDK with every kind of credential: keys that write, keys that only read, keys that change, tokens with roles."""

import time

import pytest
from azure.core.credentials import AccessToken
from azure.cosmos import CosmosClient, PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError

from conftest import connected
from support import server as program
from support.issuer import Issuer
from support.server import EMULATOR_KEY, Server

NAMES = ["primary", "secondary", "primary-readonly", "secondary-readonly"]
AUDIENCE = "https://cosmos.example"
SECONDS_MAX = 30


def key(server, name):
    result = program.run("keys", "show", name, "--data", server.data)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def code(call):
    """Status and substatus of a call; (200, None) if it succeeds."""
    try:
        call()
    except CosmosHttpResponseError as error:
        return error.status_code, error.sub_status
    return 200, None


def wait_for(condition):
    begun = time.monotonic()
    while not condition():
        assert time.monotonic() - begun < SECONDS_MAX


@pytest.fixture
def serving(tmp_path):
    """A server in production mode."""
    with Server(tmp_path / "serving", mode="serve") as server:
        yield server


def fill(client):
    container = client.create_database("db").create_container("c", PartitionKey("/pk"))
    container.create_item({"id": "1", "pk": "k"})
    return container


def test_keys_write_or_only_read(serving):
    clients = {name: CosmosClient(serving.endpoint("https"), key(serving, name)) for name in NAMES}
    fill(clients["primary"])
    for name, client in clients.items():
        container = client.get_database_client("db").get_container_client("c")
        assert container.read_item("1", "k")["id"] == "1"
        assert [item["id"] for item in container.read_all_items()] == ["1"]
        assert "db" in [database["id"] for database in client.list_databases()]
        expected = 403 if name.endswith("readonly") else 200
        assert code(lambda: container.upsert_item({"id": "1", "pk": "k"}))[0] == expected
        assert code(lambda: client.create_database_if_not_exists(f"db-{name}"))[0] == expected
        assert code(lambda: container.execute_item_batch([("upsert", ({"id": "1", "pk": "k"},))], "k"))[0] == expected
    assert code(lambda: CosmosClient(serving.endpoint("https"), EMULATOR_KEY)) == (401, None)


def test_a_key_is_rotated_under_a_running_client(serving):
    stays = CosmosClient(serving.endpoint("https"), key(serving, "secondary"))
    leaves = CosmosClient(serving.endpoint("https"), key(serving, "primary"))
    fill(leaves)
    item = lambda client: client.get_database_client("db").get_container_client("c").read_item("1", "k")
    assert item(stays)["id"] == item(leaves)["id"] == "1"
    assert program.run("keys", "rotate", "primary", "--data", serving.data).returncode == 0

    def is_refused():
        assert item(stays)["id"] == "1"
        return code(lambda: item(leaves))[0] == 401

    wait_for(is_refused)
    renewed = CosmosClient(serving.endpoint("https"), key(serving, "primary"))
    assert item(renewed)["id"] == "1"


class Credential:
    """What the SDK asks for tokens."""

    def __init__(self, issuer, principal):
        self.issuer, self.principal = issuer, principal

    def get_token(self, *_, **__):
        return AccessToken(self.issuer.token(self.principal, AUDIENCE), int(time.time()) + 3600)


@pytest.fixture
def identity(tmp_path):
    """A server that takes tokens, and their issuer."""
    issuer = Issuer()
    (tmp_path / "keys.json").write_text(issuer.key_set())
    (tmp_path / "identity.toml").write_text(f"""
        issuer = "{issuer.name}"
        audiences = ["{AUDIENCE}"]
        jwks-file = "keys.json"
        algorithms = ["RS256"]
        assignments = [
            {{ principal = "reader", role = "reader", scope = "/dbs/db" }},
            {{ principal = "writer", role = "contributor", scope = "/dbs/db/colls/c" }},
        ]
    """)
    with Server(tmp_path / "data", "--identity", str(tmp_path / "identity.toml")) as server:
        yield server, issuer


def test_tokens_with_roles(identity):
    server, issuer = identity
    fill(CosmosClient(server.endpoint("https"), EMULATOR_KEY))
    reader = CosmosClient(server.endpoint("https"), Credential(issuer, "reader"))
    writer = CosmosClient(server.endpoint("https"), Credential(issuer, "writer"))
    for client in (reader, writer):
        container = client.get_database_client("db").get_container_client("c")
        assert container.read_item("1", "k")["id"] == "1"
        assert [item["id"] for item in container.read_all_items()] == ["1"]
        assert code(lambda: client.create_database("other")) == (403, 5300)
        assert code(lambda: list(client.list_databases())) == (403, 5301)
        expected = (403, 5302) if client is reader else (200, None)
        assert code(lambda: container.upsert_item({"id": "1", "pk": "k"})) == expected
    assert code(lambda: CosmosClient(server.endpoint("https"), Credential(issuer, "nobody"))) == (403, 5301)
    assert code(lambda: CosmosClient(server.endpoint("https"), Credential(Issuer(), "reader"))) == (401, 5004)


class AsyncCredential(Credential):
    """The same for the asynchronous client."""

    async def get_token(self, *_, **__):
        return super().get_token()

    async def close(self):
        pass


def test_the_asynchronous_client_has_the_same_rights(identity, serving, event_loop_thread):
    server, issuer = identity
    fill(CosmosClient(server.endpoint("https"), EMULATOR_KEY))
    fill(CosmosClient(serving.endpoint("https"), key(serving, "primary")))
    item = {"id": "1", "pk": "k"}
    holders = [
        (server, AsyncCredential(issuer, "reader"), (403, 5302)),
        (server, AsyncCredential(issuer, "writer"), (200, None)),
        (serving, key(serving, "primary-readonly"), (403, 0)),
        (serving, key(serving, "secondary"), (200, None)),
    ]
    for place, credential, expected in holders:
        with connected(("aio", "https"), place, event_loop_thread, credential) as client:
            container = client.get_database_client("db").get_container_client("c")
            assert container.read_item("1", "k")["id"] == "1"
            status, substatus = code(lambda: container.upsert_item(item))
            assert (status, substatus or expected[1]) == expected
