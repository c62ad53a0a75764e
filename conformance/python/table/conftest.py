"""One service for the session; every test that asks for a client runs with both clients over plain HTTP and TLS."""

import importlib.metadata
import json
import uuid

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import TableClient, TableServiceClient
from azure.data.tables import aio
from azure.data.tables._constants import X_MS_VERSION

from support.blocking import Blocking, Loop
from support.table import ACCOUNT, ACCOUNT_KEY, SCHEMES, Service
from support.table_wire import TableWire

KINDS = [(flavour, scheme) for flavour in ("sync", "aio") for scheme in SCHEMES]


def unique(prefix="t"):
    return f"{prefix}{uuid.uuid4().hex[:12]}"


@pytest.fixture(scope="session")
def service(tmp_path_factory):
    with Service(tmp_path_factory.mktemp("table")) as service:
        yield service
        if service.server:
            assert service.server.is_running(), f"the server died during the tests\n{service.server.errors()}"
            assert service.server.stop() == 0


@pytest.fixture(scope="session")
def event_loop_thread():
    loop = Loop()
    yield loop
    loop.close()


class Connect:
    """Makes clients of one kind; all are closed together."""

    def __init__(self, kind, service, loop):
        self.flavour, self.scheme = kind
        self.service, self.loop, self.made = service, loop, []

    @property
    def endpoint(self):
        return self.service.endpoint(self.scheme)

    def client(self, credential=None, endpoint=None, key=ACCOUNT_KEY, name=ACCOUNT):
        """A client of the account; with the key unless another credential is given."""
        credential = credential or AzureNamedKeyCredential(name, key)
        classes = {"sync": TableServiceClient, "aio": aio.TableServiceClient}
        # The client guesses a secondary address that has the account twice if the account is in the path.
        secondary = f"127.0.0.1:{self.service.port}"
        address = endpoint or self.endpoint
        return self._kept(classes[self.flavour], address, credential=credential, secondary_hostname=secondary)

    def table(self, name, credential):
        """A client of one table."""
        classes = {"sync": TableClient, "aio": aio.TableClient}
        return self._kept(classes[self.flavour], self.endpoint, name, credential=credential)

    def table_from_url(self, url, **options):
        classes = {"sync": TableClient, "aio": aio.TableClient}
        return self._kept(classes[self.flavour].from_table_url, url, **options)

    def from_connection_string(self, text):
        classes = {"sync": TableServiceClient, "aio": aio.TableServiceClient}
        return self._kept(classes[self.flavour].from_connection_string, text)

    def _kept(self, make, *arguments, **options):
        # A client that tries again hides the first answer, and slows down every refusal.
        options |= {"retry_total": 0, "connection_verify": self.service.authority}
        if self.flavour == "sync":
            client = make(*arguments, **options)
        else:
            client = Blocking(self.loop.wait(_made(make, arguments, options)), self.loop)
        self.made.append(client)
        return client

    def close(self):
        for client in self.made:
            client.close()


async def _made(make, arguments, options):
    return make(*arguments, **options)


@pytest.fixture(scope="session", params=KINDS, ids=["-".join(kind) for kind in KINDS])
def connect(request, service, event_loop_thread):
    connect = Connect(request.param, service, event_loop_thread)
    yield connect
    connect.close()


@pytest.fixture(scope="session")
def client(connect):
    return connect.client()


@pytest.fixture
def table(client):
    """An empty table."""
    table = client.create_table(unique())
    yield table
    client.delete_table(table.table_name)


@pytest.fixture(params=SCHEMES)
def wire(request, service):
    """Requests by hand."""
    with TableWire(service, request.param) as wire:
        yield wire


@pytest.fixture
def wire_table(wire):
    """The name of an empty table, made by hand."""
    name = unique()
    assert wire.send("POST", "/Tables", {"TableName": name}).status == 201
    yield name
    assert wire.send("DELETE", f"/Tables('{name}')").status == 204


def pytest_terminal_summary(terminalreporter):
    """The line from which the table of clients is made."""
    version = importlib.metadata.version("azure-data-tables")
    line = {"client": "azure-data-tables", "version": version, "language": "Python", "protocol": X_MS_VERSION}
    terminalreporter.write_line("client " + json.dumps(line))
