"""Who may do what: keys, connection strings, shared access signatures, stored policies."""

import datetime
import socket

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.data.tables import (
    AccountSasPermissions, ResourceTypes, TableAccessPolicy, TableSasPermissions, TableServiceClient,
    generate_account_sas, generate_table_sas,
)

from conftest import unique
from support.server import EMULATOR_KEY, Server
from support.table import ACCOUNT, ACCOUNT_KEY, answer, azurite_lacks
from support.table_expect import keys, refusal, refused

CREDENTIAL = AzureNamedKeyCredential(ACCOUNT, ACCOUNT_KEY)
ENTITY = {"PartitionKey": "a", "RowKey": "b", "v": 1}
ALL = AccountSasPermissions(read=True, write=True, delete=True, list=True, add=True, create=True, update=True, process=True)
EVERYTHING = ResourceTypes(service=True, container=True, object=True)


def soon(hours=1):
    return datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=hours)


def account_sas(permission=ALL, types=EVERYTHING, **options):
    options = {"expiry": soon(), **options}
    return AzureSasCredential(generate_account_sas(CREDENTIAL, types, permission, **options))


def table_sas(table, permission="raud", **options):
    if "policy_id" not in options:
        options = {"expiry": soon(), "permission": TableSasPermissions.from_string(permission), **options}
    return AzureSasCredential(generate_table_sas(CREDENTIAL, table.table_name, **options))


def test_a_wrong_key_is_refused(connect, table):
    other = connect.client(key=EMULATOR_KEY)
    for call in (
        lambda: list(other.list_tables()),
        lambda: other.create_table(unique()),
        lambda: other.get_table_client(table.table_name).upsert_entity(ENTITY),
        lambda: other.get_table_client(table.table_name).submit_transaction([("create", ENTITY)]),
        lambda: list(other.get_table_client(table.table_name).list_entities()),
    ):
        with pytest.raises(answer(ClientAuthenticationError, HttpResponseError)) as raised:
            call()
        assert refusal(raised.value) == (403, answer("AuthenticationFailed", "AuthorizationFailure"))
    assert list(table.list_entities()) == []


def test_a_wrong_account_is_refused(connect, service):
    # The key is right and belongs to another account than the one that is addressed, or to none.
    for address, name in (("nobody", "nobody"), ("nobody", ACCOUNT), (ACCOUNT, "nobody")):
        client = connect.client(endpoint=service.endpoint(connect.scheme, address), name=name)
        with pytest.raises(HttpResponseError) as raised:
            list(client.list_tables())
        assert raised.value.status_code in (400, 401, 403, 404)


def test_the_account_of_the_other_emulator(connect, service, client):
    azurite_lacks("a second account")
    other = connect.client(endpoint=service.endpoint(connect.scheme, "localhost"), name="localhost", key=EMULATOR_KEY)
    table = other.create_table(unique())
    table.create_entity(ENTITY)
    assert keys(table.list_entities()) == [("a", "b")]
    # An account's key opens no other account.
    crossed = connect.client(endpoint=service.endpoint(connect.scheme, "localhost"), name="localhost", key=ACCOUNT_KEY)
    # This account behaves as those of Cosmos DB do, which have another status for it.
    assert refused(lambda: list(crossed.list_tables()))[0] == 401
    other.delete_table(table.table_name)


def test_a_connection_string(connect, service):
    client = connect.from_connection_string(service.connection_string(connect.scheme))
    table = client.create_table(unique())
    table.create_entity(ENTITY)
    assert dict(table.get_entity("a", "b")) == ENTITY
    client.delete_table(table.table_name)


def test_a_connection_string_with_a_signature(connect, service, table):
    table.create_entity(ENTITY)
    text = f"TableEndpoint={connect.endpoint};SharedAccessSignature={account_sas().signature}"
    client = connect.from_connection_string(text)
    assert dict(client.get_table_client(table.table_name).get_entity("a", "b")) == ENTITY


def test_the_address_without_an_account(connect, service):
    """As the server prints it: the account is told by the signature."""
    azurite_lacks("addresses without an account")
    for account, key in ((ACCOUNT, ACCOUNT_KEY), ("localhost", EMULATOR_KEY)):
        text = (
            f"DefaultEndpointsProtocol={connect.scheme};AccountName={account};AccountKey={key};"
            f"TableEndpoint={connect.scheme}://127.0.0.1:{service.port}/;"
        )
        client = connect.from_connection_string(text)
        table = client.create_table(unique())
        table.create_entity(ENTITY)
        table.submit_transaction([("update", {**ENTITY, "v": 2})])
        assert table.get_entity("a", "b")["v"] == 2
        client.delete_table(table.table_name)


def test_the_address_of_development_storage(tmp_path):
    """The published address of the storage emulator, if its port was free."""
    azurite_lacks("a port of our choice")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = Server(tmp_path / "data", table=True)
    # A server on any free port does not offer the published one, so that several can run side by side.
    server.table_port = port
    with server:
        assert server.table_port == port
        if "UseDevelopmentStorage=true" not in server.screen:
            assert "used by another program" in server.screen
            return
        endpoint = f"http://127.0.0.1:10002/{ACCOUNT}"
        with TableServiceClient(endpoint, credential=CREDENTIAL, retry_total=0) as client:
            client.create_table("abc").create_entity(ENTITY)
        with TableServiceClient(f"http://127.0.0.1:{port}/{ACCOUNT}", credential=CREDENTIAL, retry_total=0) as client:
            assert dict(client.get_table_client("abc").get_entity("a", "b")) == ENTITY


def test_an_account_signature_may_do_everything(connect):
    client = connect.client(account_sas())
    table = client.create_table(unique())
    table.create_entity(ENTITY)
    table.update_entity({**ENTITY, "v": 2})
    table.upsert_entity({**ENTITY, "v": 3})
    table.submit_transaction([("create", {**ENTITY, "RowKey": "c"})])
    assert keys(table.list_entities()) == [("a", "b"), ("a", "c")]
    assert table.get_entity("a", "b")["v"] == 3
    table.delete_entity("a", "b")
    assert table.table_name in [found.name for found in client.list_tables()]
    client.delete_table(table.table_name)


@pytest.mark.parametrize(
    "permission, allowed",
    [
        (AccountSasPermissions(read=True), {"get", "query"}),
        (AccountSasPermissions(add=True), {"insert"}),
        (AccountSasPermissions(update=True), {"update"}),
        (AccountSasPermissions(add=True, update=True), {"insert", "update", "upsert"}),
        (AccountSasPermissions(delete=True), {"delete", "drop"}),
        (AccountSasPermissions(list=True), {"tables"}),
        (AccountSasPermissions(create=True), {"create"}),
        (AccountSasPermissions(write=True), {"create"}),
    ],
    ids=["read", "add", "update", "add-update", "delete", "list", "create", "write"],
)
def test_permissions_of_an_account_signature(connect, client, table, permission, allowed):
    check(connect.client(account_sas(permission)), client, table, allowed)


def check(held, client, table, allowed):
    """Tries what there is with one client, and compares what was allowed."""
    name = unique()
    own = held.get_table_client(table.table_name)
    table.upsert_entity(ENTITY)
    calls = {
        "get": lambda: own.get_entity("a", "b"),
        "query": lambda: list(own.list_entities()),
        "insert": lambda: own.create_entity({**ENTITY, "RowKey": unique()}),
        "update": lambda: own.update_entity(ENTITY),
        "upsert": lambda: own.upsert_entity(ENTITY),
        "tables": lambda: list(held.list_tables()),
        "create": lambda: held.create_table(name),
        "delete": lambda: own.delete_entity("a", "b"),
    }
    done = {verb for verb, call in calls.items() if is_allowed(call)}
    client.create_table_if_not_exists(name)
    if is_allowed(lambda: held.delete_table(name)):
        done.add("drop")
    client.delete_table(name)
    assert done == answer(allowed, allowed | ({"upsert"} & done))


def is_allowed(call):
    try:
        call()
    except HttpResponseError as error:
        status, code = refusal(error)
        assert status == 403, (status, code)
        assert answer(code == "AuthenticationFailed" or code.startswith("Authorization"), True), code
        return False
    return True


def test_resource_types_of_an_account_signature(connect, table):
    only_objects = connect.client(account_sas(types=ResourceTypes(object=True)))
    only_objects.get_table_client(table.table_name).create_entity(ENTITY)
    only_service = connect.client(account_sas(types=ResourceTypes(service=True)))
    only_service.get_service_properties()
    assert not is_allowed(lambda: only_service.get_table_client(table.table_name).get_entity("a", "b"))
    assert not is_allowed(lambda: only_objects.get_service_properties())


@pytest.mark.parametrize(
    "options",
    [{"expiry": soon(-1)}, {"start": soon(1), "expiry": soon(2)}, {"ip_address_or_range": "10.0.0.1"}],
    ids=["expired", "early", "elsewhere"],
)
def test_signatures_that_do_not_hold_now(connect, table, options):
    if "ip_address_or_range" in options:
        azurite_lacks("ranges of addresses")
    table.create_entity(ENTITY)
    assert not is_allowed(lambda: connect.client(account_sas(**options)).get_table_client(table.table_name).get_entity("a", "b"))
    assert not is_allowed(lambda: connect.table(table.table_name, table_sas(table, **options)).get_entity("a", "b"))


def test_a_signature_for_tls_only(connect, table):
    table.create_entity(ENTITY)
    # As text: the client writes the name of its own constant into the signature.
    held = connect.client(account_sas(protocol="https")).get_table_client(table.table_name)
    assert is_allowed(lambda: held.get_entity("a", "b")) == (connect.scheme == "https")


def test_a_changed_signature_is_refused(connect, table):
    table.create_entity(ENTITY)
    text = account_sas(AccountSasPermissions(read=True)).signature
    wider = AzureSasCredential(text.replace("sp=r", "sp=rwdlacu"))
    assert text != wider.signature
    assert not is_allowed(lambda: connect.client(wider).get_table_client(table.table_name).get_entity("a", "b"))
    forged = AzureSasCredential(generate_account_sas(AzureNamedKeyCredential(ACCOUNT, EMULATOR_KEY), EVERYTHING, ALL, soon()))
    assert not is_allowed(lambda: connect.client(forged).get_table_client(table.table_name).get_entity("a", "b"))


def test_a_table_signature(connect, client, table):
    held = connect.table(table.table_name, table_sas(table))
    held.create_entity(ENTITY)
    held.update_entity({**ENTITY, "v": 2})
    held.upsert_entity({**ENTITY, "v": 3})
    held.create_entity({**ENTITY, "RowKey": "c"})
    assert keys(held.list_entities()) == [("a", "b"), ("a", "c")]
    held.delete_entity("a", "c")
    # It opens no other table, and no operation on tables.
    azurite_lacks("transactions with the signature of a table, and lets it delete the table")
    assert not is_allowed(lambda: held.delete_table())
    held.submit_transaction([("create", {**ENTITY, "RowKey": "d"})])
    assert keys(held.list_entities()) == [("a", "b"), ("a", "d")]
    other = client.create_table(unique())
    assert not is_allowed(lambda: connect.table(other.table_name, table_sas(table)).create_entity(ENTITY))
    client.delete_table(other.table_name)


def test_a_table_signature_in_the_address(connect, table):
    table.create_entity(ENTITY)
    url = f"{connect.endpoint}/{table.table_name}?{table_sas(table, 'r').signature}"
    assert dict(connect.table_from_url(url).get_entity("a", "b")) == ENTITY


@pytest.mark.parametrize("permission, allowed", [
    ("r", {"get", "query"}), ("a", {"insert"}), ("u", {"update"}), ("d", {"delete"}), ("au", {"insert", "update", "upsert"})
])
def test_permissions_of_a_table_signature(connect, client, table, permission, allowed):
    check(connect.client(table_sas(table, permission)), client, table, allowed)


def test_a_table_signature_for_a_range_of_keys(connect, table):
    azurite_lacks("ranges of keys")
    for partition in "abc":
        for row in "123":
            table.create_entity({"PartitionKey": partition, "RowKey": row})
    held = connect.table(table.table_name, table_sas(table, start_pk="b", start_rk="2", end_pk="c", end_rk="1"))
    assert keys(held.list_entities()) == [("b", "2"), ("b", "3"), ("c", "1")]
    assert is_allowed(lambda: held.get_entity("b", "2"))
    for partition, row in (("a", "3"), ("b", "1"), ("c", "2")):
        assert not is_allowed(lambda: held.get_entity(partition, row))
        assert not is_allowed(lambda: held.upsert_entity({"PartitionKey": partition, "RowKey": row}))


def test_stored_policies(connect, table):
    assert table.get_table_access_policy() == {}
    begin, end = soon(-1).replace(microsecond=0), soon(1).replace(microsecond=0)
    policies = {
        "readers": TableAccessPolicy(permission="r", start=begin, expiry=end),
        "writers": TableAccessPolicy(permission="raud", start=begin, expiry=end),
    }
    if answer(True, False):
        # Azurite wants all fields of a policy.
        policies |= {"open": None, "endless": TableAccessPolicy(permission="r")}
    table.set_table_access_policy(policies)
    found = table.get_table_access_policy()
    assert set(found) == set(policies)
    assert found["readers"].permission == "r"
    assert (found["readers"].start, found["readers"].expiry) == (begin, end)
    assert found["writers"].permission == "raud"

    writers = connect.table(table.table_name, table_sas(table, policy_id="writers"))
    writers.create_entity(ENTITY)
    readers = connect.table(table.table_name, table_sas(table, policy_id="readers"))
    assert dict(readers.get_entity("a", "b")) == ENTITY
    assert not is_allowed(lambda: readers.delete_entity("a", "b"))
    assert not is_allowed(lambda: connect.table(table.table_name, table_sas(table, policy_id="absent")).get_entity("a", "b"))

    # A policy that is changed or gone changes signatures that exist.
    expired = TableAccessPolicy(permission="r", start=begin, expiry=soon(-0.5))
    table.set_table_access_policy({"readers": expired})
    assert not is_allowed(lambda: readers.get_entity("a", "b"))
    assert not is_allowed(lambda: writers.get_entity("a", "b"))
    table.set_table_access_policy({})
    assert table.get_table_access_policy() == {}


def test_more_than_five_policies_are_refused(table):
    policies = {f"p{number}": TableAccessPolicy(permission="r", start=soon(), expiry=soon()) for number in range(5)}
    table.set_table_access_policy(policies)
    assert set(table.get_table_access_policy()) == set(policies)
    # The client explains the refusal with an error of its own.
    with pytest.raises((ValueError, HttpResponseError)):
        table.set_table_access_policy({**policies, "p5": policies["p0"]})
    assert set(table.get_table_access_policy()) == set(policies)
