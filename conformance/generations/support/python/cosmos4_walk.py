"""The walk-through of `azure-cosmos` 4.x: clients of databases and containers, azure-core's errors and pages."""

import importlib.metadata

import walk
from azure.core import MatchConditions
from azure.cosmos import CosmosClient, PartitionKey, exceptions, http_constants
from walk import DATA

# More pages than any correct answer has; a continuation that leads nowhere must not run for ever.
PAGES_MAX = 50


def main(can_resume=True):
    """Walks through with the endpoint as the portal shows it and as people write it.

    `can_resume`: the client honours a continuation that it is given.
    """
    version = importlib.metadata.version("azure-cosmos")
    walk.report("azure-cosmos", version, http_constants.Versions.CurrentVersion)
    for name, endpoint in [("slash", walk.endpoint()), ("no-slash", walk.endpoint().rstrip("/"))]:
        client = CosmosClient(endpoint, credential=walk.KEY)
        through(client, f"azure-cosmos-{version}-{name}", can_resume)
    walk.finish()


def through(client, database_id, can_resume):
    database, container = catalog(client, database_id)
    items(container)
    for query in DATA["queries"]:
        walk.check_query(query, list(rows(container, query)))
    pages(container, can_resume)
    replace(container)
    delete(container)
    throughput(container)
    drop(client, database, container)


def refused(name, kind, call):
    """4.x has a class of its own for each of these statuses."""
    status = {exceptions.CosmosResourceNotFoundError: 404, exceptions.CosmosResourceExistsError: 409}.get(kind, 412)
    status_of = lambda error: error.status_code if isinstance(error, kind) else None
    walk.check_refused(name, status, status_of, call)


def catalog(client, database_id):
    database = client.create_database(database_id)
    walk.check("create database", database.read()["id"], database_id)
    refused("create database twice", exceptions.CosmosResourceExistsError, lambda: client.create_database(database_id))
    walk.check("list databases", database_id in [database["id"] for database in client.list_databases()], True)
    wanted = DATA["container"]
    key = PartitionKey(path=wanted["partitionKey"])
    container = database.create_container(id=wanted["id"], partition_key=key, offer_throughput=wanted["throughput"])
    walk.check("create container", container.id, wanted["id"])
    walk.check("read container", container.read()["partitionKey"]["paths"], [wanted["partitionKey"]])
    walk.check("list containers", [container["id"] for container in database.list_containers()], [wanted["id"]])
    return database, container


def items(container):
    made = [container.create_item(item) for item in DATA["documents"]]
    walk.check("create items", [walk.plain(item) for item in made], DATA["documents"])
    again = lambda: container.create_item(DATA["read"])
    refused("create item twice", exceptions.CosmosResourceExistsError, again)
    walk.check("read item", walk.plain(read(container, DATA["read"])), DATA["read"])
    absent = lambda: read(container, DATA["absent"])
    refused("read absent item", exceptions.CosmosResourceNotFoundError, absent)


def read(container, item):
    return container.read_item(item["id"], partition_key=item["device"])


def rows(container, query, **options):
    if query["key"] is None:
        options["enable_cross_partition_query"] = True
    else:
        options["partition_key"] = query["key"]
    return container.query_items(query["text"], parameters=query.get("parameters"), **options)


def pages(container, can_resume):
    feed = [walk.plain(item) for item in container.read_all_items()]
    walk.check_in_any_order("read feed", feed, DATA["documents"])
    wanted = DATA["feedPages"]
    feed = container.read_all_items(max_item_count=wanted["size"]).by_page()
    walk.check_pages("feed in pages", [[item["id"] for item in page] for page in feed], wanted)
    wanted = DATA["queryPages"]
    if can_resume:
        found = resumed(container, wanted)
    else:
        found = [list(page) for page in rows(container, wanted, max_item_count=wanted["size"]).by_page()]
    walk.check_pages("query in pages", found, wanted)


def resumed(container, wanted):
    """Each page by a query of its own that resumes with the continuation of the last."""
    found, token = [], None
    for _ in range(PAGES_MAX):
        pager = rows(container, wanted, max_item_count=wanted["size"]).by_page(token)
        found.append(list(next(pager)))
        token = pager.continuation_token
        if not token:
            break
    return found


def replace(container):
    before = read(container, DATA["read"])
    replaced = DATA["replaced"]
    answer = container.replace_item(item=replaced["id"], body=replaced)
    walk.check("replace item", walk.plain(answer), replaced)
    conditional = DATA["replacedOnCondition"]
    unless_changed = lambda etag: container.replace_item(
        item=conditional["id"], body=conditional, etag=etag, match_condition=MatchConditions.IfNotModified
    )
    walk.check("conditional replace", walk.plain(unless_changed(answer["_etag"])), conditional)
    stale = lambda: unless_changed(before["_etag"])
    refused("conditional replace of an old version", exceptions.CosmosAccessConditionFailedError, stale)
    walk.check("read replaced item", walk.plain(read(container, conditional)), conditional)
    absent = lambda: container.replace_item(item=DATA["absent"]["id"], body=DATA["absent"])
    refused("replace absent item", exceptions.CosmosResourceNotFoundError, absent)
    walk.check("upsert item", walk.plain(container.upsert_item(DATA["upserted"])), DATA["upserted"])


def delete(container):
    deleted = DATA["deleted"]
    remove = lambda: container.delete_item(deleted["id"], partition_key=deleted["device"])
    remove()
    refused("delete item", exceptions.CosmosResourceNotFoundError, lambda: read(container, deleted))
    refused("delete absent item", exceptions.CosmosResourceNotFoundError, remove)


def throughput(container):
    # 4.3 renamed the method; the old name lives on.
    current = lambda: getattr(container, "get_throughput", container.read_offer)().offer_throughput
    walk.check("read offer", current(), DATA["container"]["throughput"])
    container.replace_throughput(DATA["container"]["throughputReplaced"])
    walk.check("replace offer", current(), DATA["container"]["throughputReplaced"])


def drop(client, database, container):
    database.delete_container(container.id)
    refused("delete container", exceptions.CosmosResourceNotFoundError, container.read)
    client.delete_database(database.id)
    refused("delete database", exceptions.CosmosResourceNotFoundError, database.read)
