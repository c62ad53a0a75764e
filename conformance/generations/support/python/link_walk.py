"""The walk-through of the clients that address resources by links: `pydocumentdb`, and `azure-cosmos` before 4.0.

Both have the same methods under different names: documents and collections became items and containers.
"""

import walk
from walk import DATA

# More pages than any correct answer has; a continuation that leads nowhere must not run for ever.
PAGES_MAX = 50


class Walk:
    """One client and one database. `nouns` are the words for item and container in the client's methods."""

    def __init__(self, client, database, nouns):
        self.client = client
        self.database = database
        self.item, self.container = nouns
        self.database_link = f"dbs/{database}"
        self.container_link = f"{self.database_link}/colls/{DATA['container']['id']}"

    def run(self):
        self.catalog()
        self.items()
        for query in DATA["queries"]:
            walk.check_query(query, list(self.rows(query)))
        self.pages()
        self.replace()
        self.delete()
        self.offers()
        self.drop()

    def call(self, verb, noun, *arguments):
        """`ReadDocument`, `ReadDocuments`, `ReadItem` and so on."""
        return getattr(self.client, verb + noun)(*arguments)

    def refused(self, name, status, verb, noun, *arguments):
        status_of = lambda error: getattr(error, "status_code", None)
        walk.check_refused(name, status, status_of, lambda: self.call(verb, noun, *arguments))

    def item_link(self, item):
        return f"{self.container_link}/docs/{item['id']}"

    def catalog(self):
        made = self.client.CreateDatabase({"id": self.database})
        walk.check("create database", made["id"], self.database)
        self.refused("create database twice", 409, "Create", "Database", {"id": self.database})
        listed = [database["id"] for database in self.client.ReadDatabases()]
        walk.check("list databases", self.database in listed, True)
        wanted = DATA["container"]
        definition = {"id": wanted["id"], "partitionKey": {"paths": [wanted["partitionKey"]], "kind": "Hash"}}
        options = {"offerThroughput": wanted["throughput"]}
        made = self.call("Create", self.container, self.database_link, definition, options)
        walk.check("create container", made["id"], wanted["id"])
        read = self.call("Read", self.container, self.container_link)
        walk.check("read container", read["partitionKey"]["paths"], [wanted["partitionKey"]])
        listed = [container["id"] for container in self.call("Read", self.container + "s", self.database_link)]
        walk.check("list containers", listed, [wanted["id"]])

    def items(self):
        made = [self.call("Create", self.item, self.container_link, item) for item in DATA["documents"]]
        walk.check("create items", [walk.plain(item) for item in made], DATA["documents"])
        self.refused("create item twice", 409, "Create", self.item, self.container_link, DATA["read"])
        read = self.call("Read", self.item, self.item_link(DATA["read"]), of(DATA["read"]))
        walk.check("read item", walk.plain(read), DATA["read"])
        absent = DATA["absent"]
        self.refused("read absent item", 404, "Read", self.item, self.item_link(absent), of(absent))

    def rows(self, query, **options):
        if query["key"] is None:
            options["enableCrossPartitionQuery"] = True
        else:
            options["partitionKey"] = query["key"]
        text = query["text"]
        if "parameters" in query:
            text = {"query": text, "parameters": query["parameters"]}
        return self.call("Query", self.item + "s", self.container_link, text, options)

    def pages(self):
        feed = list(self.call("Read", self.item + "s", self.container_link))
        walk.check_in_any_order("read feed", [walk.plain(item) for item in feed], DATA["documents"])
        wanted = DATA["feedPages"]
        iterable = self.call("Read", self.item + "s", self.container_link, {"maxItemCount": wanted["size"]})
        walk.check_pages("feed in pages", [[item["id"] for item in page] for page in blocks(iterable)], wanted)
        # These clients follow continuations by themselves but cannot be given one.
        wanted = DATA["queryPages"]
        walk.check_pages("query in pages", list(blocks(self.rows(wanted, maxItemCount=wanted["size"]))), wanted)

    def replace(self):
        before = self.call("Read", self.item, self.item_link(DATA["read"]), of(DATA["read"]))
        replaced = DATA["replaced"]
        link = self.item_link(replaced)
        answer = self.call("Replace", self.item, link, replaced, of(replaced))
        walk.check("replace item", walk.plain(answer), replaced)
        conditional = DATA["replacedOnCondition"]
        options = {**of(conditional), "accessCondition": {"type": "IfMatch", "condition": answer["_etag"]}}
        answer = self.call("Replace", self.item, link, conditional, options)
        walk.check("conditional replace", walk.plain(answer), conditional)
        options["accessCondition"] = {"type": "IfMatch", "condition": before["_etag"]}
        self.refused("conditional replace of an old version", 412, "Replace", self.item, link, replaced, options)
        read = self.call("Read", self.item, link, of(conditional))
        walk.check("read replaced item", walk.plain(read), conditional)
        absent = DATA["absent"]
        self.refused("replace absent item", 404, "Replace", self.item, self.item_link(absent), absent, of(absent))
        answer = self.call("Upsert", self.item, self.container_link, DATA["upserted"])
        walk.check("upsert item", walk.plain(answer), DATA["upserted"])

    def delete(self):
        deleted = DATA["deleted"]
        self.call("Delete", self.item, self.item_link(deleted), of(deleted))
        self.refused("delete item", 404, "Read", self.item, self.item_link(deleted), of(deleted))
        self.refused("delete absent item", 404, "Delete", self.item, self.item_link(deleted), of(deleted))

    def offers(self):
        container = self.call("Read", self.container, self.container_link)
        query = {
            "query": "SELECT * FROM root r WHERE r.resource = @link",
            "parameters": [{"name": "@link", "value": container["_self"]}],
        }
        offer = list(self.client.QueryOffers(query))[0]
        walk.check("read offer", offer["content"]["offerThroughput"], DATA["container"]["throughput"])
        offer["content"]["offerThroughput"] = DATA["container"]["throughputReplaced"]
        self.client.ReplaceOffer(offer["_self"], offer)
        offer = self.client.ReadOffer(offer["_self"])
        walk.check("replace offer", offer["content"]["offerThroughput"], DATA["container"]["throughputReplaced"])

    def drop(self):
        self.call("Delete", self.container, self.container_link)
        self.refused("delete container", 404, "Read", self.container, self.container_link)
        self.client.DeleteDatabase(self.database_link)
        self.refused("delete database", 404, "Read", "Database", self.database_link)


def of(item):
    """The option that names the item's partition key."""
    return {"partitionKey": item["device"]}


def blocks(iterable):
    """The pages of an iterable; it gives an empty one at its end."""
    for _ in range(PAGES_MAX):
        page = iterable.fetch_next_block()
        if not page:
            return
        yield page
