"""Tables: create, create if absent, list, delete, and what is refused."""

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError

from conftest import unique
from support.table import azurite_lacks
from support.table_expect import refusal


def names(tables):
    return [table.name for table in tables]


def test_a_table_is_created_listed_and_deleted(client):
    name = unique()
    table = client.create_table(name)
    assert table.table_name == name
    assert names(client.query_tables(f"TableName eq '{name}'")) == [name]
    assert name in names(client.list_tables())
    client.delete_table(name)
    assert names(client.query_tables(f"TableName eq '{name}'")) == []


def test_create_through_the_client_of_the_table(client):
    table = client.get_table_client(unique())
    assert table.create_table().name == table.table_name
    with pytest.raises(ResourceExistsError) as raised:
        table.create_table()
    assert refusal(raised.value) == (409, "TableAlreadyExists")
    table.delete_table()
    # The client takes an absent table for a deleted one.
    table.delete_table()


def test_create_twice_is_refused_and_create_if_absent_is_not(client):
    name = unique()
    client.create_table(name)
    with pytest.raises(ResourceExistsError) as raised:
        client.create_table(name)
    assert refusal(raised.value) == (409, "TableAlreadyExists")
    table = client.create_table_if_not_exists(name)
    table.create_entity({"PartitionKey": "a", "RowKey": "b"})
    assert client.create_table_if_not_exists(name).get_entity("a", "b")
    client.delete_table(name)
    assert client.create_table_if_not_exists(name).table_name == name
    assert list(client.get_table_client(name).list_entities()) == []
    client.delete_table(name)


def test_an_absent_table_is_refused(client):
    name = unique()
    client.delete_table(name)
    table = client.get_table_client(name)
    entity = {"PartitionKey": "a", "RowKey": "b"}
    for call in (
        lambda: table.create_entity(entity),
        lambda: table.upsert_entity(entity),
        lambda: table.update_entity(entity),
        lambda: list(table.list_entities()),
        lambda: table.get_entity("a", "b"),
        lambda: table.get_table_access_policy(),
        lambda: table.set_table_access_policy({}),
        lambda: table.submit_transaction([("create", entity)]),
    ):
        with pytest.raises(HttpResponseError) as raised:
            call()
        assert refusal(raised.value) == (404, "TableNotFound")


@pytest.mark.parametrize("name", ["a", "ab", "1abc", "a-b", "a_b", "a b", "tables", "x" * 64])
def test_bad_names_are_refused(client, name):
    if name == "tables":
        azurite_lacks("reserved names")
    # The client explains these refusals with an error of its own.
    with pytest.raises((ValueError, HttpResponseError)) as raised:
        client.create_table(name)
    if isinstance(raised.value, HttpResponseError):
        assert raised.value.status_code == 400


@pytest.mark.parametrize("length", [3, 63])
def test_names_of_the_longest_and_shortest_length(client, length):
    name = unique("n").ljust(63, "x")[:63] if length == 63 else "n" + unique()[-2:]
    client.delete_table(name)
    client.create_table(name)
    assert names(client.query_tables(f"TableName eq '{name}'")) == [name]
    client.delete_table(name)


def test_list_by_filter_and_by_page(client):
    prefix = unique("list")
    made = [f"{prefix}{index:02}" for index in range(7)]
    for name in reversed(made):
        client.create_table(name)
    within = f"TableName ge '{prefix}' and TableName lt '{prefix}zz'"
    assert names(client.query_tables(within)) == made
    assert names(client.query_tables("TableName eq @name", parameters={"name": made[3]})) == [made[3]]
    pages = [names(page) for page in client.query_tables(within, results_per_page=3).by_page()]
    assert [name for page in pages for name in page] == made
    assert max(map(len, pages)) <= 3
    # A later client goes on where a page ended.
    first = client.query_tables(within, results_per_page=3).by_page()
    begun = names(next(first))
    rest = client.query_tables(within, results_per_page=3).by_page(continuation_token=first.continuation_token)
    assert begun + [name for page in rest for name in names(page)] == made
    for name in made:
        client.delete_table(name)


def test_a_table_made_again_is_empty(client, table):
    table.create_entity({"PartitionKey": "a", "RowKey": "b"})
    client.delete_table(table.table_name)
    with pytest.raises(ResourceNotFoundError):
        table.get_entity("a", "b")
    client.create_table(table.table_name)
    assert list(table.list_entities()) == []
