"""One server for the session; every test that asks for a client runs with both clients over plain HTTP and TLS."""

import importlib.metadata
import json
import uuid

import pytest
from azure.cosmos import CosmosClient, PartitionKey, http_constants
from azure.cosmos.aio import CosmosClient as AsyncCosmosClient

from support.blocking import Blocking, Loop
from support.server import EMULATOR_KEY, Server
from support.wire import Wire

KINDS = [("sync", "http"), ("sync", "https"), ("aio", "http"), ("aio", "https")]


def unique(prefix):
    return f"{prefix}-{uuid.uuid4().hex[:12]}"


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("data")) as server:
        yield server
        assert server.is_running(), f"the server died during the tests\n{server.errors()}"
        assert server.stop() == 0


@pytest.fixture(autouse=True)
def alive(request):
    """A dead server ends the run at once: the clients would try each call for a long time."""
    yield
    if "server" in request.fixturenames:
        server = request.getfixturevalue("server")
        if not server.is_running():
            code = server.process.returncode
            pytest.exit(f"the server ended with {code} during {request.node.name}\n{server.errors()}", returncode=1)


@pytest.fixture(scope="session")
def event_loop_thread():
    loop = Loop()
    yield loop
    loop.close()


@pytest.fixture
def own_server(tmp_path):
    """A server that the test may stop and kill."""
    with Server(tmp_path / "data") as server:
        yield server


@pytest.fixture(scope="session", params=KINDS, ids=["-".join(kind) for kind in KINDS])
def client(request, server, event_loop_thread):
    with connected(request.param, server, event_loop_thread) as client:
        yield client


class connected:
    """A client of a kind for as long as the block lasts; with a key, or with permissions instead."""

    def __init__(self, kind, server, loop, credential=EMULATOR_KEY):
        self.kind, self.server, self.loop, self.credential = kind, server, loop, credential

    def __enter__(self):
        flavour, scheme = self.kind
        endpoint = self.server.endpoint(scheme)
        if flavour == "sync":
            self.client = CosmosClient(endpoint, self.credential)
            return self.client
        self.client = self.loop.wait(_open(endpoint, self.credential))
        return Blocking(self.client, self.loop)

    def __exit__(self, *_):
        if self.kind[0] == "sync":
            self.client.close()
        else:
            self.loop.wait(self.client.close())


async def _open(endpoint, credential):
    client = AsyncCosmosClient(endpoint, credential)
    return await client.__aenter__()


@pytest.fixture
def with_permissions(request, client, server, event_loop_thread):
    """Makes clients of the same kind that hold permissions and no key."""
    kind = request.node.callspec.params["client"]
    made = []

    def make(*permissions):
        tokens = {permission["resource"]: permission["_token"] for permission in permissions}
        made.append(connected(kind, server, event_loop_thread, tokens))
        return made[-1].__enter__()

    yield make
    for client in made:
        client.__exit__()


@pytest.fixture(scope="session")
def database(client):
    database = client.create_database(unique("db"))
    yield database
    client.delete_database(database.id)


@pytest.fixture
def container(database):
    """An empty container with the key path /pk."""
    container = database.create_container(unique("c"), PartitionKey("/pk"))
    yield container
    database.delete_container(container.id)


@pytest.fixture
def make_container(database):
    """Makes containers that are dropped after the test."""
    made = []

    def make(key="/pk", **options):
        key = key if isinstance(key, PartitionKey) else PartitionKey(key)
        made.append(database.create_container(unique("c"), key, **options))
        return made[-1]

    yield make
    for container in made:
        database.delete_container(container.id)


@pytest.fixture(params=["http", "https"])
def wire(request, server):
    """Requests by hand."""
    with Wire(server.port, secure=request.param == "https") as wire:
        yield wire


@pytest.fixture
def wire_container(wire):
    """The path of an empty container with the key path /pk, made by hand."""
    database, container = unique("db"), unique("c")
    assert wire.send("POST", "/dbs", {"id": database}).status == 201
    definition = {"id": container, "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
    assert wire.send("POST", f"/dbs/{database}/colls", definition).status == 201
    yield f"/dbs/{database}/colls/{container}"
    assert wire.send("DELETE", f"/dbs/{database}").status == 204


def pytest_terminal_summary(terminalreporter):
    """The line from which the table of clients is made."""
    version, protocol = importlib.metadata.version("azure-cosmos"), http_constants.Versions.CurrentVersion
    line = {"client": "azure-cosmos", "version": version, "language": "Python", "protocol": protocol}
    terminalreporter.write_line("client " + json.dumps(line))
