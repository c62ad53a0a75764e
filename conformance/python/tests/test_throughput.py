"""Throughput of containers and databases, which clients find by a query over offers; queries over other resources."""

import pytest
from azure.cosmos import PartitionKey, ThroughputProperties
from azure.cosmos.exceptions import CosmosHttpResponseError

from support.expect import status_of
from tests.conftest import unique


def test_throughput_of_a_container_is_read_and_replaced(make_container):
    container = make_container(offer_throughput=1000)
    make_container(offer_throughput=700)
    assert container.get_throughput().offer_throughput == 1000
    assert container.replace_throughput(1200).offer_throughput == 1200
    assert container.get_throughput().offer_throughput == 1200
    assert status_of(container.replace_throughput, 350)[0] == 400
    assert container.get_throughput().offer_throughput == 1200


def test_autoscale_throughput_is_read_and_replaced(make_container):
    container = make_container(offer_throughput=ThroughputProperties(auto_scale_max_throughput=4000))
    assert container.get_throughput().auto_scale_max_throughput == 4000
    container.replace_throughput(ThroughputProperties(auto_scale_max_throughput=6000))
    assert container.get_throughput().auto_scale_max_throughput == 6000


def test_throughput_of_a_database_is_shared(client):
    database = client.create_database(unique("db"), offer_throughput=800)
    try:
        container = database.create_container(unique("c"), PartitionKey("/pk"))
        assert database.get_throughput().offer_throughput == 800
        assert database.replace_throughput(900).offer_throughput == 900
        # It has none of its own: the client finds no offer, makes a 404 of it, and stumbles over that by itself.
        with pytest.raises((CosmosHttpResponseError, AttributeError)):
            container.get_throughput()
    finally:
        client.delete_database(database.id)


def test_databases_and_containers_are_queried(client, database, make_container):
    made = sorted(make_container().id for _ in range(3))
    listed = database.query_containers("SELECT * FROM c WHERE STARTSWITH(c.id, 'c-')")
    assert set(made) <= {found["id"] for found in listed}
    parameters = [{"name": "@id", "value": made[0]}]
    [found] = database.query_containers({"query": "SELECT * FROM root r WHERE r.id = @id", "parameters": parameters})
    assert found["id"] == made[0] and found["partitionKey"]["paths"] == ["/pk"]
    parameters = [{"name": "@id", "value": database.id}]
    assert [found["id"] for found in client.query_databases("SELECT * FROM c WHERE c.id = @id", parameters=parameters)] == [database.id]
    ordered = database.query_containers("SELECT c.id FROM c ORDER BY c.id DESC", max_item_count=1)
    assert [found["id"] for found in ordered if found["id"] in made] == made[::-1]


def test_users_and_scripts_are_queried(database, container):
    user = database.create_user({"id": unique("u")})
    permission = {"id": "p", "permissionMode": "Read", "resource": container.container_link}
    user.create_permission(permission)
    try:
        assert [found["id"] for found in database.query_users(f"SELECT * FROM c WHERE c.id = '{user.id}'")] == [user.id]
        assert [found["id"] for found in user.query_permissions("SELECT * FROM c")] == ["p"]
    finally:
        database.delete_user(user.id)
    scripts = container.scripts
    scripts.create_stored_procedure({"id": "s", "body": "function () {}"})
    found = scripts.query_stored_procedures("SELECT VALUE c.id FROM c")
    assert list(found) == ["s"]
    assert list(container.query_conflicts("SELECT * FROM c", partition_key="a")) == []


@pytest.mark.parametrize("text", ["SELECT", "SELECT * FROM c WHERE", "SELECT NOSUCH(c.id) FROM c"])
def test_a_query_that_is_none_is_refused(database, text):
    assert status_of(lambda: list(database.query_containers(text)))[0] == 400
