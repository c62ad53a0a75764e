"""Users, permissions, and clients that hold a permission instead of a key."""

import pytest
from azure.cosmos import PartitionKey

from conftest import unique
from support.expect import message_of, status_of


@pytest.fixture
def user(database):
    user = database.create_user({"id": unique("user")})
    yield user
    database.delete_user(user.id)


def permission(resource, mode="Read", key=None):
    body = {"id": unique("permission"), "permissionMode": mode, "resource": resource}
    return body if key is None else {**body, "resourcePartitionKey": key}


def link(database, container):
    return f"dbs/{database.id}/colls/{container.id}"


def test_users_are_created_read_replaced_listed_and_deleted(database):
    name = unique("user")
    created = database.create_user({"id": name})
    assert created.read()["id"] == name
    assert status_of(database.create_user, {"id": name}) == (409, 0)
    assert database.upsert_user({"id": name}).id == name
    assert name in [found["id"] for found in database.list_users()]
    renamed = unique("renamed")
    assert database.replace_user(name, {"id": renamed}).id == renamed
    assert status_of(database.get_user_client(name).read) == (404, 0)
    database.delete_user(renamed)
    assert status_of(database.delete_user, renamed) == (404, 0)


def test_users_are_listed_in_pages(database):
    names = {unique("user") for _ in range(5)}
    for name in names:
        database.create_user({"id": name})
    pages = [[found["id"] for found in page] for page in database.list_users(max_item_count=2).by_page()]
    assert max(len(page) for page in pages) <= 2
    assert names <= {found for page in pages for found in page}
    for name in names:
        database.delete_user(name)


def test_permissions_are_created_read_replaced_listed_and_deleted(database, container, user):
    body = permission(link(database, container), "read")
    created = user.create_permission(body)
    assert created.permission_mode == "read" and created.resource_link == body["resource"]
    assert created.properties["_token"].startswith("type=resource&ver=1")
    assert user.get_permission(created.id).properties["_etag"] == created.properties["_etag"]
    assert [found["id"] for found in user.list_permissions()] == [created.id]
    assert status_of(user.create_permission, {**body, "id": "another"}) == (409, 0)
    replaced = user.replace_permission(created.id, {**body, "permissionMode": "All"})
    assert replaced.permission_mode == "All"
    upserted = user.upsert_permission({**body, "permissionMode": "Read"})
    assert upserted.properties["_rid"] == created.properties["_rid"]
    user.delete_permission(created.id)
    assert status_of(user.get_permission, created.id) == (404, 0)
    absent = permission(f"dbs/{database.id}/colls/nothing")
    assert user.create_permission(absent).resource_link == absent["resource"]


def test_a_reader_reads_and_does_not_write(database, container, user, with_permissions):
    container.create_item({"id": "1", "pk": "a"})
    created = user.create_permission(permission(link(database, container)))
    reader = with_permissions(created.properties).get_database_client(database.id)
    items = reader.get_container_client(container.id)
    assert items.read_item("1", "a")["pk"] == "a"
    assert [item["id"] for item in items.read_all_items()] == ["1"]
    assert status_of(items.create_item, {"id": "2", "pk": "a"}) == (403, 0)
    assert status_of(items.read_item, "2", "a") == (404, 0)
    assert items.read()["id"] == container.id


def test_a_writer_of_one_key_stays_inside_it(database, container, user, with_permissions):
    created = user.create_permission(permission(link(database, container), "All", ["a"]))
    writer = with_permissions(created.properties).get_database_client(database.id)
    items = writer.get_container_client(container.id)
    items.create_item({"id": "1", "pk": "a"})
    assert items.replace_item("1", {"id": "1", "pk": "a", "n": 1})["n"] == 1
    assert status_of(items.create_item, {"id": "1", "pk": "b"}) == (403, 0)
    assert status_of(items.read_item, "1", "b") == (403, 0)
    items.delete_item("1", "a")


def test_a_holder_of_an_item_has_that_item_only(database, container, user, with_permissions):
    for name in ("1", "2"):
        container.create_item({"id": name, "pk": "a"})
    body = permission(f"{link(database, container)}/docs/1", "All", ["a"])
    created = user.create_permission(body)
    guest = with_permissions({**created.properties, "resource": link(database, container)})
    items = guest.get_database_client(database.id).get_container_client(container.id)
    assert items.replace_item("1", {"id": "1", "pk": "a", "n": 1})["n"] == 1
    assert status_of(items.read_item, "2", "a") == (403, 0)
    assert status_of(items.create_item, {"id": "3", "pk": "a"}) == (403, 0)
    user.replace_permission(created.id, {**body, "permissionMode": "Read"})
    status, text = message_of(items.read_item, "1", "a")
    assert status == 403 and "ended" in text


def test_a_tenant_stays_inside_the_prefix_of_its_key(database, make_container, user, with_permissions):
    container = make_container(PartitionKey(["/tenant", "/user"], kind="MultiHash"))
    for tenant in ("x", "y"):
        container.create_item({"id": "1", "tenant": tenant, "user": 1})
    created = user.create_permission(permission(link(database, container), "All", ["x"]))
    tenant = with_permissions(created.properties).get_database_client(database.id)
    items = tenant.get_container_client(container.id)
    assert items.read_item("1", ["x", 1])["tenant"] == "x"
    items.create_item({"id": "2", "tenant": "x", "user": 2})
    assert status_of(items.read_item, "1", ["y", 1]) == (403, 0)
    assert status_of(items.upsert_item, {"id": "2", "tenant": "y", "user": 2}) == (403, 0)


def test_a_permission_for_one_container_reaches_no_other(database, container, make_container, user, with_permissions):
    other = make_container()
    other.create_item({"id": "1", "pk": "a"})
    created = user.create_permission(permission(link(database, container), "All"))
    foreign = {**created.properties, "resource": link(database, other)}
    client = with_permissions(foreign).get_database_client(database.id)
    assert status_of(client.get_container_client(other.id).read_item, "1", "a") == (403, 0)
    absent = {**created.properties, "resource": link(database, other) + "-absent"}
    client = with_permissions(absent).get_database_client(database.id)
    assert status_of(client.get_container_client(other.id + "-absent").read_item, "1", "a") == (403, 0)


def test_a_token_ends_with_its_permission(database, container, user, with_permissions):
    container.create_item({"id": "1", "pk": "a"})
    created = user.create_permission(permission(link(database, container)))
    reader = with_permissions(created.properties).get_database_client(database.id)
    items = reader.get_container_client(container.id)
    assert items.read_item("1", "a")["id"] == "1"
    user.delete_permission(created.id)
    status, text = message_of(items.read_item, "1", "a")
    assert status == 403 and "ended" in text


def test_the_life_of_a_token_is_bounded(database, container, user):
    body = permission(link(database, container))
    created = user.create_permission(body, resource_token_expiry_seconds=10)
    assert user.get_permission(created.id, resource_token_expiry_seconds=86400).properties["_token"]
    assert status_of(user.get_permission, created.id, resource_token_expiry_seconds=9) == (400, 0)
    assert status_of(user.get_permission, created.id, resource_token_expiry_seconds=86401) == (400, 0)


def test_deleting_a_user_deletes_the_permissions(database, container):
    name = unique("user")
    user = database.create_user({"id": name})
    user.create_permission(permission(link(database, container)))
    database.delete_user(name)
    again = database.create_user({"id": name})
    assert list(again.list_permissions()) == []
    database.delete_user(name)
